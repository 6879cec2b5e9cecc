"""Making a report again from its records, and judging its attempts again from their evidence.

A report is right when the records alone give every byte of it, and a record when its evidence gives its verdict.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agent_envs.campaign.items import Tasks
from agent_envs.campaign.results import Results
from agent_envs.contract import AgentEvalError, AgentRun, AgentTask, Status, classify
from agent_envs.episode.faults import boundary
from agent_envs.evaluator import evaluate
from agent_envs.report.analysis import analysis_of
from agent_envs.report.export import REPORT, files
from agent_envs.report.records import Records, load

_MOST_LISTED = 20


class Verification(NamedTuple):
    """What came of it."""

    files: int
    """Files of the report that were made again."""
    judged: int
    """Records whose verdict was made again from their evidence."""
    not_judged: int
    """Records that can't be judged again; ``remarks`` says why."""
    problems: tuple[str, ...]
    """Everything that isn't as it should be; the first of each kind."""
    remarks: tuple[str, ...]
    """What could not be checked."""

    @property
    def ok(self) -> bool:
        """Nothing differs."""
        return not self.problems


def verify(folder: Path, judge: bool = True) -> Verification:
    """Recompute a campaign's report and compare it byte for byte; judge kept evidence again.

    Args:
        folder: The campaign's folder.
        judge: Also judge the records again.

    Raises:
        AgentEvalError: The records can't be read.
    """
    records = load(folder)
    analysis = analysis_of(records)
    problems: list[str] = []
    made: dict[str, None] = {}
    for name, content in files(records, analysis):
        made[name] = None
        path = folder / REPORT / name
        try:
            if path.read_bytes() != content:
                problems.append(f"{REPORT}/{name} isn't what the records give")
        except OSError:
            problems.append(f"{REPORT}/{name} is missing; 'agenteval campaign report' writes it")
    for page in sorted((folder / REPORT / "trajectories").glob("*.html")):
        if f"trajectories/{page.name}" not in made:
            problems.append(f"{REPORT}/trajectories/{page.name} belongs to no attempt of the report")
    problems = _first(problems, "files")
    if not judge:
        return Verification(len(made), 0, 0, tuple(problems), ())
    judged, faults, remarks = _judge(records)
    left = sum(remarks.values())
    told = tuple(f"not re-judged: {why} ({number} records)" for why, number in sorted(remarks.items()))
    return Verification(len(made), judged, left, (*problems, *_first(faults, "records")), told)


def _first(problems: list[str], what: str) -> list[str]:
    more = len(problems) - _MOST_LISTED
    return problems if more <= 0 else [*problems[:_MOST_LISTED], f"and {more} more {what}"]


def _judge(records: Records) -> tuple[int, list[str], dict[str, int]]:
    """Judge every record again, one at a time."""
    results, tasks, judged = Results(records.folder), Tasks(), 0
    faults: list[str] = []
    remarks: dict[str, int] = {}
    for place in np.flatnonzero(records.columns.place >= 0).tolist():
        run, locked = records.run(place), records.digests[records.columns.task[place]]
        why, fault = _one(run, locked, lambda run: tasks.task(run.env_id, run.task_id), results, records)
        if fault:
            faults.append(f"{run.run_id}: {fault}")
        if why:
            remarks[why] = remarks.get(why, 0) + 1
        else:
            judged += 1
    return judged, faults, remarks


def _one(
    run: AgentRun, locked: str, task_of: Callable[[AgentRun], AgentTask], results: Results, records: Records
) -> tuple[str, str]:
    """Why a record can't be judged again, and what is wrong with it; both may be empty."""
    outcome, row = classify(run.terminal, None if run.verdict is None else run.verdict.Y, records.lock.rows)
    if (outcome, row.counts) != (run.outcome_class, run.counts):
        return "", f"recorded as {run.outcome_class.value}, but its ending and verdict make it {outcome.value}"
    if run.task_digest != locked:
        return "", "its task isn't the one that was locked"
    if run.verdict is None:
        return "there is no verdict", ""
    if not run.evidence:
        return "no evidence was kept", ""
    try:
        task = task_of(run)
    except AgentEvalError:
        return "task gone", ""
    if task.digest != locked:
        return "task changed", ""
    try:
        evidence = results.evidence(run)
        with boundary("grade", "grader", "grader_fault"):
            verdict = evaluate(task, evidence)
    except AgentEvalError as error:
        return "", f"can't be judged from its evidence: {error}"
    if verdict != run.verdict:
        now, then = verdict.Y, run.verdict.Y
        what = f"recorded {then.value}, judged again {now.value}" if now != then else "the checks' results differ"
        return "", what if Status.UNDETERMINED not in (now, then) else f"{what} (something couldn't be judged)"
    return "", ""
