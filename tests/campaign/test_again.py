"""Replay and regrading: the same again, or what differs; damaged or foreign evidence gives no verdict."""

import json
import shutil

import gymnasium
import pytest
import zstandard

import agent_envs
from agent_envs.baselines import load
from agent_envs.campaign.again import find_run, regrade, replay
from agent_envs.campaign.results import Results, ResultsError
from agent_envs.campaign.runner import plan, run_attempts
from agent_envs.contract import (
    Evidence,
    EvidenceError,
    Status,
    TaskError,
    canonical_json,
    chain,
    read_evidence,
    write_evidence,
)

TASKS = [f"refund/train-{number}" for number in range(3)]
POLICIES = ("reference", "liar", "random")


@pytest.fixture(scope="module")
def env():
    agent_envs.register_envs()
    with gymnasium.make("agenteval/refund-v1", split="train") as made:
        yield made


@pytest.fixture(scope="module")
def original(env, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in POLICIES:
        policy = load(name)
        run_attempts(env, policy, list(plan(env, policy, TASKS, 1, 0)), folder)
    return folder


@pytest.fixture
def kept(original, tmp_path):
    shutil.copytree(original, tmp_path / "out")
    return Results(tmp_path / "out")


def task_of(env):
    return lambda run: env.unwrapped.suite.task(run.task_id)


def test_every_run_is_the_same_again(env, kept):
    """Law 12."""
    for run in kept.read():
        evidence = kept.evidence(run)
        outcome = replay(env, evidence)
        assert outcome == (True, -1, None, None)


def test_every_verdict_is_the_same_again_and_nothing_is_written(env, kept):
    """B231: judged from kept evidence alone. The verdicts agree in every word, not only in the result."""
    before = {path: path.read_bytes() for path in kept.folder.rglob("*") if path.is_file()}
    rows = regrade(kept.folder, task_of(env))
    assert len(rows) == len(POLICIES) * len(TASKS)
    for row in rows:
        assert (row.problem, row.changed) == ("", False)
        assert row.verdict == row.run.verdict
    assert {row.verdict.Y for row in rows} == {Status.PASS, Status.FAIL}
    assert {path: path.read_bytes() for path in kept.folder.rglob("*") if path.is_file()} == before


def test_hostile_actions_are_the_same_again(env, tmp_path):
    """B121: whatever was logged can be played again."""
    actions = iter(
        [
            "\ud835",
            {"tool": "get_order", "arguments": {"order_id": "\ud835"}},
            {"tool": "read_policy", "arguments": {"\ud835": 1}},
            [{"tool": "read_policy", "arguments": {}, "id": "a"}, {"tool": "nothing", "arguments": {}}, None],
            {"tool": "send_message", "arguments": {"text": "\U0001d504 \x00 [/red] \x1b[2J"}},
            {"tool": "finish", "arguments": {"outcome": "unable", "summary": "\udfff"}},
            {"tool": "finish", "arguments": {"outcome": "unable"}},
        ]
    )
    from agent_envs.baselines import FunctionPolicy

    policy = FunctionPolicy(lambda observation, info: next(actions), "hostile")
    run = run_attempts(env, policy, list(plan(env, policy, TASKS[:1], 1, 0)), tmp_path)[0]
    assert run.terminal.kind == "finished"
    assert replay(env, Results(tmp_path).evidence(run)).same
    assert regrade(tmp_path, task_of(env))[0].verdict == run.verdict


def _tampered(evidence, change):
    """Evidence with a changed log whose chain and record were made to agree with it."""
    events = [json.loads(canonical_json(entry)) for entry in evidence.events]
    change(events)
    head = b""
    for entry in events:
        head = chain(head, entry)
    return Evidence.model_validate(evidence.model_dump() | {"events": events, "log_digest": head.hex()})


def _first_result(events):
    events[2]["result"] = {"forged": True}


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (_first_result, 2),
        (lambda events: events.pop(), None),
        (lambda events: events[0].update(state="0" * 64), 0),
        (lambda events: events[3].update(state="0" * 64), 3),
        (lambda events: events.insert(1, dict(events[1])), 2),
    ],
    ids=["result", "end-cut", "start", "state", "doubled"],
)
def test_a_forged_log_differs_when_played_again(env, kept, change, step):
    """Law 12: even when the forger made the whole chain agree."""
    run = find_run(kept, "train-0.reference")
    evidence = kept.evidence(run)
    if step is None:
        forged = _tampered(evidence, change)
        # What was left out at the end is not missed by a replay; the record's digest misses it.
        write_evidence(forged, kept.evidence_folder(run))
        assert read_evidence(kept.evidence_folder(run)) == forged
        with pytest.raises(EvidenceError, match="was changed, or is another run's"):
            kept.evidence(run)
        return
    outcome = replay(env, _tampered(evidence, change))
    assert not outcome.same
    assert outcome.step == step
    assert outcome.recorded != outcome.replayed


