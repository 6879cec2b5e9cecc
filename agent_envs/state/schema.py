"""A fixture's tables, checked for portability and laid out for the hot path.

SQLAlchemy's metadata says what a family author wants. What is made from it here is what both back ends can honour: an
unportable type, a generated id or a cascading delete is refused when the fixture is made, not found out in a verdict.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent_envs.contract import digest
from agent_envs.state.codecs import Codec
from agent_envs.state.columns import PORTABLE, Boolean, Real, codec_of
from agent_envs.state.rows import Row, row_encoder

RESERVED = "agenteval_"
"""Prefix of the names that the back ends use for themselves."""
_LARGEST_DOUBLE = "1.7976931348623157e308"
Key = tuple[Any, ...]
"""Primary key as driver values, in key order."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One table: its columns in declared order and how its rows are read, encoded and shown."""

    number: int
    """Place among the tables in the order of their names."""
    name: str
    columns: tuple[str, ...]
    codecs: tuple[Codec, ...]
    nullable: tuple[bool, ...]
    key_columns: tuple[str, ...]
    key_places: tuple[int, ...]
    """Where the key columns stand among the columns."""
    encode: Callable[[Row], bytes]
    converted: tuple[tuple[str, Callable[[Any], Any]], ...]
    """The columns that a change shows in another form than the driver's, and how."""

    def key(self, row: Row) -> Key:
        """The row's primary key."""
        return tuple([row[place] for place in self.key_places])

    def codec(self, column: str) -> Codec:
        """The codec of one column.

        Raises:
            ValueError: The table has no such column.
        """
        if column not in self.columns:
            raise ValueError(f"table {self.name!r} has no column {column!r}; it has {', '.join(self.columns)}")
        return self.codecs[self.columns.index(column)]

    def to_json(self, row: Row) -> dict[str, Any]:
        """The row as a change shows it."""
        shown = dict(zip(self.columns, row, strict=True))
        for name, to_json in self.converted:
            value = shown[name]
            if value is not None:
                shown[name] = to_json(value)
        return shown

    def key_to_json(self, key: Key) -> dict[str, Any]:
        """The key as a change shows it."""
        shown: dict[str, Any] = {}
        for name, place, value in zip(self.key_columns, self.key_places, key, strict=True):
            to_json = self.codecs[place].to_json
            shown[name] = value if to_json is None else to_json(value)
        return shown

    def from_json(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Some columns of a change or a task's patch as Python values.

        Raises:
            ValueError: A column doesn't exist or its value isn't in the column's form; the message names both.
        """
        plain = {}
        for name, value in values.items():
            codec = self.codec(name)
            try:
                plain[name] = codec.from_json(value)
            except ValueError as error:
                raise ValueError(f"{self.name}.{name}: {error}") from error
        return plain

    def to_driver(self, values: Mapping[str, Any]) -> list[Any]:
        """Driver values of the given columns, in the order given.

        Raises:
            ValueError: A column doesn't exist or can't hold its value; the message names both.
        """
        found = []
        for name, value in values.items():
            try:
                place = self.columns.index(name)
                stored = self.codecs[place].to_driver(value)
            except ValueError as error:
                self.codec(name)
                raise ValueError(f"{self.name}.{name}: {error}") from error
            if stored is None and not self.nullable[place]:
                raise ValueError(f"{self.name}.{name}: the column takes no null; give it a value")
            found.append(stored)
        return found

    def read_key(self, values: Mapping[str, Any]) -> Key:
        """Driver values of a whole primary key.

        Raises:
            ValueError: The columns given aren't those of the key, or can't hold their values.
        """
        if values.keys() != set(self.key_columns):
            raise ValueError(f"{dict(values)!r} is not the key of {self.name!r}; give {', '.join(self.key_columns)}")
        return tuple(self.to_driver({column: values[column] for column in self.key_columns}))

    def whole_row(self, values: Mapping[str, Any]) -> Row:
        """Driver values of a whole row; a nullable column that isn't given is null.

        Raises:
            ValueError: A column is missing, doesn't exist or can't hold its value; the message names it.
        """
        row = []
        given = 0
        for name, codec, nullable in zip(self.columns, self.codecs, self.nullable, strict=True):
            if name in values:
                given += 1
                try:
                    stored = codec.to_driver(values[name])
                except ValueError as error:
                    raise ValueError(f"{self.name}.{name}: {error}") from error
            else:
                stored = None
            if stored is None and not nullable:
                raise ValueError(f"{self.name}.{name}: the column takes no null; give it a value")
            row.append(stored)
        if given != len(values):
            for name in values:
                self.codec(name)
        return tuple(row)


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a fixture."""

    layouts: tuple[Layout, ...]
    """In the order of the tables' names."""
    in_order: tuple[Layout, ...]
    """A table comes after the ones it refers to."""
    portable: sa.MetaData
    """A copy of the metadata without generated ids, with the checks that make both back ends equally strict."""
    digest: bytes
    """32 bytes over tables, columns, types and constraints."""

    def named(self, table: str) -> Layout:
        """The table of that name.

        Raises:
            ValueError: There is none.
        """
        for layout in self.layouts:
            if layout.name == table:
                return layout
        raise ValueError(f"the fixture has no table {table!r}; it has {', '.join(each.name for each in self.layouts)}")


def read_schema(metadata: sa.MetaData) -> Schema:
    """Check the metadata and lay its tables out.

    Raises:
        ValueError: Something in it would not mean the same on both back ends; the message names table and column.
    """
    if not metadata.tables:
        raise ValueError("the metadata has no tables; define them before making the fixture")
    tables = sorted(metadata.tables.values(), key=lambda table: table.name)
    for table in tables:
        _check(table)
    layouts = tuple(_layout(number, table) for number, table in enumerate(tables))
    by_name = {layout.name: layout for layout in layouts}
    return Schema(
        layouts=layouts,
        in_order=tuple(by_name[table.name] for table in metadata.sorted_tables),
        portable=_portable(metadata),
        digest=bytes.fromhex(digest([_description(table) for table in tables])),
    )


def _check(table: sa.Table) -> None:
    if table.schema is not None or table.name.startswith((RESERVED, "sqlite_", "pg_")):
        raise ValueError(
            f"table {table.fullname!r}: names with a schema or starting with {RESERVED!r} are not free to use"
        )
    if not table.primary_key.columns:
        raise ValueError(f"table {table.name!r} has no primary key; changes are told apart by it")
    for column in table.columns:
        place = f"{table.name}.{column.name}"
        if not isinstance(column.type, PORTABLE):
            raise ValueError(f"{place}: {column.type!r} is no type of agent_envs.state.columns")
        if column.server_default is not None or column.computed is not None or column.identity is not None:
            raise ValueError(f"{place}: values made by the server differ between back ends; let the tool give them")
        if column.default is not None or column.onupdate is not None:
            raise ValueError(f"{place}: defaults are not applied here; let the tool give the value")
        for reference in column.foreign_keys:
            if reference.ondelete or reference.onupdate:
                raise ValueError(f"{place}: a cascade changes rows no tool named; change them explicitly instead")


def _layout(number: int, table: sa.Table) -> Layout:
    # Plain text: SQLAlchemy's own kind of name is slow to encode and compare.
    columns = tuple(str.__str__(column.name) for column in table.columns)
    codecs = tuple(codec_of(column.type) for column in table.columns)
    key = tuple(str.__str__(column.name) for column in table.primary_key.columns)
    return Layout(
        number=number,
        name=str.__str__(table.name),
        columns=columns,
        codecs=codecs,
        nullable=tuple(bool(column.nullable) and not column.primary_key for column in table.columns),
        key_columns=key,
        key_places=tuple(columns.index(name) for name in key),
        converted=tuple((name, codec.to_json) for name, codec in zip(columns, codecs, strict=True) if codec.to_json),
        encode=row_encoder(table.name, list(zip(columns, codecs, strict=True)), key),
    )


def _portable(metadata: sa.MetaData) -> sa.MetaData:
    copy = sa.MetaData()
    for table in metadata.sorted_tables:
        twin = table.to_metadata(copy)
        twin.dialect_options["sqlite"]["strict"] = True
        for column in twin.columns:
            column.autoincrement = False
            # Raw SQL must not be able to store what the typed functions refuse.
            if isinstance(column.type, Real):
                twin.append_constraint(sa.CheckConstraint(sa.func.abs(column) <= sa.literal_column(_LARGEST_DOUBLE)))
            if isinstance(column.type, Boolean):
                zero_or_one = sa.CheckConstraint(sa.type_coerce(column, sa.Integer).in_([0, 1]))
                twin.append_constraint(zero_or_one.ddl_if(dialect="sqlite"))
        for constraint in twin.foreign_key_constraints:
            constraint.deferrable, constraint.initially = True, "IMMEDIATE"
    return copy


def _description(table: sa.Table) -> dict[str, Any]:
    unique = [constraint for constraint in table.constraints if isinstance(constraint, sa.UniqueConstraint)]
    checks = [constraint for constraint in table.constraints if isinstance(constraint, sa.CheckConstraint)]
    return {
        "table": table.name,
        "columns": [
            [column.name, codec_of(column.type).kind, bool(column.nullable) and not column.primary_key]
            for column in table.columns
        ],
        "key": [column.name for column in table.primary_key.columns],
        "unique": sorted(
            [[column.name for column in constraint.columns] for constraint in unique]
            + [[column.name for column in index.columns] for index in table.indexes if index.unique]
        ),
        "references": sorted(
            [
                [
                    [element.parent.name, element.column.table.name, element.column.name]
                    for element in constraint.elements
                ]
                for constraint in table.foreign_key_constraints
            ]
        ),
        "checks": sorted(str(constraint.sqltext) for constraint in checks),
    }
