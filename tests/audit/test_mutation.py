"""Mutation testing finds what is planted, and finds nothing in the family as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from agent_envs.audit import mutation
from agent_envs.audit.mutation import Disagreement, MutationError, MutationResult
from agent_envs.audit.subject import Subject, subject
from agent_envs.contract import AgentTask, TaskReferences
from agent_envs.contract.expected import Null
from agent_envs.contract.outcome import EventPattern, ExpectedChange, OnlyWithin, RequiresBefore
from agent_envs.envs.refund.env import SUITE, RefundEnv
from agent_envs.wrappers import compose

ENV = "agenteval/refund-v1"
TASK = "refund/boots-for-samuel"


class Planted:
    """The family's suite with one task changed."""

    def __init__(self, task: AgentTask, references: TaskReferences) -> None:
        self.eval_ids = (task.task_id,)
        self._task, self._references = task, references

    def task(self, task_id: str) -> AgentTask:
        return self._task

    def references(self, task_id: str) -> TaskReferences:
        return self._references


@dataclasses.dataclass(frozen=True)
class PlantedSubject:
    """A family with one faulty task."""

    task: AgentTask
    references: TaskReferences
    env_id: str = "planted"

    @property
    def task_ids(self) -> tuple[str, ...]:
        return (self.task.task_id,)

    def make(self) -> Any:
        core = RefundEnv(task=self.task.task_id)
        setattr(core, "suite", Planted(self.task, self.references))  # noqa: B010 (a class variable, for this one only)
        return compose(core, recheck=0.0)


def mutate(
    change: Callable[[AgentTask], AgentTask],
    references: Callable[[TaskReferences], TaskReferences] = lambda given: given,
) -> MutationResult:
    planted = PlantedSubject(change(SUITE.task(TASK)), references(SUITE.references(TASK)))
    return mutation.check(planted)


def found(result: MutationResult, direction: str, operator: str, words: str = "") -> list[Disagreement]:
    return [
        item
        for item in result.disagreements
        if (item.direction, item.operator) == (direction, operator) and words in item.what
    ]


def with_outcome(task: AgentTask, **changed: Any) -> AgentTask:
    outcome = (task.outcome[0].model_copy(update=changed), *task.outcome[1:])
    return task.model_copy(update={"outcome": outcome})


def with_constraint(task: AgentTask, name: str, constraint: Any) -> AgentTask:
    assert name in [item.name for item in task.constraints]
    kept = tuple(constraint if item.name == name else item for item in task.constraints)
    return task.model_copy(update={"constraints": kept})


def always_true(name: str) -> OnlyWithin:
    event = EventPattern(tool="finish")
    return OnlyWithin(constraint="only_within", name=name, event=event, start="2001-01-01T00:00:00Z")


def test_the_task_as_it_is_has_no_survivor() -> None:
    result = mutate(lambda task: task)
    assert result.ok, [item.what for item in result.disagreements]
    (task,) = result.tasks
    assert task.mutants >= 50 and task.killed > 100 and task.equivalent > 10 and task.variations > 20
    assert task.mutants == task.killed + task.equivalent
    assert all(item.proof for item in task.equivalents)


def test_a_loosened_assertion_survives_as_the_field_it_no_longer_compares() -> None:
    def loosened(task: AgentTask) -> AgentTask:
        expect = tuple(
            item.model_copy(update={"values": {k: v for k, v in item.values.items() if k != "amount"}})
            if item.table == "refunds"
            else item
            for item in task.outcome[0].expect
        )
        return with_outcome(task, expect=expect)

    result = mutate(loosened)
    (survivor,) = result.disagreements
    assert (survivor.direction, survivor.kind, survivor.operator) == ("false_accept", "state", "state_field")
    assert survivor.what.startswith("refunds/") and ".amount:" in survivor.what
    assert not result.ok


