"""Results of runs as terminal tables: who succeeded, who claimed what isn't so, who broke a rule."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_envs.contract import AgentRun, OutcomeClass, Status
from agent_envs.report.words import plain


def by_policy(runs: Iterable[AgentRun]) -> dict[str, list[AgentRun]]:
    """Runs grouped by policy, in order of first appearance.

    Policies of one name that aren't the same system are told apart by the beginning of their system's hash.
    """
    systems: dict[str, dict[str, list[AgentRun]]] = {}
    for run in runs:
        systems.setdefault(run.policy, {}).setdefault(run.system_spec_hash, []).append(run)
    return {
        name if len(groups) == 1 else f"{name} {system[:8]}": group
        for name, groups in systems.items()
        for system, group in groups.items()
    }


def summary(runs: Iterable[AgentRun]) -> Table:
    """One row a policy: counts over the attempts that count, and how many don't."""
    table = Table(title="Results by policy", box=box.SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True)
    for name in ("runs", "success", "rate", "false\nclaims", "broke\na rule", "invalid", "steps"):
        table.add_column(name, justify="right", no_wrap=True)
    for policy, group in by_policy(runs).items():
        counted = [run for run in group if run.counts]
        good = sum(run.outcome_class is OutcomeClass.SUCCESS for run in counted)
        table.add_row(
            plain(policy + (" *" if group[0].oracle else "")),
            str(len(group)),
            str(good),
            f"{good / len(counted):.3f}" if counted else "undefined",
            _count(run.false_claim for run in counted),
            _count(run.broke_rule for run in counted),
            str(len(group) - len(counted)),
            f"{sum(run.usage.steps for run in group) / len(group):.1f}",
        )
    return table


def matrix(runs: Sequence[AgentRun]) -> Table:
    """One row a task, one column a policy: what became of each attempt."""
    groups = by_policy(runs)
    table = Table(title="Attempts by task", box=box.SIMPLE_HEAD)
    table.add_column("task", no_wrap=True)
    for policy in groups:
        table.add_column(plain(policy), justify="center")
    for task_id in dict.fromkeys(run.task_id for run in runs):
        cells = [Text.assemble(*(_mark(run) for run in group if run.task_id == task_id)) for group in groups.values()]
        table.add_row(plain(task_id.partition("/")[2]), *cells)
    return table


def evidence_of(run: AgentRun) -> Table:
    """The checks of one run: what failed and why, what couldn't be judged, and what was kept."""
    title = f"{run.policy} on {run.task_id}, attempt {run.attempt}: {run.outcome_class.value} ({run.terminal.kind})"
    table = Table(title=plain(title), show_lines=True)
    table.add_column("check", no_wrap=True)
    table.add_column("status")
    table.add_column("evidence", overflow="fold")
    if run.verdict is None:
        table.add_row("-", "not judged", plain(run.terminal.detail))
        return table
    results = (*run.verdict.assertions, *run.verdict.constraints)
    for result in results:
        if result.status is not Status.PASS:
            evidence = plain(result.explanation.replace("; ", "\n"))
            table.add_row(plain(result.name), Text(result.status.value, style=_STYLE[result.status]), evidence)
    if passed := [result for result in results if result.status is Status.PASS]:
        changes = [str(line) for result in passed if isinstance(result.actual, list) for line in result.actual]
        names = ", ".join(result.name for result in passed)
        kept = "all others" if len(passed) < len(results) else "all"
        table.add_row(kept, Text("pass", "green"), plain("\n".join([names, *changes])))
    if run.false_claim:
        claim = "the agent declared the request completed; the state says otherwise"
        table.add_row("claim", Text("false", style="bold red"), claim)
    return table


def print_results(console: Console, runs: Sequence[AgentRun]) -> None:
    """The task table and the summary, each with its legend, and which policies broke down by errors of their own."""
    # Below the tables, not in them: a caption is folded to the width of its table, which may be narrow.
    console.print(matrix(runs), Text(_MARKS, style="dim"), summary(runs), Text(_RATE, style="dim"))
    if any(run.oracle for run in runs):
        console.print(Text("* plays the reference solution, never ranked", style="dim"))
    for policy, group in by_policy(runs).items():
        if broken := [run for run in group if run.terminal.kind in _BROKEN]:
            first = f"{broken[0].run_id}: {broken[0].terminal.detail[:300]}"
            told = f"{policy}: {len(broken)} of {len(group)} runs ended by an error of the policy's own; first {first}"
            console.print(plain(told, style="yellow"), soft_wrap=True)


_MARKS = "+ success   - failure   F failure claimed as success   R right, but broke a rule   H harness   ? invalid"
_RATE = "rate: successes over the runs that count (not the invalid ones)"
_BROKEN = ("policy_error", "policy_crash")
_STYLE = {Status.PASS: "green", Status.FAIL: "red", Status.UNDETERMINED: "yellow"}


def _count(flags: Iterable[bool]) -> str:
    return str(sum(flags))


def _mark(run: AgentRun) -> tuple[str, str]:
    if run.outcome_class is OutcomeClass.SUCCESS:
        return "+", "green"
    if run.outcome_class is OutcomeClass.HARNESS_INCOMPATIBILITY:
        return "H", "yellow"
    if not run.counts:
        return "?", "yellow"
    if run.broke_rule:
        return "R", "magenta"
    return ("F", "bold red") if run.false_claim else ("-", "red")
