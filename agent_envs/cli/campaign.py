"""``agenteval campaign``: declare, run, resume, look at and check a campaign."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_envs.cli.common import Command, console, positive
from agent_envs.contract import AgentEvalError

if TYPE_CHECKING:
    from agent_envs.campaign.lock import Lock
    from agent_envs.campaign.planner import Plan
    from agent_envs.campaign.standing import Standing

NAME = "campaign"
ABOUT = "Campaigns: many attempts of several systems, declared before the first and rebuildable afterwards."


def add(command: Command) -> None:
    """Add the commands."""
    made = command("check", _check, "Read a manifest and say what it would run. Runs and writes nothing.")
    made.add_argument("manifest", type=Path, metavar="MANIFEST")

    made = command(
        "run", _run, "Lock a manifest into a new folder and run it. The same command again goes on where it stopped."
    )
    made.add_argument("manifest", type=Path, metavar="MANIFEST")
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="the campaign's folder")

    made = command("resume", _resume, "Go on with a campaign: exactly the attempts that have no record yet.")
    made.add_argument("dir", type=Path, metavar="DIR")
    made.add_argument(
        "--accept-changes",
        action="store_true",
        help="what was locked has changed since the start: reuse, judge again and run again as is then printed",
    )

    made = command("status", _status, "Say how a campaign stands, also while it runs.")
    made.add_argument("dir", type=Path, metavar="DIR")
    made.add_argument("--json", action="store_true", help="print JSON")

    made = command("plan", _plan, "Say how many tasks and attempts a comparison of two systems needs.")
    made.add_argument("--pilot", type=Path, metavar="DIR", help="take the variances from a campaign's records")
    made.add_argument("--between", type=_variance, metavar="V", help="variance of true rates between tasks (0 to 0.25)")
    made.add_argument(
        "--within", type=_variance, metavar="V", help="variance of an attempt within its task (0 to 0.25)"
    )
    made.add_argument("--correlation", type=_number, default=0.0, metavar="R", help="of the systems' rates over tasks")
    made.add_argument("--difference", type=_number, default=0.1, metavar="D", help="difference to see (default 0.1)")
    made.add_argument("--tasks", type=positive, default=50, metavar="N", help="tasks at hand (default 50)")
    made.add_argument("--attempts", type=positive, default=4, metavar="N", help="attempts a task (default 4)")
    made.add_argument("--power", type=_number, default=0.8, metavar="P", help="wanted power (default 0.8)")
    made.add_argument("--alpha", type=_number, default=0.05, metavar="P", help="level of the test (default 0.05)")

    made = command("report", _report, "Make the report from the records: terminal, report/*.html, JSON, CSV.")
    made.add_argument("dir", type=Path, metavar="DIR")
    made.add_argument(
        "--verify", action="store_true", help="write nothing; make all of it again and compare; exit 1 if it differs"
    )
    made.add_argument("--parquet", type=Path, metavar="FILE", help="also write the table of attempts there")

    made = command("compare", _compare, "Compare the systems of several campaigns, on the tasks that are the same.")
    made.add_argument("dirs", type=Path, nargs="+", metavar="DIR")

    made = command("release-check", _release, "Judge the nine promises of a published result; exit 1 if one isn't met.")
    made.add_argument("dir", type=Path, metavar="DIR")
    made.add_argument("--cases", type=Path, metavar="DIR", help="folder of regression cases (default DIR/regression)")
    made.add_argument("--sealed", type=Path, metavar="FILE", help="the sealed suite that was opened")
    made.add_argument("--json", action="store_true", help="print JSON")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _variance(text: str) -> float:
    if not 0 <= (value := _number(text)) <= 0.25:
        raise argparse.ArgumentTypeError(f"{text!r}: the variance of something between 0 and 1 is at most 0.25")
    return value


def _check(options: argparse.Namespace) -> int:
    from rich.table import Table

    from agent_envs.campaign.lock import make_lock
    from agent_envs.campaign.manifest import read_manifest
    from agent_envs.report.words import plain

    manifest, fault = read_manifest(options.manifest)
    lock = make_lock(manifest, fault)
    table = Table("system", "policy", "hash", "", box=None, pad_edge=False)
    for system in manifest.systems:
        mark = "oracle: shown, never ranked" if system.name in lock.oracles else ""
        table.add_row(plain(system.name), plain(system.policy), lock.systems[system.name].digest[:16], mark)
    _console_print(f"{manifest.name}: {manifest.decision}", f"population: {manifest.population}", table)
    budgets = manifest.budgets
    cost = "no limit" if budgets.total_cost is None else f"{budgets.total_cost:g} US dollars"
    seconds = "no limit" if budgets.total_seconds is None else f"{budgets.total_seconds:g} seconds"
    print(
        f"{len(lock.tasks)} tasks x {manifest.attempts} attempts x {len(manifest.systems)} systems = "
        f"{len(lock.planned)} attempts; {len(manifest.smoke) * len(manifest.systems)} smoke runs and 2 canaries first\n"
        f"total cost: {cost}; total time: {seconds}; engine: {manifest.engine.kind}, {manifest.engine.workers} workers"
    )
    return 0


def _console_print(*parts: Any) -> None:
    from agent_envs.report.words import plain

    out = console()
    for part in parts:
        out.print(plain(part) if isinstance(part, str) else part)


def _run(options: argparse.Namespace) -> int:
    from agent_envs.campaign.lock import LOCK_NAME, make_lock, read_lock, refuse_edits, write_lock
    from agent_envs.campaign.manifest import read_manifest

    manifest, fault = read_manifest(options.manifest)
    if (options.out / LOCK_NAME).exists():
        refuse_edits(read_lock(options.out), manifest)
        return _go_on(options.out, accept_changes=False)
    write_lock(make_lock(manifest, fault), options.out)
    return _play(options.out)


def _resume(options: argparse.Namespace) -> int:
    return _go_on(options.dir, options.accept_changes)


def _go_on(folder: Path, accept_changes: bool) -> int:
    from agent_envs.campaign.change import accept
    from agent_envs.campaign.planner import make_plan

    plan = make_plan(folder)
    if plan.changed:
        _print_plan(plan)
        if not accept_changes:
            raise AgentEvalError(
                f"{folder}: what was locked has changed (see above); 'agenteval campaign resume {folder} "
                "--accept-changes' does this, or undo the change"
            )
        counted = accept(folder, plan)
        print(", ".join(f"{fate.value}: {number} records" for fate, number in counted.items()))
    return _play(folder)


def _print_plan(plan: "Plan") -> None:
    print("the campaign was locked with something else; of its planned attempts:")
    _console_print(*plan.lines())


def _play(folder: Path) -> int:
    from agent_envs.campaign.campaign import run_campaign
    from agent_envs.campaign.engines import make_engine
    from agent_envs.campaign.lock import read_lock

    lock = read_lock(folder)
    kind = lock.manifest.engine
    engine = make_engine(kind.kind, kind.workers, kind.address)
    with _Bar(lock) as bar:
        standing = run_campaign(folder, engine, bar.show)
    if not standing.done:
        _print_standing(standing)
    else:
        from agent_envs.report.export import REPORT, write_report
        from agent_envs.report.terminal import print_analysis

        analysis = write_report(folder)  # before anything is printed: a closed pipe must not leave an old report
        _print_standing(standing)
        print_analysis(console(), analysis)
        print(f"written: {folder / REPORT}")
    if standing.state == "interrupted":
        print(f"go on with: agenteval campaign resume {folder}")
    return standing.exit_status


class _Bar:
    """The progress bar, with counts by class."""

    def __init__(self, lock: "Lock") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        said = TextColumn("{task.description}", markup=False)
        columns = (BarColumn(), MofNCompleteColumn(), said, TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
        self._bar = self._progress.add_task("checks first", total=len(lock.planned))

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, standing: "Standing") -> None:
        """Show how the campaign stands."""
        text = _classes(standing) or "checks first"
        self._progress.update(self._bar, completed=standing.done, description=text)


def _classes(standing: "Standing") -> str:
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(standing.classes.items()))


def _print_standing(standing: "Standing") -> None:
    reason = f": {standing.reason}" if standing.reason else ""
    cost = f"{standing.cost:.2f} US dollars"
    if standing.cost_unknown:
        known = cost if standing.cost_unknown < standing.tries else "no cost"
        cost = f"unknown ({known} known; {standing.cost_unknown} of {standing.tries} tries reported none)"
    _console_print(
        f"{standing.state}{reason}",
        f"planned {standing.planned}, done {standing.done} ({_classes(standing) or 'none'}), "
        f"invalid {standing.invalid}, remaining {standing.remaining}",
        f"cost {cost}; time at work {standing.seconds:.0f} s"
        + (f"; about {standing.eta:.0f} s to go" if standing.remaining and standing.eta is not None else ""),
    )


def _status(options: argparse.Namespace) -> int:
    import dataclasses

    from agent_envs.campaign.standing import standing

    found = standing(options.dir)
    if options.json:
        fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        print(json.dumps(fields | {"remaining": found.remaining}, indent=2, sort_keys=True))
    else:
        _print_standing(found)
    return 0


def _plan(options: argparse.Namespace) -> int:
    from agent_envs.statistics import planning

    between, within = options.between, options.within
    if options.pilot is not None:
        pilot = _variances(options.pilot)
        between = pilot[0] if between is None else between
        within = pilot[1] if within is None else within
    if between is None or within is None:
        raise AgentEvalError("the variances are needed: give --pilot DIR, or --between and --within")
    try:
        plan = planning.Plan(between, within, options.correlation, alpha=options.alpha)
        rows = [
            ("variance between tasks, within a task", f"{between:.4f}, {within:.4f}"),
            (
                f"power for {options.difference:g} with {options.tasks} tasks x {options.attempts} attempts",
                f"{planning.power(plan, options.difference, options.tasks, options.attempts):.3f}",
            ),
            (
                f"difference seen with power {options.power:g}",
                f"{planning.detectable(plan, options.tasks, options.attempts, options.power):.4f}",
            ),
            (
                f"tasks needed at {options.attempts} attempts",
                str(planning.tasks_needed(plan, options.difference, options.attempts, options.power)),
            ),
        ]
        attempts = planning.attempts_needed(plan, options.difference, options.tasks, options.power)
    except ValueError as error:
        raise AgentEvalError(str(error)) from None
    enough = "no number is enough: more tasks are needed" if attempts is None else str(attempts)
    for name, value in (*rows, (f"attempts needed at {options.tasks} tasks", enough)):
        print(f"{name}: {value}")
    return 0


def _variances(folder: Path) -> tuple[float, float]:
    """Of the system with the most scatter, so that the plan is on the safe side."""
    import math

    import numpy as np

    from agent_envs.report.records import load
    from agent_envs.statistics.checks import between_and_within

    records = load(folder)
    columns, found = records.columns, []
    for system in range(len(records.systems)):
        of = (columns.system == system) & columns.valid
        n = np.bincount(columns.task[of], minlength=len(records.tasks))
        c = np.bincount(columns.task[of], weights=columns.success[of], minlength=len(records.tasks)).astype(np.int64)
        pair = between_and_within(n, c)
        if not math.isnan(pair[0]):
            found.append(pair)
    if not found:
        raise AgentEvalError(f"{folder}: a pilot needs two tasks with two valid attempts each")
    return max(pair[0] for pair in found), max(pair[1] for pair in found)


def _report(options: argparse.Namespace) -> int:
    from agent_envs.report.export import REPORT, write_parquet, write_report
    from agent_envs.report.terminal import print_analysis

    if options.verify:
        return _verify(options.dir)
    analysis = write_report(options.dir)
    print_analysis(console(), analysis)
    print(f"written: {options.dir / REPORT}")
    if options.parquet is not None:
        print(f"{write_parquet(options.dir, options.parquet)} rows: {options.parquet}")
    return 1 if analysis.status == "invalid" else 0


def _verify(folder: Path) -> int:
    from agent_envs.report.verify import verify

    found = verify(folder)
    print(f"{found.files} files made again, {found.judged} records judged again, {found.not_judged} not")
    for problem in found.problems:
        _console_print(f"differs: {problem}")
    for remark in found.remarks:
        _console_print(f"note: {remark}")
    print("everything is as the records say" if found.ok else f"{len(found.problems)} problems")
    return 0 if found.ok else 1


def _compare(options: argparse.Namespace) -> int:
    from agent_envs.report.compare import compare
    from agent_envs.report.terminal import print_comparison

    print_comparison(console(), compare(options.dirs))
    return 0


def _release(options: argparse.Namespace) -> int:
    from agent_envs.report.release import as_json, exit_status, print_promises, release_check

    promises = release_check(options.dir, cases=options.cases, sealed=options.sealed)
    if options.json:
        sys.stdout.write(as_json(promises))
    else:
        print_promises(console(), promises)
    return exit_status(promises)
