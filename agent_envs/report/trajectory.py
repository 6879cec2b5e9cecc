"""One run as a readable story: each call, its answer, what it changed, and the verdict's evidence."""

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from agent_envs.contract import AgentRun, Change, Evidence
from agent_envs.evaluator.changes import describe
from agent_envs.report.tables import evidence_of
from agent_envs.report.words import plain, visible

_MOST = 1200


def print_trajectory(console: Console, run: AgentRun, evidence: Evidence, request: str) -> None:
    """Print the whole episode. Agent text is shown as plain text: no markup in it is obeyed.

    Args:
        console: Where to.
        run: The record.
        evidence: What the run left.
        request: The task's request.
    """
    console.rule(plain(run.run_id), style="dim")
    console.print(plain(request))
    console.print(Text(f"seed {run.seed}, start state {run.initial_state_hash[:16]}", style="dim"))
    if opening := evidence.events[0].get("opening"):
        console.print(plain(_json(opening), style="cyan"))
    for entry in evidence.events[1:]:
        _print_entry(console, entry)
    console.print(plain(f"\nend: {run.terminal.kind} {run.terminal.detail}", style="bold"))
    if evidence.changes:
        console.print(Text("net changes of state:", style="bold"))
    for change in evidence.changes:
        console.print(plain("  " + describe(change), style="magenta"))
    console.print(evidence_of(run))


def _print_entry(console: Console, entry: dict[str, Any]) -> None:
    style = {"ok": "green", "error": "red"}.get(entry["status"], "yellow")
    call = visible(f"{entry['tool'] or '(no tool)'} {_json(entry['arguments'])}")
    console.print(Text.assemble((f"\n[{entry['step']}] ", "bold"), call))
    answer = visible(entry.get("error") or _json(entry.get("result")))
    console.print(Text.assemble((f"    {entry['status']}: ", style), _cut(answer)))
    for change in entry.get("changes", ()):
        console.print(plain("    changed " + describe(Change.model_validate(change)), style="magenta"))


def _json(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=True))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]} [...] {text[-_MOST // 2 :]}"
