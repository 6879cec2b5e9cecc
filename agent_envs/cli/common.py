"""What commands share: kinds of arguments, the console, environments by name."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_envs.contract import AgentEvalError

if TYPE_CHECKING:
    from agent_envs.episode.env import AgentEnv

DEFAULT_ENV = "agenteval/refund-v1"
PREFIX = "agenteval/"
Command = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
"""Adds a command: its name, what runs it, and what it does in a sentence."""


class Formatter(argparse.HelpFormatter):
    """Help as wide as a terminal usually is."""

    def __init__(self, prog: str) -> None:
        """Set the width."""
        super().__init__(prog, width=110, max_help_position=32)


def natural(text: str) -> int:
    """A whole number from 0.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not text.isascii() or not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63-1")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if natural(text) == 0:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return int(text)


def amount(text: str) -> float:
    """A finite number above 0.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number above 0")
    return value


LIMITS: tuple[tuple[str, Callable[[str], float], str], ...] = (
    ("steps", positive, "at most N steps an episode"),
    ("wall_seconds", amount, "at most N seconds an episode"),
    ("tokens", positive, "at most N model tokens an episode"),
    ("cost", amount, "at most N US dollars an episode"),
)


def console() -> Any:
    """Where tables go."""
    from rich.console import Console

    class Plain(Console):
        """A console that leaves it to the caller what a closed pipe means."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(highlight=False, markup=False, emoji=False)


def make(env_id: str, **arguments: Any) -> Any:
    """An environment.

    Raises:
        AgentEvalError: There is no such id.
    """
    import gymnasium

    import agent_envs

    agent_envs.register_envs()
    if env_id not in gymnasium.registry or not env_id.startswith(PREFIX):
        known = ", ".join(sorted(spec for spec in gymnasium.registry if spec.startswith(PREFIX)))
        raise AgentEvalError(f"there is no environment {env_id!r}; there are: {known}")
    return gymnasium.make(env_id, **arguments)


def core_of(env: Any) -> "AgentEnv":
    """The bare environment."""
    core: AgentEnv = env.unwrapped
    return core


def env_of(task_id: str) -> str:
    """Id of the environment of a task.

    Raises:
        AgentEvalError: There is no such family.
    """
    import gymnasium

    import agent_envs

    agent_envs.register_envs()
    family, slash, _ = task_id.partition("/")
    env_id = f"{PREFIX}{family}-v1"
    if env_id not in gymnasium.registry:
        families = ", ".join(sorted(spec[10:-3] for spec in gymnasium.registry if spec.startswith(PREFIX)))
        if not slash:
            raise AgentEvalError(
                f"task {task_id!r} names no family: write it as FAMILY/NAME; the families are {families}"
            )
        raise AgentEvalError(f"task {task_id!r}: there is no family {family!r}; there are {families}")
    return env_id
