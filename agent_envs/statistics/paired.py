"""Two systems compared task by task: the difference, whether it could be chance, and many tests at once.

Tasks differ in difficulty far more than systems do, and a difference within tasks is free of that. Where the two
systems did not meet the same tasks, `unpaired_difference` says what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.distributions import t_quantile
from agent_envs.statistics.inputs import Floats, generator, numbers, share, vector, weights, whole
from agent_envs.statistics.means import task_mean
from agent_envs.statistics.ratios import Estimate

_ENUMERATED = 20
_LATTICE_WORK = 20_000_000


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    level: float = 0.95,
    partial: bool = False,
) -> Estimate:
    """Weighted mean of second - first over tasks, with cluster-robust t interval ("difference" in `ratios`).

    Args:
        first: Per-task means (or pass@k) of one system in 0..1, shape (tasks,), NaN where undefined.
        second: The same tasks in the same order for the other system.
        weight: Weight of each task.
        level: Nominal coverage.
        partial: Compare on the tasks both are defined for, although others are missing. Otherwise the result is then
            NaN.

    Raises:
        ValueError: Shapes differ, values lie outside 0..1, or weights are bad.
    """
    a, b = (vector(name, numbers(name, side, missing=True)) for name, side in (("first", first), ("second", second)))
    vector("second", b, a.size)
    if any(np.any((side < 0) | (side > 1)) for side in (a, b)):
        raise ValueError("values lie outside 0..1: use task_mean on the differences of unbounded values")
    return task_mean(b - a, weight, level=level, partial=partial, interval="difference", kind="paired difference")


def unpaired_difference(first: Estimate, second: Estimate) -> Estimate:
    """Difference, second less first, of two suites without common tasks: Welch's t interval (Welch 1947).

    With common tasks the two are dependent and this interval is as a rule far too wide: use `paired_difference`.

    Raises:
        ValueError: The two have different levels.
    """
    if first.level != second.level:
        raise ValueError(f"levels {first.level!r} and {second.level!r} differ: make both estimates with one level")
    variances = [first.standard_error**2, second.standard_error**2]
    value, error = second.value - first.value, math.sqrt(sum(variances))
    scatter = sum(v * v / (e.tasks - 1) for v, e in zip(variances, (first, second), strict=True) if e.tasks > 1)
    quantile = t_quantile(0.5 + first.level / 2.0, error**4 / scatter) if scatter > 0 else math.nan
    low, high = value - quantile * error, value + quantile * error
    coverage = min(first.coverage, second.coverage)
    tasks = first.tasks + second.tasks
    return Estimate("unpaired difference", value, error, low, high, first.level, tasks, coverage=coverage)


@dataclass(frozen=True)
class Test:
    """Result of a permutation test.

    Attributes:
        statistic: The statistic of the data.
        p_value: Two-sided p-value; NaN where nothing could be permuted.
        method: "exact" or "monte carlo".
        permutations: Sign patterns or permutations behind it: all there are, or the number drawn.
    """

    __test__ = False  # Not a test of pytest's.

    statistic: float
    p_value: float
    method: str
    permutations: int


def sign_flip_test(
    differences: ArrayLike, weight: ArrayLike | None = None, *, seed: int = 0, draws: int = 100_000
) -> Test:
    """Sign-flip permutation test that the two systems are exchangeable within each task (Fisher 1935, section 21).

    Under that hypothesis every pattern of signs of the task differences is equally likely. The p-value is the share of
    patterns whose |sum of weighted differences| is at least that observed: exact by recursion over attainable sums
    where the differences lie on a lattice (as differences of success rates do; McNemar's exact test is the case of one
    attempt), exact by enumeration up to 20 non-zero differences, and else from `draws` random patterns, counting the
    data's own as one (Phipson and Smyth 2010).

    Args:
        differences: One value a task.
        weight: Weight of each task.
        seed: Seed of the random patterns; has no part in an exact result.
        draws: Number of random patterns.

    Returns:
        The test; the statistic is the weighted mean difference. With no non-zero difference the p-value is 1.

    Raises:
        ValueError: A difference is undefined (decide before which tasks are compared), or an argument is out of range.
    """
    values = vector("differences", numbers("differences", differences))
    each = weights(weight, values.size)
    rounds, draw = whole("draws", draws, 1), generator(seed)
    if not values.size:
        return Test(math.nan, math.nan, "exact", 0)
    mean = float(each @ values / each.sum())
    terms = np.abs(each / each.max() * values)
    observed = abs(float((each / each.max()) @ values))
    terms = np.sort(terms[terms > 0])
    if not terms.size:
        return Test(mean, 1.0, "exact", 1)
    steps = _lattice(terms)
    if steps is not None:
        unit = float(terms[-1]) / int(steps[-1])
        return Test(mean, _lattice_p(steps, round(observed / unit)), "exact", 2**terms.size)
    reached = observed - 1e-12 * float(terms.sum())
    if terms.size <= _ENUMERATED:
        sums = np.zeros(1)
        for term in terms:
            sums = np.concatenate([sums - term, sums + term])
        return Test(mean, float(np.mean(np.abs(sums) >= reached)), "exact", sums.size)
    beyond, batch = 0, max(1, 4_000_000 // terms.size)
    for start in range(0, rounds, batch):
        signs = draw.integers(0, 2, size=(min(batch, rounds - start), terms.size), dtype=np.int8)
        beyond += int(np.count_nonzero(np.abs((2.0 * signs - 1.0) @ terms) >= reached))
    return Test(mean, (beyond + 1) / (rounds + 1), "monte carlo", rounds)


def _lattice(terms: Floats) -> list[int] | None:
    """The terms as multiples of their common unit, or None if there is none coarse enough to work with."""
    fractions = {float(term): Fraction(float(term)).limit_denominator(5000) for term in np.unique(terms)}
    if any(not fraction or abs(float(fraction) - term) > 4e-15 for term, fraction in fractions.items()):
        return None
    common = math.lcm(*(fraction.denominator for fraction in fractions.values()))
    steps = [int(fractions[float(term)] * common) for term in terms]
    divisor = math.gcd(*steps)
    steps = [step // divisor for step in steps]
    return steps if sum(steps) * len(steps) <= _LATTICE_WORK else None


def _lattice_p(steps: list[int], observed: int) -> float:
    """P(|sum of +-steps| >= observed), by adding the steps one by one to the distribution of sums."""
    top = sum(steps)
    chance = np.zeros(2 * top + 1)
    chance[top] = 1.0
    reach = 0
    for step in steps:
        # Only the sums attained so far are touched.
        old = chance[top - reach : top + reach + 1] / 2.0
        reach += step
        chance[top - reach : top + reach + 1] = 0.0
        chance[top - reach : top + reach + 1 - 2 * step] += old
        chance[top - reach + 2 * step : top + reach + 1] += old
    inside = np.abs(np.arange(-top, top + 1)) >= observed
    return float(min(1.0, chance[inside].sum()))


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjustment (Holm 1979): the chance of any false rejection stays below the level.

    Args:
        p_values: One p-value a test, any shape. NaN marks a test that could not be made: it stays NaN and does not
            count.

    Returns:
        Adjusted p-values of the same shape, each at least the raw one and at most 1.

    Raises:
        ValueError: A p-value lies outside 0..1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = numbers("p_values", p_values, missing=True)
    if np.any((raw < 0) | (raw > 1)):
        raise ValueError("p_values lie outside 0..1: pass probabilities")
    result = np.full(raw.size, math.nan)
    known = np.flatnonzero(~np.isnan(raw.ravel()))
    order = known[np.argsort(raw.ravel()[known], kind="stable")]
    steps = raw.ravel()[order] * np.arange(order.size, 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return result.reshape(raw.shape)


def equivalence(difference: Estimate, margin: float) -> bool | None:
    """Whether a difference is shown to be smaller than a margin either way: its interval lies inside -margin..margin.

    With an interval of level 1 - 2 alpha this is the two one-sided tests procedure at level alpha (Schuirmann 1987).
    "No significant difference" does not show it. None where the interval is undefined.

    Raises:
        ValueError: The margin is not positive.
    """
    if not margin > 0:
        raise ValueError(f"margin is {margin!r}: pass a positive difference")
    share("level", difference.level)
    if math.isnan(difference.low) or math.isnan(difference.high):
        return None
    return -margin < difference.low and difference.high < margin
