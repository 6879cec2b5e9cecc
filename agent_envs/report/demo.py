"""The demo's report: several policies measured on real tasks, and the evidence for one of each kind."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from agent_envs.contract import AgentRun, OutcomeClass
from agent_envs.report.tables import evidence_of, print_results

_FAILED = OutcomeClass.AGENT_FAILURE
_EXAMPLES: tuple[tuple[str, Callable[[AgentRun], bool]], ...] = (
    ("An honest success", lambda run: run.outcome_class is OutcomeClass.SUCCESS and not run.oracle),
    ("A lie: success was claimed, and nothing was done", lambda run: run.false_claim and run.usage.steps < 3),
    ("A broken rule: the outcome is right, the way was not", lambda run: run.broke_rule),
    (
        "An honest failure: nothing was claimed that isn't so",
        lambda run: run.policy == "rulebook" and run.outcome_class is _FAILED and not run.false_claim,
    ),
)


def print_demo(console: Console, runs: Sequence[AgentRun], folder: Path) -> None:
    """Print the tables, one run of each kind with its evidence, and what to do next."""
    print_results(console, runs)
    for title, wanted in _EXAMPLES:
        if found := next((run for run in runs if wanted(run)), None):
            console.print(Text(f"\n{title}", style="bold"))
            console.print(evidence_of(found))
            # A command folded by the console could not be copied.
            story = f"whole story: agenteval inspect {found.run_id} --out {folder}"
            console.print(Text(story, style="dim"), soft_wrap=True)
    again = f"\n{len(runs)} records in {folder / 'runs.jsonl'}; judge them again: agenteval regrade {folder}"
    console.print(Text(again), soft_wrap=True)
