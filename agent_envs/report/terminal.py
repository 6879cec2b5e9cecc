"""The report on a terminal, in eighty columns."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_envs.report.compare import CrossComparison
from agent_envs.report.content import Analysis, Comparison, SystemNumbers
from agent_envs.report.figures import UNKNOWN, dollars, p_value, percent, points, seconds, spread
from agent_envs.report.words import plain, visible

_WIDTH = 80
_STATUS = {"complete": "green", "incomplete": "yellow", "invalid": "bold red"}


def print_analysis(console: Console, analysis: Analysis) -> None:
    """Print the summary. A narrower terminal folds it; a wider one is not needed."""
    console.print(plain(analysis.name, style="bold"), end=" ")
    console.print(Text(analysis.status, style=_STATUS[analysis.status]))
    if analysis.status_note:
        console.print(plain(analysis.status_note))
    for note in analysis.notes:
        console.print(plain(f"note: {note}", style="yellow"))
    console.print(plain(f"decision: {analysis.decision}", style="dim"))
    console.print(_results(analysis), width=_WIDTH)
    for system in analysis.systems:
        if system.headline.withheld:
            console.print(plain(f"{system.name}: headline withheld: {system.headline.withheld}", style="yellow"))
    console.print(_conduct(analysis), width=_WIDTH)
    console.print(_curves(analysis), width=_WIDTH)
    if analysis.comparisons:
        console.print(_comparisons(analysis.comparisons), width=_WIDTH)
    console.print(_spending(analysis), width=_WIDTH)
    drifting = [
        f"{system.name} with {check.name} (adjusted p {p_value(check.p_adjusted)})"
        for system in analysis.systems
        for check in system.drift
        if check.p_adjusted is not None and check.p_adjusted < 0.05
    ]
    if drifting:
        console.print(plain(f"outcomes drifted: {'; '.join(drifting)}", style="bold yellow"))
    if analysis.openings is not None:
        times = "once" if analysis.openings == 1 else f"{analysis.openings} times"
        console.print(Text(f"the sealed suite was opened {times}, this campaign's opening included"))


def print_comparison(console: Console, found: CrossComparison) -> None:
    """Print a comparison across campaigns, and what it leaves out."""
    for campaign in found.campaigns:
        console.print(plain(f"{campaign.label}: {campaign.status}, {campaign.tasks} tasks, {campaign.campaign[:16]}"))
    for note in found.notes:
        console.print(plain(f"note: {note}", style="yellow"))
    console.print(plain(f"{found.metric}; {found.common} tasks are the same in all, {found.left_out_total} left out"))
    for item in found.left_out:
        console.print(plain(f"  left out: {item.task_id}: {item.why}", style="dim"))
    if found.left_out_total > len(found.left_out):
        console.print(plain(f"  and {found.left_out_total - len(found.left_out)} more", style="dim"))
    console.print(_comparisons(found.comparisons), width=_WIDTH)


def _table(title: str, *columns: str, caption: str = "") -> Table:
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", overflow="fold")
    return table


def _results(analysis: Analysis) -> Table:
    caption = "95 % intervals, tasks as units; worst..best: whatever the absent attempts hold"
    columns = ("system", "valid", "cover", "result", "95 %", "worst..best")
    table = _table(f"Headline: {analysis.metric}", *columns, caption=caption)
    for system in analysis.systems:
        head = system.headline
        table.add_row(
            _name(system),
            f"{system.valid}/{system.planned}",
            percent(system.coverage),
            "withheld" if head.withheld else percent(head.estimate.value),
            "" if head.withheld else spread(head.estimate),
            f"{percent(head.worst)[:-2]}..{percent(head.best)[:-2]}" if head.worst is not None else "",
        )
    return table


def _conduct(analysis: Analysis) -> Table:
    caption = "rule: outcome right, but a rule was broken; claim: success claimed, state says otherwise"
    columns = ("system", "success", "failed", "harness", "invalid", "missing", "rule", "claim")
    table = _table("Attempts", *columns, caption=caption)
    for system in analysis.systems:
        table.add_row(
            plain(system.name),
            str(system.successes),
            str(system.classes["agent_failure"]),
            str(system.classes["harness_incompatibility"]),
            str(system.invalid),
            str(system.missing),
            str(system.right_but_broke_rule),
            str(system.false_claims),
        )
    return table


def _curves(analysis: Analysis) -> Table:
    ks = [point.k for point in analysis.systems[0].pass_at]
    shown = ks if len(ks) <= 4 else [ks[0], ks[1], ks[len(ks) // 2], ks[-1]]
    heads = [f"{kind}{k}" for kind in ("@", "^") for k in shown]
    caption = "@k: one of k attempts succeeds; ^k: all k do; flips: two attempts at one task disagree"
    table = _table("Repeated attempts (per cent)", "system", *heads, "flips", caption=caption)
    for system in analysis.systems:
        values = [
            "-" if point.estimate.value is None else f"{100 * point.estimate.value:.0f}"
            for curve in (system.pass_at, system.pass_hat)
            for point in curve
            if point.k in shown
        ]
        flips = system.flip_rate.value
        table.add_row(plain(system.name), *values, "-" if flips is None else f"{100 * flips:.0f}")
    return table


def _comparisons(pairs: Iterable[Comparison]) -> Table:
    caption = "percentage points, paired by task; p by sign flips, adjusted by Holm over all pairs"
    table = _table("Comparisons", "systems", "points", "95 %", "p", "differ in", caption=caption)
    for pair in pairs:
        differs = ", ".join(pair.differs) or "nothing"
        if pair.kind == "model comparison":
            differs = "model only"
        table.add_row(
            plain(f"{pair.b} less {pair.a}"),
            points(pair.difference.value) if pair.difference.value is not None else "withheld",
            spread(pair.difference, signed=True) if pair.difference.value is not None else "",
            p_value(pair.p_holm) if pair.p is not None else "",
            plain(differs),
        )
    return table


def _spending(analysis: Analysis) -> Table:
    table = _table("Cost and time", "system", "total", "per success", "mean time", "steps")
    for system in analysis.systems:
        steps = system.times.steps
        total = dollars(system.money.total)
        if total == UNKNOWN and system.money.known:
            total = f"{total} (at least {dollars(system.money.known_total)})"
        table.add_row(
            plain(system.name),
            total,
            dollars(system.money.per_success),
            seconds(system.times.mean),
            UNKNOWN if steps is None else f"{steps:.1f}",
        )
    return table


def _name(system: SystemNumbers) -> Text:
    mark = {"system": "", "baseline": " baseline", "oracle": " oracle, not ranked"}[system.role]
    return Text.assemble(visible(system.name), (mark, "dim"))
