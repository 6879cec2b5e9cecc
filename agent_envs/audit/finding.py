"""A finding: what one check says of one task, or of the family, with the evidence it rests on."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from agent_envs.contract import Model, Status, jsonable


class Finding(Model):
    """One result of a check, in three values: undetermined is never folded into either of the others."""

    check: str
    """Name of the check, such as ``solvable``."""
    task_id: str = ""
    """The task it is about; empty: the family."""
    status: Status
    summary: str
    """A sentence for people; of a failure it names what is wrong and where."""
    evidence: dict[str, Any] = Field(default_factory=dict)
    """JSON the sentence rests on."""


def finding(check: str, task_id: str, faults: Iterable[str], good: str, **evidence: Any) -> Finding:
    """A finding that passes when there are no faults.

    Args:
        check: Name of the check.
        task_id: The task, or empty for the family.
        faults: What is wrong, one sentence each.
        good: The summary when nothing is.
        **evidence: What the finding rests on; made JSON.
    """
    found = list(faults)
    if found:
        evidence["faults"] = found
    summary = good if not found else found[0] + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")
    return Finding(
        check=check,
        task_id=task_id,
        status=Status.FAIL if found else Status.PASS,
        summary=summary[:500],
        evidence=jsonable(evidence),
    )


def unproven(check: str, task_id: str, why: str) -> Finding:
    """A finding of a check that could not be made: no evidence is not success."""
    return Finding(check=check, task_id=task_id, status=Status.UNDETERMINED, summary=why[:500])
