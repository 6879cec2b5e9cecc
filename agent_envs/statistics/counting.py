"""From attempts to counts for each task, without losing one: what is missing stays visible as missing.

An attempt without a valid outcome (the environment or the grader broke, the verdict is undetermined) carries NaN. It is
neither a failure nor left out: it stands in `planned` and not in `valid`, and widens the bounds.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.inputs import Counts, Floats, counts, numbers, successes, vector, weights
from agent_envs.statistics.passk import Kind, per_task

Averaging = Literal["macro", "micro"]


@dataclass(frozen=True)
class Tally:
    """What each task's attempts came to. Arrays have one value a task, in the order of `tasks`.

    Attributes:
        tasks: The tasks' labels, sorted.
        planned: Attempts that have a record, valid or not.
        valid: Attempts with an outcome.
        total: Sum of the valid outcomes.
        retries: Further tries that were recorded within attempts and not counted.
        binary: Whether every valid outcome is 0 or 1.
    """

    tasks: tuple[Any, ...]
    planned: Counts
    valid: Counts
    total: Floats
    retries: int
    binary: bool

    @property
    def successes(self) -> Counts:
        """Successes of each task.

        Raises:
            ValueError: Some outcome is a partial score: what counts as success has to be decided before.
        """
        if not self.binary:
            raise ValueError("the outcomes hold partial scores: decide what is a success before counting successes")
        return self.total.astype(np.int64)


def plain(label: Any) -> Any:
    """A label's plain value, so that an enum member and its text read back from a file are one label."""
    value = label.value if isinstance(label, enum.Enum) else label
    return value.item() if isinstance(value, np.generic) else value


def codes(
    name: str, labels: Sequence[Hashable] | ArrayLike, length: int | None = None
) -> tuple[tuple[Any, ...], Counts]:
    """The sorted distinct labels, and for each entry the position of its label.

    Raises:
        ValueError: There are not `length` labels, or one is missing (None or NaN).
    """
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "iu":
        if length is None or labels.size == length:  # whole numbers don't need a look at each
            present, places = np.unique(labels, return_inverse=True)
            return tuple(present.tolist()), places.reshape(-1).astype(np.int64)
    values = [plain(label) for label in labels]  # type: ignore[union-attr]
    if length is not None and len(values) != length:
        raise ValueError(f"{name} has {len(values)} entries: pass {length}, one for each")
    for value in values:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise ValueError(f"{name} holds {value!r}: give every entry a label")
    distinct = sorted(dict.fromkeys(values), key=lambda value: (type(value).__name__, value))
    position = {value: index for index, value in enumerate(distinct)}
    return tuple(distinct), np.array([position[value] for value in values], dtype=np.int64)


