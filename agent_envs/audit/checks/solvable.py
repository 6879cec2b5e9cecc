"""Solvable: each reference passes, within the limits the agent has, twice and alike."""

from collections.abc import Iterator
from typing import Any

from agent_envs.audit.finding import Finding, finding
from agent_envs.audit.playing import Played, play_script
from agent_envs.audit.subject import Subject
from agent_envs.contract import Status, TaskError

NAME = "solvable"


def check_solvable(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Play every reference in two environments with one seed, and once with another seed.

    The environment is the agent's own: its tools, permissions and limits, and the task's public view.
    """
    task = subject.task(task_id)
    try:
        references = subject.references(task_id).references
    except TaskError as error:
        yield finding(NAME, task_id, [str(error)], "")
        return
    faults: list[str] = []
    shown: list[dict[str, Any]] = []
    with subject.make() as one, subject.make() as two:
        for reference in references:
            runs = [
                play_script(one, reference, task_id, subject.seed),
                play_script(two, reference, task_id, subject.seed),
                play_script(one, reference, task_id, subject.seed + 1),
            ]
            for played in runs:
                if problem := _problem(played):
                    faults.append(f"reference {reference.name!r}: {problem}")
                    break
            first, again = runs[0], runs[1]
            if first.evidence.digest != again.evidence.digest:
                faults.append(f"reference {reference.name!r}: played twice with one seed, it left different evidence")
            elif first.run.verdict != again.run.verdict:
                faults.append(f"reference {reference.name!r}: judged twice, it got different verdicts")
            shown.append(
                {
                    "reference": reference.name,
                    "steps": first.run.usage.steps,
                    "chain": first.run.log_digest,
                    "verdict": first.status.value,
                }
            )
    good = f"{len(shown)} reference(s) pass; most steps {max(item['steps'] for item in shown)} of {task.limits.steps}"
    yield finding(NAME, task_id, faults, good, references=shown, limit_steps=task.limits.steps)


def _problem(played: Played) -> str:
    if played.broken:
        return played.broken
    if played.run.terminal.kind != "finished":
        return f"it ends by {played.run.terminal.kind}, not by finishing"
    if played.status is not Status.PASS:
        verdict = played.run.verdict
        results = () if verdict is None else (*verdict.assertions, *verdict.constraints)
        bad = next((item for item in results if item.status is not Status.PASS), None)
        return f"it does not pass: {bad.name}: {bad.explanation}" if bad else "it could not be judged"
    return ""
