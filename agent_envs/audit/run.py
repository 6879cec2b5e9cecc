"""Making an audit: every check on every task, in this process or several, and the certificate of what they found."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from agent_envs.audit import mutation
from agent_envs.audit.certificate import (
    Certificate,
    human_attempts,
    identity,
    people_of,
    task_certificate,
    versions,
)
from agent_envs.audit.checks import CHECKS
from agent_envs.audit.finding import Finding, finding, unproven
from agent_envs.audit.reviews import agreement, label, load_reviews
from agent_envs.audit.spread import LOST, spread
from agent_envs.audit.subject import AuditError, Subject

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Unit(NamedTuple):
    """One check of one task, or of the family."""

    subject: Subject
    check: str
    task_id: str


def run_audit(
    subject: Subject,
    *,
    checks: Iterable[str] = (),
    workers: int = 1,
    mutants: int | None = None,
    human: Path | None = None,
    reviews: Path | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Audit a family without any model.

    Args:
        subject: What to audit.
        checks: Names of checks to make, ``mutation`` among them; empty: all.
        workers: Processes; 1 plays in this one (some checks start processes of their own all the same).
        mutants: Mutants to try of each task, drawn by the seed; None: all.
        human: A results folder with people's attempts, shown beside the checks.
        reviews: A folder with reviews; None: the family's own, if it has any.
        progress: Told how far it is.

    Raises:
        AuditError: A name of a check is unknown, ``workers`` is below 1, or a folder can't be read.
        TaskError: A task or review file is bad.
    """
    known = {check.name for check in CHECKS} | {"mutation"}
    wanted = set(checks) or known
    if unknown := sorted(wanted - known):
        raise AuditError(f"there are no checks {unknown}; there are {', '.join(sorted(known))}")
    if workers < 1:
        raise AuditError(f"workers={workers!r}: at least one is needed")
    if reviews is not None and not reviews.is_dir():
        raise AuditError(f"{reviews}: there is no such folder; give one with a YAML file of reviews for each task")
    attempts = human_attempts(human) if human is not None else {}
    said = load_reviews(reviews if reviews is not None else subject.suite.folder / "reviews")
    units = list(_units(subject, wanted))
    found: dict[Unit, list[Finding]] = {}
    for unit, findings in _made(units, workers):
        found[unit] = findings
        if progress is not None:
            progress("checks", len(found), len(units))
    order = [check.name for check in CHECKS]
    units.sort(key=lambda unit: (order.index(unit.check), subject.task_ids.index(unit.task_id) if unit.task_id else -1))
    findings = [item for unit in units for item in found[unit]]
    if "mutation" in wanted:
        findings += _mutation(subject, mutants, workers, progress)
    digests = {task_id: subject.task(task_id).digest for task_id in subject.task_ids}
    with subject.make() as env:
        parts = identity(env)
    return Certificate(
        env_id=subject.env_id,
        seed=subject.seed,
        sampled=mutants is not None or subject.partial,
        identity=parts,
        versions=versions(),
        tasks={
            task_id: task_certificate(
                subject,
                task_id,
                findings,
                people_of(task_id, digests[task_id], attempts),
                label(said.get(task_id, ()), digests[task_id]),
            )
            for task_id in subject.task_ids
        },
        findings=tuple(findings),
        agreement=agreement(said, digests) if said else {},
    )


def _units(subject: Subject, wanted: set[str]) -> Iterator[Unit]:
    """Checks of the family first: they take longest."""
    for check in CHECKS:
        if check.name in wanted and check.family is not None:
            yield Unit(subject, check.name, "")
    for task_id in subject.task_ids:
        for check in CHECKS:
            if check.name in wanted and check.task is not None:
                yield Unit(subject, check.name, task_id)


def _made(units: list[Unit], workers: int) -> Iterator[tuple[Unit, list[Finding]]]:
    if workers == 1 or len(units) < 2:
        for unit in units:
            yield unit, make_check(unit)
        return
    results = spread(make_check, units, workers, lambda unit: [unproven(unit.check, unit.task_id, LOST)])
    yield from zip(units, results, strict=True)


def make_check(unit: Unit) -> list[Finding]:
    """Make one check. One that breaks proves nothing, and says so."""
    check = next(check for check in CHECKS if check.name == unit.check)
    try:
        if check.task is not None:
            return list(check.task(unit.subject, unit.task_id))
        assert check.family is not None
        return list(check.family(unit.subject))
    except Exception as error:
        return [unproven(unit.check, unit.task_id, f"the check broke off: {type(error).__name__}: {error}")]


def _mutation(subject: Subject, sample: int | None, workers: int, progress: Progress | None) -> list[Finding]:
    done = 0

    def tell(task: mutation.TaskMutation) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("mutation", done, len(subject.task_ids))

    try:
        result = mutation.check(subject, sample=sample, workers=workers, seed=subject.seed, progress=tell)
    except Exception as error:  # as with every other check: what breaks off proves nothing
        why = f"the check broke off: {type(error).__name__}: {error}"
        return [unproven("mutation", task_id, why) for task_id in subject.task_ids]
    return [_of_mutants(task) for task in result.tasks]


def _of_mutants(task: mutation.TaskMutation) -> Finding:
    counts = {
        "mutants": task.mutants,
        "killed": task.killed,
        "equivalent": task.equivalent,
        "false_accepts": len(task.false_accepts),
        "variations": task.variations,
        "passed": task.passed,
        "false_rejects": len(task.false_rejects),
    }
    if not task.disagreements and not (task.killed and task.passed):
        why = task.problem or f"{task.killed} mutants failed and {task.passed} variations passed"
        return unproven("mutation", task.task_id, why)
    words = {"false_accept": "wrong, yet accepted", "false_reject": "right, yet rejected"}
    faults = [f"{words[item.direction]}: {item.operator}: {item.what}" for item in task.disagreements]
    good = f"{task.killed} of {task.mutants} mutants fail ({task.equivalent} equivalent), {task.passed} variations pass"
    shown = {
        "counts": counts,
        "by_operator": task.by_operator,
        "equivalents": [item.as_json() for item in task.equivalents],
        "disagreements": [item.as_json() for item in task.disagreements],
    }
    return finding("mutation", task.task_id, faults, good, **shown)
