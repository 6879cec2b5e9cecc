"""Reference solutions and known-wrong runs: gold, kept apart from the task and shown to no policy but the oracle."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agent_envs.contract.model import Model

_NAME = re.compile(r"\$[a-z_][a-z0-9_]*")


class Call(Model):
    """One tool call of a scripted run. A value ``$name`` of a string argument is replaced by a saved result."""

    tool: str
    arguments: dict[str, Any] = {}
    save: dict[str, str] = {}
    """Name to dotted path into the result, for later calls (ids that only exist once made)."""
    error: bool = False
    """The call is expected to be refused."""


def _unsaved(calls: Iterable[Call]) -> str:
    """The first ``$name`` that no earlier call saves, or an empty text."""
    saved: set[str] = set()
    for call in calls:
        for text in _texts(call.arguments):
            if _NAME.fullmatch(text) and text[1:] not in saved:
                return text
        saved |= call.save.keys()
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _complete(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    if name := _unsaved(calls):
        raise ValueError(f"{name} is used, but no earlier call saves it")
    return calls


Script = Annotated[tuple[Call, ...], AfterValidator(_complete)]


class ReferenceRun(Model):
    """A right solution."""

    name: str = "reference"
    calls: Script = Field(min_length=1)


class WrongRun(Model):
    """A plausible run that must not pass, and the check that must say so."""

    name: str
    reason: str
    """Why it's wrong, for people."""
    fails: str
    """Name of the assertion or constraint that must fail."""
    calls: Script = ()
    """Empty: does nothing at all."""


class TaskReferences(Model):
    """All scripted runs of one task."""

    task_id: str
    references: tuple[ReferenceRun, ...] = Field(min_length=1)
    wrong: tuple[WrongRun, ...] = ()
