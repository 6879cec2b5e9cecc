"""Did the outcome depend on when or where an attempt ran?

A drift across start order or between workers means that something other than the system under test moved: a service
slowed down, a state leaked, a model route changed. Both are tested by the permutation of outcomes within each task,
which needs no model of either.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.counting import codes
from agent_envs.statistics.distributions import chi_squared_above
from agent_envs.statistics.inputs import Counts, Floats, generator, numbers, vector, whole
from agent_envs.statistics.paired import Test, holm

_MOST_WORKERS = 256
_ORDER_SUPPORT, _WORKER_SUPPORT = 20.0, 5.0
_BATCH = 2_000_000


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
    run last is not taken for drift. The statistics are those of Cochran, Mantel and Haenszel with tasks as strata
    (Mantel 1963; Landis, Heyman and Koch 1978): |sum of outcome x rank of start|, and for workers the quadratic form of
    their sums of outcomes in the inverse of their covariance. Mean and covariance under permutation have a closed form,
    and with enough behind them the distributions are normal and chi-squared (Hoeffding 1951). Enough is, with variances
    in units of the outcomes' squared range: an effective sum of squares within tasks of 20 for the order, weighted as
    each task weighs in the statistic, and for the workers a variance of 5 in each one's sum. With less, outcomes are
    permuted at random, and the data count as one permutation (Phipson and Smyth 2010).

    Args:
        outcomes: Outcome of each attempt, shape (attempts,); no NaN, drop invalid attempts before.
        tasks: Task of each attempt.
        started: Start of each attempt, in any unit; only the order counts.
        workers: Worker of each attempt. Beyond 256 workers those with the fewest attempts are taken as one.
        seed: Seed of the permutations; has no part in a result in closed form.
        permutations: Number of permutations, where they are drawn.

    Returns:
        The tests; `method` is "normal", "chi-squared" or "monte carlo". A p-value is NaN where no permutation changes
        the statistic.

    Raises:
        ValueError: Lengths differ, or a value is undefined.
    """
    values = vector("outcomes", numbers("outcomes", outcomes))
    names, task = codes("tasks", tasks, values.size)
    begun = vector("started", numbers("started", started), values.size)
    worker = codes("workers", workers, values.size)[1]
    rounds, draw = whole("permutations", permutations, 1), generator(seed)
    # Records in one order whatever order they came in; equal starts share their mean rank.
    order = np.lexsort((values, worker, begun, task))
    values, task, worker, begun = values[order], task[order], worker[order], begun[order]
    _, position, ties = np.unique(begun, return_inverse=True, return_counts=True)
    rank = (np.cumsum(ties) - (ties - 1) / 2.0)[position.reshape(-1)]
    residual, rank = _within(values, task, len(names)), _within(rank, task, len(names))
    product, scale = float(residual @ rank), float(residual @ residual) * float(rank @ rank)
    correlation = product / math.sqrt(scale) if scale > 1e-24 else math.nan
    # Tasks whose attempts all came out alike have no part in either test.
    varied = (np.bincount(task, np.square(residual), minlength=len(names)) > 1e-18)[task]
    if not varied.any():
        nothing = Test(math.nan, math.nan, "normal", 0)
        return Drift(correlation, nothing, nothing, (math.nan, math.nan))
    task = np.unique(task[varied], return_inverse=True)[1].reshape(-1)
    strata = _strata(residual[varied], rank[varied], task, _pooled(worker[varied]))
    closed = _normal(strata, float(np.ptp(values))), _chi_squared(strata, float(np.ptp(values)))
    drawn = _drawn(strata, draw, rounds) if None in closed else (math.nan, math.nan)

    def told(which: int, statistic: float, method: str) -> Test:
        p = closed[which]
        return Test(statistic, drawn[which], "monte carlo", rounds) if p is None else Test(statistic, p, method, 0)

    order_test, worker_test = told(0, correlation, "normal"), told(1, strata.explained, "chi-squared")
    adjusted = holm([order_test.p_value, worker_test.p_value]).tolist()
    return Drift(correlation, order_test, worker_test, (adjusted[0], adjusted[1]))


@dataclass(frozen=True)
class _Strata:
    """Attempts at tasks whose outcomes vary, sorted by task, and what permuting within tasks does to the statistics.

    Attributes:
        residual: Outcomes less their task's mean, shape (attempts,).
        rank: Ranks of start less their task's mean.
        worker: Worker of each attempt, from 0.
        starts: Where each task begins.
        variance: Of residual x rank summed, each task's part, shape (tasks,).
        squares: Each task's sum of squared residuals.
        covariance: Of the workers' sums of residuals.
        inverse: Its pseudo-inverse.
        freedom: Its rank.
        explained: Share of the residuals' variance that the workers account for; NaN if tasks never share workers.
    """

    residual: Floats
    rank: Floats
    worker: Counts
    starts: Counts
    variance: Floats
    squares: Floats
    covariance: Floats
    inverse: Floats
    freedom: int
    explained: float


