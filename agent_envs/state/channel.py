"""What every part of an environment's state has in common, whatever it stores.

An environment declares one channel for each thing a later run could observe. Reset, change sets, state hashes and
branching are then written once, over channels, and a family author can't forget one of them.
"""

import abc
from typing import Any

from agent_envs.contract import Change


class StateChannel(abc.ABC):
    """One observable part of an environment's state.

    Each channel also has a ``restore(...)`` of its own, which goes to the start state. Nothing is opened before the
    first ``restore``; the other methods, ``close`` apart, need it to have been called.
    """

    name: str
    """Name in state hashes and changes, unique within an environment."""

    @abc.abstractmethod
    def digest(self) -> str:
        """Digest of everything a later run could observe, 64 lower-case hexadecimal digits."""

    @abc.abstractmethod
    def changes(self) -> list[Change]:
        """Net changes since the start state, sorted by table and canonical key."""

    @abc.abstractmethod
    def freeze(self) -> Any:
        """The present point as a small JSON value, relative to the start state."""

    @abc.abstractmethod
    def thaw(self, frozen: Any) -> None:
        """Go back to a frozen point.

        Args:
            frozen: What ``freeze`` returned, from this channel or from another one with the same start state.

        Raises:
            ValueError: The start states differ, or the value isn't a frozen point of such a channel.
        """

    @abc.abstractmethod
    def probe(self) -> None:
        """Check that the channel works.

        Raises:
            EnvironmentFault: It doesn't.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Give back every resource. Calling it twice is harmless; ``restore`` opens the channel again."""
