"""Commands about runs in a results folder: run, inspect, replay, regrade, play, demo."""

import argparse
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_envs.cli.common import DEFAULT_ENV, LIMITS, Command, console, core_of, make, natural, positive
from agent_envs.contract import AgentEvalError, AgentRun


def add(command: Command) -> None:
    """Add the commands."""
    made = command(
        "run", _run, "Run a policy on tasks and keep the records. The same command again goes on where it stopped."
    )
    made.add_argument("env", help="environment id, such as agenteval/refund-v1")
    made.add_argument(
        "--policy",
        action="append",
        required=True,
        metavar="P",
        help="built-in name, module:attribute or file.py:attribute; may be repeated",
    )
    made.add_argument(
        "--tasks", nargs="+", default=[], metavar="T", help="task ids or patterns; default: all curated tasks"
    )
    made.add_argument("--train", type=natural, default=0, metavar="N", help="add N generated training tasks")
    made.add_argument("--attempts", type=positive, default=1, metavar="N", help="attempts a task (default 1)")
    made.add_argument("--seed", type=natural, default=0, help="base seed (default 0)")
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="results folder")
    for name, kind, text in LIMITS:
        made.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=text)

    made = command("inspect", _inspect, "Show a run: every call, what it changed, and each check's evidence.")
    made.add_argument("run_id", help="run id, or a beginning of it")
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="results folder")

    made = command("replay", _replay, "Play a run's calls again and compare the hash chains.")
    made.add_argument("run_id", help="run id, or a beginning of it")
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="results folder")

    made = command("regrade", _regrade, "Judge every kept run again with the present graders. Writes nothing.")
    made.add_argument("out", type=Path, metavar="DIR", help="results folder")

    made = command("play", _play, "Play a task yourself, under an agent's limits.")
    made.add_argument("env", help="environment id")
    made.add_argument("--task", default="", help="task id; default: drawn by the seed")
    made.add_argument("--seed", type=natural, default=0)
    made.add_argument(
        "--out", type=Path, default=Path("play-results"), metavar="DIR", help="results folder (default play-results)"
    )

    made = command("demo", _demo, "Measure the built-in policies on every curated refund task and show the results.")
    made.add_argument("--out", type=Path, default=Path("demo-results"), metavar="DIR")


def _run(options: argparse.Namespace) -> int:
    from agent_envs.baselines import load
    from agent_envs.campaign.runner import choose_tasks

    limits = {name: value for name, _, _ in LIMITS if (value := getattr(options, name)) is not None}
    env = make(options.env, **limits)
    tasks = choose_tasks(core_of(env).suite, options.tasks, options.train)
    policies = [load(spec) for spec in options.policy]
    runs = _run_policies(env, policies, tasks, options.attempts, options.seed, options.out)
    from agent_envs.report.tables import print_results

    print_results(console(), runs)
    print(f"records: {options.out / 'runs.jsonl'}; look into one: agenteval inspect RUN --out {options.out}")
    return 0


def _run_policies(
    env: Any, policies: Sequence[Any], tasks: Sequence[str], attempts: int, seed: int, out: Path
) -> list[AgentRun]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from agent_envs.campaign.runner import plan, run_attempts
    from agent_envs.report.words import visible

    runs: dict[str, AgentRun] = {}
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with env, Progress(*columns, console=Console(stderr=True)) as progress:
        for policy in policies:
            planned = list(plan(env, policy, tasks, attempts, seed))
            bar = progress.add_task(visible(policy.name), total=len(planned))
            done = run_attempts(env, policy, planned, out, lambda run, bar=bar: progress.advance(bar))  # type: ignore[misc]
            progress.update(bar, completed=len(planned))
            runs |= {run.run_id: run for run in done}  # a policy named twice is one policy
    return list(runs.values())


def _inspect(options: argparse.Namespace) -> int:
    from agent_envs.campaign.again import find_run
    from agent_envs.campaign.results import Results
    from agent_envs.report.trajectory import print_trajectory

    results = Results(options.out)
    run = find_run(results, options.run_id)
    request = core_of(make(run.env_id)).suite.task(run.task_id).user_request
    print_trajectory(console(), run, results.evidence(run), request)
    return 0


def _replay(options: argparse.Namespace) -> int:
    from agent_envs.campaign.again import find_run, replay
    from agent_envs.campaign.results import Results

    results = Results(options.out)
    run = find_run(results, options.run_id)
    with make(run.env_id) as env:
        outcome = replay(env, results.evidence(run))
    if outcome.same:
        print(f"{run.run_id}: the same {run.usage.calls + 1} log entries, chain {run.log_digest[:16]}")
        return 0
    print(f"{run.run_id}: entry {outcome.step} differs")
    print(f"recorded: {json.dumps(outcome.recorded)}\nreplayed: {json.dumps(outcome.replayed)}")
    return 1


def _regrade(options: argparse.Namespace) -> int:
    from rich.table import Table

    from agent_envs.campaign.again import regrade

    envs: dict[str, Any] = {}

    def task_of(run: AgentRun) -> Any:
        if run.env_id not in envs:
            envs[run.env_id] = core_of(make(run.env_id))
        return envs[run.env_id].suite.task(run.task_id)

    rows = regrade(options.out, task_of)
    if not rows:
        raise AgentEvalError(f"{options.out}: no records here; 'agenteval run ... --out {options.out}' makes some")
    table = Table("run", "recorded", "now", "note")
    for row in rows:
        if row.changed or row.problem:
            before = row.run.verdict.Y.value if row.run.verdict else "none"
            table.add_row(row.run.run_id, before, row.verdict.Y.value if row.verdict else "none", row.problem)
    if table.row_count:
        console().print(table)
    print(f"{len(rows)} runs judged again, {table.row_count} differ")
    return 1 if table.row_count else 0


def _play(options: argparse.Namespace) -> int:
    from agent_envs.baselines.human import Human
    from agent_envs.campaign.runner import Attempt, run_attempts
    from agent_envs.report.tables import evidence_of

    with make(options.env) as env:
        suite = core_of(env).suite
        task = options.task or suite.draw("eval", options.seed).task_id
        planned = Attempt(f"{task.partition('/')[2]}.human.{secrets.token_hex(4)}", task, 0, options.seed)
        run = run_attempts(env, Human(), [planned], options.out)[0]
    console().print(evidence_of(run))
    print(f"kept as {run.run_id} in {options.out}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    from agent_envs.baselines import BASELINES
    from agent_envs.report.demo import print_demo

    env = make(DEFAULT_ENV)
    tasks = core_of(env).suite.eval_ids
    runs = _run_policies(env, [make() for make in BASELINES.values()], tasks, 1, 0, options.out)
    print_demo(console(), runs, options.out)
    return 0