def _strata(residual: Floats, rank: Floats, task: Counts, worker: Counts) -> _Strata:
    size = np.bincount(task).astype(np.float64)
    squares = np.bincount(task, np.square(residual)).astype(np.float64)
    scatter = squares / (size - 1.0)
    crew = int(worker.max()) + 1
    # Under permutation a task's sums by worker have covariance s^2 (diag(m) - m m'/n), m being its attempts by worker.
    covariance, design = np.zeros((crew, crew)), np.zeros((crew, crew))
    batch = max(1, _BATCH // crew)
    for first in range(0, size.size, batch):
        part = slice(*np.searchsorted(task, [first, first + batch]))
        table = np.bincount((task[part] - first) * crew + worker[part], minlength=batch * crew).reshape(batch, crew)
        table = table[: size.size - first].astype(np.float64)
        for matrix, factor in ((covariance, scatter[first : first + batch]), (design, np.ones(len(table)))):
            matrix += np.diag(factor @ table) - table.T @ (table * (factor / size[first : first + batch])[:, None])
    sums = np.bincount(worker, residual)
    freedom = int(np.linalg.matrix_rank(covariance, tol=1e-9 * float(scatter.sum()), hermitian=True))
    explained = sums @ np.linalg.pinv(design, rcond=1e-9, hermitian=True) @ sums / squares.sum()
    return _Strata(
        residual=residual,
        rank=rank,
        worker=worker,
        starts=np.flatnonzero(np.diff(task, prepend=-1)),
        variance=scatter * np.bincount(task, np.square(rank)),
        squares=squares,
        covariance=covariance,
        inverse=np.asarray(np.linalg.pinv(covariance, rcond=1e-9, hermitian=True), dtype=np.float64),
        freedom=freedom,
        explained=float(explained) if freedom else math.nan,
    )


def _normal(strata: _Strata, span: float) -> float | None:
    """p-value of the order; NaN where no permutation changes anything, None with too little for the normal."""
    variance = float(strata.variance.sum())
    if variance <= 1e-12:
        return math.nan
    support = variance**2 / float((np.square(strata.variance) / strata.squares).sum()) / span**2
    if support < _ORDER_SUPPORT:
        return None
    return math.erfc(abs(float(strata.residual @ strata.rank)) / math.sqrt(2.0 * variance))


def _chi_squared(strata: _Strata, span: float) -> float | None:
    """p-value of the workers; NaN and None as for the order."""
    if not strata.freedom:
        return math.nan
    own = np.diag(strata.covariance) / span**2
    if own[own > 1e-12].min() < _WORKER_SUPPORT:
        return None
    sums = np.bincount(strata.worker, strata.residual)
    return chi_squared_above(float(sums @ strata.inverse @ sums), strata.freedom)


def _drawn(strata: _Strata, draw: np.random.Generator, rounds: int) -> tuple[float, float]:
    """Both p-values from random permutations."""
    attempts = strata.residual.size
    sizes = np.diff(strata.starts, append=attempts)
    # Tasks of equal size stand in one matrix, whose rows are permuted at once.
    blocks = [strata.starts[sizes == size][:, None] + np.arange(size) for size in np.unique(sizes)]
    member = np.zeros((attempts, len(strata.inverse)))
    member[np.arange(attempts), strata.worker] = 1.0

    def statistics(sample: Floats) -> Floats:
        sums = sample @ member
        return np.stack([np.abs(sample @ strata.rank), np.einsum("ri,ij,rj->r", sums, strata.inverse, sums)])

    reached = statistics(strata.residual[None])
    reached -= 1e-9 * np.maximum(1.0, reached)
    beyond, batch = np.zeros(2, dtype=np.int64), max(1, _BATCH // attempts)
    for start in range(0, rounds, batch):
        sample = np.tile(strata.residual, (min(batch, rounds - start), 1))
        for block in blocks:
            sample[:, block] = draw.permuted(sample[:, block], axis=2)
        beyond += (statistics(sample) >= reached).sum(axis=1)
    order, workers = ((beyond + 1) / (rounds + 1)).tolist()
    return order, workers


def _within(values: Floats, task: Counts, tasks: int) -> Floats:
    """The values less their task's mean."""
    size = np.maximum(np.bincount(task, minlength=tasks), 1)
    return np.asarray(values - (np.bincount(task, values, minlength=tasks) / size)[task])


def _pooled(worker: Counts) -> Counts:
    """Workers numbered from 0, those beyond the most that are told apart as one."""
    present, position, size = np.unique(worker, return_inverse=True, return_counts=True)
    place = np.empty(present.size, dtype=np.int64)
    place[np.argsort(-size, kind="stable")] = np.arange(present.size)
    return np.minimum(place, _MOST_WORKERS)[position.reshape(-1)]
