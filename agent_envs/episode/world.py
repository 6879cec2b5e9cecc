"""World: the state an episode plays in, as the family's tools see it."""

import abc
import contextlib
from collections.abc import Mapping
from typing import Any

from agent_envs.contract import AgentTask
from agent_envs.state import Clock, Database, StateChannel


class World(abc.ABC):
    """All state channels of one environment, named.

    A family subclasses it with typed attributes for its channels; its tools take it as first parameter. Everything a
    later run could observe must be in a channel: nothing else survives a reset.
    """

    clock: Clock
    """Virtual time; the episode advances it by ``seconds_per_call`` at each call."""
    seconds_per_call: int = 20
    """How long one tool call takes in virtual time."""

    @property
    @abc.abstractmethod
    def channels(self) -> Mapping[str, StateChannel]:
        """Every channel by name."""

    @property
    def database(self) -> Database | None:
        """The database, if the family has one: each call runs in one of its savepoints."""
        return None

    @abc.abstractmethod
    def restore(self, task: AgentTask, seed: int) -> None:
        """Bring every channel to the task's start state."""

    def savepoint(self) -> contextlib.AbstractContextManager[None]:
        """One tool call: what it wrote to the database is undone when it raises."""
        return contextlib.nullcontext() if self.database is None else self.database.savepoint()

    def opening(self) -> dict[str, Any]:
        """What the agent is told at the start beside the request, as JSON; empty if nothing."""
        return {}

    def over(self) -> str:
        """Kind of ending when the world itself ends the episode (such as ``user_stop``), else empty."""
        return ""

    def status(self) -> dict[str, str]:
        """Short texts added to ``info`` at every step; the same keys always."""
        return {}

    def close(self) -> None:
        """Close every channel; safe to call twice."""
        for channel in self.channels.values():
            channel.close()
