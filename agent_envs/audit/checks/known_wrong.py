"""Known wrong: each wrong run fails, and fails by the check its author names.

A wrong run that fails for another reason proves nothing about the check it was written for, so that is a fault too.
Which other checks failed beside it is kept as evidence.
"""

from collections.abc import Iterator

from agent_envs.audit.finding import Finding, finding, unproven
from agent_envs.audit.playing import play, play_script
from agent_envs.audit.subject import Subject
from agent_envs.baselines.cheap import Noop

NAME = "known wrong"


def check_known_wrong(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Play every wrong run, and see that each outcome assertion of the task fails at least once."""
    wrong = subject.references(task_id).wrong
    if not wrong:
        yield unproven(NAME, task_id, "the task has no known-wrong runs; write some that a hasty agent might do")
        return
    task = subject.task(task_id)
    faults: list[str] = []
    shown = []
    with subject.make() as env:
        failed = set(play(env, Noop(), task_id, subject.seed).failed)
        for run in wrong:
            played = play_script(env, run, task_id, subject.seed)
            failed.update(played.failed)
            if run.fails not in task.check_names:
                faults.append(f"wrong run {run.name!r} is to fail {run.fails!r}, which the task doesn't check")
            elif played.broken:
                faults.append(f"wrong run {run.name!r}: {played.broken}")
            elif run.fails not in played.failed:
                instead = ", ".join(played.failed) or "nothing"
                faults.append(f"wrong run {run.name!r} is to fail {run.fails!r}, but failed: {instead}")
            others = [name for name in played.failed if name != run.fails]
            shown.append({"run": run.name, "fails": run.fails, "also": others, "unjudged": list(played.unjudged)})
    for assertion in task.outcome:
        if assertion.name not in failed:
            faults.append(f"the assertion {assertion.name!r} holds in every wrong run and when nothing is done")
    yield finding(NAME, task_id, faults, f"{len(wrong)} wrong run(s) fail by the check they name", runs=shown)


def check_idle(subject: Subject) -> Iterator[Finding]:
    """See that each constraint fails in some wrong run of the family: one that can't fail constrains nothing.

    Of a sample nothing is said where the wrong run may be among the tasks left out.
    """
    seen: dict[str, int] = {}
    with subject.make() as env:
        for task_id in subject.task_ids:
            for constraint in subject.task(task_id).constraints:
                seen.setdefault(constraint.name, 0)
            for run in subject.references(task_id).wrong:
                for name in play_script(env, run, task_id, subject.seed).failed:
                    if name in seen:
                        seen[name] += 1
    idle = sorted(name for name, count in seen.items() if not count)
    if idle and not set(subject.suite.eval_ids) <= set(subject.task_ids):
        return
    faults = [f"the constraint {name!r} holds in every wrong run of the family" for name in idle]
    yield finding("idle", "", faults, f"each of {len(seen)} constraints fails in some wrong run", failures=seen)
