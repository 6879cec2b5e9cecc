"""Means of outcomes, each under the name of what it averages, and pass@k and pass^k curves over a suite.

Macro gives each task its declared weight however often it was tried; micro gives each attempt the same. They differ as
soon as the numbers of attempts do, so no function here is called just "mean".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.counting import Averaging, codes
from agent_envs.statistics.inputs import Counts, Floats, counts, numbers, successes, vector, weights
from agent_envs.statistics.passk import Kind, per_task
from agent_envs.statistics.ratios import Estimate, Interval, ratios, single, undefined


def _totals(n: ArrayLike, total: ArrayLike) -> tuple[Counts, Floats]:
    tried = vector("n", counts("n", n))
    summed = vector("total", numbers("total", total), tried.size)
    if np.any((summed < 0) | (summed > tried * (1 + 1e-12))):
        raise ValueError("total lies outside 0..n for some task: pass the sum of its outcomes, each in 0..1")
    return tried, summed


def macro_mean(
    n: ArrayLike, total: ArrayLike, weight: ArrayLike | None = None, *, level: float = 0.95, partial: bool = False
) -> Estimate:
    """Weighted mean of the tasks' own means: sum w (total/n) / sum w.

    Args:
        n: Valid attempts at each task, shape (tasks,).
        total: Sum of each task's outcomes, each outcome in 0..1.
        weight: Weight of each task; equal for None. Tasks of weight 0 do not enter.
        level: Nominal coverage of the interval ("rate" in `ratios`).
        partial: Average over the tasks that have attempts, although others have none. Otherwise the figure is then NaN.

    Returns:
        The estimate; `coverage` is the share of weight with attempts, whatever `partial` is.

    Raises:
        ValueError: Counts, totals or weights are bad.
    """
    tried, summed = _totals(n, total)
    own = np.where(tried > 0, summed / np.maximum(tried, 1), math.nan)
    result = task_mean(own, weight, level=level, partial=partial, kind="macro mean", interval="rate")
    each = weights(weight, tried.size)
    return Estimate(**{**vars(result), "attempts": int(tried[each > 0].sum())})


def micro_mean(n: ArrayLike, total: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean over attempts, sum total / sum n, with tasks as clusters for its error.

    Arguments and errors as for `macro_mean`; tasks without attempts have no part in it, and `coverage` says how many
    do.
    """
    tried, summed = _totals(n, total)
    covered = float(np.mean(tried > 0)) if tried.size else math.nan
    size = tried.astype(np.float64)
    return single("micro mean", size, summed, level, "rate", attempts=int(tried.sum()), coverage=covered)


def task_mean(
    values: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    level: float = 0.95,
    partial: bool = False,
    interval: Interval = "plain",
    kind: str = "task mean",
) -> Estimate:
    """Weighted mean of one value a task, such as a partial score, a cost or a number of steps.

    Args:
        values: Shape (tasks,), NaN where undefined.
        weight: As for `macro_mean`.
        level: Nominal coverage.
        partial: As for `macro_mean`.
        interval: "plain" for any values, "rate" for values in 0..1, "difference" for values in -1..1.
        kind: Name of the figure.

    Raises:
        ValueError: Values, weights or the level are bad, or values lie outside the interval's range.
    """
    own = vector("values", numbers("values", values, missing=True))
    each = weights(weight, own.size)
    lowest = {"plain": -math.inf, "rate": 0.0, "difference": -1.0}[interval]
    known = ~np.isnan(own)
    if np.any((own[known] < lowest - 1e-12) | (own[known] > (math.inf if interval == "plain" else 1 + 1e-12))):
        raise ValueError(f"values lie outside the range of a {interval!r} interval: use 'plain' for unbounded values")
    covered = float(each[known].sum() / each.sum()) if own.size else math.nan
    size = np.where(known, each, 0.0)
    result = single(kind, size, np.where(known, own, 0.0) * size, level, interval, coverage=covered)
    return result if partial or np.all(known | (each == 0)) else undefined(result)


