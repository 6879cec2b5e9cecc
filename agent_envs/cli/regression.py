"""``agenteval regression``: confirmed failures, kept so that they can't come back unseen."""

import argparse
from pathlib import Path

from agent_envs.cli.common import Command
from agent_envs.contract import AgentEvalError

NAME = "regression"
ABOUT = "Regression cases: confirmed failures kept, and judged or played again by one command."


def add(command: Command) -> None:
    """Add the commands."""
    made = command("add", _add, "Keep a run as a case.")
    made.add_argument("run_id", metavar="RUN", help="run id, or a beginning of it")
    made.add_argument("--results", type=Path, required=True, metavar="DIR", help="results or campaign folder")
    made.add_argument("--out", type=Path, required=True, metavar="CASES", help="folder of the cases")
    made.add_argument(
        "--as",
        dest="kind",
        choices=("task", "grader"),
        default="grader",
        help="grader: its evidence, judged again; task: its calls, played again (default grader)",
    )
    made.add_argument("--confirmed-by", required=True, metavar="NAME", help="who confirmed it")
    made.add_argument("--reason", required=True, metavar="TEXT", help="what went wrong")
    made.add_argument("--right", action="store_true", help="task: the run is a right solution")
    made.add_argument("--fails", default="", metavar="CHECK", help="task: the check that must fail")
    made.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="CHECK=STATUS",
        help="grader: a check that was recorded wrongly, and pass, fail or undetermined; may be repeated",
    )
    made.add_argument("--name", default="", help="name of the case")

    made = command("check", _check, "Judge and play every case again; exit 1 if one differs.")
    made.add_argument("cases", type=Path, metavar="CASES")


def _add(options: argparse.Namespace) -> int:
    from agent_envs.campaign.regression import keep_grader_case, keep_task_case

    said = {"confirmed_by": options.confirmed_by, "reason": options.reason, "name": options.name}
    if options.kind == "task":
        if options.expect:
            raise AgentEvalError("--expect is for grader cases; a task case says --right or --fails CHECK")
        kept = keep_task_case(
            options.results, options.run_id, options.out, right=options.right, fails=options.fails, **said
        )
    else:
        if options.right or options.fails:
            raise AgentEvalError("--right and --fails are for task cases; a grader case says --expect CHECK=STATUS")
        expected = dict(item.partition("=")[::2] for item in options.expect)
        kept = keep_grader_case(options.results, options.run_id, options.out, expected=expected, **said)
    print(f"kept: {kept}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from agent_envs.campaign.regression import check_cases

    found = check_cases(options.cases)
    for item in found:
        print(f"{'ok' if item.ok else 'DIFFERS':8}{item.kind:8}{item.name}{f': {item.detail}' if item.detail else ''}")
    return 0 if all(item.ok for item in found) else 1
