"""The content a database starts with.

A fixture is made once per process, whatever the number of environments and episodes: rows are checked, stored in an
in-memory SQLite database, read back from there to be hashed, and kept as that database's image. What is hashed is
thus what was stored, and both back ends start from the same image.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from agent_envs.state.rows import Row, database_digest, table_digest, table_sum
from agent_envs.state.schema import Layout, Schema, read_schema

_building = threading.RLock()


class Content(NamedTuple):
    """A fixture's rows, stored and summed."""

    image: bytes
    """An SQLite database file with tables, indexes and rows, without journal."""
    counts: tuple[int, ...]
    """Number of rows, by table number."""
    sums: tuple[int, ...]
    """Sum of the rows' elements, by table number."""
    digest: str


class Fixture:
    """Immutable start content of a database, built at first use and then kept for the life of the process.

    Args:
        name: Name in messages.
        metadata: Tables, with types of `agent_envs.state.columns`, explicit primary keys and no server defaults.
        rows: Makes the rows, by table name; each row gives every column that takes no null. Must return the same rows
            in every process; their order doesn't matter.

    Raises:
        ValueError: The metadata isn't portable; the message names table and column.
    """

    def __init__(
        self,
        name: str,
        metadata: sa.MetaData,
        rows: Callable[[], Mapping[str, Iterable[Mapping[str, Any]]]],
    ) -> None:
        """Check the metadata; rows are made at first use."""
        self.name = name
        self.metadata = metadata
        self.schema: Schema = read_schema(metadata)
        self._rows = rows
        self._content: Content | None = None

    def __repr__(self) -> str:
        """Name and size, for messages."""
        return f"Fixture({self.name!r}, {len(self.schema.layouts)} tables)"

    @property
    def digest(self) -> str:
        """Digest of schema and rows, 64 hexadecimal digits: what a database restored from it, unpatched, has."""
        return self.content.digest

    @property
    def content(self) -> Content:
        """The stored rows.

        Raises:
            ValueError: A row doesn't fit its table; the message names table, column and value.
        """
        with _building:
            if self._content is None:
                self._content = self._build()
            return self._content

    def stored_rows(self) -> Iterator[tuple[Layout, Iterator[Row]]]:
        """Every table with its rows as SQLite's driver values, a table after the ones it refers to."""
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(self.content.image)
            for layout in self.schema.in_order:
                yield layout, connection.execute(select_all(layout))

    def _build(self) -> Content:
        given = self._rows()
        for table in given:
            if table not in self.metadata.tables:
                known = ", ".join(layout.name for layout in self.schema.layouts)
                raise ValueError(f"fixture {self.name!r} has rows for an unknown table {table!r}; it has {known}")
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            for statement in create_tables(self.schema, sqlite_dialect.dialect()):
                connection.execute(statement)
            connection.execute("BEGIN")
            for layout in self.schema.in_order:
                slots = ", ".join("?" * len(layout.columns))
                insert = f"INSERT INTO {quoted(layout.name)} VALUES ({slots})"
                for row in given.get(layout.name, ()):
                    try:
                        connection.execute(insert, layout.whole_row(row))
                    except sqlite3.IntegrityError as error:
                        raise ValueError(f"fixture {self.name!r}: {error}; the row is {dict(row)!r}") from error
            connection.execute("COMMIT")
            for child, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
                raise ValueError(f"fixture {self.name!r}: a row of {child!r} refers to a missing row of {parent!r}")
            counts, sums = zip(
                *(
                    table_sum(map(layout.encode, connection.execute(select_all(layout))))
                    for layout in self.schema.layouts
                ),
                strict=True,
            )
            tables = [
                table_digest(layout.name, count, total)
                for layout, count, total in zip(self.schema.layouts, counts, sums, strict=True)
            ]
            return Content(connection.serialize(), counts, sums, database_digest(self.schema.digest, tables))


def create_tables(schema: Schema, dialect: sa.Dialect) -> list[str]:
    """Statements that create the tables and indexes of a schema."""
    statements = []
    for table in schema.portable.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            statements.append(str(CreateIndex(index).compile(dialect=dialect)))
    return statements


def quoted(name: str) -> str:
    """A name as both back ends quote it."""
    return '"' + name.replace('"', '""') + '"'


def select_all(layout: Layout) -> str:
    """Statement that reads every column of every row of a table."""
    return f"SELECT {', '.join(map(quoted, layout.columns))} FROM {quoted(layout.name)}"
