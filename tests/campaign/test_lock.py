"""The lock: what is frozen, what is refused later, and what is reported as drift."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_envs.baselines import load, rollout
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.lock import LOCK_NAME, Lock, LockError, drift, make_lock, read_lock, refuse_edits, write_lock
from agent_envs.campaign.manifest import Manifest, read_manifest
from agent_envs.campaign.spec import load_spec
from agent_envs.contract import SpecError, TaskError
from agent_envs.episode.suite import Suite

ENV = "agenteval/refund-v1"


def manifest(**changes: Any) -> Manifest:
    data: dict[str, Any] = {
        "name": "small",
        "decision": "Take it or not.",
        "population": "Generated refund requests.",
        "systems": [
            {"name": "careful", "policy": "rulebook", "limits": {"steps": 30}},
            {"name": "gold", "policy": "reference"},
        ],
        "suite": [{"env": ENV, "train": 3}],
        "attempts": 4,
        "canaries": {
            "known_pass": {"policy": "reference", "task": "refund/train-0"},
            "known_fail": {"policy": "noop", "task": "refund/train-0"},
        },
    }
    return Manifest.model_validate(data | changes)


@pytest.fixture
def lock() -> Lock:
    return make_lock(manifest())


def test_a_lock_reads_back_with_plan_and_digest(lock: Lock, tmp_path: Path) -> None:
    write_lock(lock, tmp_path / "new" / "folder")
    found = read_lock(tmp_path / "new" / "folder")
    assert (found, found.digest, found.planned) == (lock, lock.digest, lock.planned)
    assert len(found.planned) == 2 * 3 * 4
    assert os.listdir(tmp_path / "new" / "folder") == [LOCK_NAME]


def test_the_locked_hash_is_the_one_in_records(lock: Lock) -> None:
    with make_env(ENV, {"steps": 30}) as env:
        run = rollout(env, load("rulebook"), seed=1, task="refund/train-0")
    assert run.system_spec_hash == lock.spec("careful", ENV).digest
    assert run.task_digest == lock.planned[0].task_digest or run.task_digest in {t.task_digest for t in lock.tasks}


def test_oracles_are_flagged(lock: Lock) -> None:
    """B063."""
    assert lock.oracles == ("gold",)


def test_the_same_manifest_locks_to_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    """Law 5."""
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(manifest().as_json()), encoding="utf-8")
    code = (
        "import sys; from pathlib import Path\n"
        "from agent_envs.campaign.lock import make_lock, write_lock\n"
        "from agent_envs.campaign.manifest import load_manifest\n"
        "write_lock(make_lock(load_manifest(Path(sys.argv[1]))), Path(sys.argv[2]))"
    )
    root = str(Path(__file__).resolve().parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(tmp_path / seed)],
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert [process.wait() for process in started] == [0, 0]
    assert (tmp_path / "1" / LOCK_NAME).read_bytes() == (tmp_path / "2" / LOCK_NAME).read_bytes()


def test_starting_again_is_fine_and_another_campaign_is_not(lock: Lock, tmp_path: Path) -> None:
    """B138."""
    write_lock(lock, tmp_path)
    before = (tmp_path / LOCK_NAME).read_bytes()
    write_lock(lock, tmp_path)
    with pytest.raises(LockError, match=r"another campaign is locked here.*attempts"):
        write_lock(make_lock(manifest(attempts=5)), tmp_path)
    assert (tmp_path / LOCK_NAME).read_bytes() == before


def test_of_two_that_start_at_once_one_locks_and_neither_harms_the_other(
    lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B138: the other one writes its lock while this one is about to put its own in place."""
    link, other = os.link, make_lock(manifest(attempts=5))

    def overtaken(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        write_lock(other, tmp_path)
        link(source, target)

    monkeypatch.setattr(os, "link", overtaken)
    with pytest.raises(LockError, match=r"another campaign is locked here.*attempts"):
        write_lock(lock, tmp_path)
    assert read_lock(tmp_path) == other
    monkeypatch.setattr(os, "link", overtaken)
    (tmp_path / LOCK_NAME).unlink()
    write_lock(other, tmp_path)  # the very same campaign: whoever was faster
    assert read_lock(tmp_path) == other
    assert [entry.name for entry in tmp_path.iterdir()] == [LOCK_NAME]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attempts": 5}, "attempts: locked 4, manifest says 5"),
        ({"seed": 1}, "seed: locked 0, manifest says 1"),
        ({"budgets": {"total_cost": 2.0}}, "budgets.total_cost: locked nothing, manifest says 2.0"),
        ({"suite": [{"env": ENV, "train": 4}]}, "suite.0.train: locked 3, manifest says 4"),
        (
            {
                "systems": [
                    {"name": "gold", "policy": "reference"},
                    {"name": "careful", "policy": "rulebook", "limits": {"steps": 31}},
                ]
            },
            "systems.careful.limits.steps: locked 30, manifest says 31",
        ),
        ({"retry": {"max_tries": 9}}, "retry.max_tries: locked 3, manifest says 9"),
    ],
)
def test_a_later_edit_is_refused_by_the_name_of_the_field(lock: Lock, changes: dict[str, Any], message: str) -> None:
    refuse_edits(lock, manifest())
    with pytest.raises(LockError) as caught:
        refuse_edits(lock, manifest(**changes))
    assert message in str(caught.value) and "start a new campaign in another folder" in str(caught.value)


def test_a_default_written_out_is_no_edit(lock: Lock) -> None:
    refuse_edits(lock, manifest(minimum_coverage=0.95, retry={"max_tries": 3}))


