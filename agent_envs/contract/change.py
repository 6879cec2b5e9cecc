"""What happened to state: one row's change, and the rows a task adds to its fixture."""

import functools
from collections.abc import Iterable
from typing import Any, Self

from pydantic import model_validator

from agent_envs.contract.canonical import canonical_json
from agent_envs.contract.model import Model

Row = dict[str, Any]
"""Column name to value, in the ``typed`` JSON form of the canonical module."""


class Change(Model):
    """One row (or file, or cookie) that differs between two moments."""

    channel: str
    """State channel the row belongs to, such as ``database``."""
    table: str
    """Table, folder or store within the channel."""
    key: Row
    """Primary key, column by column."""
    before: Row | None
    """Every column before the change; null when the row is new."""
    after: Row | None
    """Every column after the change; null when the row is gone."""

    def as_json(self) -> Row:
        """The change as plain JSON data; every part of it is JSON already."""
        return {
            "channel": self.channel,
            "table": self.table,
            "key": self.key,
            "before": self.before,
            "after": self.after,
        }

    @functools.cached_property
    def identity(self) -> tuple[str, str, bytes]:
        """What makes two changes about the same row; also their sorting order."""
        return self.channel, self.table, canonical_json(self.key)

    @property
    def label(self) -> str:
        """The row's name in messages: ``orders/W1042``, or ``lines/number=1,order=W1042`` for a key of more columns."""
        if len(self.key) == 1:
            return f"{self.table}/{next(iter(self.key.values()))}"
        return f"{self.table}/{','.join(f'{column}={self.key[column]}' for column in sorted(self.key))}"


def net_changes(changes: Iterable[Change]) -> list[Change]:
    """Fold changes in order of time into one per row; rows that end as they began are dropped.

    Returns:
        Changes sorted by channel, table and key.
    """
    net: dict[tuple[str, str, bytes], Change] = {}
    for change in changes:
        identity = change.identity
        first = net.get(identity)
        net[identity] = change if first is None else change.model_copy(update={"before": first.before})
    return [net[identity] for identity in sorted(net) if net[identity].before != net[identity].after]


class RowPatch(Model):
    """One row that a task adds to, edits in or removes from its fixture before the episode starts."""

    table: str
    """Table name in the fixture."""
    insert: Row | None = None
    """A whole new row."""
    key: Row | None = None
    """Primary key of an existing row, for ``set`` and ``delete``."""
    set: Row | None = None
    """Columns to change in the row at ``key``."""
    delete: bool = False
    """Remove the row at ``key``."""

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        operations = (self.insert is not None, self.set is not None, self.delete)
        if sum(operations) != 1 or (self.key is None) != (self.insert is not None):
            raise ValueError("give exactly one of 'insert', 'key' with 'set', or 'key' with 'delete: true'")
        return self
