"""The one calculation behind every mean here: a ratio of sums over tasks, with tasks as the independent units.

A macro mean, a micro mean, a pass@k average and a paired difference all have the form sum(total) / sum(size) over
tasks. Attempts at one task share its difficulty, so the task is the cluster: the error comes from how task totals
scatter, however many attempts stand behind each. Three kinds of interval, for G tasks:

- "plain": value -+ t SE, with the t quantile at G - 1 degrees of freedom.
- "rate", for values in 0..1: the score interval of Wilson 1927 at the effective number of independent outcomes, as
  Korn and Graubard 1998 and Dean and Pagano 2015 do for survey clusters. That number is the tasks over the design
  effect phi = (variance of a task's value) / p (1 - p), 1 where tasks are all or nothing and 1 / n where n attempts are
  independent. The quantile is Student's, its degrees of freedom those of phi alone, 2 phi^2 / var(phi) (Satterthwaite
  1946), since p (1 - p) is the score interval's own affair: Wilson's interval itself comes out for one attempt a task.
- "difference", for values in -1..1: the plain interval with s added to the sum of squares.

The last two are steadied, because where few tasks carry the variance its estimate is too small as often as it matters.
With m = (sum |x|)^2 / sum x^2 the effective number of tasks off zero (for a rate, of the rarer outcome), phi becomes
(m^2 phi + 1) / (m^2 + 1), and s is 1 / (1 + m^2). The form is ours, chosen by simulation.

What is covered (`benchmarks/statistics.py`, on suites other than those the form was chosen on): at a nominal 95 % and
from 20 tasks up, 93 to 97 %, for rates, pass@k, pass^k and paired differences, with 1 to 10 attempts, as long as at
least three tasks can be expected to have the rarer outcome (or to differ) and five to carry the variance, which is the
number of tasks over the kurtosis of their values. With two of the rarer outcome, and rates that spread evenly, it is
about 92 to 97.5 %. Where the variance hangs on one or two tasks no interval is right, since the sample cannot tell
small chances everywhere from a few sure successes it happens to lack: of a pass^2 of 0.01 on 100 tasks, half of it due
to one task in a hundred that always succeeds, 59 to 90 % are covered. Differences between systems that hardly ever
differ are covered in up to 100 %. With one attempt a task, coverage at one exact rate jumps between 92 and 98 % at 20
tasks, as that of any interval for a binomial proportion does (Brown, Cai and DasGupta 2001); the figures above are
averages over rates from four to six fifths of the nominal one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.distributions import normal_quantile, t_quantile, t_quantiles
from agent_envs.statistics.inputs import Floats, share, successes

Interval = Literal["plain", "rate", "difference"]


@dataclass(frozen=True)
class Estimate:
    """A figure with its uncertainty. Whatever is undefined is NaN, never 0.

    Attributes:
        kind: What was averaged and how, such as "macro mean".
        value: The figure.
        standard_error: Cluster-robust standard error; NaN with fewer than two tasks.
        low: Lower end of the interval.
        high: Upper end.
        level: Nominal coverage of the interval.
        tasks: Tasks that entered.
        attempts: Attempts that entered; None where the figure was made from task values.
        coverage: Share of the tasks' weight that entered.
    """

    kind: str
    value: float
    standard_error: float
    low: float
    high: float
    level: float
    tasks: int
    attempts: int | None = None
    coverage: float = 1.0


@dataclass(frozen=True)
class Ratios:
    """Ratio estimates side by side; each array has one value a column."""

    value: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    tasks: Floats


def ratios(size: Floats, total: Floats, level: float, interval: Interval) -> Ratios:
    """sum(total) / sum(size) for each column, with cluster-robust error and interval.

    The variance is the linearised one with small-sample factor, CR1: G/(G-1) sum (total - size value)^2 / sum(size)^2
    (Liang and Zeger 1986; Cameron and Miller 2015, section VI.B). Rows with size 0 do not enter.

    Args:
        size: Shape (tasks, K), 0 or more.
        total: Shape (tasks, K).
        level: Nominal coverage.
        interval: Kind of the interval.
    """
    level = share("level", level)
    entering = size > 0
    groups = entering.sum(axis=0).astype(np.float64)
    total = np.where(entering, total, 0.0)
    whole = size.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(groups > 0, total.sum(axis=0) / whole, math.nan)
        factor = np.where(groups > 1, groups / (groups - 1.0), math.nan)
        squares = np.square(total - size * value).sum(axis=0)
        error = np.sqrt(factor * squares) / whole
        if interval == "rate":
            outcomes, freedom = _effective(value, total, size)
            low, high = _score(value, outcomes, t_quantiles(0.5 + level / 2.0, freedom))
            low, high = np.where(groups > 1, low, math.nan), np.where(groups > 1, high, math.nan)
        else:
            quantile = np.array([t_quantile(0.5 + level / 2.0, g - 1.0) for g in groups.tolist()])
            if interval == "difference":
                squares = squares + np.square(size).sum(axis=0) / groups / (1.0 + np.square(_active(total)))
            half = quantile * np.sqrt(factor * squares) / whole
            low, high = value - half, value + half
            if interval == "difference":
                low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    return Ratios(value, error, low, high, groups)


def _active(total: Floats) -> Floats:
    """Effective number of tasks off zero in each column: (sum |x|)^2 / sum x^2; 0 where there is none."""
    squares = np.square(total).sum(axis=0)
    return np.where(squares > 0, np.square(np.abs(total).sum(axis=0)) / np.where(squares > 0, squares, 1.0), 0.0)


def _effective(value: Floats, total: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Effective number of independent outcomes behind a rate, and the degrees of freedom of what it was made from.

    The variance of the design effect is the sum of its squared influence values, one a task. They are 0 where all tasks
    are all or nothing: the rate then says all there is to say about the variance. A floor keeps a few tasks that happen
    to lie alike from passing for certainty.

    Args:
        value: Rates, shape (K,).
        total: Shape (tasks, K).
        size: Shape (tasks, K).
    """
    deviation = total - size * value
    whole, squares = size.sum(axis=0), np.square(size).sum(axis=0)
    tasks, spread = np.square(whole) / squares, value * (1.0 - value)
    plain = spread > 1e-12
    spread = np.where(plain, spread, 1.0)
    design = np.square(deviation).sum(axis=0) / squares / spread
    slope = 2.0 * (size * deviation).sum(axis=0) / squares + design * (1.0 - 2.0 * value)
    influence = (np.square(deviation) - design * spread * np.square(size)) / squares - slope * deviation / whole
    doubt = np.square(influence / spread).sum(axis=0) / (2.0 * np.square(np.maximum(design, 1e-12)))
    doubt = np.maximum(doubt, np.maximum(1.0 - design, 0.0) ** 4 / np.maximum(tasks - 1.0, 1e-9))
    # Numerator and denominator both lack what went into the mean.
    design = design * tasks / (tasks - 1.0 + design)
    active = np.square(np.minimum(_active(total), _active(size - total)))
    design = np.where(plain, (design * active + 1.0) / (active + 1.0), 1.0)
    return tasks / design, np.where(plain, 1.0 / doubt, math.inf)


