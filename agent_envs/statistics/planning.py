"""How many tasks and attempts a comparison needs, before it is paid for.

An outcome is its task's rate plus scatter of the attempt. With T tasks and A attempts at each, a mean has variance
(between + within / A) / T: attempts only shrink the second part, so past a few of them tasks are what is missing.
Paired by task, the between part of a difference shrinks by the correlation of the two systems' task rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from agent_envs.statistics.distributions import noncentral_t_above, t_quantile
from agent_envs.statistics.inputs import share, whole

_MOST = 10_000_000


@dataclass(frozen=True)
class Plan:
    """What is assumed about the two systems, and how they are compared.

    Attributes:
        between: Variance between tasks of one system's true rate (0..0.25 for success rates).
        within: Mean variance of an attempt within its task: the mean of p (1 - p). Both can be had from a pilot run by
            `checks.between_and_within`.
        correlation: Correlation of the two systems' true rates over tasks, -1..1; only of use when paired.
        paired: Whether both systems meet the same tasks; otherwise each gets as many of its own.
        alpha: Level of the two-sided test.
    """

    between: float
    within: float
    correlation: float = 0.0
    paired: bool = True
    alpha: float = 0.05

    def __post_init__(self) -> None:
        """Refuse what no pair of systems can have."""
        for name, value in (("between", self.between), ("within", self.within)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}: pass a variance of 0 or more")
        if not -1.0 <= self.correlation <= 1.0:
            raise ValueError(f"correlation is {self.correlation!r}: pass a value from -1 to 1")
        share("alpha", self.alpha)

    def standard_error(self, tasks: int, attempts: int) -> float:
        """Standard error of the difference: sqrt((2 between (1 - correlation) + 2 within / attempts) / tasks)."""
        alike = self.correlation if self.paired else 0.0
        variance = 2.0 * self.between * (1.0 - alike) + 2.0 * self.within / whole("attempts", attempts, 1)
        return math.sqrt(variance / whole("tasks", tasks, 1))

    def degrees_of_freedom(self, tasks: int) -> int:
        """Of the t test: tasks - 1 paired, 2 (tasks - 1) unpaired."""
        return (tasks - 1) * (1 if self.paired else 2)


def power(plan: Plan, difference: float, tasks: int, attempts: int) -> float:
    """Chance that the two-sided t test of the difference rejects when the true difference is `difference`.

    From the non-central t distribution (Cohen 1988, chapter 2), for approximately normal task means.

    Args:
        plan: The assumptions.
        difference: True difference, in the outcome's unit.
        tasks: Tasks each system meets, 2 or more.
        attempts: Attempts of each system at each task.

    Raises:
        ValueError: An argument is out of range.
    """
    df = plan.degrees_of_freedom(whole("tasks", tasks, 2))
    error = plan.standard_error(tasks, attempts)
    if not math.isfinite(difference):
        raise ValueError(f"difference is {difference!r}: pass a finite difference")
    if error == 0.0:
        return 1.0 if difference else plan.alpha
    shift, bound = abs(difference) / error, t_quantile(1.0 - plan.alpha / 2.0, df)
    return min(1.0, noncentral_t_above(bound, df, shift) + noncentral_t_above(bound, df, -shift))


def detectable(plan: Plan, tasks: int, attempts: int, wanted: float = 0.8) -> float:
    """Smallest true difference seen with the wanted power, to 6 digits.

    Args:
        plan: The assumptions.
        tasks: As for `power`.
        attempts: As for `power`.
        wanted: Power, between the plan's alpha and 1.

    Raises:
        ValueError: An argument is out of range.
    """
    _wanted(plan, wanted)
    high = plan.standard_error(tasks, attempts)
    if high == 0.0:
        return 0.0
    while power(plan, high, tasks, attempts) < wanted:
        high *= 2.0
    low = 0.0
    while high - low > 1e-7 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if power(plan, middle, tasks, attempts) >= wanted else (middle, high)
    return high


def tasks_needed(plan: Plan, difference: float, attempts: int, wanted: float = 0.8) -> int:
    """Fewest tasks for which the difference is seen with the wanted power.

    Raises:
        ValueError: An argument is out of range, or ten million tasks would not do.
    """
    _wanted(plan, wanted, difference)
    found = _fewest(lambda tasks: power(plan, difference, tasks, attempts) >= wanted, 2)
    if found is None:
        raise ValueError(f"a difference of {difference!r} is out of reach of {_MOST} tasks: plan for a larger one")
    return found


def attempts_needed(plan: Plan, difference: float, tasks: int, wanted: float = 0.8) -> int | None:
    """Fewest attempts at each of the tasks for which the difference is seen; None where no number is enough.

    Raises:
        ValueError: An argument is out of range.
    """
    _wanted(plan, wanted, difference)
    return _fewest(lambda attempts: power(plan, difference, tasks, attempts) >= wanted, 1)


def _wanted(plan: Plan, wanted: float, difference: float = 1.0) -> None:
    if not plan.alpha < share("wanted", wanted):
        raise ValueError(f"wanted is {wanted!r}: pass a power above alpha = {plan.alpha!r}")
    if not (math.isfinite(difference) and difference != 0.0):
        raise ValueError(f"difference is {difference!r}: pass a finite difference other than 0")


def _fewest(enough: Callable[[int], bool], lowest: int) -> int | None:
    """Lowest number that is enough, by doubling and halving: power rises with it."""
    high = lowest
    while not enough(high):
        if high >= _MOST:
            return None
        high = min(high * 2, _MOST)
    low = max(lowest, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high