def tally(
    tasks: Sequence[Hashable] | ArrayLike,
    outcomes: ArrayLike,
    attempts: Sequence[Hashable] | ArrayLike | None = None,
    tries: ArrayLike | None = None,
) -> Tally:
    """Count the attempts of each task.

    Args:
        tasks: Task of each record; text, numbers or enum members (compared by value).
        outcomes: Outcome of each record, 0..1; NaN where there is no valid one.
        attempts: Attempt of each record. With it, a second record of the same attempt is refused unless `tries` is
            given.
        tries: Number of the try within its attempt. An attempt then counts by its first try that has a valid outcome:
            what a retry made of a failure never counts, since retries until success are no independent draws.

    Returns:
        The counts, independent of the order of the records.

    Raises:
        ValueError: Lengths differ, an outcome lies outside 0..1, or an attempt or try is recorded twice.
    """
    values = vector("outcomes", numbers("outcomes", outcomes, missing=True))
    if np.any((values < 0) | (values > 1)):
        raise ValueError("outcomes lie outside 0..1: pass 0 and 1, partial scores between, or NaN for no valid outcome")
    names, task = codes("tasks", tasks, values.size)
    if tries is not None and attempts is None:
        raise ValueError("tries without attempts: say which attempt each try belongs to")
    attempt = np.arange(values.size) if attempts is None else codes("attempts", attempts, values.size)[1]
    number = np.zeros(values.size, np.int64) if tries is None else vector("tries", counts("tries", tries), values.size)
    if np.unique(np.stack([task, attempt, number]), axis=1).shape[1] != values.size:
        raise ValueError("an attempt is recorded twice: number its tries with `tries`, or drop the copy")
    # Valid tries first, then by number; the first of each attempt is the one that counts.
    order = np.lexsort((number, np.isnan(values), attempt, task))
    task, attempt, values = task[order], attempt[order], values[order]
    first = np.ones(values.size, dtype=bool)
    first[1:] = (task[1:] != task[:-1]) | (attempt[1:] != attempt[:-1])
    task, values = task[first], values[first]
    known = ~np.isnan(values)
    return Tally(
        tasks=names,
        planned=np.bincount(task, minlength=len(names)),
        valid=np.bincount(task[known], minlength=len(names)),
        total=np.bincount(task[known], values[known], minlength=len(names)).astype(np.float64),
        retries=int(np.count_nonzero(~first)),
        binary=bool(np.isin(values[known], (0.0, 1.0)).all()),
    )


@dataclass(frozen=True)
class Coverage:
    """How much of the plan a figure rests on, and what the rest could make of it.

    Attributes:
        planned: Attempts planned.
        valid: Attempts with a valid outcome.
        tasks: Tasks planned (of positive weight).
        covered: Tasks the figure is defined for.
        share: Share of the tasks' weight that is covered.
        lowest: The figure if every missing attempt had failed.
        highest: The figure if every missing attempt had succeeded.
    """

    planned: int
    valid: int
    tasks: int
    covered: int
    share: float
    lowest: float
    highest: float


def coverage(
    planned: ArrayLike,
    valid: ArrayLike,
    passed: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    averaging: Averaging = "macro",
    kind: Kind = "pass@k",
    k: int = 1,
) -> Coverage:
    """Coverage of a success rate, pass@k or pass^k, and its bounds under every possible outcome of what is missing.

    The estimators rise with each success, so the worst and the best case are the two ends (Manski 1989, "Anatomy of the
    selection problem"): no assumption about why attempts are missing enters.

    Args:
        planned: Attempts planned for each task, shape (tasks,).
        valid: Attempts with a valid outcome.
        passed: Successes.
        weight: Weight of each task; equal for None.
        averaging: "macro" averages over tasks, "micro" over attempts (k = 1 only).
        kind: The estimator; both are the plain success rate for k = 1.
        k: Attempts looked at.

    Raises:
        ValueError: Counts do not fit each other, or micro averaging with k > 1.
    """
    tried, done = successes(valid, passed)
    plan, _ = successes(planned, tried)
    vector("planned", plan, tried.size)
    if averaging not in ("macro", "micro") or (averaging == "micro" and k != 1):
        raise ValueError(f"averaging is {averaging!r} with k = {k!r}: pass 'macro', or 'micro' with k = 1")
    each = weights(weight, plan.size)
    ends = np.stack([per_task(plan, done, k, kind)[:, 0], per_task(plan, done + plan - tried, k, kind)[:, 0]])
    if averaging == "micro":
        ends = np.where(plan > 0, ends, 0.0)
    counted = each * plan if averaging == "micro" else each
    base = counted.sum()
    low, high = (ends[:, counted > 0] @ counted[counted > 0] / base).tolist() if base else (math.nan, math.nan)
    full = (tried >= k) & (each > 0)
    return Coverage(
        planned=int(plan.sum()),
        valid=int(tried.sum()),
        tasks=int(np.count_nonzero(each)),
        covered=int(np.count_nonzero(full)),
        share=float(each[full].sum() / each.sum()) if plan.size else math.nan,
        lowest=low,
        highest=high,
    )
