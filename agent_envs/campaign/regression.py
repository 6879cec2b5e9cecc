"""Regression cases: failures that people have confirmed, kept so that they can't come back unseen.

A *grader case* is a run's evidence with what each check must say of it; it is judged again. A *task case* is a run's
calls, as a right or a wrong run in the form of reference files; it is played again. Both stand in a folder of their
own, ``<cases>/<name>/case.yaml``, a grader case with ``evidence/`` beside it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from agent_envs.campaign.again import find_run
from agent_envs.campaign.cases import (
    EVIDENCE_FOLDER,
    GraderCase,
    RegressionError,
    TaskCase,
    case_folders,
    first_fault,
    read_case,
    write_case,
)
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.health import play_digest
from agent_envs.campaign.items import Tasks
from agent_envs.campaign.known import play
from agent_envs.campaign.results import Results
from agent_envs.contract import (
    AgentEvalError,
    AgentRun,
    AgentTask,
    Call,
    Evidence,
    Status,
    Verdict,
    read_evidence,
)
from agent_envs.episode.faults import boundary
from agent_envs.evaluator import evaluate


class CaseResult(NamedTuple):
    """A case that was checked."""

    name: str
    kind: str
    """``grader`` or ``task``; empty when the case can't be read."""
    ok: bool
    detail: str
    """What differs, or a remark."""


# Keeping -------------------------------------------------------------------------------------------------------


def keep_grader_case(
    results: Path,
    run_name: str,
    cases: Path,
    *,
    confirmed_by: str,
    reason: str,
    expected: Mapping[str, str] | None = None,
    name: str = "",
) -> Path:
    """Keep a run's evidence with what the grader must say of it.

    Args:
        results: Results or campaign folder.
        run_name: Run id, or a unique beginning of it.
        cases: Folder of the cases.
        confirmed_by: Who confirmed it.
        reason: What went wrong, and why the expected result is right.
        expected: Check to ``pass``, ``fail`` or ``undetermined``, for the checks that were recorded wrongly; all others
            must go on saying what was recorded.
        name: Name of the case; empty: made of the run's id.

    Returns:
        The case's folder.

    Raises:
        RegressionError: The run has no verdict, a check doesn't exist, or the case exists.
        AgentEvalError: There is no such run, its evidence is damaged, or its task is gone or has changed.
    """
    kept, run, task = _run_and_task(results, run_name)
    evidence = kept.evidence(run)
    if run.verdict is None:
        raise RegressionError(f"{run.run_id}: it has no verdict ({run.terminal.kind}), so there's no check to keep")
    statuses = {item.name: item.status for item in (*run.verdict.assertions, *run.verdict.constraints)}
    for check, status in (expected or {}).items():
        if check not in statuses:
            raise RegressionError(f"{task.task_id} has no check {check!r}; it has {', '.join(statuses)}")
        try:
            statuses[check] = Status(status)
        except ValueError:
            raise RegressionError(f"{check}={status!r}: a check is pass, fail or undetermined") from None
    case = _made(
        GraderCase,
        run,
        confirmed_by,
        reason,
        evidence_digest=evidence.digest,
        expected=statuses,
        played=play_digest(task),
    )
    return write_case(cases, name or f"{run.run_id}.grader", case, evidence)


def keep_task_case(
    results: Path,
    run_name: str,
    cases: Path,
    *,
    confirmed_by: str,
    reason: str,
    right: bool = False,
    fails: str = "",
    name: str = "",
) -> Path:
    """Keep a run's calls as a run that must fail (or, with ``right``, must pass).

    The calls are played at once: a case that doesn't show what it is kept for isn't kept.

    Args:
        results: Results or campaign folder.
        run_name: Run id, or a unique beginning of it.
        cases: Folder of the cases.
        confirmed_by: Who confirmed it.
        reason: What went wrong, or why the run is right.
        right: The run is a right solution.
        fails: Check that must fail; empty: the first that did.
        name: Name of the case; empty: made of the run's id.

    Returns:
        The case's folder.

    Raises:
        RegressionError: Calls can't be played again as they were, nothing failed, or playing them gives another result.
        AgentEvalError: There is no such run, its evidence is damaged, or its task is gone or has changed.
    """
    kept, run, task = _run_and_task(results, run_name)
    calls = _calls(run, kept.evidence(run))
    label = name or f"{run.run_id}.task"
    if right:
        script: dict[str, Any] = {"right": {"name": "confirmed", "calls": calls}}
    else:
        fails = fails or _failed(run)
        if fails not in task.check_names:
            raise RegressionError(f"{task.task_id} has no check {fails!r}; it has {', '.join(task.check_names)}")
        script = {"wrong": {"name": "confirmed", "reason": reason, "fails": fails, "calls": calls}}
    case = _made(TaskCase, run, confirmed_by, reason, seed=run.seed, **script)
    if problem := _play(case):
        raise RegressionError(
            f"{run.run_id}: played again it {problem}; keep it as a grader case, which judges the evidence itself"
        )
    return write_case(cases, label, case, None)


