"""The command line: ``agenteval``. Each command imports what it needs when it runs."""

import argparse
import io
import json
import os
import secrets
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_envs.contract import AgentEvalError, AgentRun

if TYPE_CHECKING:
    from agent_envs.episode.env import AgentEnv

DEFAULT_ENV = "agenteval/refund-v1"
_PREFIX = "agenteval/"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        Exit status: 0 when all went well, 1 when a check found a difference, 2 for a wrong call or input, 130 after
        Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without Unicode is no reason to stop
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            status: int = options.run(options)
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            # Whoever read our output has gone; what is still buffered must not fail once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (AgentEvalError, OSError) as error:
            print(f"agenteval: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            again = "finished attempts are kept, run the same command again to go on"
            print(f"\nagenteval: stopped; {again}", file=sys.stderr)
            return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agenteval", description="Measure tool-using agents by what they do.", formatter_class=_Formatter
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, formatter_class=_Formatter)
        made.set_defaults(run=run)
        return made

    made = command("list", _list, "List environments, or the tasks of one.")
    made.add_argument("env", nargs="?", help="environment id; without it the environments are listed")

    made = command("show", _show, "Show a task as a policy sees it, with the tools.")
    made.add_argument("task", help="task id, such as refund/kettle-for-nina")
    made.add_argument(
        "--full", action="store_true", help="show the whole contract: checks, constraints, user (not for policies)"
    )

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
    made.add_argument("--train", type=_natural, default=0, metavar="N", help="add N generated training tasks")
    made.add_argument("--attempts", type=_positive, default=1, metavar="N", help="attempts a task (default 1)")
    made.add_argument("--seed", type=_natural, default=0, help="base seed (default 0)")
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help="results folder")
    for name, kind, text in _LIMITS:
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
    made.add_argument("--seed", type=_natural, default=0)
    made.add_argument(
        "--out", type=Path, default=Path("play-results"), metavar="DIR", help="results folder (default play-results)"
    )

    made = command("pin", _pin, "Write the start digests of a family's tasks. For task authors, after a wanted change.")
    made.add_argument("env", help="environment id")
    made.add_argument("--check", action="store_true", help="only compare; exit 1 if a pin differs")

    made = command("schema", _schema, "Print the JSON Schema of a noun.")
    made.add_argument("noun", choices=("AgentTask", "TaskReferences", "Evidence", "Verdict", "AgentRun"))

    made = command("demo", _demo, "Measure the built-in policies on every curated refund task and show the results.")
    made.add_argument("--out", type=Path, default=Path("demo-results"), metavar="DIR")
    return parser


