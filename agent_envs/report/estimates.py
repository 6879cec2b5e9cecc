"""The numbers of one system from the columns.

All estimators are `agent_envs.statistics`'; what is undefined there becomes null here.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from agent_envs import statistics
from agent_envs.campaign.manifest import Headline as Declared
from agent_envs.contract import digest
from agent_envs.report.content import Check, CurvePoint, Estimate, Headline, Money, Slice, Times
from agent_envs.report.records import CLASSES, MISSING, Flags, Floats, Ints, Records
from agent_envs.statistics.passk import Kind

KINDS: Mapping[str, Kind] = {"success": "pass@k", "pass_at_k": "pass@k", "pass_hat_k": "pass^k"}
"""Declared metric to estimator; the success rate is either of them at k = 1."""
MOST_KS = 200
"""Values of k in a curve."""
PERMUTED = 4_000_000
"""Attempts that the drift check permutes in all: the more attempts, the fewer permutations show a drift."""
LENGTHS = ((1, 5), (6, 10), (11, 20), (21, 50), (51, None))
"""Classes of episode length, in steps; fixed, so that nobody chooses them after seeing the results."""


class Counts(NamedTuple):
    """A system's attempts by task; arrays have one value a task."""

    planned: Ints
    valid: Ints
    passed: Ints


def known(value: float) -> float | None:
    """A number for the report, null for NaN; ten digits, so that the last bits of a sum can't make reports differ."""
    return None if math.isnan(value) else float(f"{value:.10g}") + 0.0


def estimate(found: Any, n: int | None = None) -> Estimate:
    """One of `agent_envs.statistics`' estimates as the report writes it."""
    value, low = known(found.value), known(found.low)
    note = ""
    if value is None:
        note = "no valid attempt" if found.tasks == 0 else "not defined for every task"
    elif low is None:
        note = "one task gives no interval" if found.tasks < 2 else "the tasks are all alike, which gives no interval"
    attempts = n if n is not None else found.attempts or 0
    return Estimate(value=value, low=low, high=known(found.high), n=attempts, tasks=found.tasks, note=note)


def count(records: Records, rows: Flags) -> Counts:
    """Count the chosen attempts by task."""
    table, tasks = records.columns, len(records.tasks)
    return Counts(
        np.bincount(table.task[rows], minlength=tasks),
        np.bincount(table.task[rows & table.valid], minlength=tasks),
        np.bincount(table.task[rows & table.success], minlength=tasks),
    )


def weights(records: Records, counts: Counts) -> Floats:
    """The weights of the declared average; a task that isn't planned for a system has none."""
    declared = records.weights if records.lock.manifest.headline.average == "weighted" else np.ones(len(records.tasks))
    return np.where(counts.planned > 0, declared, 0.0)


def coverage(counts: Counts, weight: Floats) -> float:
    """Weighted share of the planned attempts that are valid."""
    share = np.divide(counts.valid, counts.planned, out=np.zeros(weight.size), where=counts.planned > 0)
    return known(float(weight @ share / weight.sum())) or 0.0


def headline(records: Records, counts: Counts, refused: str) -> Headline:
    """The declared figure, or why it's withheld.

    Args:
        records: The campaign.
        counts: The system's.
        refused: Why the whole campaign gives no headline; empty when it does.
    """
    weight, manifest = weights(records, counts), records.lock.manifest
    covered = coverage(counts, weight)
    kind, k = KINDS[manifest.headline.metric], manifest.headline.k
    bounds = statistics.coverage(counts.planned, counts.valid, counts.passed, weight, kind=kind, k=k)
    found = _at(counts, weight, kind, k)
    withheld = refused
    if not withheld and found.value is None:
        withheld = "no attempt is valid" if k == 1 else f"no task has {k} valid attempts"
    if not withheld and covered < manifest.minimum_coverage - 1e-9:
        valid, planned = int(counts.valid.sum()), int(counts.planned.sum())
        withheld = (
            f"{valid} of {planned} attempts are valid, a coverage of {100 * covered:.1f} %; "
            f"the manifest asks for {100 * manifest.minimum_coverage:.1f} %"
        )
    return Headline(
        metric=metric(manifest.headline),
        estimate=unless(withheld)(found),
        best=known(bounds.highest),
        worst=known(bounds.lowest),
        withheld=withheld,
    )


