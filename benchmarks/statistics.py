"""Speed of the statistics, and the coverage their intervals have in simulation.

Coverage: the rates of a suite's tasks are drawn from a population (beta or logit-normal distributed, or a mixture of
all-or-nothing tasks with tasks of one common rate), attempts from the rates; a figure is the distance of the share of
intervals that hold the population's value from 95 %, in percentage points. The population's rate itself is drawn within
a fifth of the scenario's for each suite: with few attempts the coverage at one exact rate depends on how its decimals
fall, for any interval there is.

The budget of two points binds where the data can carry an interval: three tasks or more are expected to have the rarer
outcome (or to differ), and five or more to carry the variance, which is the number of tasks over the kurtosis of their
values (effective numbers of tasks, where they have weights). What lies below is reported too, without a budget. All
scenarios are simulated briefly, and those that come out farthest again at length with other random numbers, so that the
largest distance isn't the largest accident. The intervals' form was chosen on other rates, correlations and seeds.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agent_envs.statistics import bootstrap, curve_rows, divide, drift, flip_rate, macro_mean, micro_mean
from agent_envs.statistics import curve as suite_curve
from agent_envs.statistics.inputs import Floats
from agent_envs.statistics.passk import Kind, per_task
from agent_envs.statistics.ratios import ratios
from benchmarks._timing import Result, compare, seconds

NOMINAL = 95.0
Shape = Literal["beta", "logit-normal", "mixture"]
SHAPES: tuple[Shape, ...] = ("beta", "logit-normal", "mixture")
SCATTER = {0.1: 0.9, 0.4: 2.7, 0.7: 5.5}
"""Intra-task correlation of the other shapes, about, to standard deviation of the logit."""
_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(80)


@dataclass(frozen=True)
class Scenario:
    """A population of tasks and the sample taken from it.

    Attributes:
        tasks: Tasks in a suite.
        attempts: Attempts at each.
        rate: Mean of the tasks' success rates.
        likeness: Correlation of two attempts at a task: how far the rates lie apart.
        shape: Distribution of the rates.
        k: Of `kind`; 1 for the plain rate.
        kind: Estimator.
        gain: The second system's rate less the first's, for a paired comparison; None for a single system.
        weighted: Tasks of unequal weight, by a factor of about ten.
    """

    tasks: int
    attempts: int
    rate: float
    likeness: float
    shape: Shape = "beta"
    k: int = 1
    kind: Kind = "pass^k"
    gain: float | None = None
    weighted: bool = False

    def name(self) -> str:
        """What the scenario is, in a few words."""
        what = self.kind.replace("k", str(self.k)) if self.gain is None else f"difference of {self.gain:g}"
        form = f"{self.shape}, correlation {self.likeness:g}" + (", weighted" if self.weighted else "")
        return f"{what}, rate {self.rate:g}, {self.tasks} tasks x {self.attempts}, {form}"


def scenarios() -> dict[str, list[Scenario]]:
    """The grid: every combination; which ones the budget binds is found by simulation."""
    sizes, likenesses = (20, 30, 50, 100, 200), tuple(SCATTER)
    rates = (0.02, 0.04, 0.08, 0.15, 0.35, 0.65, 0.9, 0.98)
    ks = {3: (2, 3), 5: (3, 5), 10: (2, 4, 8)}
    return {
        "rates": [
            Scenario(tasks, attempts, rate, likeness, shape)
            for tasks, attempts, rate, likeness, shape in itertools.product(
                sizes, (1, 3, 5, 10), rates, likenesses, SHAPES
            )
        ],
        "rates of weighted tasks": [
            Scenario(tasks, attempts, rate, likeness, shape, weighted=True)
            for tasks, attempts, rate, likeness, shape in itertools.product(
                (40, 150), (1, 5), rates, likenesses, SHAPES
            )
        ],
        "pass^k and pass@k": [
            Scenario(tasks, attempts, rate, likeness, shape, k, kind)
            for attempts, several in ks.items()
            for tasks, rate, likeness, shape, k in itertools.product(
                (20, 30, 100, 200), (0.08, 0.35, 0.65, 0.9), likenesses, SHAPES, several
            )
            for kind in (("pass^k", "pass@k") if shape == "mixture" else ("pass^k",))
        ],
        "paired differences": [
            Scenario(tasks, attempts, rate, likeness, shape, gain=gain)
            for tasks, attempts, rate, likeness, shape, gain in itertools.product(
                sizes, (1, 3, 5, 10), (0.04, 0.3, 0.7), likenesses, SHAPES, (0.0, 0.07, 0.2)
            )
        ],
    }


def population(scenario: Scenario, rate: Floats, draw: np.random.Generator) -> Floats:
    """Success rates of the tasks, shape (tasks, suites), for mean rates of shape (suites,)."""
    shape, likeness = (scenario.tasks, rate.size), scenario.likeness
    if scenario.shape == "beta":
        size = 1.0 / likeness - 1.0
        return draw.beta(rate * size, (1.0 - rate) * size, shape)
    if scenario.shape == "mixture":
        certain = (draw.random(shape) < rate).astype(np.float64)
        return np.where(draw.random(shape) < likeness, certain, np.broadcast_to(rate, shape))
    logit = np.log(rate / (1.0 - rate)) + SCATTER[likeness] * draw.standard_normal(shape)
    drawn: Floats = 1.0 / (1.0 + np.exp(-logit))
    return drawn


def moment(scenario: Scenario, rate: Floats, k: int) -> Floats:
    """Mean of the k-th power of the tasks' rates, shape (suites,)."""
    likeness, result = scenario.likeness, np.ones(rate.size)
    if scenario.shape == "beta":
        size = 1.0 / likeness - 1.0
        for i in range(k):
            result = result * (rate * size + i) / (size + i)
        return result
    if scenario.shape == "mixture":
        return likeness * rate + (1.0 - likeness) * rate**k
    logit = np.log(rate / (1.0 - rate)) + SCATTER[likeness] * _NODES[:, None]
    drawn: Floats = (_MASSES / _MASSES.sum()) @ (1.0 / (1.0 + np.exp(-logit))) ** k
    return drawn


