"""Systems of different campaigns against each other, on the tasks that are the same in both."""

import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agent_envs import statistics
from agent_envs.contract import Model, SystemSpec
from agent_envs.report import estimates
from agent_envs.report.analysis import analysis_of
from agent_envs.report.comparisons import adjusted, pair
from agent_envs.report.content import Analysis, Comparison
from agent_envs.report.records import Floats, Records, ReportError, load

MOST_LISTED = 50


class ComparedCampaign(Model):
    """One of the campaigns."""

    label: str
    """Its name; with the beginning of its digest where two have the same."""
    campaign: str
    """Digest of its lock."""
    status: str
    tasks: int


class LeftOut(Model):
    """A task that two campaigns don't share."""

    task_id: str
    why: str


class CrossComparison(Model):
    """Comparisons across campaigns."""

    campaigns: tuple[ComparedCampaign, ...]
    metric: str
    common: int
    """Tasks that stand in all campaigns with equal digests: only they are compared, each alike."""
    left_out: tuple[LeftOut, ...]
    """The first tasks that aren't."""
    left_out_total: int
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


class _Side(NamedTuple):
    name: str
    role: str
    rates: Floats
    spec: SystemSpec
    withheld: str


def compare(folders: Sequence[Path]) -> CrossComparison:
    """Compare every system of each campaign with every one of each other, paired by task.

    Tasks count alike, whatever weights the manifests gave them. A system whose headline is withheld is compared with
    nothing; oracles aren't compared.

    Args:
        folders: Two campaign folders or more.

    Raises:
        ReportError: There are fewer than two campaigns, or they share no task.
        AgentEvalError: A folder can't be read.
    """
    loaded = [load(folder) for folder in folders]
    if len({records.lock.digest for records in loaded}) < max(len(loaded), 2):
        raise ReportError(f"compare needs two different campaigns or more; got {[str(folder) for folder in folders]!r}")
    analyses = [analysis_of(records) for records in loaded]
    labels = _labels(analyses)
    common, left_out = _common(loaded, labels)
    if not common:
        raise ReportError(f"{', '.join(labels)} have no task in common with equal digests: nothing can be compared")
    declared = [(records.lock.manifest.headline.metric, records.lock.manifest.headline.k) for records in loaded]
    same = len(set(declared)) == 1
    metric, k = declared[0] if same else ("success", 1)
    notes = [] if same else ["the campaigns declared different headlines; success rates are compared"]
    versions = {records.lock.outcome_table.digest for records in loaded}
    if len(versions) > 1:
        notes.append("the campaigns class endings by different outcome tables")
    sides = [
        _sides(records, analysis, label, common, metric, k)
        for records, analysis, label in zip(loaded, analyses, labels, strict=True)
    ]
    drawn = int(hashlib.sha256("".join(found.campaign for found in analyses).encode()).hexdigest()[:12], 16)
    compared = []
    for one, two in itertools.combinations(sides, 2):
        for a, b in itertools.product(one, two):
            if "system" in (a.role, b.role):
                first, second = (a.name, a.rates, a.spec), (b.name, b.rates, b.spec)
                compared.append(pair(first, second, np.ones(len(common)), drawn, a.withheld or b.withheld))
    return CrossComparison(
        campaigns=tuple(
            ComparedCampaign(label=label, campaign=found.campaign, status=found.status, tasks=found.tasks)
            for label, found in zip(labels, analyses, strict=True)
        ),
        metric=f"{metric.replace('_', ' ')}{'' if metric == 'success' else f' with k = {k}'}, tasks alike",
        common=len(common),
        left_out=tuple(left_out[:MOST_LISTED]),
        left_out_total=len(left_out),
        comparisons=adjusted(compared),
        notes=tuple(notes),
    )


def _labels(analyses: Sequence[Analysis]) -> list[str]:
    names = [found.name for found in analyses]
    return [found.name if names.count(found.name) == 1 else f"{found.name}-{found.campaign[:6]}" for found in analyses]


def _common(loaded: Sequence[Records], labels: Sequence[str]) -> tuple[list[tuple[str, str]], list[LeftOut]]:
    """Tasks of all campaigns with one digest, and why each other is left out."""
    digests = [dict(zip(records.tasks, records.digests, strict=True)) for records in loaded]
    common, left_out = [], []
    for key in sorted({key for found in digests for key in found}):
        absent = [label for label, found in zip(labels, digests, strict=True) if key not in found]
        if absent:
            left_out.append(LeftOut(task_id=key[1], why=f"not in {', '.join(absent)}"))
        elif len({found[key] for found in digests}) > 1:
            left_out.append(LeftOut(task_id=key[1], why="another version of the task"))
        else:
            common.append(key)
    return common, left_out


def _sides(
    records: Records, analysis: Analysis, label: str, common: Sequence[tuple[str, str]], metric: str, k: int
) -> list[_Side]:
    places = {key: place for place, key in enumerate(records.tasks)}
    chosen = [places[key] for key in common]
    found = []
    for number, system in enumerate(analysis.systems):
        if system.role == "oracle":
            continue
        counts = estimates.count(records, records.columns.system == number)
        rates = statistics.per_task(counts.valid, counts.passed, [k], estimates.KINDS[metric])[chosen, 0]
        withheld = f"withheld, as is the headline of {system.name} in {label}" if system.headline.withheld else ""
        spec = records.lock.systems[system.name]
        found.append(_Side(f"{system.name} in {label}", system.role, rates, spec, withheld))
    return found
