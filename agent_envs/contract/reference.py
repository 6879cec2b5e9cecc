"""Reference solutions and known-wrong runs: gold, kept apart from the task and shown to no policy but the oracle."""

from typing import Any

from pydantic import Field

from agent_envs.contract.model import Model


class Call(Model):
    """One tool call of a scripted run. A value ``$name`` of a string argument is replaced by a saved result."""

    tool: str
    arguments: dict[str, Any] = {}
    save: dict[str, str] = {}
    """Name to dotted path into the result, for later calls (ids that only exist once made)."""
    error: bool = False
    """The call is expected to be refused."""


class ReferenceRun(Model):
    """A right solution."""

    name: str = "reference"
    calls: tuple[Call, ...] = Field(min_length=1)


class WrongRun(Model):
    """A plausible run that must not pass, and the check that must say so."""

    name: str
    reason: str
    """Why it's wrong, for people."""
    fails: str
    """Name of the assertion or constraint that must fail."""
    calls: tuple[Call, ...] = ()
    """Empty: does nothing at all."""


class TaskReferences(Model):
    """All scripted runs of one task."""

    task_id: str
    references: tuple[ReferenceRun, ...] = Field(min_length=1)
    wrong: tuple[WrongRun, ...] = ()