def _at(counts: Counts, weight: Floats, kind: Kind, k: int) -> Estimate:
    found = statistics.curve(counts.valid, counts.passed, [k], weight, kind=kind, partial=True)
    return Estimate(
        value=known(float(found.value[0])),
        low=known(float(found.low[0])),
        high=known(float(found.high[0])),
        n=int(counts.valid.sum()),
        tasks=int(found.tasks[0]),
        note="one task gives no interval" if found.tasks[0] == 1 else "",
    )


def metric(declared: Declared) -> str:
    """The declared figure in words, such as ``pass^3, macro average``."""
    name = {"success": "success rate", "pass_at_k": f"pass@{declared.k}", "pass_hat_k": f"pass^{declared.k}"}
    return f"{name[declared.metric]}, {declared.average} average"


def macro(counts: Counts) -> Estimate:
    """Mean over tasks that have a valid attempt, each alike."""
    if not counts.valid.any():
        return Estimate(value=None, note="no valid attempt")
    return estimate(statistics.macro_mean(counts.valid, counts.passed, partial=True))


def micro(counts: Counts) -> Estimate:
    """Mean over valid attempts, each alike."""
    return estimate(statistics.micro_mean(counts.valid, counts.passed))


def unless(withheld: str) -> Callable[[Estimate], Estimate]:
    """What to put an estimate through before it's shown: nothing, or the removal of its numbers."""

    def shown(found: Estimate) -> Estimate:
        return Estimate(value=None, n=found.n, tasks=found.tasks, note="withheld") if withheld else found

    return shown


def curve(
    records: Records, counts: Counts, kind: Kind, seed: int, shown: Callable[[Estimate], Estimate]
) -> tuple[CurvePoint, ...]:
    """pass@k or pass^k for every declared k, with the headline's kind of interval and a bootstrap band."""
    weight, ks = weights(records, counts), _ks(records)
    found = statistics.curve(counts.valid, counts.passed, ks, weight, kind=kind)
    some = weight > 0
    rows = statistics.curve_rows(counts.valid[some], counts.passed[some], ks, weight[some], kind=kind)
    drawn = statistics.bootstrap(rows, statistics.divide, seed=seed)
    points = []
    for place, k in enumerate(ks.tolist()):
        value = known(float(found.value[place]))
        defined = value is not None
        banded = defined and shown(Estimate(value=value)).value is not None
        points.append(
            CurvePoint(
                k=k,
                estimate=shown(
                    Estimate(
                        value=value,
                        low=known(float(found.low[place])),
                        high=known(float(found.high[place])),
                        n=int(counts.valid.sum()),
                        tasks=int(found.tasks[place]),
                        note="" if defined else f"some tasks have fewer than {k} valid attempts",
                    )
                ),
                band_low=known(float(drawn.low[place])) if banded else None,
                band_high=known(float(drawn.high[place])) if banded else None,
                coverage=known(float(found.coverage[place])) or 0.0,
            )
        )
    return tuple(points)


def _ks(records: Records) -> Ints:
    """The declared k; where there are too many to read, a spread of them that keeps both ends."""
    ks = np.array(records.lock.manifest.ks)
    if ks.size <= MOST_KS:
        return ks
    return ks[np.unique(np.geomspace(1, ks.size, MOST_KS).round().astype(np.int64)) - 1]


def label_slices(records: Records, counts: Counts, shown: Callable[[Estimate], Estimate]) -> tuple[Slice, ...]:
    """Success rate by each value of the declared labels; of all labels when none is declared."""
    found = []
    weight = weights(records, counts)
    for name in records.lock.manifest.slices or sorted({name for labels in records.labels for name in labels}):
        some = np.array([name in labels for labels in records.labels]) & (weight > 0)
        if not some.any():
            continue
        values = [records.labels[place][name] for place in np.flatnonzero(some).tolist()]
        planned: dict[str, int] = {}
        for value, number in zip(values, counts.planned[some].tolist(), strict=True):
            planned[value] = planned.get(value, 0) + number
        groups = statistics.slices(values, counts.valid[some], counts.passed[some], weight[some], partial=True)
        found += [
            Slice(
                name=name,
                value=str(group.label),
                estimate=shown(estimate(group.estimate)),
                planned=planned[group.label],
            )
            for group in groups
        ]
    return tuple(found)


