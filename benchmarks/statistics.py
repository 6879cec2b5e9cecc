"""The cluster bootstrap's speed beside plain NumPy, and the coverage the intervals have in simulation.

Coverage is measured from 20 tasks up and for rates of 0.05 to 0.95: task rates are drawn from a beta distribution,
attempts from them, and a figure is the distance of the share of intervals that hold the truth from 95 %, in percentage
points. Each scenario has its own seed, so the figures are the same on every run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agent_envs.statistics import bootstrap, curve_rows, divide
from agent_envs.statistics.inputs import Floats
from agent_envs.statistics.passk import per_task
from agent_envs.statistics.ratios import Interval, ratios
from benchmarks._timing import Result, compare, seconds

NOMINAL = 95.0


@dataclass(frozen=True)
class Scenario:
    """A population of tasks and the sample taken from it.

    Attributes:
        tasks: Tasks in a suite.
        attempts: Attempts at each.
        rate: Mean of the tasks' success rates.
        likeness: Intra-task correlation of attempts, which fixes the variance of the rates: rate (1 - rate) likeness.
        k: Of pass^k; 1 for the plain rate.
        gain: The second system's rate less the first's, for a paired comparison; 0 for a single system.
    """

    tasks: int
    attempts: int
    rate: float
    likeness: float
    k: int = 1
    gain: float = 0.0

    def name(self) -> str:
        """What the scenario is, in a few words."""
        what = f"difference {self.gain:g} from" if self.gain else f"pass^{self.k}" if self.k > 1 else "rate"
        return f"{what} {self.rate:g}, {self.tasks} tasks x {self.attempts}, correlation {self.likeness:g}"


RATES = [
    Scenario(tasks, attempts, rate, likeness)
    for tasks in (20, 50, 200)
    for attempts, likeness in ((5, 0.1), (5, 0.5), (10, 0.3))
    for rate in (0.05, 0.3, 0.95)
]
POWERS = [
    Scenario(tasks, attempts, rate, 0.3, k)
    for tasks in (20, 100)
    for attempts, k in ((5, 3), (8, 4))
    for rate in (0.5, 0.9)
]
DIFFERENCES = [
    Scenario(tasks, attempts, rate, likeness, gain=gain)
    for tasks in (20, 100)
    for attempts, likeness in ((1, 0.5), (5, 0.3))
    for rate, gain in ((0.3, 0.1), (0.5, 0.2), (0.85, 0.1))
]


def drawn(scenario: Scenario, rate: float, repeats: int, draw: np.random.Generator, common: Floats | None) -> Floats:
    """Task values, shape (tasks, repeats); with `common`, half of each task's place in the population is shared.

    `common` holds uniform numbers of the same shape: below 0.5 they say which quantile the task's rate is.
    """
    size = 1.0 / scenario.likeness - 1.0
    rates = draw.beta(rate * size, (1.0 - rate) * size, (scenario.tasks, repeats))
    if common is not None:
        # The same ranks for both systems on the tasks they share: difficulty carries over.
        grid = np.sort(draw.beta(rate * size, (1.0 - rate) * size, 200_000))
        rates = np.where(common < 0.5, grid[(common * 2.0 % 1.0 * grid.size).astype(np.int64)], rates)
    passed = draw.binomial(scenario.attempts, rates)
    possible = np.arange(scenario.attempts + 1)
    values: Floats = per_task(np.full(possible.size, scenario.attempts), possible, [scenario.k], "pass^k")[passed, 0]
    return values


def coverage(scenario: Scenario, repeats: int, seed: int) -> float:
    """Percentage of simulated suites whose interval holds the truth."""
    draw = np.random.default_rng(seed)
    interval: Interval = "rate"
    size = 1.0 / scenario.likeness - 1.0
    truth = float(np.prod([(scenario.rate * size + i) / (size + i) for i in range(scenario.k)]))
    if scenario.gain:
        interval, truth = "difference", scenario.gain
        common = draw.random((scenario.tasks, repeats))
        first = drawn(scenario, scenario.rate, repeats, draw, common)
        values = drawn(scenario, scenario.rate + scenario.gain, repeats, draw, common) - first
    else:
        values = drawn(scenario, scenario.rate, repeats, draw, None)
    found = ratios(np.ones(values.shape), values, 0.95, interval)
    return 100.0 * float(np.mean((found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high)))


def bootstrap_coverage(repeats: int, seed: int) -> float:
    """The same for the BCa bootstrap of a rate of 0.3, 20 tasks x 5, correlation 0.3."""
    draw = np.random.default_rng(seed)
    inside = 0
    for index in range(repeats):
        passed = draw.binomial(5, draw.beta(0.7, 0.7 * 7 / 3, 20))
        rows = curve_rows(np.full(20, 5), passed, [1], kind="pass^k")
        found = bootstrap(rows, divide, seed=index, replicates=1000)
        inside += bool(found.low[0] <= 0.3 <= found.high[0])
    return 100.0 * inside / repeats


def judged(label: str, scenarios: list[Scenario], repeats: int) -> list[Result]:
    """The scenario farthest from nominal, and how far the scenarios are on average."""
    found = [(abs(coverage(s, repeats, seed) - NOMINAL), s) for seed, s in enumerate(scenarios)]
    distance, worst = max(found, key=lambda pair: pair[0])
    mean = sum(distance for distance, _ in found) / len(found)
    return [
        Result(f"coverage, {label}: mean distance from 95 %", mean, "%", note=f"{len(found)} scenarios"),
        Result(f"coverage, {label}: largest distance", distance, "%", budget=2.0, note=worst.name()),
    ]


def plain(n: int, c: Floats, replicates: int) -> Callable[[], object]:
    """The least a bootstrap drawn task by task does: indices, a gather of ready values, a mean."""
    draw = np.random.default_rng(0)
    values = per_task(np.full(c.size, n), c.astype(np.int64), np.arange(1, n + 1), "pass^k")
    return lambda: [values[draw.integers(0, c.size, c.size)].mean(axis=0) for _ in range(replicates)]


def run(smoke: bool) -> list[Result]:
    """Measure speed at 10,000 tasks x 100 attempts with every k, and coverage."""
    tasks, attempts, replicates = (1000, 20, 100) if smoke else (10_000, 100, 2000)
    draw = np.random.default_rng(0)
    passed = draw.binomial(attempts, draw.beta(1.0, 1.0, tasks))
    tried, ks = np.full(tasks, attempts), np.arange(1, attempts + 1)
    weight = draw.uniform(0.5, 1.5, tasks)

    def whole(each: Floats | None, rounds: int) -> object:
        rows = curve_rows(tried, passed, ks, each, kind="pass^k")
        return bootstrap(rows, divide, seed=1, replicates=rounds)

    size = f"{tasks} tasks x {attempts}, every k, {replicates} replicates"
    floor = plain(attempts, passed.astype(np.float64), replicates)
    note = "floor: plain NumPy drawing and averaging task by task, without weights or intervals"
    speed = [
        Result(f"pass^k bootstrap, {size}", seconds(lambda: whole(None, replicates)), budget=10.0),
        compare(
            f"the same, every task its own weight, {size}",
            lambda: whole(weight, replicates),
            floor,
            budget=1.0,
            rounds=3,
            note=note,
        ),
    ]
    repeats = 300 if smoke else 10_000
    began = time.perf_counter()
    found = judged("rates", RATES, repeats) + judged("pass^k", POWERS, repeats)
    found += judged("paired differences", DIFFERENCES, repeats)
    distance = abs(bootstrap_coverage(30 if smoke else 2000, seed=0) - NOMINAL)
    found.append(Result("coverage, BCa bootstrap, rate 0.3, 20 tasks x 5", distance, "%", budget=2.0))
    return [*speed, *found, Result("time of the coverage simulations", time.perf_counter() - began)]
