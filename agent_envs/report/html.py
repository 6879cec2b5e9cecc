"""The report as one HTML file that opens anywhere: no script, no font, no image, no address from elsewhere.

Everything an agent, a policy or a task file wrote goes through two gates: what would steer the reader's screen is
escaped (`visible`), and the template escapes markup. A content security policy in the page forbids everything but its
own styles, should a gate ever fail.
"""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from agent_envs.contract import AgentRun, Change, Evidence, OutcomeClass
from agent_envs.evaluator.changes import describe
from agent_envs.report import charts, figures
from agent_envs.report.content import Analysis, Estimate, Slice, SystemNumbers
from agent_envs.report.words import visible

MOST_TEXT = 3000
"""Characters of one text on a trajectory page."""
MOST_STEPS = 100
"""Calls on a trajectory page: the first and the last half of them."""
MOST_CHANGES = 20
"""Changes shown at one step."""
MOST_PAGE = 200_000
"""Characters of all calls on a trajectory page; what comes after is left out and counted."""
MOST_SPECS = 400_000
"""Characters of all system specs together."""
MOST_PAIRS = 40
"""Comparisons that are drawn, and whose differing parts are listed."""
MOST_KS = 24
"""Rows of a system in the table of repeated attempts."""
_TEMPLATES = Path(__file__).parent / "templates"


def report_html(analysis: Analysis) -> str:
    """The report as HTML.

    Args:
        analysis: What it says.
    """
    order = {name: place for place, name in enumerate(analysis.ranking)}
    last = len(order)
    ordered = sorted(analysis.systems, key=lambda system: (system.role == "oracle", order.get(system.name, last)))
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            a=analysis,
            ordered=ordered,
            baselines=[system for system in analysis.systems if system.role == "baseline"],
            tasks=analysis.tasks,
            classes=[*(kind.value for kind in OutcomeClass), "missing"],
            slices=_slices(analysis),
            specs=[
                (name, _json(spec, most=MOST_SPECS // len(analysis.specs), indent=1))
                for name, spec in analysis.specs.items()
            ],
            pairs=analysis.comparisons[:MOST_PAIRS],
            ks=_some([point.k for point in analysis.systems[0].pass_at]),
            plots=_plots(analysis, ordered),
        )
    )


def trajectory_html(run: AgentRun, evidence: Evidence | None, problem: str) -> str:
    """One try as a page of its own, bounded whatever the agent said.

    Args:
        run: The record.
        evidence: What it left, or None.
        problem: Why there is no evidence; empty when there is.
    """
    entries = [] if evidence is None else [dict(entry) for entry in evidence.events[1:]]
    left_out = max(len(entries) - MOST_STEPS, 0)
    if left_out:
        entries = entries[: MOST_STEPS // 2] + entries[-MOST_STEPS // 2 :]
    events, size = [], 0
    for entry in map(_event, entries):
        size += len(entry["call"]) + len(entry["answer"]) + sum(map(len, entry["changes"]))
        if size > MOST_PAGE:
            break
        events.append(entry)
    left_out += len(entries) - len(events)
    opening = evidence.events[0].get("opening") if evidence is not None and evidence.events else None
    verdict = run.verdict
    return (
        _environment()
        .get_template("trajectory.html.jinja")
        .render(
            run=run,
            checks=() if verdict is None else (*verdict.assertions, *verdict.constraints),
            problem=problem,
            opening=_json(opening) if opening else "",
            events=events,
            left_out=left_out,
            changes=[] if evidence is None else _changes(evidence.changes),
        )
    )


@functools.cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        show=_show,
        long=_long,
        brief=functools.partial(_json, most=300),
        percent=figures.percent,
        points=figures.points,
        spread=figures.spread,
        range=figures.between,
        dollars=figures.dollars,
        seconds=figures.seconds,
        number=figures.number,
        p_value=figures.p_value,
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),
    )
    return made


