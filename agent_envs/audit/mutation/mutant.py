"""A changed script, and what a family tells the mutation test about its own tools and tables.

A family gives these names in its module ``mutations``, beside its ``env``; nothing of the audit is imported there.
"""

import dataclasses
import importlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from agent_envs.contract import AgentEvalError, AgentTask, Call, Change
from agent_envs.episode.env import AgentEnv

Calls = tuple[Call, ...]
Named = tuple[str, str, Calls]
"""Operator, what it did, and the calls it made."""


class MutationError(AgentEvalError):
    """The mutation test can't begin: a reference fails, or the family says nothing of its tools."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mutant:
    """One script to play."""

    operator: str
    """How it was made, such as ``drop``."""
    what: str
    """Where, in words."""
    calls: Calls
    seed: int
    """Seed of its episode."""
    batched: bool = False
    """Whether independent calls in a row are sent as one list."""
    lawful: bool = False
    """Made to be right; a mutant isn't, but may turn out to be."""


class Family(Protocol):
    """What the module ``mutations`` of a family has. None of it may use the evaluator: it is the second opinion."""

    ENTITIES: Mapping[str, str]
    """Argument or column to the kind of thing it names; ids of one kind are swapped for one another."""
    AMOUNTS: frozenset[str]
    """Arguments that hold an amount."""
    LOOKUPS: frozenset[str]
    """Tools that only read."""
    FREE: Mapping[str, frozenset[str]]
    """Table to the columns of new rows that no task compares: surrogate numbers, times, remarks."""

    def form(self, task: AgentTask, changes: Sequence[Change]) -> Any:
        """A change set as JSON without what is free: equal for two runs with one outcome, and only then."""

    def breaches(self, task: AgentTask, events: Sequence[Mapping[str, Any]]) -> list[str]:
        """The rules that a run broke on its way, derived from its log; empty for a lawful one."""

    def amounts(self, text: str) -> Iterable[tuple[str, str]]:
        """Wrong amounts near a right one, each with its name."""

    def mutants(self, task: AgentTask, calls: Calls, others: Mapping[str, Sequence[Any]]) -> Iterable[Named]:
        """Mutants that need knowledge of the tools; ``others`` holds ids of things that the run isn't about."""

    def variations(self, task: AgentTask, calls: Calls) -> Iterable[Named]:
        """Lawful variations that need knowledge of the tools."""


def family_of(core: AgentEnv) -> Family:
    """The module ``mutations`` beside the module of an environment's class, or of the class it derives from.

    Raises:
        MutationError: There is none.
    """
    for kind in type(core).__mro__:
        package = kind.__module__.rpartition(".")[0]
        if package and importlib.util.find_spec(f"{package}.mutations"):
            family: Family = importlib.import_module(f"{package}.mutations")
            return family
    raise MutationError(f"{type(core).__name__}: its family has no module 'mutations'; the mutation test needs one")