class _Formatter(argparse.HelpFormatter):
    """Help as wide as a terminal usually is."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=110, max_help_position=32)


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63-1")
    return int(text)


def _positive(text: str) -> int:
    if _natural(text) == 0:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number above 0")
    return value


_LIMITS = (
    ("steps", _positive, "at most N steps an episode"),
    ("wall_seconds", _amount, "at most N seconds an episode"),
    ("tokens", _positive, "at most N model tokens an episode"),
    ("cost", _amount, "at most N US dollars an episode"),
)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"agenteval: warning: {message}", file=sys.stderr)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _make(env_id: str, **arguments: Any) -> Any:
    import gymnasium

    import agent_envs

    agent_envs.register_envs()
    if env_id not in gymnasium.registry or not env_id.startswith(_PREFIX):
        known = ", ".join(sorted(spec for spec in gymnasium.registry if spec.startswith(_PREFIX)))
        raise AgentEvalError(f"there is no environment {env_id!r}; there are: {known}")
    return gymnasium.make(env_id, **arguments)


def _core(env: Any) -> "AgentEnv":
    core: AgentEnv = env.unwrapped
    return core


def _env_of(task_id: str) -> str:
    import gymnasium

    import agent_envs

    agent_envs.register_envs()
    family = task_id.partition("/")[0]
    env_id = f"{_PREFIX}{family}-v1"
    if env_id not in gymnasium.registry:
        families = sorted(spec[10:-3] for spec in gymnasium.registry if spec.startswith(_PREFIX))
        raise AgentEvalError(f"task {task_id!r}: there is no family {family!r}; there are {', '.join(families)}")
    return env_id


def _list(options: argparse.Namespace) -> int:
    import gymnasium
    from rich.table import Table

    import agent_envs

    agent_envs.register_envs()
    console = _console()
    if options.env is None:
        table = Table("environment", "tasks", "tools", "about")
        for env_id in sorted(spec for spec in gymnasium.registry if spec.startswith(_PREFIX)):
            core = _core(_make(env_id))
            about = (type(core).__doc__ or "").partition("\n")[0]
            table.add_row(env_id, str(len(core.suite.eval_ids)), str(len(core.tools)), about)
        console.print(table)
        return 0
    suite = _core(_make(options.env)).suite
    tasks = [suite.task(task_id) for task_id in suite.eval_ids]
    labels = list(dict.fromkeys(name for task in tasks for name in task.slice_labels))
    table = Table("task", "revision", *labels, "steps", "pinned")
    for task in tasks:
        values = [task.slice_labels.get(name, "") for name in labels]
        pinned = "yes" if task.reset_check else "no"
        table.add_row(task.task_id, str(task.task_revision), *values, str(task.limits.steps), pinned)
    console.print(table)
    return 0


def _show(options: argparse.Namespace) -> int:
    core = _core(_make(_env_of(options.task)))
    task = core.suite.task(options.task)
    if options.full:
        print(json.dumps(task.as_json(), indent=2))
        return 0
    public = task.public().as_json()
    print(json.dumps(public, indent=2))
    for tool in core.tools:
        if tool.name in task.available_tools:
            print(f"\n{tool.name}: {tool.description}\n  {json.dumps(tool.schema)}")
    return 0


def _run(options: argparse.Namespace) -> int:
    from agent_envs.baselines import load
    from agent_envs.campaign.runner import choose_tasks

    limits = {name: value for name, _, _ in _LIMITS if (value := getattr(options, name)) is not None}
    env = _make(options.env, **limits)
    tasks = choose_tasks(_core(env).suite, options.tasks, options.train)
    policies = [load(spec) for spec in options.policy]
    runs = _run_policies(env, policies, tasks, options.attempts, options.seed, options.out)
    from agent_envs.report.tables import print_results

    print_results(_console(), runs)
    print(f"records: {options.out / 'runs.jsonl'}; look into one: agenteval inspect RUN --out {options.out}")
    return 0


def _run_policies(
    env: Any, policies: Sequence[Any], tasks: Sequence[str], attempts: int, seed: int, out: Path
) -> list[AgentRun]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from agent_envs.campaign.runner import plan, run_attempts

    runs: dict[str, AgentRun] = {}
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with env, Progress(*columns, console=Console(stderr=True)) as progress:
        for policy in policies:
            planned = list(plan(env, policy, tasks, attempts, seed))
            bar = progress.add_task(policy.name, total=len(planned))
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
    request = _core(_make(run.env_id)).suite.task(run.task_id).user_request
    print_trajectory(_console(), run, results.evidence(run), request)
    return 0


def _replay(options: argparse.Namespace) -> int:
    from agent_envs.campaign.again import find_run, replay
    from agent_envs.campaign.results import Results

    results = Results(options.out)
    run = find_run(results, options.run_id)
    with _make(run.env_id) as env:
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
            envs[run.env_id] = _core(_make(run.env_id))
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
        _console().print(table)
    print(f"{len(rows)} runs judged again, {table.row_count} differ")
    return 1 if table.row_count else 0


def _play(options: argparse.Namespace) -> int:
    from agent_envs.baselines.human import Human
    from agent_envs.campaign.runner import Attempt, run_attempts
    from agent_envs.report.tables import evidence_of

    with _make(options.env) as env:
        suite = _core(env).suite
        task = options.task or suite.draw("eval", options.seed).task_id
        planned = Attempt(f"{task.partition('/')[2]}.human.{secrets.token_hex(4)}", task, 0, options.seed)
        run = run_attempts(env, Human(), [planned], options.out)[0]
    _console().print(evidence_of(run))
    print(f"kept as {run.run_id} in {options.out}")
    return 0


def _pin(options: argparse.Namespace) -> int:
    from agent_envs.episode.pins import compute_pins, write_pins

    with _make(options.env) as env:
        core = _core(env)
        pins = compute_pins(core)
        known = core.suite.pins
        differ = sorted(task for task in pins.keys() | known.keys() if pins.get(task) != known.get(task))
        if not options.check:
            write_pins(core.suite, pins)
    what = "differ" if options.check else "changed"
    print(f"{len(pins)} tasks, {len(differ)} pins {what}: {', '.join(differ) or 'none'}")
    return 1 if options.check and differ else 0


def _schema(options: argparse.Namespace) -> int:
    from agent_envs import contract

    print(json.dumps(getattr(contract, options.noun).model_json_schema(), indent=2))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from agent_envs.baselines import BASELINES
    from agent_envs.report.demo import print_demo

    env = _make(DEFAULT_ENV)
    tasks = _core(env).suite.eval_ids
    runs = _run_policies(env, [make() for make in BASELINES.values()], tasks, 1, 0, options.out)
    print_demo(_console(), runs, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
