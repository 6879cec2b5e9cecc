"""``agenteval spec``: what is under test, and how two systems differ."""

import argparse
from pathlib import Path

from agent_envs.cli.common import LIMITS, Command

NAME = "spec"
ABOUT = "System specs: everything that is under test, under one hash."


def add(command: Command) -> None:
    """Add the commands."""
    made = command("show", _show, "Print the spec of a policy in an environment.")
    made.add_argument("env", help="environment id, such as agenteval/refund-v1")
    made.add_argument("--policy", required=True, metavar="P", help="name, module:attribute or file.py:attribute")
    made.add_argument("--out", type=Path, metavar="FILE", help="write it there instead")
    for name, kind, text in LIMITS:
        made.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=text)

    made = command("diff", _diff, "Say how two specs differ; exit 1 if they do.")
    for name in ("a", "b"):
        made.add_argument(name, metavar=name.upper(), help="a spec's file, or a campaign's folder: DIR or DIR:SYSTEM")


def _show(options: argparse.Namespace) -> int:
    from agent_envs.campaign.spec import show_spec, spec_text

    spec = show_spec(options.env, options.policy, {name: getattr(options, name) for name, _, _ in LIMITS})
    if options.out is None:
        print(spec_text(spec), end="")
    else:
        options.out.write_text(spec_text(spec), encoding="utf-8")
        print(f"{spec.digest}  {options.out}")
    return 0


def _diff(options: argparse.Namespace) -> int:
    from agent_envs.campaign.spec import describe, diff, load_spec, only_model

    found = diff(load_spec(options.a), load_spec(options.b))
    for line in describe(found):
        print(line)
    if not found:
        print("the same system")
    elif only_model(found):
        print("only the model differs")
    return 1 if found else 0