def test_a_forgotten_frame_condition_survives_as_a_side_effect() -> None:
    def forgetful(task: AgentTask) -> AgentTask:
        everything = ExpectedChange(table="authorisations", kind="insert")
        return with_outcome(task, allow=(*task.outcome[0].allow, everything))

    result = mutate(forgetful)
    assert found(result, "false_accept", "side_effect", "an approval for")
    assert found(result, "false_accept", "state_insert", "authorisations")
    assert not [item for item in result.disagreements if item.direction == "false_reject"]


@pytest.mark.parametrize(
    ("name", "operator", "rule"),
    [
        ("identity", "postpone", "wasn't verified"),
        ("registration", "reorder", "nothing was registered"),
        ("confirm_refund", "drop", "didn't agree"),
    ],
)
def test_an_always_true_constraint_survives_as_the_rule_it_lets_be_broken(name: str, operator: str, rule: str) -> None:
    result = mutate(lambda task: with_constraint(task, name, always_true(name)))
    survivors = found(result, "false_accept", operator)
    assert survivors and all(rule in str(item.proof) for item in survivors)
    assert all(any(line.startswith(("+", "-")) for line in item.script) for item in survivors)


def test_a_check_that_is_too_narrow_rejects_a_lawful_variation() -> None:
    def narrow(task: AgentTask) -> AgentTask:
        expect = tuple(
            item.model_copy(update={"values": {**item.values, "idempotency_key": Null(null=True)}})
            if item.table == "refunds"
            else item
            for item in task.outcome[0].expect
        )
        return with_outcome(task, expect=expect)

    rejected = found(mutate(narrow), "false_reject", "retried_payment")
    assert rejected
    assert all(item.kind == "variation" and "idempotency_key" in item.failed[0] for item in rejected)


def test_a_prescribed_route_rejects_lawful_variations() -> None:
    def bossy(task: AgentTask) -> AgentTask:
        first, then = EventPattern(tool="get_order"), EventPattern(tool="finish")
        rule = RequiresBefore(constraint="requires_before", name="route", first=first, then=then)
        return task.model_copy(update={"constraints": (*task.constraints, rule)})

    result = mutate(bossy)
    assert result.false_rejects and not result.false_accepts
    assert all(item.failed[0].startswith("route") for item in result.disagreements)


def test_a_reference_that_fails_is_named() -> None:
    def broken(references: TaskReferences) -> TaskReferences:
        first = references.references[0]
        calls = tuple(call for call in first.calls if call.tool != "issue_refund")
        changed = first.model_copy(update={"name": "forgetful", "calls": calls})
        return references.model_copy(update={"references": (changed,)})

    result = mutate(lambda task: task, broken)
    assert "boots-for-samuel: forgetful doesn't pass: changes" in result.tasks[0].problem
    assert not result.ok


def test_a_sample_depends_on_the_seed_alone() -> None:
    chosen = Subject(ENV, SUITE.eval_ids[:3])
    seen: list[str] = []
    result = mutation.check(chosen, sample=12, seed=4, progress=lambda task: seen.append(task.task_id))
    assert seen == list(chosen.task_ids)
    assert result.ok and all((task.mutants, task.variations) == (24, 12) for task in result.tasks)
    assert mutation.check(chosen, sample=12, seed=4, workers=2) == result
    backwards = mutation.check(Subject(ENV, chosen.task_ids[::-1]), sample=12, seed=4)
    assert backwards.by_task == result.by_task
    other = mutation.check(chosen, sample=12, seed=5)
    assert [task.by_operator for task in other.tasks] != [task.by_operator for task in result.tasks]


def test_generated_tasks_are_tested_too() -> None:
    result = mutation.check(subject(ENV, ("refund/train-3", "refund/train-11")), sample=25)
    assert result.ok, [(item.what, item.failed) for item in result.disagreements]


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"sample": 0}])
def test_nonsense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(MutationError, match="at least one"):
        mutation.check(Subject(ENV, (TASK,)), **wrong)


def test_nothing_tested_is_no_proof() -> None:
    assert not mutation.check(Subject(ENV, ())).ok