def truth(scenario: Scenario, rate: Floats) -> Floats:
    """The population's value, shape (suites,)."""
    if scenario.kind == "pass@k":
        return 1.0 - moment(scenario, 1.0 - rate, scenario.k)
    return moment(scenario, rate, scenario.k)


def simulate(scenario: Scenario, suites: int, seed: Sequence[int]) -> tuple[float, bool]:
    """Percentage of simulated suites whose interval holds the truth, and whether the budget binds."""
    draw = np.random.default_rng(seed)
    margin = scenario.rate if scenario.rate < 0.5 else scenario.rate - 1.0
    rate = scenario.rate + draw.uniform(-0.2, 0.2, suites) * margin
    rates = population(scenario, rate, draw)
    passed = draw.binomial(scenario.attempts, rates)
    if scenario.gain is None:
        table = per_task(
            np.full(scenario.attempts + 1, scenario.attempts), range(scenario.attempts + 1), [scenario.k], scenario.kind
        )
        values, right = table[passed, 0], truth(scenario, rate)
        rarer = float(np.minimum(right, 1.0 - right).mean())
    else:
        # The second system: the same rate on most tasks, a fresh one on the others, and each moved up by one share.
        gain, mean = scenario.gain * draw.uniform(0.8, 1.2, suites), truth(scenario, rate)
        kept = np.where(draw.random(rates.shape) < 0.7, rates, population(scenario, rate, draw))
        better = draw.binomial(scenario.attempts, np.clip(kept + (1.0 - kept) * gain / (1.0 - mean), 0.0, 1.0))
        values, right = (better - passed) / scenario.attempts, gain
        rarer = float(np.mean(values != 0))
    weight = draw.gamma(1.5, 1.0, (scenario.tasks, 1)) + 0.2 if scenario.weighted else np.ones((scenario.tasks, 1))
    effective = float(weight.sum() ** 2 / np.square(weight).sum())
    away = values - right
    kurtosis = float(np.mean(away**4)) / max(float(np.mean(away**2)), 1e-300) ** 2
    carrying = float(np.square(weight).sum() ** 2 / (weight**4).sum()) / max(kurtosis, 1.0)
    size = np.broadcast_to(weight, values.shape)
    found = ratios(size, size * values, 0.95, "rate" if scenario.gain is None else "difference")
    inside = (found.low <= right + 1e-12) & (right - 1e-12 <= found.high)
    return 100.0 * float(np.mean(inside)), effective * rarer >= 3.0 and carrying >= 5.0