def _plots(analysis: Analysis, ordered: Sequence[SystemNumbers]) -> dict[str, Markup]:
    systems = analysis.systems
    colour = {system.name: place % charts.COLOURS for place, system in enumerate(systems)}
    most = max((point.k for system in systems for point in system.pass_at), default=1)
    plots = {
        "headline": charts.intervals(
            "headline",
            f"{analysis.metric}, by system",
            [
                charts.Bar(
                    system.name,
                    system.headline.estimate,
                    system.headline.worst,
                    system.headline.best,
                    colour[system.name],
                )
                for system in ordered
            ],
        ),
        "outcomes": charts.stacks(
            "outcomes", "Attempts by outcome class", [(system.name, list(system.classes.items())) for system in ordered]
        ),
        "pass_at": charts.curves(
            "pass-at",
            "pass@k by k",
            [charts.Line(system.name, system.pass_at, colour[system.name]) for system in systems],
            most,
        ),
        "pass_hat": charts.curves(
            "pass-hat",
            "pass^k by k",
            [charts.Line(system.name, system.pass_hat, colour[system.name]) for system in systems],
            most,
        ),
        "compared": charts.intervals(
            "compared",
            "Differences between systems",
            [
                charts.Bar(f"{pair.b} less {pair.a}", pair.difference, None, None, colour[pair.b])
                for pair in analysis.comparisons[:MOST_PAIRS]
                if pair.difference.value is not None
            ],
            signed=True,
        ),
    }
    shown = [system for system in systems if system.headline.estimate.value is not None]
    costs = [
        charts.Dot(system.name, system.money.per_attempt, system.headline.estimate, colour[system.name])
        for system in shown
        if system.money.per_attempt is not None
    ]
    times = [
        charts.Dot(system.name, system.times.mean, system.headline.estimate, colour[system.name])
        for system in shown
        if system.times.mean is not None
    ]
    for name, dots, unit in (("cost", costs, "US dollars per attempt"), ("time", times, "seconds per attempt")):
        drawn = charts.scatter(f"{name}-plot", f"Success against {name}", dots, unit)
        plots[name] = drawn if dots else Markup("")
    return plots


def _slices(analysis: Analysis) -> list[tuple[str, list[tuple[str, list[Estimate | None]]]]]:
    """Tables of slices: title, then rows of value and one estimate a system (None where it has none)."""
    tables: dict[str, dict[str, list[Estimate | None]]] = {}
    systems = analysis.systems
    for place, system in enumerate(systems):
        found: tuple[Slice, ...] = (*system.slices, *system.lengths)
        for part in found:
            title = "Episode length" if part.name == "length" and part in system.lengths else f"Label {part.name}"
            row = tables.setdefault(title, {}).setdefault(part.value, [None] * len(systems))
            row[place] = part.estimate
    return [(title, list(rows.items())) for title, rows in tables.items()]


def _some(ks: Sequence[int]) -> set[int]:
    """The k that a table shows: all, or the first ones and the rest evenly spread."""
    if len(ks) <= MOST_KS:
        return set(ks)
    half = MOST_KS // 2
    return {*ks[:half], *(ks[round(place * (len(ks) - 1) / half)] for place in range(1, half + 1))}


def _event(entry: Mapping[str, Any]) -> dict[str, Any]:
    call = f"{entry.get('tool') or '(no tool)'} {_json(entry.get('arguments'))}"
    return {
        "step": entry.get("step"),
        "status": str(entry.get("status")),
        "call": _long(call),
        "answer": _long(entry.get("error") or _json(entry.get("result"))),
        "changes": _changes(Change.model_validate(change) for change in entry.get("changes", ())),
    }


def _changes(changes: Iterable[Change]) -> list[str]:
    found = [_long(describe(change), 400) for change in changes]
    return found if len(found) <= MOST_CHANGES else [*found[:MOST_CHANGES], f"and {len(found) - MOST_CHANGES} more"]


def _json(value: Any, most: int = MOST_TEXT, indent: int | None = None) -> str:
    return _long(json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=True), most)


def _show(text: str) -> str:
    return visible(str(text))


def _long(text: Any, most: int = MOST_TEXT) -> str:
    shown = visible(str(text))
    if len(shown) <= most:
        return shown
    return f"{shown[: most // 2]} [... {len(shown) - most} characters left out ...] {shown[-most // 2 :]}"