def length_slices(records: Records, rows: Flags, shown: Callable[[Estimate], Estimate]) -> tuple[Slice, ...]:
    """Success rate by the number of steps an attempt took."""
    found, table = [], records.columns
    for low, high in LENGTHS:
        top = math.inf if high is None else high
        counts = count(records, rows & table.valid & (table.steps >= low) & (table.steps <= top))
        if counts.valid.any():
            name = f"{low} or more steps" if high is None else f"{low} to {high} steps"
            found.append(Slice(name="length", value=name, estimate=shown(micro(counts)), planned=None))
    return tuple(found)


def flips(records: Records, counts: Counts) -> Estimate:
    """Flip rate over the tasks with two valid attempts or more."""
    weight = np.where(counts.valid > 1, weights(records, counts), 0.0)
    if not weight.any():
        return Estimate(value=None, note="no task has two valid attempts")
    return estimate(statistics.flip_rate(counts.valid, counts.passed, weight, partial=True), int(counts.valid.sum()))


def drift(records: Records, rows: Flags, seed: int) -> tuple[Check, ...]:
    """Whether outcomes moved with the start order or the worker, within tasks."""
    table = records.columns
    chosen = rows & table.valid
    if not chosen.any():
        return ()
    found = statistics.drift(
        table.success[chosen],
        table.task[chosen],
        table.order[chosen],
        table.worker[chosen],
        seed=seed,
        permutations=max(200, min(2000, PERMUTED // int(chosen.sum()))),
    )
    workers = len(np.unique(table.worker[chosen]))
    pairs = (("start order", found.order, ""), ("worker", found.worker, "one worker" if workers == 1 else ""))
    return tuple(
        Check(
            name=name,
            statistic=known(test.statistic),
            p=known(test.p_value),
            p_adjusted=known(adjusted),
            note=note or ("nothing varies within tasks" if math.isnan(test.p_value) else ""),
        )
        for (name, test, note), adjusted in zip(pairs, found.adjusted, strict=True)
    )


def money(records: Records, rows: Flags) -> Money:
    """Cost over every try; the figures per attempt and success are null unless all of it is known."""
    table = records.columns
    tried = rows & (table.tries > 0)
    spent = table.spent[tried]
    sure = ~np.isnan(spent)
    total = float(spent.sum()) if tried.any() else math.nan
    valid, passed = int((rows & table.valid).sum()), int((rows & table.success).sum())
    return Money(
        known=int(sure.sum()),
        recorded=int(tried.sum()),
        total=known(total),
        known_total=known(float(spent[sure].sum())) or 0.0,
        per_attempt=known(total / valid) if valid else None,
        per_success=known(total / passed) if passed else None,
    )


def times(records: Records, rows: Flags) -> Times:
    """Wall time, steps and tokens of the valid attempts."""
    table = records.columns
    valid = rows & table.valid
    spent = table.seconds[valid]
    whole = float(spent.sum())
    median, p95 = np.quantile(spent, [0.5, 0.95]).tolist() if spent.size else (math.nan, math.nan)
    return Times(
        mean=_mean(spent),
        median=known(median),
        p95=known(p95),
        environment_share=known(float(table.environment_seconds[valid].sum()) / whole) if whole > 0 else None,
        mean_success=_mean(table.seconds[valid & table.success]),
        mean_failure=_mean(table.seconds[valid & ~table.success]),
        steps=_mean(table.steps[valid]),
        tokens=_mean(table.tokens[valid]),
    )


def classes(records: Records, rows: Flags) -> dict[str, int]:
    """Planned attempts by what became of them."""
    outcomes = records.columns.outcome[rows]
    found = {kind.value: int((outcomes == place).sum()) for place, kind in enumerate(CLASSES)}
    return found | {"missing": int((outcomes == MISSING).sum())}


def endings(records: Records, rows: Flags) -> dict[str, int]:
    """Attempts on record by terminal reason, the most frequent first."""
    codes = records.columns.ending[rows]
    numbers = np.bincount(codes[codes >= 0], minlength=len(records.endings)).tolist()
    pairs = [(name, number) for name, number in zip(records.endings, numbers, strict=True) if number]
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def share(part: int, whole: int) -> float | None:
    """A share; undefined of nothing."""
    return known(part / whole) if whole else None


def named(spec: Mapping[str, Any]) -> str:
    """A part of a SystemSpec by name and version, else by the beginning of its digest; empty when there is none."""
    if not spec:
        return ""
    name = " ".join(str(spec[key]) for key in ("name", "version") if spec.get(key))
    return name or digest(dict(spec))[:8]


def _mean(values: Floats) -> float | None:
    return known(float(values.mean())) if values.size else None
