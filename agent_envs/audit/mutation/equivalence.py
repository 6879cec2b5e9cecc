"""The second opinion on a run: did it reach a right outcome in a lawful way? Made without the evaluator.

The evaluator compares changes with a task's patterns and feeds its monitors. This compares whole outcomes in the
family's normal form with those of the references, and the family derives the broken rules from the log by itself. The
two share no code, so a gap in one shows as a disagreement.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from agent_envs.audit.mutation.mutant import Family
from agent_envs.contract import AgentTask, Change, Evidence, digest
from agent_envs.contract.outcome import AnswerAssertion


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a run is right, and why."""

    lawful: bool
    proof: dict[str, Any]
    """For a lawful run: which reference it equals and the digest of the common form. Else: what is different."""


def outcome(family: Family, task: AgentTask, evidence: Evidence, changes: Sequence[Change] | None = None) -> Any:
    """A run's outcome in the family's normal form, with the answer's fields where the task's product is one.

    Args:
        family: The family.
        task: The task.
        evidence: What the run left.
        changes: A change set to take in place of the run's own.
    """
    fields = sorted(item.field for item in task.outcome if isinstance(item, AnswerAssertion))
    answer = evidence.answer or {}
    return {
        "changes": family.form(task, evidence.changes if changes is None else changes),
        "answer": {field: answer.get(field) for field in fields},
    }


def judge(family: Family, task: AgentTask, evidence: Evidence, right: Mapping[str, Any]) -> Judgement:
    """Judge a run by the outcomes of the references.

    Args:
        family: The family.
        task: The task.
        evidence: What the run left.
        right: Outcome of each reference by name.
    """
    reached = outcome(family, task, evidence)
    broken = family.breaches(task, evidence.events)
    equal = next((name for name, form in right.items() if form == reached), None)
    if equal is not None and not broken:
        return Judgement(True, {"equals": equal, "outcome": digest(reached), "rules": "none broken"})
    proof: dict[str, Any] = {"broken": broken}
    if equal is None:
        proof |= min((difference(form, reached) for form in right.values()), key=lambda found: len(str(found)))
    return Judgement(False, proof)


def difference(right: Any, reached: Any) -> dict[str, Any]:
    """What one outcome has and the other lacks."""
    wanted, found = list(right["changes"]), list(reached["changes"])
    for item in right["changes"]:
        if item in found:
            found.remove(item)
            wanted.remove(item)
    result: dict[str, Any] = {"missing": wanted, "extra": found}
    if right["answer"] != reached["answer"]:
        result["answer"] = [right["answer"], reached["answer"]]
    return result
