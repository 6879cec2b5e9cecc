"""The event log: what happened, in order, each entry chained to the ones before it.

Entry 0 is the reset, every further entry one tool call. An entry holds only what replaying it gives again (no wall
time, no process ids), so two episodes with equal seed and calls have equal chains; `agent_envs.contract.chain` defines
them.
"""

from typing import Any

from agent_envs.contract import chain


class EventLog:
    """An append-only list of JSON entries with the head of their hash chain."""

    def __init__(self) -> None:
        """An empty log."""
        self.entries: list[dict[str, Any]] = []
        self._head = b""

    @property
    def digest(self) -> str:
        """Head of the chain, 64 hexadecimal digits; empty text when the log is."""
        return self._head.hex()

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry, which must not change afterwards.

        Raises:
            TypeError: The entry isn't JSON; nothing was added.
            ValueError: It holds a number that isn't finite; nothing was added.
        """
        self._head = chain(self._head, entry)
        self.entries.append(entry)

    def copy(self) -> "EventLog":
        """A log that goes on independently; the entries so far are shared."""
        other = EventLog()
        other.entries, other._head = list(self.entries), self._head
        return other