def test_nothing_has_drifted_right_after_locking(lock: Lock) -> None:
    assert drift(lock) == []


def test_a_rewritten_policy_is_drift(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def act(observation, info):\n    return {}\n")
    lock = make_lock(manifest(systems=[{"name": "mine", "policy": f"{path}:act"}]))
    assert drift(lock) == []
    path.write_text("def act(observation, info):\n    return []\n")
    assert [(item.kind, item.name, item.path) for item in drift(lock)] == [("system", "mine", "policy.source")]


def test_a_changed_or_vanished_task_is_drift(lock: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Suite.task

    def task(self: Suite, task_id: str) -> Any:
        if task_id == "refund/train-1":
            from agent_envs.contract import TaskError

            raise TaskError("gone")
        found = original(self, task_id)
        return found.model_copy(update={"task_revision": 2}) if task_id == "refund/train-2" else found

    monkeypatch.setattr(Suite, "task", task)
    found = {item.name: item.after for item in drift(lock) if item.kind == "task"}
    assert found.keys() == {"refund/train-1", "refund/train-2"}
    assert found["refund/train-1"] is None and found["refund/train-2"]


def test_changed_judges_are_drift_of_the_grader_alone(lock: Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the planner may judge again instead of running again."""
    from agent_envs.wrappers import system

    real = system.code_digest
    monkeypatch.setattr(system, "code_digest", lambda *floors: "0" * 64 if "evaluator" in floors else real(*floors))
    assert {(item.kind, item.path) for item in drift(lock)} == {("system", "grader.source")}


def test_a_changed_outcome_table_is_drift(lock: Lock) -> None:
    other = lock.model_copy(update={"outcome_table": lock.outcome_table.model_copy(update={"version": -1})})
    assert [(item.kind, item.path) for item in drift(other)] == [("outcome_table", "version")]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data["manifest"].update(attempts=3), "manifest_digest"),
        (lambda data: data["tasks"][0].update(task_digest="0" * 64), "plan_digest"),
        (lambda data: data["systems"]["careful"]["model"].update(name="x"), "plan_digest"),
        (lambda data: data["systems"].pop("gold"), "systems"),
        (lambda data: data.update(extra=1), "extra"),
        (lambda data: data.update(tasks=[]), "tasks"),
    ],
)
def test_a_lock_that_was_changed_is_damaged(lock: Lock, tmp_path: Path, damage: Any, message: str) -> None:
    data = json.loads(lock.canonical())
    damage(data)
    (tmp_path / LOCK_NAME).write_text(json.dumps(data))
    with pytest.raises(LockError, match=message):
        read_lock(tmp_path)


def test_a_torn_or_missing_lock_is_one_clear_error(lock: Lock, tmp_path: Path) -> None:
    with pytest.raises(LockError, match="no campaign is locked here"):
        read_lock(tmp_path)
    (tmp_path / LOCK_NAME).write_bytes(lock.canonical()[:500])
    with pytest.raises(LockError, match="damaged"):
        read_lock(tmp_path)


def test_a_full_disk_leaves_no_lock(lock: Lock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LockError, match=r"can't be written.*No space left"):
            write_lock(lock, tmp_path)
    assert list(tmp_path.iterdir()) == []
    write_lock(lock, tmp_path)  # what a failed try left doesn't stand in the way
    assert read_lock(tmp_path) == lock


def test_a_policy_that_is_missing_stops_the_lock_by_the_system_s_name() -> None:
    with pytest.raises(LockError, match="system 'mine': there is no policy 'nobody'"):
        make_lock(manifest(systems=[{"name": "mine", "policy": "nobody"}]))
    with pytest.raises(LockError, match=r"system 'mine': .* doesn't take"):
        make_lock(manifest(systems=[{"name": "mine", "policy": "noop", "env_arguments": {"colour": "red"}}]))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"systems": [{"name": "a", "policy": "noop"}, {"name": "mine", "policy": "nobody"}]}, "systems.1.policy"),
        ({"systems": [{"name": "a", "policy": "noop", "env_arguments": {"colour": 1}}]}, "systems.0.env_arguments"),
        (
            {
                "canaries": {
                    "known_pass": {"policy": "reference", "task": "refund/train-0"},
                    "known_fail": {"policy": "nobody", "task": "refund/train-0"},
                }
            },
            "canaries.known_fail.policy",
        ),
    ],
)
def test_what_cannot_be_made_is_told_with_file_line_and_field(
    tmp_path: Path, changes: dict[str, Any], place: str
) -> None:
    path = tmp_path / "small.yaml"
    data = manifest().model_dump(mode="json", exclude_unset=True) | changes
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    with pytest.raises(TaskError) as caught:
        make_lock(*read_manifest(path))
    assert re.match(rf"{re.escape(str(path))}, line \d+, {re.escape(place)}: ", str(caught.value))
    assert ", line 1, " not in str(caught.value)


def test_a_spec_can_be_asked_of_a_campaign(lock: Lock, tmp_path: Path) -> None:
    write_lock(lock, tmp_path)
    assert load_spec(f"{tmp_path}:careful") == lock.systems["careful"]
    assert load_spec(f"{tmp_path / LOCK_NAME}:gold") == lock.systems["gold"]
    with pytest.raises(SpecError, match="careful, gold"):
        load_spec(str(tmp_path))
    with pytest.raises(SpecError, match="no system 'x'"):
        load_spec(f"{tmp_path}:x")
