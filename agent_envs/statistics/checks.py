"""Do repeated attempts at a task agree, and how much do tasks and attempts vary."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.inputs import successes, vector
from agent_envs.statistics.means import task_mean
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
