"""The manifest: refused nonsense, the suite's tasks and weights, and the order of attempts."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_envs.campaign.expansion import PlannedTask, choose, expand
from agent_envs.campaign.manifest import Manifest, load_manifest
from agent_envs.campaign.runner import attempt_seed
from agent_envs.contract import OUTCOME_TABLE, OutcomeClass, TaskError

ENV = "agenteval/refund-v1"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def base(**changes: Any) -> dict[str, Any]:
    """A small good manifest, with some fields replaced; None takes a field out."""
    data: dict[str, Any] = {
        "name": "small",
        "decision": "Take it or not.",
        "population": "Generated refund requests.",
        "systems": [{"name": "rulebook", "policy": "rulebook"}, {"name": "noop", "policy": "noop"}],
        "suite": [{"env": ENV, "train": 5}],
        "attempts": 3,
        "seed": 11,
        "canaries": {
            "known_pass": {"policy": "reference", "task": "refund/train-0"},
            "known_fail": {"policy": "noop", "task": "refund/train-0"},
        },
    } | changes
    return {name: value for name, value in data.items() if value is not None}


class Plain(yaml.SafeDumper):
    """Writes equal parts out in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "manifest.yaml"
    path.write_text(yaml.dump(base(**changes), Dumper=Plain, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_the_examples_load(name: str) -> None:
    manifest = load_manifest(EXAMPLES / name)
    assert manifest.decision and manifest.population and choose(manifest)


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES.glob("*.yaml")} >= {"refund-baselines.yaml", "refund-compare.yaml"}


def test_a_fault_is_told_with_file_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(base(), sort_keys=False) + "attemps: 4\n", encoding="utf-8")
    line = path.read_text().splitlines().index("attemps: 4") + 1
    with pytest.raises(TaskError) as caught:
        load_manifest(path)
    assert f"{path}, line {line}, attemps:" in str(caught.value)


TWO = [{"name": "a", "policy": "noop"}, {"name": "A", "policy": "liar"}]
PASS = {"policy": "reference", "task": "refund/train-0"}
OVERRIDE = {"phase": "act", "origin": "agent", "kind": "policy_error"}
FAULT = {"phase": "act", "origin": "environment", "kind": "tool_fault"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decision": None}, "decision"),
        ({"population": "  "}, "population"),
        ({"canaries": None}, "canaries"),
        ({"systems": []}, "systems"),
        ({"systems": TWO}, "more than once"),
        ({"systems": [{"name": "a/b", "policy": "noop"}]}, "systems.0.name"),
        ({"systems": [{"name": "a"}]}, "systems.0.policy"),
        ({"systems": [{"name": "a", "policy": "noop", "limits": {"steps": 0}}]}, "systems.0.limits.steps"),
        ({"systems": [{"name": "a", "policy": "noop", "env_arguments": {"steps": 5}}]}, "steps"),
        (
            {"systems": [{"name": "a", "policy": "noop", "env_arguments": {"database": "postgresql://me:pw@box/x"}}]},
            "a URL with a password",
        ),
        ({"suite": []}, "suite"),
        ({"suite": [{"env": ENV, "train": 2, "weight": 0}]}, "suite.0.weight"),
        ({"suite": [{"env": ENV, "train": 2, "weight": -1}]}, "suite.0.weight"),
        ({"suite": [{"env": ENV, "train": 2, "weight": float("nan")}]}, "suite.0.weight"),
        ({"suite": [{"env": ENV, "train": 2, "weights": {"kind": {"fee": 0}}}]}, "suite.0.weights.kind.fee"),
        ({"suite": [{"env": "agenteval/none-v1"}]}, "suite.0.env"),
        ({"suite": [{"env": ENV, "tasks": ["no-such-*"]}]}, "suite.0.tasks"),
        ({"suite": [{"env": ENV, "train": 3, "labels": {"kind": ["no such kind"]}}]}, "suite.0.labels.kind"),
        ({"suite": [{"env": ENV, "train": 3, "labels": {"kind": []}}]}, "no task could match"),
        ({"suite": [{"env": ENV, "train": 3, "weights": {"knd": {"fee": 2}}}]}, "no task has the label 'knd'"),
        ({"suite": [{"env": ENV, "train": 3}, {"env": ENV, "train": 2}]}, "earlier part"),
        ({"slices": ["mood"]}, "slices.0"),
        ({"attempts": 0}, "attempts"),
        ({"attempts": 2, "k": [1, 3]}, "attempts: 2"),
        ({"attempts": True}, "attempts: Input should be a valid integer"),
        ({"attempts": "2"}, "attempts: Input should be a valid integer"),
        ({"minimum_coverage": True}, "minimum_coverage: Input should be a valid number"),
        ({"budgets": {"total_cost": True}}, "budgets.total_cost: Input should be a valid number"),
        ({"retry": {"max_tries": True}}, "retry.max_tries: Input should be a valid integer"),
        ({"k": [1, 1]}, ", k: [1] stand here more than once"),
        ({"headline": {"metric": "pass_at_k", "k": 4}}, ", headline: k: 4"),
        ({"headline": {"metric": "success", "k": 2}}, ", headline: the metric 'success' has no k"),
        ({"smoke": ["refund/train-77"]}, "smoke.0"),
        ({"canaries": {"known_pass": PASS, "known_fail": PASS}}, "same attempt"),
        ({"canaries": {"known_pass": PASS, "known_fail": PASS | {"task": "refund/none"}}}, "canaries.known_fail.task"),
        ({"retry": {"classes": ["agent_failure"]}}, ", retry: classes: 'agent_failure' is a result"),
        ({"retry": {"classes": ["success"]}}, "a result is never tried again"),
        ({"retry": {"classes": ["harness_incompatibility"]}}, "may be tried again"),
        ({"retry": {"max_tries": 0}}, "retry.max_tries"),
        ({"outcome_overrides": [OVERRIDE | {"kind": "bad_luck", "counts": False}]}, "no row"),
        ({"outcome_overrides": [OVERRIDE]}, "nothing is overridden"),
        ({"outcome_overrides": [OVERRIDE | {"retry": True}]}, "never tried again"),
        ({"outcome_overrides": [OVERRIDE | {"counts": False}]}, "an agent failure counts"),
        ({"outcome_overrides": [OVERRIDE | {"outcome_class": "success"}]}, "can't be declared"),
        ({"outcome_overrides": [OVERRIDE | {"kind": "step_limit", "counts": False}]}, "verdict decides"),
        ({"outcome_overrides": [FAULT | {"counts": True}]}, "never tried again"),
        ({"outcome_overrides": [FAULT | {"retry": False}] * 2}, "more than once"),
        ({"minimum_coverage": 1.5}, "minimum_coverage"),
        ({"engine": {"kind": "cloud"}}, "engine.kind"),
        ({"budgets": {"total_cost": 0}}, "budgets.total_cost"),
    ],
)
def test_nonsense_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """B063 (no policy is no default policy), B160 (a failure is not retried until it passes)."""
    path = written(tmp_path, **changes)
    with pytest.raises(TaskError) as caught:
        load_manifest(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}, line ")


