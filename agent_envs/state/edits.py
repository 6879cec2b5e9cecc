"""Row edits that come as JSON: a task's patch, and the changes of a frozen point."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agent_envs.contract import RowPatch
from agent_envs.state.backend import Backend
from agent_envs.state.ledger import Ledger, Write
from agent_envs.state.schema import Key, Layout, Schema


class Edit(NamedTuple):
    """One row edit, ready for a back end: an insert has no key, a delete no columns."""

    layout: Layout
    key: Key | None
    columns: tuple[str, ...]
    values: tuple[Any, ...]


class Start(NamedTuple):
    """A start state: a fixture with one patch, and what the books say after it."""

    patch: tuple[RowPatch, ...]
    edits: list[Edit]
    writes: list[Write]
    """What the journal holds after the edits: doing them again must give the same."""
    ledger: Ledger


def patch_edit(schema: Schema, row: RowPatch) -> Edit:
    """One row of a task's patch.

    Raises:
        ValueError: It doesn't fit the schema; the message names table and column.
    """
    layout = schema.named(row.table)
    if row.insert is not None:
        return Edit(layout, None, (), layout.whole_row(layout.from_json(row.insert)))
    key = layout.read_key(layout.from_json(row.key or {}))
    if row.delete:
        return Edit(layout, key, (), ())
    values = layout.from_json(row.set or {})
    if not values:
        raise ValueError(f"a patch of {row.table!r} sets nothing; name the columns to set")
    return Edit(layout, key, tuple(values), tuple(layout.to_driver(values)))


def replacement(schema: Schema, change: Mapping[str, Any]) -> list[Edit]:
    """A frozen change as the removal of the row before and the insertion of the row after."""
    layout = schema.named(change["table"])
    edits = []
    if change["before"] is not None:
        edits.append(Edit(layout, layout.read_key(layout.from_json(change["key"])), (), ()))
    if change["after"] is not None:
        edits.append(Edit(layout, None, (), layout.whole_row(layout.from_json(change["after"]))))
    return edits


def apply(backend: Backend, edits: Iterable[Edit]) -> None:
    """Make the edits, in order.

    Raises:
        ValueError: A row to change or remove isn't there.
        IntegrityViolation: A constraint refuses one.
    """
    for layout, key, columns, values in edits:
        if key is None:
            backend.insert(layout, values)
        elif not (backend.update(layout, key, columns, values) if columns else backend.delete(layout, key)):
            raise ValueError(f"no row of {layout.name!r} has the key {layout.key_to_json(key)!r}")
