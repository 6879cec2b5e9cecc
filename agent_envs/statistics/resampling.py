"""The cluster bootstrap: tasks are drawn again with replacement, each with all its attempts.

A statistic here is any function of the column sums of a table with one row a task, which covers means, curves,
differences of curves and factorial effects. Two consequences make it fast: a replicate is a row of counts times the
table, one matrix product for a whole batch; and equal rows are drawn together by one multinomial count, so 10,000 tasks
with a hundred distinct rows cost what a hundred do. Both are exact, not approximations.

Drawing tasks only is right for inference about the population the tasks stand for (Davison and Hinkley 1997, section
3.8): how attempts scatter within tasks already shows in how tasks scatter. Drawing attempts again inside drawn tasks
would count it twice, and it would bias pass@k, so it is not offered for suites. `attempts_only` asks another question:
what if the same tasks were run again?
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.distributions import normal_cdf, normal_quantile, t_quantile
from agent_envs.statistics.inputs import Counts, Floats, counts, generator, numbers, share, successes, weights, whole
from agent_envs.statistics.passk import Kind, per_task

Method = Literal["bca", "percentile"]
Statistic = Callable[[Floats], Floats]
"""From column sums, shape (..., columns), to statistics, shape (..., P)."""

_BATCH_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap estimates; arrays have one value for each statistic.

    Attributes:
        value: The statistics of the data themselves.
        standard_error: Standard deviation over the replicates.
        low: Lower ends of the intervals; NaN where nothing varies between tasks, or a replicate was undefined.
        high: Upper ends.
        level: Nominal coverage of each interval.
        method: "bca" or "percentile".
        replicates: Number of replicates.
        tasks: Number of tasks drawn from.
    """

    value: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    level: float
    method: Method
    replicates: int
    tasks: int