def test_overrides_change_only_their_row(tmp_path: Path) -> None:
    manifest = load_manifest(written(tmp_path, outcome_overrides=[FAULT | {"retry": False}]))
    changed = {key for key, row in manifest.outcome_table.items() if row != OUTCOME_TABLE[key]}
    assert changed == {("act", "environment", "tool_fault")}
    assert not manifest.outcome_table["act", "environment", "tool_fault"].retry


def test_harness_failures_can_be_declared_invalid(tmp_path: Path) -> None:
    override = OVERRIDE | {"outcome_class": "harness_incompatibility", "counts": False}
    row = load_manifest(written(tmp_path, outcome_overrides=[override])).outcome_table["act", "agent", "policy_error"]
    assert (row.outcome_class, row.counts) == (OutcomeClass.HARNESS_INCOMPATIBILITY, False)


def test_tasks_are_filtered_and_weighed_by_label(tmp_path: Path) -> None:
    everything = choose(load_manifest(written(tmp_path, suite=[{"env": ENV, "train": 30}])))
    kinds = Counter(task.labels["kind"] for task in everything)
    (one, _), (two, _) = kinds.most_common(2)
    part = {"env": ENV, "train": 30, "labels": {"kind": [one, two]}, "weight": 2, "weights": {"kind": {two: 3}}}
    chosen = choose(load_manifest(written(tmp_path, suite=[part])))
    assert [task.task_id for task in chosen] == [t.task_id for t in everything if t.labels["kind"] in (one, two)]
    assert {(task.labels["kind"], task.weight) for task in chosen} == {(one, 2.0), (two, 6.0)}


def test_the_module_prefix_of_an_environment_makes_no_difference() -> None:
    assert Manifest.model_validate(base(suite=[{"env": f"agent_envs:{ENV}", "train": 1}])).suite[0].env == ENV


def planned(attempts: int, seed: int, tasks: int = 6, digest: str = "d", systems: tuple[str, ...] = ("a", "b")) -> Any:
    manifest = Manifest.model_validate(
        base(attempts=attempts, seed=seed, systems=[{"name": name, "policy": "noop"} for name in systems])
    )
    rows = [
        PlannedTask(env_id=ENV, task_id=f"refund/t-{number}", task_digest=digest, weight=1.0, labels={})
        for number in range(tasks)
    ]
    return expand(manifest, rows, {(name, ENV): f"hash of {name}" for name in systems})


@settings(max_examples=30)
@given(attempts=st.integers(1, 4), seed=st.integers(0, 2**63 - 1), tasks=st.integers(1, 6))
def test_every_system_gets_every_task_and_attempt_once_round_by_round(attempts: int, seed: int, tasks: int) -> None:
    plan = planned(attempts, seed, tasks)
    wanted = {(s, f"refund/t-{t}", a) for s in "ab" for t in range(tasks) for a in range(attempts)}
    assert len(plan) == len(wanted) == len({item.run_id for item in plan})
    assert {(item.system, item.task_id, item.attempt) for item in plan} == wanted
    assert [item.attempt for item in plan] == sorted(item.attempt for item in plan)
    assert all(item.seed == attempt_seed(seed, item.task_id, item.attempt) for item in plan)
    assert plan == planned(attempts, seed, tasks)


def test_start_order_does_not_stand_in_for_the_system() -> None:
    """Neither system is early as a rule, and another seed mixes otherwise."""
    plan = planned(1, 3, tasks=200)
    ranks = [rank for rank, item in enumerate(plan) if item.system == "a"]
    assert abs(sum(ranks) / len(ranks) - 199.5) < 25
    assert [item.task_id for item in plan] != [item.task_id for item in planned(1, 4, tasks=200)]


def test_more_attempts_or_tasks_keep_the_ids_of_those_there_are() -> None:
    few = {item.run_id for item in planned(2, 3, tasks=3)}
    assert few < {item.run_id for item in planned(4, 3, tasks=6)}


def test_another_task_revision_seed_or_system_is_another_run() -> None:
    """B138."""
    first = {item.run_id for item in planned(1, 3)}
    assert first.isdisjoint(item.run_id for item in planned(1, 3, digest="e"))
    assert first.isdisjoint(item.run_id for item in planned(1, 4))
    assert len(first & {item.run_id for item in planned(1, 3, systems=("a", "c"))}) == 6
