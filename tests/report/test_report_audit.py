"""An audit on the terminal: survivors with their diffs, stale reviews, and no praise for what was not done."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from agent_envs.audit import Certificate, Finding, TaskCertificate
from agent_envs.audit.reviews import Label
from agent_envs.contract import Status
from agent_envs.report.audit import print_certificate

DIGEST = "ab" * 32
TASK = "a/x"


def printed(*findings: Finding, review: Label | None = None) -> str:
    """What is shown of one task's audit."""
    task = TaskCertificate(task_digest=DIGEST, references_digest=DIGEST, grader_revision=1, checks={}, review=review)
    certificate = Certificate(
        env_id="a-v1", seed=0, sampled=False, identity={}, versions={}, tasks={TASK: task}, findings=findings
    )
    console = Console(file=io.StringIO(), width=80)
    print_certificate(console, certificate)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def survivor(number: int) -> dict[str, Any]:
    """A wrong run that was accepted."""
    script = ["-pay 1", "+pay \x1b[31m2"]
    return {"direction": "false_accept", "operator": "amount_cent", "what": f"call {number}", "script": script}


def test_survivors_are_shown_with_their_diffs() -> None:
    evidence = {"disagreements": [survivor(number) for number in range(5)]}
    text = printed(Finding(check="mutation", task_id=TASK, status=Status.FAIL, summary="wrong", evidence=evidence))
    assert "  false accept: amount_cent: call 0" in text
    assert "    -pay 1" in text and "    +pay \\x1b[31m2" in text
    assert "call 2" in text and "call 3" not in text and "... and 2 more in the certificate" in text
    assert "1 finding stands against it." in text


def test_steps_are_shown_against_the_limit() -> None:
    runs = [{"reference": "one", "steps": 9}, {"reference": "two", "steps": 12}]
    evidence = {"references": runs, "limit_steps": 40}
    text = printed(Finding(check="solvable", task_id=TASK, status=Status.PASS, summary="good", evidence=evidence))
    assert "takes 12 of 40 steps (a/x)" in text
    assert "Every check made passed." in text and "Every check passed." not in text


def test_stale_reviews_are_shown_as_such() -> None:
    label = Label(reviewers=0, stale=2, clarity=None, too_narrow=None, too_wide=None, difficulty=None, other=False)
    text = printed(Finding(check="gold", task_id=TASK, status=Status.PASS, summary="good"), review=label)
    (row,) = (line for line in text.splitlines() if line.strip().startswith("x "))
    assert row.split() == ["x", "-", "-", "0", "2", "-", "-", "-", "-"]


def test_no_findings_prove_nothing() -> None:
    assert "nothing is proven" in printed()