def _score(p: Floats, n: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Wilson's score interval: the rates p0 with |p - p0| <= z sqrt(p0 (1 - p0) / n)."""
    square = z * z / n
    middle = (p + square / 2.0) / (1.0 + square)
    half = np.sqrt(square * p * (1.0 - p) + square * square / 4.0) / (1.0 + square)
    # Exact at the ends, where rounding could leave the unit interval.
    low = np.where(p <= 0.0, np.where(np.isnan(half), half, 0.0), np.maximum(middle - half, 0.0))
    high = np.where(p >= 1.0, np.where(np.isnan(half), half, 1.0), np.minimum(middle + half, 1.0))
    return low, high


def single(kind: str, size: Floats, total: Floats, level: float, interval: Interval, **rest: float) -> Estimate:
    """The one-column case of `ratios`; `size` and `total` have shape (tasks,)."""
    result = ratios(size[:, None], total[:, None], level, interval)
    return Estimate(
        kind=kind,
        value=float(result.value[0]),
        standard_error=float(result.standard_error[0]),
        low=float(result.low[0]),
        high=float(result.high[0]),
        level=level,
        tasks=int(result.tasks[0]),
        attempts=int(rest["attempts"]) if "attempts" in rest else None,
        coverage=rest.get("coverage", 1.0),
    )


def undefined(estimate: Estimate) -> Estimate:
    """The same figure withheld: NaN throughout, with the counts that say why."""
    nan = math.nan
    return Estimate(
        estimate.kind, nan, nan, nan, nan, estimate.level, estimate.tasks, estimate.attempts, estimate.coverage
    )


def wilson(n: ArrayLike, c: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's score interval for c successes in n independent trials (Wilson 1927, Brown, Cai and DasGupta 2001).

    Right for one attempt at each of n tasks; repeated attempts at a task are not independent, use `macro_mean` for
    them.

    Args:
        n: Trials, any shape.
        c: Successes, broadcast against n.
        level: Nominal coverage.

    Returns:
        Lower and upper ends; NaN for n = 0.

    Raises:
        ValueError: A count is bad or the level lies outside 0..1.

    >>> [round(float(end), 4) for end in wilson(10, 9)]
    [0.5958, 0.9821]
    """
    tried, passed = successes(n, c)
    z = normal_quantile(0.5 + share("level", level) / 2.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        trials = np.where(tried > 0, tried.astype(np.float64), math.nan)
        return _score(passed / trials, trials, np.full(tried.shape, z))
