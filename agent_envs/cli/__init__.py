"""The command line: ``agenteval``. Each command imports what it needs when it runs."""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from agent_envs.cli import audit, campaign, regression, runs, spec, suite, tasks
from agent_envs.cli.common import Formatter
from agent_envs.contract import AgentEvalError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        Exit status: 0 when all went well, 1 when a check found a difference, 2 for a wrong call or input, 130 after
        Ctrl-C.
    """
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without Unicode is no reason to stop
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
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


def parser() -> argparse.ArgumentParser:
    """Every command and its arguments."""
    whole = argparse.ArgumentParser(
        prog="agenteval", description="Measure tool-using agents by what they do.", formatter_class=Formatter
    )
    commands = _adder(whole.add_subparsers(title="commands", required=True, metavar="COMMAND"))
    tasks.add(commands)
    runs.add(commands)
    audit.add(commands)
    for module in (campaign, spec, suite, regression):
        group = commands(module.NAME, _nothing, module.ABOUT)
        module.add(_adder(group.add_subparsers(title="commands", required=True, metavar="COMMAND")))
    return whole


def _adder(commands: Any) -> Any:
    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(
            name, help=text, description=text, formatter_class=Formatter
        )
        made.set_defaults(run=run)
        return made

    return command


def _nothing(options: argparse.Namespace) -> int:
    raise AssertionError("a group of commands always has one of them chosen")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"agenteval: warning: {message}", file=sys.stderr)


__all__ = ["main", "parser"]
