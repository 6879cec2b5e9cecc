"""The release check: nine promises behind a published result, each judged from a campaign's folder.

A promise that can't be shown isn't met, and what to do about it is said.
"""

import json
from collections.abc import Callable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_envs.contract import AgentEvalError
from agent_envs.report.promises import (
    Findings,
    Promise,
    confirmed,
    decision_stated,
    declared_before,
    one_spec,
    rebuilt,
    repeated,
)
from agent_envs.report.proofs import solvable_and_graded, state_decides
from agent_envs.report.records import load
from agent_envs.report.words import plain

CASES_NAME = "regression"
"""Folder of regression cases in a campaign's folder, where none is named."""
WIDTH = 80


def release_check(folder: Path, *, cases: Path | None = None, sealed: Path | None = None) -> list[Promise]:
    """Judge the nine promises. Tasks are played and records judged again; nothing is written.

    Args:
        folder: The campaign's folder.
        cases: Folder of regression cases; None: ``regression/`` in the campaign's folder, where there is one.
        sealed: The sealed suite's file: its ledger is then compared with what the campaign kept.

    Returns:
        The promises in their order.

    Raises:
        AgentEvalError: The folder is no campaign, or its records are damaged.
    """
    records = load(folder)
    if cases is None and (folder / CASES_NAME).is_dir():
        cases = folder / CASES_NAME
    judges: tuple[tuple[tuple[int, ...], Callable[[], tuple[Promise, ...]]], ...] = (
        ((1,), lambda: (decision_stated(records),)),
        ((2,), lambda: (one_spec(records),)),
        ((3, 5), lambda: solvable_and_graded(records)),
        ((4,), lambda: (state_decides(records),)),
        ((6,), lambda: (declared_before(records),)),
        ((7,), lambda: (repeated(records),)),
        ((8,), lambda: (rebuilt(records),)),
        ((9,), lambda: (confirmed(records, cases, sealed),)),
    )
    promises = [promise for numbers, judge in judges for promise in _judged(numbers, judge)]
    return sorted(promises, key=lambda promise: promise.number)


def _judged(numbers: tuple[int, ...], judge: Callable[[], tuple[Promise, ...]]) -> tuple[Promise, ...]:
    """What a judge says. A promise that can't be judged isn't met, and keeps none of the others from being judged."""
    try:
        return judge()
    except AgentEvalError as error:
        found = Findings()
        found.missing.append(f"it can't be judged: {error}")
        return tuple(found.promise(number) for number in numbers)


def exit_status(promises: list[Promise]) -> int:
    """0 when all nine are met, else 1."""
    return 0 if len(promises) == 9 and all(promise.met for promise in promises) else 1


def as_json(promises: list[Promise]) -> str:
    """The promises as JSON text."""
    met = sum(promise.met for promise in promises)
    value = {"met": met, "of": len(promises), "promises": [promise.as_json() for promise in promises]}
    return json.dumps(value, indent=2) + "\n"


def print_promises(console: Console, promises: list[Promise]) -> None:
    """Print them in eighty columns: met or not, what shows it, and what to do."""
    table = Table(title="Release check", box=box.SIMPLE_HEAD, title_justify="left", show_lines=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("promise", overflow="fold", ratio=1)
    table.add_column("", no_wrap=True)
    for promise in promises:
        lines = [plain(promise.title, style="bold")]
        lines += [plain(f"- {line}") for line in promise.evidence]
        lines += [plain(f"! {line}", style="yellow") for line in promise.missing]
        mark = Text("met", "green") if promise.met else Text("NOT MET", "bold red")
        table.add_row(str(promise.number), Text("\n").join(lines), mark)
    console.print(table, width=min(WIDTH, console.width))
    met = sum(promise.met for promise in promises)
    console.print(f"{met} of {len(promises)} promises met")
