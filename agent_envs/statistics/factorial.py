"""Models crossed with harnesses on the same tasks: which part of a result belongs to which.

A model's rate in one harness does not say how good the model is: the harness may suit it. The two-way layout separates
the main effects from the interaction, and the variance shares say how much of the scatter of single outcomes each
source makes.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.inputs import Floats, numbers, weights
from agent_envs.statistics.resampling import Bootstrap, Method, bootstrap


@dataclass(frozen=True)
class Effect:
    """Estimates of one shape with their intervals, each interval for its value alone."""

    value: Floats
    low: Floats
    high: Floats
    standard_error: Floats


@dataclass(frozen=True)
class Layout:
    """The two-way layout, in the outcome's unit.

    Attributes:
        cells: Mean of each model in each harness, shape (models, harnesses).
        models: Main effect of each model: its mean over harnesses less the grand mean; they sum to 0.
        harnesses: Main effect of each harness.
        interaction: What a cell has beyond grand mean and both main effects; rows and columns sum to 0.
        grand: Grand mean, shape (1,).
        tasks: Tasks that entered.
        coverage: Share of the tasks' weight complete in every cell.
    """

    cells: Effect
    models: Effect
    harnesses: Effect
    interaction: Effect
    grand: Effect
    tasks: int
    coverage: float


def layout(
    means: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    seed: int,
    replicates: int = 2000,
    level: float = 0.95,
    method: Method = "bca",
    partial: bool = False,
) -> Layout:
    """Cell means, main effects and interaction with cluster bootstrap intervals, tasks drawn whole.

    Drawing a task with all its cells keeps the pairing: its difficulty cancels out of every effect.

    Args:
        means: Mean outcome of each task in each cell, shape (tasks, models, harnesses); NaN where undefined.
        weight: Weight of each task.
        seed: Seed of the bootstrap.
        replicates: As for `bootstrap`.
        level: As for `bootstrap`.
        method: As for `bootstrap`.
        partial: Use the tasks complete in every cell although others are not. Otherwise everything is then NaN: an
            average over different tasks in different cells would mix difficulty into the effects.

    Raises:
        ValueError: The array has not three dimensions or no cell, or another argument is out of range.
    """
    table = numbers("means", means, missing=True)
    if table.ndim != 3 or 0 in table.shape:
        raise ValueError(f"means has shape {table.shape!r}: pass (tasks, models, harnesses), each at least 1")
    tasks, models, harnesses = table.shape
    each = weights(weight, tasks)
    complete = ~np.isnan(table).any(axis=(1, 2)) & (each > 0)
    covered = float(each[complete].sum() / each.sum())
    rows = np.hstack([table.reshape(tasks, -1) * each[:, None], each[:, None]])[complete]

    def effects(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            cells = (sums[..., :-1] / sums[..., -1:]).reshape(*sums.shape[:-1], models, harnesses)
        grand = cells.mean(axis=(-2, -1))
        row, column = cells.mean(axis=-1) - grand[..., None], cells.mean(axis=-2) - grand[..., None]
        rest = cells - grand[..., None, None] - row[..., :, None] - column[..., None, :]
        flat = [part.reshape(*sums.shape[:-1], -1) for part in (cells, row, column, rest)]
        return np.concatenate([*flat, grand[..., None]], axis=-1)

    result = bootstrap(rows, effects, seed=seed, replicates=replicates, level=level, method=method)
    withheld = covered < 1.0 - 1e-12 and not partial
    shapes = [(models, harnesses), (models,), (harnesses,), (models, harnesses), (1,)]
    parts = iter(_split(result, shapes, withheld))
    return Layout(next(parts), next(parts), next(parts), next(parts), next(parts), int(complete.sum()), covered)


def _split(result: Bootstrap, shapes: list[tuple[int, ...]], withheld: bool) -> list[Effect]:
    """Cut the flat statistics into effects of the shapes given."""
    effects, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        arrays = (result.value, result.low, result.high, result.standard_error)
        parts = [np.where(withheld, math.nan, array[start:stop]).reshape(shape) for array in arrays]
        effects.append(Effect(*parts))
        start = stop
    return effects


FACTORS = ("task", "model", "harness")


@dataclass(frozen=True)
class Components:
    """Variance components; keys are "task", "model", "harness", their products such as "task x model", and "attempt".

    Attributes:
        variance: Estimates, truncated at 0; NaN where a factor has one level, or for what cannot be told apart.
        share: Their shares of the defined total, which sum to 1; NaN where the variance is, or the total is 0.
        truncated: Names of the components whose estimate was negative before truncation, sorted.
    """

    variance: dict[str, float]
    share: dict[str, float]
    truncated: tuple[str, ...]


def components(outcomes: ArrayLike) -> Components:
    """Variance components of tasks x models x harnesses x attempts, all random; attempts are nested, the rest crossed.

    Method of moments: mean squares of the balanced analysis of variance set equal to their expectations (Searle,
    Casella and McCulloch 1992, chapter 4), solved from the highest interaction down. Unbiased before truncation of
    negative estimates at 0. With one attempt a cell, the three-way interaction and the attempt cannot be told apart:
    both then stand under "attempt". Few models or harnesses give their components few degrees of freedom: read them as
    descriptions of these, not of models at large.

    Args:
        outcomes: Shape (tasks, models, harnesses, attempts), complete.

    Raises:
        ValueError: The array has not four dimensions, fewer than two tasks, or holds an undefined outcome.
    """
    y = numbers("outcomes", outcomes)
    if y.ndim != 4 or 0 in y.shape or y.shape[0] < 2:
        raise ValueError(
            f"outcomes has shape {y.shape!r}: pass (tasks, models, harnesses, attempts) with 2 tasks or more"
        )
    attempts = y.shape[3]
    cells = y.mean(axis=3)
    subsets = [s for size in (3, 2, 1) for s in itertools.combinations(range(3), size)]
    raw: dict[tuple[int, ...], float] = {}
    live = [s for s in subsets if all(y.shape[axis] > 1 for axis in s)]
    if attempts > 1:
        residual = float(np.square(y - cells[..., None]).sum() / (cells.size * (attempts - 1)))
    else:
        # The highest interaction there is takes the place of the attempts within cells.
        top = live.pop(0)
        residual = _mean_square(cells, top, 1)
    for subset in live:
        above = sum(raw[other] * y.size / _levels(y, other) for other in raw if set(subset) < set(other))
        raw[subset] = (_mean_square(cells, subset, attempts) - residual - above) / (y.size / _levels(y, subset))
    names = {subset: " x ".join(FACTORS[axis] for axis in subset) for subset in reversed(subsets)}
    variance = {name: max(0.0, raw[subset]) if subset in raw else math.nan for subset, name in names.items()}
    variance["attempt"] = residual
    total = math.fsum(value for value in variance.values() if not math.isnan(value))
    shares = {name: value / total if total > 0 else math.nan for name, value in variance.items()}
    scale = 1e-12 * max(total, 1e-300)
    return Components(variance, shares, tuple(sorted(names[subset] for subset in raw if raw[subset] < -scale)))


def _levels(y: Floats, subset: tuple[int, ...]) -> int:
    """Number of combinations of the subset's levels."""
    return math.prod(y.shape[axis] for axis in subset)


def _mean_square(cells: Floats, subset: tuple[int, ...], attempts: int) -> float:
    """Mean square of one effect: its contrasts' squares over all observations, per degree of freedom."""
    effect = cells
    for axis in range(3):
        mean = effect.mean(axis=axis, keepdims=True)
        effect = effect - mean if axis in subset else mean
    freedom = math.prod(cells.shape[axis] - 1 for axis in subset)
    repeats = cells.size // effect.size * attempts
    return float(np.square(effect).sum() * repeats / freedom)
