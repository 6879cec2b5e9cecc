"""Checks on the measurement itself: do repeated attempts agree, and did the outcome depend on when or where they ran?

A drift across start order or between workers means that something other than the system under test moved: a service
slowed down, a state leaked, a model route changed. Both are tested by permuting outcomes within each task, which needs
no model of either.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.counting import codes
from agent_envs.statistics.inputs import Counts, Floats, generator, numbers, successes, vector, whole
from agent_envs.statistics.means import task_mean
from agent_envs.statistics.paired import Test, holm
from agent_envs.statistics.ratios import Estimate


def flip_rate(
    n: ArrayLike, c: ArrayLike, weight: ArrayLike | None = None, *, level: float = 0.95, partial: bool = False
) -> Estimate:
    """Chance that two attempts at one task disagree: the mean over tasks of 2 c (n-c) / (n (n-1)).

    Unbiased for 2 p (1-p) of each task (it is the U-statistic of disagreement); 0 for a deterministic suite.

    Args:
        n: Valid attempts at each task, shape (tasks,).
        c: Successes.
        weight: Weight of each task.
        level: Nominal coverage.
        partial: Average over tasks with two attempts or more although others have fewer; otherwise NaN then.

    Raises:
        ValueError: Counts or weights are bad.
    """
    tried, passed = successes(n, c)
    pairs = tried * (tried - 1.0)
    own = np.where(tried > 1, 2.0 * passed * (tried - passed) / np.maximum(pairs, 1.0), math.nan)
    return task_mean(own, weight, level=level, partial=partial, interval="rate", kind="flip rate")


@dataclass(frozen=True)
class Drift:
    """Whether outcomes moved with start order, and with the worker, within tasks.

    Attributes:
        correlation: Correlation of outcome and rank of start, both taken from their task's mean; NaN if nothing varies.
        order: Test of it; the statistic is the correlation.
        worker: Test of differences between workers; the statistic is the share of within-task variance they account
            for.
        adjusted: The two p-values after Holm's adjustment, (order, worker).
    """

    correlation: float
    order: Test
    worker: Test
    adjusted: tuple[float, float]


def drift(
    outcomes: ArrayLike,
    tasks: Sequence[Hashable] | ArrayLike,
    started: ArrayLike,
    workers: Sequence[Hashable] | ArrayLike,
    *,
    seed: int,
    permutations: int = 2000,
) -> Drift:
    """Test whether outcomes depend on start order or worker, by permutation within tasks.

    Permuting within tasks keeps each task's difficulty and its number of attempts fixed, so a suite whose hard tasks
    run last is not taken for drift. Monte Carlo p-values count the data themselves as one permutation (Phipson and
    Smyth 2010).

    Args:
        outcomes: Outcome of each attempt, shape (attempts,); no NaN, drop invalid attempts before.
        tasks: Task of each attempt.
        started: Start of each attempt, in any unit; only the order counts.
        workers: Worker of each attempt.
        seed: Seed of the permutations.
        permutations: Number of permutations.

    Raises:
        ValueError: Lengths differ, or a value is undefined.
    """
    values = vector("outcomes", numbers("outcomes", outcomes))
    names, task = codes("tasks", tasks, values.size)
    begun = vector("started", numbers("started", started), values.size)
    crew, worker = codes("workers", workers, values.size)
    rounds, draw = whole("permutations", permutations, 1), generator(seed)
    # Records in one order whatever order they came in; equal starts share their mean rank.
    order = np.lexsort((values, worker, begun, task))
    values, task, worker, begun = values[order], task[order], worker[order], begun[order]
    _, position, ties = np.unique(begun, return_inverse=True, return_counts=True)
    rank = (np.cumsum(ties) - (ties - 1) / 2.0)[position.reshape(-1)]
    residual, rank = _within(values, task, len(names)), _within(rank, task, len(names))
    scale = math.sqrt(float(residual @ residual) * float(rank @ rank))
    spread = float(residual @ residual)
    counts = np.bincount(task, minlength=len(names))
    # Residuals of tasks of equal size stand in one matrix, whose rows are permuted at once.
    blocks = [np.flatnonzero(counts[task] == size).reshape(-1, size) for size in np.unique(counts[counts > 1])]
    shares = _expected(task, worker, len(names), len(crew))

    def against(sample: Floats) -> tuple[float, float]:
        between = np.bincount(worker, sample, minlength=len(crew))
        return abs(float(sample @ rank)), float(np.square(between) @ shares)

    seen = against(residual)
    beyond, changed = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=bool)
    sample = residual.copy()
    for _ in range(rounds):
        for block in blocks:
            sample[block] = draw.permuted(residual[block], axis=1)
        now = against(sample)
        for which in (0, 1):
            slack = 1e-9 * max(1.0, abs(seen[which]))
            beyond[which] += now[which] >= seen[which] - slack
            changed[which] |= abs(now[which] - seen[which]) > slack
    correlation = float(residual @ rank) / scale if scale > 1e-12 else math.nan
    statistics = (correlation, seen[1] / spread if spread > 1e-12 else math.nan)
    tests = [
        Test(
            statistic=statistics[which],
            p_value=(int(beyond[which]) + 1) / (rounds + 1) if changed[which] else math.nan,
            method="monte carlo",
            permutations=rounds,
        )
        for which in (0, 1)
    ]
    adjusted = holm([test.p_value for test in tests]).tolist()
    return Drift(correlation, tests[0], tests[1], (adjusted[0], adjusted[1]))


def _within(values: Floats, task: Counts, tasks: int) -> Floats:
    """The values less their task's mean."""
    size = np.maximum(np.bincount(task, minlength=tasks), 1)
    return np.asarray(values - (np.bincount(task, values, minlength=tasks) / size)[task])


def _expected(task: Counts, worker: Counts, tasks: int, workers: int) -> Floats:
    """Weight of each worker's squared sum: one over its number of attempts at tasks that more than one worker tried."""
    pairs = np.unique(np.stack([task, worker]), axis=1)
    shared = np.bincount(pairs[0], minlength=tasks)[task] > 1
    size = np.bincount(worker[shared], minlength=workers)
    return np.where(size > 0, 1.0 / np.maximum(size, 1), 0.0)


def between_and_within(n: ArrayLike, c: ArrayLike) -> tuple[float, float]:
    """Variance of the tasks' true success rates, and mean variance of an attempt within its task.

    Within: the mean of c (n-c) / (n (n-1)). Between: the variance of observed rates less the within variance's part in
    it. The one-way analysis of variance of binary outcomes, tasks weighted alike; what `planning` asks for.

    Args:
        n: Attempts at each task, shape (tasks,); tasks with fewer than two do not enter.
        c: Successes.

    Returns:
        (between, within); between is truncated at 0. NaN for fewer than two tasks with two attempts.

    Raises:
        ValueError: Counts are bad.
    """
    tried, passed = successes(n, c)
    vector("n", tried)
    tried, passed = tried[tried > 1].astype(np.float64), passed[tried > 1]
    if tried.size < 2:
        return math.nan, math.nan
    own = passed * (tried - passed) / (tried * (tried - 1.0))
    between = float(np.var(passed / tried, ddof=1) - np.mean(own / tried))
    return max(0.0, between), float(own.mean())
