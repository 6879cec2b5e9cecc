"""Commands about environments and tasks: list, show, pin, schema."""

import argparse
import importlib
import json

from agent_envs.cli.common import PREFIX, Command, console, core_of, env_of, make

_NOUNS = ("AgentTask", "TaskReferences", "SystemSpec", "Manifest", "Evidence", "Verdict", "AgentRun")


def add(command: Command) -> None:
    """Add the commands."""
    made = command("list", _list, "List environments, or the tasks of one.")
    made.add_argument("env", nargs="?", help="environment id; without it the environments are listed")

    made = command("show", _show, "Show a task as a policy sees it, with the tools.")
    made.add_argument("task", help="task id, such as refund/tea-set-for-two")
    made.add_argument(
        "--full", action="store_true", help="show the whole contract: checks, constraints, user (not for policies)"
    )

    made = command("pin", _pin, "Write the start digests of a family's tasks. For task authors, after a wanted change.")
    made.add_argument("env", help="environment id")
    made.add_argument("--check", action="store_true", help="only compare; exit 1 if a pin differs")

    made = command("schema", _schema, "Print the JSON Schema of a noun.")
    made.add_argument("noun", choices=_NOUNS)


def _list(options: argparse.Namespace) -> int:
    import gymnasium
    from rich.table import Table

    import agent_envs

    agent_envs.register_envs()
    out = console()
    if options.env is None:
        table = Table("environment", "tasks", "tools", "about")
        for env_id in sorted(spec for spec in gymnasium.registry if spec.startswith(PREFIX)):
            core = core_of(make(env_id))
            about = (type(core).__doc__ or "").partition("\n")[0]
            table.add_row(env_id, str(len(core.suite.eval_ids)), str(len(core.tools)), about)
        out.print(table)
        return 0
    suite = core_of(make(options.env)).suite
    tasks = [suite.task(task_id) for task_id in suite.eval_ids]
    labels = list(dict.fromkeys(name for task in tasks for name in task.slice_labels))
    table = Table("task", "revision", *labels, "steps", "pinned")
    for task in tasks:
        values = [task.slice_labels.get(name, "") for name in labels]
        pinned = "yes" if task.reset_check else "no"
        table.add_row(task.task_id, str(task.task_revision), *values, str(task.limits.steps), pinned)
    out.print(table)
    return 0


def _show(options: argparse.Namespace) -> int:
    core = core_of(make(env_of(options.task)))
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


def _pin(options: argparse.Namespace) -> int:
    from agent_envs.episode.pins import compute_pins, write_pins

    with make(options.env) as env:
        core = core_of(env)
        pins = compute_pins(core)
        known = core.suite.pins
        differ = sorted(task for task in pins.keys() | known.keys() if pins.get(task) != known.get(task))
        if not options.check:
            write_pins(core.suite, pins)
    what = "differ" if options.check else "changed"
    print(f"{len(pins)} tasks, {len(differ)} pins {what}: {', '.join(differ) or 'none'}")
    return 1 if options.check and differ else 0


def _schema(options: argparse.Namespace) -> int:
    module = "agent_envs.campaign.manifest" if options.noun == "Manifest" else "agent_envs.contract"
    noun = getattr(importlib.import_module(module), options.noun)
    print(json.dumps(noun.model_json_schema(), indent=2))
    return 0
