"""Plots as inline SVG, drawn for a phone's width so that their text is never shrunk.

Every plot has a title and a description for those who can't see it, and a table with the same numbers stands beside it
in the report. Colours are classes, so that light and dark follow the reader's setting.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from agent_envs.report.content import CurvePoint, Estimate
from agent_envs.report.figures import percent, points, spread
from agent_envs.report.words import visible

WIDTH = 360
COLOURS = 8
"""Colours before they repeat; the table beside a plot tells the rest apart."""
MOST_BANDS = 4
"""Curves with bands in one plot: more of them cover each other, and the table has them all."""


class Bar(NamedTuple):
    """A row of an interval plot."""

    label: str
    estimate: Estimate
    worst: float | None
    best: float | None
    colour: int


class Line(NamedTuple):
    """A curve."""

    label: str
    points: Sequence[CurvePoint]
    colour: int


class Dot(NamedTuple):
    """A point of a scatter plot."""

    label: str
    x: float
    estimate: Estimate
    colour: int


def intervals(name: str, title: str, rows: Sequence[Bar], *, signed: bool = False) -> Markup:
    """Values with their intervals on one axis, a row each; thin lines show worst and best case."""
    low, high = (-1.0, 1.0) if signed else (0.0, 1.0)
    left, right, step = 8, WIDTH - 8, 40
    height = len(rows) * step + 30

    def at(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * (right - left)

    parts = [_axis(at, low, high, 4, height - 24, signed)]
    for number, row in enumerate(rows):
        top = number * step
        middle = top + 27
        value = row.estimate.value
        said = row.estimate.note if value is None and row.estimate.note else (points if signed else percent)(value)
        parts.append(_text(left, top + 14, cut(row.label, 34), "label"))
        parts.append(_text(right, top + 14, said, "value", "end"))
        if row.worst is not None and row.best is not None:
            parts.append(_segment(at(row.worst), at(row.best), middle, f"bound s{row.colour}"))
        if row.estimate.low is not None and row.estimate.high is not None:
            parts.append(_segment(at(row.estimate.low), at(row.estimate.high), middle, f"interval s{row.colour}"))
        if value is not None:
            tip = f"{row.label}: {said}, 95 % interval {spread(row.estimate, signed=signed)}"
            parts.append(_circle(at(value), middle, 5, f"mark f{row.colour}", tip))
    words = "; ".join(
        f"{row.label} {(points if signed else percent)(row.estimate.value)}, "
        f"95 % interval {spread(row.estimate, signed=signed)}"
        for row in rows
    )
    return _svg(name, title, words, height, parts)


def curves(name: str, title: str, lines: Sequence[Line], most: int) -> Markup:
    """Values over k = 1..most with their bands."""
    left, right, top, bottom = 34, WIDTH - 10, 10, 176

    def across(k: float) -> float:
        return (left + right) / 2 if most == 1 else left + (k - 1) / (most - 1) * (right - left - 8) + 4

    def up(value: float) -> float:
        return bottom - value * (bottom - top)

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_rule(left, right, up(share), up(share)))
        parts.append(_text(left - 5, up(share) + 4, f"{100 * share:.0f}", "tick", "end"))
    for k in _ticks(most):
        parts.append(_text(across(k), bottom + 16, str(k), "tick", "middle"))
    parts.append(_text((left + right) / 2, bottom + 32, "k", "tick", "middle"))
    for line in lines:
        known = [(point.k, point.estimate) for point in line.points if point.estimate.value is not None]
        band = [
            (point.k, point.band_low, point.band_high)
            for point in line.points
            if point.band_low is not None and point.band_high is not None
        ]
        if len(band) > 1 and len(lines) <= MOST_BANDS:
            edge = [(k, high) for k, _, high in band] + [(k, low) for k, low, _ in reversed(band)]
            corners = " ".join(f"{across(k):.1f},{up(value):.1f}" for k, value in edge)
            parts.append(Markup('<polygon class="band f{}" points="{}"/>').format(line.colour, corners))
        corners = " ".join(f"{across(k):.1f},{up(e.value or 0.0):.1f}" for k, e in known)
        parts.append(Markup('<polyline class="line s{}" points="{}"/>').format(line.colour, corners))
        for k, estimate in known if len(known) <= 16 else known[:1] + known[-1:]:
            tip = f"{line.label}, k = {k}: {percent(estimate.value)}, 95 % interval {spread(estimate)}"
            parts.append(_circle(across(k), up(estimate.value or 0.0), 4, f"mark f{line.colour}", tip))
    words = "; ".join(
        f"{line.label}: " + ", ".join(f"k {point.k} {percent(point.estimate.value)}" for point in line.points[:12])
        for line in lines
    )
    return _svg(name, title, words, bottom + 38, parts)


def stacks(name: str, title: str, rows: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> Markup:
    """Counts by class, one bar a row. Each class has the CSS class of its name."""
    left, right, step = 8, WIDTH - 8, 40
    parts = []
    for number, (label, counts) in enumerate(rows):
        top, total = number * step, sum(count for _, count in counts)
        parts.append(_text(left, top + 14, cut(label, 36), "label"))
        parts.append(_text(right, top + 14, str(total), "value", "end"))
        start = float(left)
        for kind, count in counts:
            if not count or not total:
                continue
            wide = count / total * (right - left)
            box = Markup('<rect class="o-{}" x="{:.1f}" y="{}" width="{:.1f}" height="14" rx="2">{}</rect>')
            tip = Markup("<title>{}</title>").format(_safe(f"{label}: {kind} {count}"))
            parts.append(box.format(kind, start, top + 20, max(wide - 2, 0.8), tip))
            start += wide
    words = "; ".join(f"{label}: " + ", ".join(f"{kind} {count}" for kind, count in counts) for label, counts in rows)
    return _svg(name, title, words, len(rows) * step, parts)


def scatter(name: str, title: str, dots: Sequence[Dot], unit: str) -> Markup:
    """Success rate (upwards) against a cost (to the right, from zero)."""
    left, right, top, bottom = 34, WIDTH - 14, 14, 176
    most = max((dot.x for dot in dots), default=0.0) * 1.1 or 1.0
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        height = bottom - share * (bottom - top)
        parts.append(_rule(left, right, height, height))
        parts.append(_text(left - 5, height + 4, f"{100 * share:.0f}", "tick", "end"))
    for share in (0.0, 0.5, 1.0):
        anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[share]
        parts.append(_text(left + share * (right - left), bottom + 16, f"{share * most:.3g}", "tick", anchor))
    parts.append(_text((left + right) / 2, bottom + 32, unit, "tick", "middle"))
    for dot in dots:
        x, value = left + dot.x / most * (right - left), dot.estimate.value or 0.0
        y = bottom - value * (bottom - top)
        if dot.estimate.low is not None and dot.estimate.high is not None:
            ends = (bottom - dot.estimate.low * (bottom - top), bottom - dot.estimate.high * (bottom - top))
            parts.append(
                Markup('<line class="interval thin s{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
                    dot.colour, x, x, *ends
                )
            )
        tip = f"{dot.label}: {percent(dot.estimate.value)} at {dot.x:.3g} {unit}"
        parts.append(_circle(x, y, 5, f"mark f{dot.colour}", tip))
    words = "; ".join(f"{dot.label}: {percent(dot.estimate.value)} at {dot.x:.3g} {unit}" for dot in dots)
    return _svg(name, title, words, bottom + 38, parts)


def cut(text: str, most: int) -> str:
    """The beginning of a long name."""
    text = visible(text).replace("\n", " ")
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _axis(at: Callable[[float], float], low: float, high: float, parts: int, bottom: float, signed: bool) -> Markup:
    drawn = []
    for number in range(parts + 1):
        value = low + (high - low) * number / parts
        anchor = "start" if number == 0 else "end" if number == parts else "middle"
        drawn.append(_rule(at(value), at(value), 18, bottom + 2, "rule zero" if signed and value == 0 else "rule"))
        sign = "+" if signed and value else ""
        drawn.append(_text(at(value), bottom + 17, f"{100 * value:{sign}.0f}", "tick", anchor))
    return Markup("").join(drawn)


def _ticks(most: int) -> list[int]:
    if most <= 10:
        return list(range(1, most + 1))
    return sorted({1, *(round(most * share / 5) for share in range(1, 6))})


def _svg(name: str, title: str, words: str, height: float, parts: Iterable[Markup]) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {} {:.0f}" role="img" aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title>'
        '<desc id="{}-d">{}</desc>{}</svg>'
    ).format(WIDTH, height, name, name, name, _safe(title), name, _safe(words[:4000]), Markup("").join(parts))


def _safe(text: str) -> Markup:
    return escape(visible(text))


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, kind, anchor, _safe(text)
    )


def _segment(start: float, end: float, y: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(kind, start, end, y, y)


def _rule(x1: float, x2: float, y1: float, y2: float, kind: str = "rule") -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(kind, x1, x2, y1, y2)


def _circle(x: float, y: float, radius: float, kind: str, tip: str) -> Markup:
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>').format(
        kind, x, y, radius, _safe(tip)
    )
