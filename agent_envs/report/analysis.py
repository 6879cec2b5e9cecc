"""The analysis of a campaign: every number of its report, from the records alone.

Nothing here looks at a clock, a path or the present code: the same folder gives the same analysis on any day.
"""

from pathlib import Path
from typing import Literal

import numpy as np

from agent_envs.campaign.sealed import read_opening
from agent_envs.campaign.sealing import SuiteError
from agent_envs.report import estimates
from agent_envs.report.comparisons import compare_all, factorial
from agent_envs.report.content import FORMAT, Analysis, Role, SystemNumbers
from agent_envs.report.listings import failures, invalid_tries
from agent_envs.report.records import MISSING, Records, load

BASELINES = frozenset(("noop", "refuser", "handover", "liar", "constant", "random", "invalid"))
"""Built-in policies that stand beside the systems and are no candidates themselves."""
Status = Literal["complete", "incomplete", "invalid"]


def analyse(folder: Path) -> Analysis:
    """Analyse a campaign folder.

    Args:
        folder: With ``campaign.lock.json``, ``runs.jsonl`` and ``attempts.jsonl``.

    Raises:
        AgentEvalError: A file can't be read, a record is damaged, or the records don't fit the plan.
    """
    return analysis_of(load(folder))


def analysis_of(records: Records) -> Analysis:
    """Analyse records that are already read."""
    lock, manifest = records.lock, records.lock.manifest
    status, note = _status(records)
    openings, trouble = _openings(records.folder)
    refused = note if status == "invalid" else ""
    systems = tuple(_system(records, place, refused) for place in range(len(records.systems)))
    ranked = [system for system in systems if system.role != "oracle" and system.headline.estimate.value is not None]
    ranked.sort(key=lambda system: -(system.headline.estimate.value or 0.0))
    listed = failures(records)
    return Analysis(
        format=FORMAT,
        campaign=lock.digest,
        name=manifest.name,
        decision=manifest.decision,
        population=manifest.population,
        status=status,
        status_note=note,
        outcome_table=f"version {lock.outcome_table.version}, {lock.outcome_table.digest[:16]}",
        metric=estimates.metric(manifest.headline),
        minimum_coverage=manifest.minimum_coverage,
        attempts=manifest.attempts,
        tasks=len(records.tasks),
        planned=len(records.run_ids),
        recorded=int((records.columns.place >= 0).sum()),
        systems=systems,
        ranking=tuple(system.name for system in ranked),
        comparisons=compare_all(records, systems, seed(records)),
        factorial=factorial(records, systems, seed(records)),
        failures=listed,
        invalid=invalid_tries(records),
        openings=openings,
        specs={name: lock.systems[name].as_json() for name in records.systems},
        notes=(*records.notes, *trouble),
    )


def seed(records: Records) -> int:
    """Seed of everything drawn at random: the campaign's own, so that a report can be made again."""
    return int(records.lock.digest[:12], 16)


def role(records: Records, name: str) -> Role:
    """What a system is in the campaign. An oracle plays with the solution and is never ranked."""
    policy = records.lock.systems[name].policy
    if name in records.oracles or policy.get("oracle"):
        return "oracle"
    return "baseline" if records.policies[name] in BASELINES else "system"


def _openings(folder: Path) -> tuple[int | None, tuple[str, ...]]:
    """How often the sealed suite was opened, and a note when what says so is damaged."""
    try:
        opening = read_opening(folder)
    except SuiteError:
        return None, ("the record of the sealed suite's opening is damaged: how often it was opened isn't known",)
    return None if opening is None else opening.number, ()


def _status(records: Records) -> tuple[Status, str]:
    """Whether the numbers may be used, by the rule the runner goes by too."""
    table = records.columns
    recorded, planned = int((table.place >= 0).sum()), len(records.run_ids)
    if recorded and not table.valid.any():
        return "invalid", f"none of the {recorded} attempts on record is valid, so nothing was measured"
    if why := records.void:
        return "invalid", why
    if recorded < planned:
        stopped = f"; {records.stopped}" if records.stopped else ""
        return "incomplete", f"{planned - recorded} of {planned} planned attempts have no record{stopped}"
    return "complete", ""


def _system(records: Records, place: int, refused: str) -> SystemNumbers:
    name = records.systems[place]
    table, spec = records.columns, records.lock.systems[name]
    rows = table.system == place
    counts = estimates.count(records, rows)
    planned, valid, passed = (int(array.sum()) for array in counts)
    recorded = rows & (table.place >= 0)
    drawn = seed(records)
    headline = estimates.headline(records, counts, refused)
    # What may not be said in the headline may not be said in other words either; the counts are, always.
    shown = estimates.unless(headline.withheld)
    return SystemNumbers(
        name=name,
        policy=records.policies[name],
        role=role(records, name),
        model=estimates.named(spec.model),
        harness=estimates.named(spec.harness),
        spec=spec.digest,
        planned=planned,
        valid=valid,
        invalid=int((recorded & ~table.valid).sum()),
        missing=int((rows & (table.outcome == MISSING)).sum()),
        retries=int(np.maximum(table.tries[rows] - 1, 0).sum()),
        tasks=int((counts.planned > 0).sum()),
        tasks_covered=int((counts.valid > 0).sum()),
        coverage=estimates.coverage(counts, estimates.weights(records, counts)),
        successes=passed,
        headline=headline,
        macro=shown(estimates.macro(counts)),
        micro=shown(estimates.micro(counts)),
        over_valid=estimates.share(passed, valid),
        over_planned=estimates.share(passed, planned),
        classes=estimates.classes(records, rows),
        endings=estimates.endings(records, rows),
        right_but_broke_rule=int((rows & table.valid & table.broke_rule).sum()),
        false_claims=int((rows & table.valid & table.false_claim).sum()),
        pass_at=estimates.curve(records, counts, "pass@k", drawn, shown),
        pass_hat=estimates.curve(records, counts, "pass^k", drawn, shown),
        flip_rate=estimates.flips(records, counts),
        slices=estimates.label_slices(records, counts, shown),
        lengths=estimates.length_slices(records, rows, shown),
        money=estimates.money(records, rows),
        times=estimates.times(records, rows),
        drift=estimates.drift(records, rows, drawn),
    )