def bootstrap(
    rows: ArrayLike,
    statistic: Statistic,
    *,
    seed: int,
    replicates: int = 2000,
    level: float = 0.95,
    method: Method = "bca",
) -> Bootstrap:
    """Cluster bootstrap of a function of column sums.

    Intervals are percentile or BCa (Efron 1987), both at a level widened so that they equal a t interval where a t
    interval is right: the tail alpha/2 is replaced by Phi(-sqrt(G/(G-1)) t) at G tasks (Hesterberg 2015, section 5.3).
    Unwidened ones cover visibly too little at 20 tasks. The bootstrap can only reshuffle what it saw: with all tasks
    alike it yields no interval (NaN), and near 0 or 1 the "rate" intervals of `macro_mean` and `curve` are the better
    ones.

    Args:
        rows: Table, shape (tasks, columns).
        statistic: Function of column sums, shape (..., columns) to (..., P).
        seed: Seed; equal seed and data give equal results, whatever the order of the rows.
        replicates: How many times the tasks are drawn.
        level: Nominal coverage.
        method: "bca", corrected for bias and skewness, or "percentile".

    Raises:
        ValueError: The table is no finite table of numbers, or another argument is out of range.
    """
    table = numbers("rows", rows)
    if table.ndim != 2:
        raise ValueError(f"rows has shape {table.shape!r}: pass one row a task")
    level, rounds = share("level", level), whole("replicates", replicates, 2)
    if method not in ("bca", "percentile"):
        raise ValueError(f"method is {method!r}: pass 'bca' or 'percentile'")
    tasks = table.shape[0]
    distinct, sizes = np.unique(table, axis=0, return_counts=True)
    value = statistic(sizes.astype(np.float64) @ distinct)
    if tasks < 2:
        nothing = np.full(value.shape, math.nan)
        return Bootstrap(value, nothing, nothing, nothing, level, method, rounds, tasks)
    drawn = np.empty((rounds, value.size))
    draw = generator(seed)
    batch = max(1, _BATCH_BYTES // (8 * max(sizes.size, table.shape[1])))
    for start in range(0, rounds, batch):
        stop = min(start + batch, rounds)
        times = draw.multinomial(tasks, sizes / tasks, size=stop - start)
        drawn[start:stop] = statistic(times.astype(np.float64) @ distinct)
    left_out = statistic(sizes.astype(np.float64) @ distinct - distinct)
    low, high = _interval(value, drawn, left_out, sizes, level, method)
    return Bootstrap(value, drawn.std(axis=0, ddof=1), low, high, level, method, rounds, tasks)


def _interval(
    value: Floats, drawn: Floats, left_out: Floats, sizes: Counts, level: float, method: Method
) -> tuple[Floats, Floats]:
    """Ends of the intervals; `left_out` are the jackknife values of distinct rows, `sizes` how often each occurs."""
    tasks = int(sizes.sum())
    widened = math.sqrt(tasks / (tasks - 1.0)) * t_quantile(0.5 + level / 2.0, tasks - 1.0)
    low, high = np.full(value.size, math.nan), np.full(value.size, math.nan)
    for column in range(value.size):
        sample, jackknife = drawn[:, column], left_out[:, column]
        if not np.isfinite(sample).all() or np.ptp(sample) <= 1e-12 * max(1.0, abs(float(value[column]))):
            continue
        bias = skew = 0.0
        if method == "bca":
            # Ties count half: a discrete statistic is otherwise taken for a biased one.
            slack = 1e-12 * max(1.0, abs(float(value[column])))
            below = np.count_nonzero(sample < value[column] - slack)
            tied = np.count_nonzero(np.abs(sample - value[column]) <= slack)
            portion = (below + tied / 2.0) / sample.size
            bias = normal_quantile(min(max(portion, 0.5 / sample.size), 1.0 - 0.5 / sample.size))
            if np.isfinite(jackknife).all():
                away = (sizes @ jackknife) / tasks - jackknife
                spread = float(sizes @ np.square(away))
                skew = float(sizes @ away**3) / (6.0 * spread**1.5) if spread > 0 else 0.0
        ends = []
        for z in (bias - widened, bias + widened):
            # Beyond a pole of the correction every quantile of the sample is inside: take its end.
            room = 1.0 - skew * z
            ends.append(normal_cdf(bias + z / room) if room > 0 else float(z > 0))
        low[column], high[column] = np.quantile(sample, ends)
    return low, high


def divide(sums: Floats) -> Floats:
    """The usual statistic: columns are totals first, then as many sizes; each total over its size, NaN for size 0."""
    half = sums.shape[-1] // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Floats = np.where(sums[..., half:] > 1e-12, sums[..., :half] / sums[..., half:], math.nan)
    return ratio


def curve_rows(n: ArrayLike, c: ArrayLike, ks: ArrayLike, weight: ArrayLike | None = None, *, kind: Kind) -> Floats:
    """The table of a pass@k or pass^k curve, for `bootstrap(rows, divide)`.

    Args:
        n: Attempts at each task, shape (tasks,).
        c: Successes.
        ks: The k, shape (K,).
        weight: Weight of each task.
        kind: Which estimator.

    Returns:
        Shape (tasks, 2 K): weighted values, then the weights where the value is defined. Put the values of two systems
        side by side and subtract in the statistic to compare them paired by task.

    Raises:
        ValueError: Counts or weights are bad.
    """
    values = per_task(n, c, ks, kind)
    known = ~np.isnan(values)
    size = np.where(known, weights(weight, values.shape[0])[:, None], 0.0)
    return np.hstack([np.where(known, values, 0.0) * size, size])


def attempts_only(
    n: ArrayLike,
    c: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    seed: int,
    replicates: int = 2000,
    level: float = 0.95,
) -> Bootstrap:
    """Bootstrap of the macro success rate over attempts, the tasks held fixed: what would a rerun give?

    Successes are drawn from a binomial distribution at each task's own rate, and spread out by sqrt(n / (n-1)) about
    the rate, since the plug-in variance is too small by that much. Tasks with one attempt tell nothing about their own
    scatter: the interval is then NaN.

    Args:
        n: Attempts at each task, 1 or more, shape (tasks,).
        c: Successes.
        weight: Weight of each task.
        seed: Seed.
        replicates: Number of replicates.
        level: Nominal coverage of the percentile interval.

    Raises:
        ValueError: An argument is out of range.
    """
    tried, passed = successes(counts("n", n, lowest=1), c)
    level, rounds = share("level", level), whole("replicates", replicates, 2)
    each = weights(weight, tried.size)
    each = each / each.sum()
    rate = passed / tried
    value = np.array([float(each @ rate)])
    if np.any((tried < 2) & (each > 0)):
        nothing = np.array([math.nan])
        return Bootstrap(value, nothing, nothing, nothing, level, "percentile", rounds, tried.size)
    draw = generator(seed)
    spread = each * np.sqrt(tried / np.maximum(tried - 1.0, 1.0))
    batch = max(1, _BATCH_BYTES // (8 * max(1, tried.size)))
    sizes = [min(batch, rounds - start) for start in range(0, rounds, batch)]
    parts = [(draw.binomial(tried, rate, size=(size, tried.size)) / tried - rate) @ spread for size in sizes]
    sample = np.clip(value + np.concatenate(parts), 0.0, 1.0)
    varies = np.ptp(sample) > 0
    low, high = np.quantile(sample, [0.5 - level / 2, 0.5 + level / 2]) if varies else (math.nan, math.nan)
    error = np.array([sample.std(ddof=1)])
    return Bootstrap(value, error, np.array([low]), np.array([high]), level, "percentile", rounds, tried.size)