def _flip(folder, others):
    path = folder / "log.jsonl.zst"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _drop_entry(folder, others):
    path = folder / "log.jsonl.zst"
    lines = zstandard.ZstdDecompressor().decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(zstandard.ZstdCompressor().compress(b"".join(lines[:2] + lines[3:])))


def _swap_all(folder, others):
    for name in ("log.jsonl.zst", "evidence.json"):
        shutil.copy(others / name, folder / name)


def _swap_log(folder, others):
    shutil.copy(others / "log.jsonl.zst", folder / "log.jsonl.zst")


def _link(folder, others):
    shutil.rmtree(folder)
    folder.symlink_to(others)


def _edit_changes(folder, others):
    path = folder / "evidence.json"
    data = json.loads(path.read_bytes())
    data["changes"] = []
    path.write_bytes(canonical_json(data))


def _edit_ending(folder, others):
    path = folder / "evidence.json"
    data = json.loads(path.read_bytes())
    data["terminal"] = {"phase": "act", "origin": "agent", "kind": "user_stop"}
    path.write_bytes(canonical_json(data))


def _remove(folder, others):
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "damage", [_flip, _drop_entry, _swap_all, _swap_log, _link, _edit_changes, _edit_ending, _remove]
)
def test_damaged_or_foreign_evidence_gives_a_problem_and_no_verdict(env, kept, damage):
    """B005, B036: never a verdict from what is left, and the other runs are judged as before."""
    victim = find_run(kept, "train-0.reference")
    damage(kept.evidence_folder(victim), kept.evidence_folder(find_run(kept, "train-1.reference")))
    with pytest.raises(EvidenceError):
        kept.evidence(victim)
    rows = {row.run.run_id: row for row in regrade(kept.folder, task_of(env))}
    assert rows[victim.run_id].verdict is None
    assert rows[victim.run_id].problem
    assert rows[victim.run_id].changed
    assert sum(bool(row.problem) for row in rows.values()) == 1


def test_a_task_that_changed_or_went_gives_a_problem(env, kept):
    """B138."""

    def changed(run):
        task = env.unwrapped.suite.task(run.task_id)
        if run.task_id == TASKS[0]:
            return task.model_copy(update={"user_request": "Something else."})
        if run.task_id == TASKS[1]:
            raise TaskError("there is no such task")
        return task

    for row in regrade(kept.folder, changed):
        expected = {TASKS[0]: "judge it with the task", TASKS[1]: "no such task", TASKS[2]: ""}[row.run.task_id]
        assert expected in row.problem
        assert bool(row.problem) == (row.verdict is None) == bool(expected)


def test_a_grader_that_breaks_gives_a_problem(env, kept, monkeypatch):
    """B115: a dead grader is no zero."""

    def broken(task, evidence):
        raise ZeroDivisionError("in the grader")

    monkeypatch.setattr("agent_envs.campaign.again.evaluate", broken)
    rows = regrade(kept.folder, task_of(env))
    assert all(row.verdict is None and "in the grader" in row.problem for row in rows)


def test_a_changed_task_is_not_replayed(env, kept, monkeypatch):
    evidence = kept.evidence(kept.read()[0])
    suite = type(env.unwrapped.suite)
    original = suite.task
    monkeypatch.setattr(
        suite, "task", lambda self, task_id: original(self, task_id).model_copy(update={"task_revision": 9})
    )
    with pytest.raises(EvidenceError, match="another version"):
        replay(env, evidence)


def test_a_void_episode_stays_without_a_verdict(env, tmp_path, monkeypatch):
    """B114."""
    monkeypatch.setattr(type(env.unwrapped), "start_world", lambda self, task, seed: 1 / 0)
    policy = load("noop")
    run = run_attempts(env, policy, list(plan(env, policy, TASKS[:1], 1, 0)), tmp_path)[0]
    monkeypatch.undo()
    row = regrade(tmp_path, task_of(env))[0]
    assert run.outcome_class == "environment_failure"
    assert (row.problem, row.changed) == ("", False)


def test_runs_are_found_by_a_unique_beginning(kept):
    runs = kept.read()
    assert find_run(kept, runs[0].run_id) == runs[0]
    assert find_run(kept, "train-2.liar").task_id == TASKS[2]
    with pytest.raises(ResultsError, match="3 runs are named 'train-0'"):
        find_run(kept, "train-0")
    for name in ("nothing", "\ud835"):
        with pytest.raises(ResultsError, match="no run is named"):
            find_run(kept, name)
    with pytest.raises(ResultsError, match="no runs at all"):
        find_run(Results(kept.folder / "none"), "train-0")