def judged(label: str, grid: Sequence[Scenario], suites: int) -> list[Result]:
    """How far the scenarios are from nominal on average, the farthest, and the farthest of those without a budget."""
    first = [(simulate(scenario, suites, (place, 1)), scenario) for place, scenario in enumerate(grid)]
    results = []
    for binds in (True, False):
        chosen = sorted(
            ((abs(covered - NOMINAL), s) for (covered, bound), s in first if bound is binds), key=lambda pair: -pair[0]
        )
        again = [(simulate(s, 20 * suites, (place, 2))[0], s) for place, (_, s) in enumerate(chosen[:20])]
        if not again:
            continue
        covered, worst = max(again, key=lambda pair: abs(pair[0] - NOMINAL))
        note = f"{covered:.1f} % covered: {worst.name()}"
        if binds:
            mean = sum(distance for distance, _ in chosen) / len(chosen)
            count = f"{len(chosen)} scenarios, with the simulation's own error"
            results.append(Result(f"coverage, {label}: mean distance from 95 %", mean, "%", note=count))
            results.append(
                Result(f"coverage, {label}: largest distance", abs(covered - NOMINAL), "%", budget=2.0, note=note)
            )
        else:
            name = f"coverage, {label}: largest distance where too few tasks carry it"
            results.append(Result(name, abs(covered - NOMINAL), "%", note=f"{len(chosen)} scenarios; {note}"))
    return results


def bootstrap_coverage(repeats: int, seed: int) -> float:
    """Coverage of the BCa bootstrap of a rate of 0.3, 20 tasks x 5, correlation 0.3."""
    draw = np.random.default_rng(seed)
    inside = 0
    for index in range(repeats):
        passed = draw.binomial(5, draw.beta(0.7, 0.7 * 7 / 3, 20))
        rows = curve_rows(np.full(20, 5), passed, [1], kind="pass^k")
        found = bootstrap(rows, divide, seed=index, replicates=1000)
        inside += bool(found.low[0] <= 0.3 <= found.high[0])
    return 100.0 * inside / repeats


def plain(n: int, c: Floats, replicates: int) -> Callable[[], object]:
    """The least a bootstrap drawn task by task does: indices, a gather of ready values, a mean."""
    draw = np.random.default_rng(0)
    values = per_task(np.full(c.size, n), c.astype(np.int64), np.arange(1, n + 1), "pass^k")
    return lambda: [values[draw.integers(0, c.size, c.size)].mean(axis=0) for _ in range(replicates)]


def figures(tasks: int, attempts: int, rounds: int) -> list[Result]:
    """Speed of what a report asks of one system's records: means, curves, flip rate and drift."""
    draw = np.random.default_rng(0)
    task = np.repeat(np.arange(tasks), attempts)
    outcome = draw.random(task.size) < draw.beta(1.0, 1.0, tasks)[task]
    order, worker = draw.permutation(task.size), draw.integers(0, 16, task.size)
    n, c = np.full(tasks, attempts), np.bincount(task, outcome, minlength=tasks).astype(np.int64)

    def whole() -> object:
        curves = [suite_curve(n, c, kind=kind) for kind in ("pass@k", "pass^k")]
        return macro_mean(n, c), micro_mean(n, c), flip_rate(n, c), curves, checked()

    def checked() -> object:
        return drift(outcome, task, order, worker, seed=1)

    size = f"{task.size} attempts at {tasks} tasks"
    budget = 0.01 if task.size <= 2000 else 2.0
    return [
        Result(f"drift check, {size}", min(seconds(checked) for _ in range(rounds)), budget=budget),
        Result(f"means, curves, flips, drift, {size}", min(seconds(whole) for _ in range(rounds)), budget=budget),
    ]


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
        *figures(200, 10, 3 if smoke else 20),
        *figures(10_000, 10, 1 if smoke else 5),
    ]
    began = time.perf_counter()
    found = []
    for label, grid in scenarios().items():
        found += judged(label, grid[::41] if smoke else grid, 100 if smoke else 1000)
    distance = abs(bootstrap_coverage(30 if smoke else 2000, seed=0) - NOMINAL)
    found.append(Result("coverage, BCa bootstrap, rate 0.3, 20 tasks x 5", distance, "%", budget=2.0))
    return [*speed, *found, Result("time of the coverage simulations", time.perf_counter() - began)]