def cluster_mean(
    outcomes: ArrayLike,
    clusters: Sequence[Hashable] | ArrayLike,
    weight: ArrayLike | None = None,
    *,
    level: float = 0.95,
    interval: Interval = "plain",
) -> Estimate:
    """Weighted mean of single attempts, with cluster-robust error: what a weighted regression on a constant gives.

    Args:
        outcomes: One value an attempt, shape (attempts,).
        clusters: Cluster of each attempt, as a rule its task.
        weight: Weight of each attempt; equal for None.
        level: Nominal coverage.
        interval: As for `task_mean`.

    Raises:
        ValueError: Lengths differ, an outcome is undefined, or weights are bad.
    """
    values = vector("outcomes", numbers("outcomes", outcomes))
    names, which = codes("clusters", clusters, values.size)
    each = weights(weight, values.size)
    size = np.bincount(which, each, minlength=len(names)).astype(np.float64)
    total = np.bincount(which, each * values, minlength=len(names)).astype(np.float64)
    return single("weighted mean", size, total, level, interval, attempts=int(np.count_nonzero(each)))


@dataclass(frozen=True)
class Curve:
    """pass@k or pass^k of a suite; arrays have one value for each of `ks`.

    Attributes:
        kind: "pass@k" or "pass^k".
        ks: Attempts looked at.
        value: Weighted mean over tasks; NaN where some task has fewer than k attempts, unless partial was asked for.
        standard_error: Cluster-robust standard error.
        low: Lower ends of the intervals, each for its k alone.
        high: Upper ends.
        coverage: Share of the tasks' weight with at least k attempts.
        tasks: Number of tasks of positive weight with at least k attempts.
        level: Nominal coverage of the intervals.
    """

    kind: Kind
    ks: Counts
    value: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    coverage: Floats
    tasks: Counts
    level: float


def curve(
    n: ArrayLike,
    c: ArrayLike,
    ks: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    kind: Kind = "pass@k",
    level: float = 0.95,
    partial: bool = False,
) -> Curve:
    """Weighted mean over tasks of the per-task estimates, for each k; never the suite's mean raised to a power.

    Args:
        n: Valid attempts at each task, shape (tasks,).
        c: Successes.
        ks: The k to report; every k up to the largest n for None.
        weight: Weight of each task; equal for None.
        kind: Which estimator.
        level: Nominal coverage of each interval ("rate" in `ratios`).
        partial: Average over the tasks with at least k attempts where some have fewer. Those tasks may differ from the
            rest, so the values of different k are then not comparable.

    Raises:
        ValueError: Counts, weights or the level are bad.
    """
    tried, passed = successes(n, c)
    vector("n", tried)
    top = int(tried.max()) if tried.size else 0
    drawn = np.atleast_1d(counts("ks", np.arange(1, top + 1) if ks is None else ks, lowest=1))
    each = weights(weight, tried.size)
    values = per_task(tried, passed, drawn, kind)
    known = ~np.isnan(values)
    size = np.where(known, each[:, None], 0.0)
    covered = size.sum(axis=0) / each.sum() if tried.size else np.full(drawn.size, math.nan)
    result = ratios(size, np.where(known, values, 0.0) * size, level, "rate")
    shown = partial | np.all(known | (each[:, None] == 0), axis=0)
    value, error, low, high = (
        np.where(shown, array, math.nan) for array in (result.value, result.standard_error, result.low, result.high)
    )
    return Curve(kind, drawn, value, error, low, high, covered, result.tasks.astype(np.int64), level)


@dataclass(frozen=True)
class Slice:
    """One group of tasks: its label, how many tasks bear it, and their mean."""

    label: Any
    planned: int
    estimate: Estimate


def slices(
    labels: Sequence[Hashable] | ArrayLike,
    n: ArrayLike,
    total: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    averaging: Averaging = "macro",
    level: float = 0.95,
    partial: bool = False,
) -> list[Slice]:
    """The mean of each group of tasks, sorted by label. Intervals are for each group alone, not for all at once.

    Args:
        labels: One label a task; enum members count by value.
        n: Valid attempts at each task.
        total: Sum of each task's outcomes.
        weight: Weight of each task, for the macro mean.
        averaging: Which mean.
        level: Nominal coverage.
        partial: As for `macro_mean`.

    Raises:
        ValueError: Lengths differ, a label is missing, or a group's tasks all have weight 0.
    """
    if averaging not in ("macro", "micro") or (averaging == "micro" and weight is not None):
        raise ValueError(f"averaging is {averaging!r}: pass 'macro', or 'micro' without task weights")
    tried, summed = _totals(n, total)
    each = weights(weight, tried.size)
    names, which = codes("labels", labels, tried.size)
    groups = []
    for index, name in enumerate(names):
        own = which == index
        if averaging == "macro":
            estimate = macro_mean(tried[own], summed[own], each[own], level=level, partial=partial)
        else:
            estimate = micro_mean(tried[own], summed[own], level=level)
        groups.append(Slice(name, int(own.sum()), estimate))
    return groups
