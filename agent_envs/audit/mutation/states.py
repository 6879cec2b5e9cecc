"""Mutants of final states: one row or one field differs, in frozen evidence, without running a tool.

The grader must see each of them, inside and outside what the task lets change, unless the difference is declared free.
"""

import datetime as dt
import functools
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from agent_envs.audit.mutation.mutant import Family
from agent_envs.contract import Change, decimal_text, typed
from agent_envs.state import Database
from agent_envs.state.columns import Boolean, Day, Exact, Instant, Integer, Real

Mutated = tuple[str, str, tuple[Change, ...], bool]
"""Operator, what it did, the whole change set, and whether only declared-free columns differ."""


def state_mutants(database: Database, changes: Sequence[Change], family: Family) -> Iterator[Mutated]:
    """Change sets that differ from a right one in one row.

    Args:
        database: The database at the task's start or later; a row of each table is looked up in it.
        changes: The right run's net changes.
        family: Which columns are free.
    """
    tables = database.fixture.metadata.tables
    for place, change in enumerate(changes):
        rest = (*changes[:place], *changes[place + 1 :])
        if change.channel != database.name:
            continue
        yield "state_drop", change.label, rest, False
        table = tables[change.table]
        free = family.FREE.get(change.table, frozenset()) if change.before is None else frozenset()
        for column in table.columns:
            if change.after is None or (column.primary_key and change.before is not None):
                continue
            for other in _others(column, change.after[column.name]):
                after = {**change.after, column.name: other}
                if change.before is not None and after == change.before:
                    continue  # the same as dropping the change
                key = {name: after[name] for name in change.key}
                mutated = change.model_copy(update={"key": key, "after": after})
                what = f"{change.label}.{column.name}: {change.after[column.name]!r} -> {other!r}"
                # Whether there is a value at all isn't free by itself: a payment that names no approval must not.
                is_free = column.name in free and change.after[column.name] is not None
                if not (is_free and other is None):
                    yield "state_field", what, (*rest, mutated), is_free
    touched = {(change.table, change.identity[2]) for change in changes}
    for table in database.fixture.metadata.sorted_tables:
        yield from _outside(database, table, changes, touched)


def _outside(
    database: Database, table: sa.Table, changes: Sequence[Change], touched: set[tuple[str, bytes]]
) -> Iterator[Mutated]:
    """One row of a table added, edited and removed that no right run touches."""
    keys = [column.name for column in table.primary_key]

    def change(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
        row = after or before or {}
        key = {name: row[name] for name in keys}
        return Change(channel=database.name, table=table.name, key=key, before=before, after=after)

    stored = [{name: typed(value) for name, value in row.items()} for row in database.all(_rows(table))]
    untouched = [row for row in stored if (table.name, change(row, None).identity[2]) not in touched]
    new = dict(stored[-1]) if stored else {column.name: _value(column) for column in table.columns}
    for name in keys:
        new[name] = new[name] + 1_000_000 if isinstance(new[name], int) else f"{new[name]}-new"
    yield "state_insert", table.name, (*changes, change(None, new)), False
    for row in untouched[:1]:
        yield "state_delete", table.name, (*changes, change(row, None)), False
        for column in table.columns:
            if not column.primary_key:
                for other in _others(column, row[column.name]):
                    edited = change(row, {**row, column.name: other})
                    yield "state_update", f"{edited.label}.{column.name} -> {other!r}", (*changes, edited), False


@functools.cache
def _rows(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).order_by(*table.primary_key).limit(20)


def _others(column: sa.Column[Any], value: Any) -> list[Any]:
    """Other values of a column's type, null among them where it may be."""
    if value is None:
        return [_value(column)]
    others: list[Any] = [None] if column.nullable and not column.primary_key else []
    if isinstance(value, bool):
        return [*others, not value]
    if isinstance(value, int | float):
        return [*others, value + 1]
    if isinstance(value, Mapping) and "$decimal" in value:
        return [*others, typed(Decimal(value["$decimal"]) + Decimal("0.01"))]
    if isinstance(value, Mapping):
        return [*others, typed(b"other")]
    if isinstance(column.type, Instant):
        later = dt.datetime.fromisoformat(value) + dt.timedelta(seconds=1)
        return [*others, later.strftime("%Y-%m-%dT%H:%M:%SZ")]
    if isinstance(column.type, Day):
        return [*others, (dt.date.fromisoformat(value) + dt.timedelta(days=1)).isoformat()]
    return [*others, f"{value}-other"]


def _value(column: sa.Column[Any]) -> Any:
    """Some value of a column's type, in JSON form."""
    match column.type:
        case Integer():
            return 1
        case Boolean():
            return True
        case Real():
            return 1.0
        case Exact():
            return {"$decimal": decimal_text(Decimal(1))}
        case Instant():
            return "2001-01-01T00:00:00Z"
        case Day():
            return "2001-01-01"
        case sa.LargeBinary():
            return typed(b"some")
        case _:
            return "some"