def _run_and_task(results: Path, run_name: str) -> tuple[Results, AgentRun, AgentTask]:
    kept = Results(results)
    run = find_run(kept, run_name)
    tasks = Tasks()
    try:
        task = tasks.task(run.env_id, run.task_id)
    finally:
        tasks.close()
    if task.digest != run.task_digest:
        raise RegressionError(
            f"{run.run_id}: {run.task_id} has changed since ({run.task_digest[:12]}, now {task.digest[:12]}); keep the "
            "case with the code of the run"
        )
    return kept, run, task


def _made(model: type[Any], run: AgentRun, confirmed_by: str, reason: str, **fields: Any) -> Any:
    common = {
        "env_id": run.env_id,
        "task_id": run.task_id,
        "task_digest": run.task_digest,
        "source_run": run.run_id,
        "confirmed_by": confirmed_by,
        "reason": reason,
    }
    try:
        return model(**common, **fields)
    except ValidationError as error:
        raise RegressionError(f"{run.run_id}: no case can be made of it: {first_fault(error)}") from None


def _calls(run: AgentRun, evidence: Evidence) -> list[Call]:
    calls = []
    for entry in evidence.events[1:]:
        if entry["status"] == "skipped":
            continue
        if (
            entry["status"] not in ("ok", "error", "denied", "invalid")
            or not entry["tool"]
            or "$text" in entry["arguments"]
        ):
            raise RegressionError(
                f"{run.run_id}: call {entry['call']} ({entry['status']}) can't be played again from a script; keep it "
                "as a grader case"
            )
        calls.append(Call(tool=entry["tool"], arguments=entry["arguments"], error=entry["status"] != "ok"))
    return calls


def _failed(run: AgentRun) -> str:
    results = (*run.verdict.assertions, *run.verdict.constraints) if run.verdict else ()
    failed = [item.name for item in results if item.status is Status.FAIL]
    if not failed:
        raise RegressionError(f"{run.run_id}: no check failed; say which one must fail, or that the run is right")
    return failed[0]


# Checking ------------------------------------------------------------------------------------------------------


def check_cases(cases: Path) -> list[CaseResult]:
    """Judge every grader case and play every task case again.

    Returns:
        One result a case, sorted by name; a case that can't be read, or whose task is gone, is not ok.

    Raises:
        RegressionError: The folder can't be read or holds no case.
    """
    return [_checked(folder) for folder in case_folders(cases)]


def _checked(folder: Path) -> CaseResult:
    try:
        case = read_case(folder)
    except AgentEvalError as error:
        return CaseResult(folder.name, "", False, str(error))
    try:
        problem = _judge(case, folder) if isinstance(case, GraderCase) else _play(case)
    except AgentEvalError as error:
        problem = str(error)
    return CaseResult(folder.name, case.kind, not problem, problem)


def _judge(case: GraderCase, folder: Path) -> str:
    evidence = read_evidence(folder / EVIDENCE_FOLDER)
    if evidence.digest != case.evidence_digest:
        return "the evidence isn't what was kept"
    tasks = Tasks()
    try:
        task = tasks.task(case.env_id, case.task_id)
    finally:
        tasks.close()
    if task.digest != case.task_digest and play_digest(task) != case.played:
        return (
            f"{case.task_id} plays differently now, so the evidence says nothing of it; keep a new case, drop this one"
        )
    present = evidence.model_copy(update={"task_digest": task.digest, "task_revision": task.task_revision})
    with boundary("grade", "grader", "grader_fault"):
        verdict = evaluate(task, present)
    return "; ".join(_differences(case.expected, verdict))


def _differences(expected: Mapping[str, Status], verdict: Verdict) -> Iterable[str]:
    found = {item.name: item for item in (*verdict.assertions, *verdict.constraints)}
    for check, status in expected.items():
        if check not in found:
            yield f"the task has no check {check!r} any more"
        elif found[check].status is not status:
            item = found[check]
            yield f"{check} must be {status.value}, is {item.status.value}: {item.explanation}"[:300]


def _play(case: TaskCase) -> str:
    env = make_env(case.env_id)
    try:
        return play(env, case.task_id, case.script, case.seed).problem
    finally:
        env.close()
