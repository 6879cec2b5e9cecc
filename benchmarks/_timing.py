"""Timing that survives a noisy machine.

The speed of a shared core moves by a factor of three within minutes, so an absolute time says little. Every subject is
therefore measured beside a floor (the least work that could do the job) in interleaved rounds: both meet the same
weather, the ratio is taken round by round, and the median round counts.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """One measured figure.

    Attributes:
        name: What was measured, such as "refund: step, read tool".
        value: The figure, in `unit`; less is better.
        unit: "s" for seconds of one operation, or another unit such as "MiB".
        floor: The same figure for the floor; None where there is none.
        ratio: `value` over `floor` in the median round; None without a floor.
        budget: Upper bound of `ratio`, or of `value` where there is no floor; None for a figure that is only reported.
        note: What the floor is, or anything else the reader has to know.
    """

    name: str
    value: float
    unit: str = "s"
    floor: float | None = None
    ratio: float | None = None
    budget: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a figure that nothing could have measured."""
        for label, figure in (("value", self.value), ("floor", self.floor), ("ratio", self.ratio)):
            if figure is not None and not (math.isfinite(figure) and figure >= 0):
                raise ValueError(f"{self.name}: {label} is {figure!r}, which is no measurement")

    @property
    def judged(self) -> float:
        """The number the budget bounds."""
        return self.value if self.ratio is None else self.ratio

    @property
    def within_budget(self) -> bool | None:
        """Whether the budget is kept; None without a budget."""
        return None if self.budget is None else self.judged <= self.budget


def seconds(operation: Callable[[], object], number: int = 1) -> float:
    """Mean seconds of one call over `number` calls in a row, with the garbage collector held off."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(number):
            operation()
        return (time.perf_counter() - start) / number
    finally:
        if enabled:
            gc.enable()


def compare(
    name: str,
    subject: Callable[[], object],
    floor: Callable[[], object],
    *,
    budget: float | None = None,
    rounds: int = 15,
    number: int = 1,
    measure: Callable[[Callable[[], object], int], float] = seconds,
    note: str = "",
) -> Result:
    """Measure a subject against its floor.

    Args:
        name: What the subject is.
        subject: One operation.
        floor: The least work that could do the same.
        budget: Upper bound of the ratio.
        rounds: Interleaved rounds, after one warm-up round that does not count; the two take turns in going first.
        number: Calls a measurement; choose it so that one takes a millisecond or more.
        measure: Seconds of one operation; replaced where the operation times itself.
        note: What the floor is.

    Raises:
        ValueError: for no rounds, or a floor that takes no measurable time.
    """
    if rounds < 1 or number < 1:
        raise ValueError(f"{name}: rounds and number have to be 1 or more, not {rounds!r} and {number!r}")
    measure(subject, 1), measure(floor, 1)
    pairs: list[tuple[float, float]] = []
    for index in range(rounds):
        if index % 2:
            below = measure(floor, number)
            pairs.append((measure(subject, number), below))
        else:
            above = measure(subject, number)
            pairs.append((above, measure(floor, number)))
    if any(below <= 0 for _, below in pairs):
        raise ValueError(f"{name}: the floor took no measurable time; raise number above {number!r}")
    return Result(
        name=name,
        value=statistics.median(above for above, _ in pairs),
        floor=statistics.median(below for _, below in pairs),
        ratio=statistics.median(above / below for above, below in pairs),
        budget=budget,
        note=note,
    )


def readable(value: float | None, unit: str) -> str:
    """A figure with its unit; seconds scaled to s, ms or us.

    >>> readable(0.0000125, "s")
    '12.5 us'
    >>> readable(3, "MiB")
    '3 MiB'
    """
    if value is None:
        return ""
    if unit == "s":
        for scale, name in ((1.0, "s"), (1e-3, "ms")):
            if value >= scale:
                return f"{value / scale:.3g} {name}"
        return f"{value / 1e-6:.3g} us"
    return f"{value:.4g} {unit}"


def table(results: Sequence[Result]) -> str:
    """The results as aligned plain text, one a line."""
    rows = [("measured", "figure", "floor", "ratio", "budget", "")]
    for result in results:
        verdict = {None: "", True: "kept", False: "EXCEEDED"}[result.within_budget]
        rows.append(
            (
                result.name,
                readable(result.value, result.unit),
                readable(result.floor, result.unit),
                "" if result.ratio is None else f"{result.ratio:.2f}",
                "" if result.budget is None else f"{result.budget:g}",
                " ".join(part for part in (verdict, f"({result.note})" if result.note else "") if part),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def as_json(results: Sequence[Result]) -> str:
    """The results as a JSON list, in order, with the judgement beside the figures."""
    records: list[dict[str, Any]] = [
        {
            "name": result.name,
            "value": result.value,
            "unit": result.unit,
            "floor": result.floor,
            "ratio": result.ratio,
            "budget": result.budget,
            "within_budget": result.within_budget,
            "note": result.note,
        }
        for result in results
    ]
    return json.dumps(records, indent=2) + "\n"
