"""The attempts that a report shows one by one: failures with their reasons, and tries that don't count."""

import hashlib

import numpy as np

from agent_envs.contract import AgentRun, Status
from agent_envs.report.content import AttemptNote, Listing
from agent_envs.report.records import MOST_SHOWN, Records

_MOST_WHY = 400


def failures(records: Records) -> Listing:
    """Valid attempts that failed, in the plan's order, spread evenly over the systems when there are too many."""
    table = records.columns
    failed = np.flatnonzero(table.valid & ~table.success)
    turns = [failed[table.system[failed] == place].tolist() for place in range(len(records.systems))]
    chosen: list[int] = []
    share = MOST_SHOWN
    for place in sorted(range(len(turns)), key=lambda place: (len(turns[place]), place)):
        left = len(turns) - sum(1 for done in turns if not done)
        take = turns[place][: share // max(left, 1)]
        chosen += take
        share -= len(take)
        turns[place] = []
    shown = tuple(note(records.run(place)) for place in sorted(chosen))
    return Listing(shown=shown, total=int(failed.size))


def invalid_tries(records: Records) -> Listing:
    """Tries that don't count, in the order in which they ended."""
    shown = tuple(note(record.run, record.reason) for record in records.invalid)
    return Listing(shown=shown, total=records.invalid_total)


def note(run: AgentRun, reason: str = "") -> AttemptNote:
    """An attempt in one row."""
    return AttemptNote(
        run_id=run.run_id,
        system=run.system or run.policy,
        task_id=run.task_id,
        attempt=run.attempt,
        try_number=run.try_number,
        outcome=run.outcome_class.value,
        ending=run.terminal.kind,
        why=_why(run, reason),
        evidence=run.evidence,
        page=f"trajectories/{page_name(run)}" if run.evidence else "",
    )


def page_name(run: AgentRun) -> str:
    """File name of a try's trajectory page; a digest, since run ids are foreign text."""
    name = f"{run.run_id}\n{run.try_number}".encode("utf-8", "backslashreplace")
    return f"{hashlib.sha256(name).hexdigest()[:20]}.html"


def _why(run: AgentRun, reason: str) -> str:
    results = () if run.verdict is None else (*run.verdict.assertions, *run.verdict.constraints)
    failed = [result for result in results if result.status is not Status.PASS]
    parts = ["right, but broke a rule"] if run.broke_rule else []
    parts += ["success was claimed"] if run.false_claim else []
    if failed:
        parts.append(f"{failed[0].name}: {failed[0].explanation}")
    elif run.terminal.detail:
        parts.append(run.terminal.detail)
    if reason:
        parts.append(reason)
    text = "; ".join(parts)
    return text if len(text) <= _MOST_WHY else text[: _MOST_WHY - 3] + "..."
