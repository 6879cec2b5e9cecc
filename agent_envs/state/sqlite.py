"""The default back end: an in-memory SQLite database that starts from the fixture's image.

Everything happens in one transaction that is never committed. Going back to the start is ROLLBACK: its cost follows
the pages that the episode wrote. (ROLLBACK TO a savepoint would not do on its own: it replays every page written
since the transaction began, so resets would grow dearer with every episode.)
"""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from sqlalchemy.dialects import sqlite as sqlite_dialect

from agent_envs.contract import EnvironmentFault
from agent_envs.state.backend import IntegrityViolation
from agent_envs.state.fixture import Fixture, quoted, select_all
from agent_envs.state.ledger import Write
from agent_envs.state.rows import Row
from agent_envs.state.schema import Key, Layout
from agent_envs.state.statements import Plan, Plans
from agent_envs.state.triggers import JOURNAL, sqlite_triggers

PLANS = Plans(sqlite_dialect.dialect(paramstyle="qmark"))

_REWINDS = 16
"""Rewinds to the patched point between full rollbacks: bounds the pages that ROLLBACK TO replays."""
_READ = f"SELECT * FROM {JOURNAL} WHERE seq > ? ORDER BY seq"
_END = f"SELECT max(seq) FROM {JOURNAL}"
_REFUSALS = {
    "SQLITE_CONSTRAINT_UNIQUE": "a row with this unique value exists already",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "a row with this key exists already",
    "SQLITE_CONSTRAINT_ROWID": "a row with this key exists already",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "a row that is referred to would be missing",
    "SQLITE_CONSTRAINT_NOTNULL": "a column that takes no null would be null",
    "SQLITE_CONSTRAINT_CHECK": "a check constraint fails",
}


class SQLite:
    """A connection of its own for one database channel.

    Args:
        fixture: Start content.
    """

    plans = PLANS

    def __init__(self, fixture: Fixture) -> None:
        """Open a copy of the fixture's image, with journal triggers.

        Raises:
            EnvironmentFault: This SQLite can't do what is needed.
        """
        content = fixture.content
        self._layouts = fixture.schema.layouts
        self._sizes = [len(layout.columns) for layout in self._layouts]
        self._inserts = [
            f"INSERT INTO {quoted(layout.name)} VALUES ({', '.join('?' * len(layout.columns))})"
            for layout in self._layouts
        ]
        self._updates: dict[tuple[int, tuple[str, ...]], str] = {}
        # Vector environments may step an environment from another thread than the one that reset it, never from two.
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            self.connection.deserialize(content.image)
            for setting in (
                "foreign_keys=ON",
                "recursive_triggers=ON",  # else rows that INSERT OR REPLACE removes would go unnoticed
                "case_sensitive_like=ON",  # as on PostgreSQL
                "journal_mode=MEMORY",
                "temp_store=MEMORY",
                "synchronous=OFF",
                "cache_size=-1024",  # kibibytes; the whole database is in memory already
            ):
                self.connection.execute(f"PRAGMA {setting}").fetchall()
            for statement in sqlite_triggers(fixture.schema):
                self.connection.execute(statement)
            if self.connection.execute("SELECT 'a' LIKE 'A'").fetchone() != (0,):
                raise EnvironmentFault("this SQLite has no case-sensitive LIKE; use a build that has the pragma for it")
            self.connection.execute("BEGIN")
        except sqlite3.Error as error:
            self.close()
            self._fault(error)
        self._cursor = self.connection.cursor()
        self._execute = self._cursor.execute
        self._seen = self.connection.total_changes
        self._mark = 0
        self._patched_mark = 0
        self._rewinds = 0

    def fetch(self, plan: Plan, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """All rows of a select, as driver values."""
        if plan.expand is None:
            sql, arguments = plan.sql, plan.arguments(given)
        else:
            sql, arguments = plan.expand(given)
        try:
            return self._execute(sql, arguments).fetchall()
        except sqlite3.Error as error:
            return self._read_again(error, sql, arguments)

    def insert(self, layout: Layout, row: Row) -> None:
        """Add a whole row."""
        try:
            self._execute(self._inserts[layout.number], row)
        except sqlite3.Error as error:
            self._refuse(error, f"insert into {layout.name!r}")

    def update(self, layout: Layout, key: Key, columns: tuple[str, ...], values: tuple[Any, ...]) -> bool:
        """Set columns of the row with this key; False when there is none."""
        sql = self._updates.get((layout.number, columns))
        if sql is None:
            sets = ", ".join(f"{quoted(column)} = ?" for column in columns)
            sql = f"UPDATE {quoted(layout.name)} SET {sets} WHERE {_where(layout)}"
            self._updates[layout.number, columns] = sql
        try:
            return self._execute(sql, (*values, *key)).rowcount > 0
        except sqlite3.Error as error:
            self._refuse(error, f"update of {layout.name!r}")

    def delete(self, layout: Layout, key: Key) -> bool:
        """Remove the row with this key; False when there is none."""
        try:
            return self._execute(f"DELETE FROM {quoted(layout.name)} WHERE {_where(layout)}", key).rowcount > 0
        except sqlite3.Error as error:
            self._refuse(error, f"delete from {layout.name!r}")

    def scan(self, layout: Layout) -> Iterable[Row]:
        """Every stored row of a table."""
        sql = select_all(layout)
        try:
            return self._execute(sql).fetchall()
        except sqlite3.Error as error:
            return self._read_again(error, sql, ())

    def written(self) -> list[Write]:
        """Writes since the last call, in the order in which they happened."""
        seen = self.connection.total_changes
        if seen == self._seen:
            return []
        try:
            entries = self._execute(_READ, (self._mark,)).fetchall()
        except sqlite3.Error as error:
            entries = self._read_again(error, _READ, (self._mark,))
        self._seen = seen
        writes: list[Write] = []
        for entry in entries:
            number, kind = entry[1], entry[2]
            middle = 3 + self._sizes[number]
            before = entry[3:middle] if kind & 1 else None
            after = entry[middle : middle + self._sizes[number]] if kind & 2 else None
            writes.append((number, before, after))
        if entries:
            self._mark = entries[-1][0]
        return writes

    def mark(self) -> int:
        """How far the journal has been read."""
        return self._mark

    def forget(self, mark: int) -> None:
        """Take up reading the journal at an earlier mark, after a rollback."""
        self._mark = mark
        self._seen = -1  # entries from before the undone part may have to be read a second time

    def savepoint(self) -> None:
        """Start a part that can be undone."""
        self._run("SAVEPOINT agenteval_part")

    def release(self) -> None:
        """Keep the innermost part."""
        self._run("RELEASE agenteval_part")

    def undo(self) -> None:
        """Undo and end the innermost part."""
        self._run("ROLLBACK TO agenteval_part")
        self._run("RELEASE agenteval_part")

    def defer_references(self, on: bool) -> None:
        """Check references between rows at the end of a series of writes instead of at each."""
        self._run(f"PRAGMA defer_foreign_keys={'ON' if on else 'OFF'}")

    def keep_patched(self) -> None:
        """Remember the present point, after a task's patch."""
        self._run("SAVEPOINT agenteval_patched")
        self._patched_mark = self._mark
        self._rewinds = 0

    def rewind(self, patched: bool) -> bool:
        """Go back to the remembered point, or to the start, and prove it."""
        there = patched and self._rewinds < _REWINDS
        if there:
            self._run("ROLLBACK TO agenteval_patched")
            self._rewinds += 1
        else:
            self._run("ROLLBACK")
            self._run("BEGIN")
        self._mark = self._patched_mark if there else 0
        end = self._run(_END).fetchone()[0] or 0
        if end != self._mark:
            raise EnvironmentFault(
                f"after a rollback the change journal ends at entry {end} instead of {self._mark}: something committed "
                "within the episode; the next restore opens a fresh database"
            )
        self._seen = self.connection.total_changes
        return there or not patched

    def probe(self) -> None:
        """Run a trivial statement."""
        self._run("SELECT 1").fetchall()
        if not self.connection.in_transaction:
            raise EnvironmentFault("the database's transaction was ended from outside; restore it")

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def _run(self, sql: str) -> sqlite3.Cursor:
        try:
            return self._execute(sql)
        except sqlite3.Error as error:
            self._fault(error)

    def _read_again(self, error: sqlite3.Error, sql: str, arguments: Any) -> list[tuple[Any, ...]]:
        """Read rows whose text raw SQL has filled with bytes that are no UTF-8; they become lone surrogates."""
        if "decode" not in str(error):
            self._fault(error)
        self.connection.text_factory = _lenient
        try:
            return self._execute(sql, arguments).fetchall()
        except sqlite3.Error as again:
            self._fault(again)
        finally:
            self.connection.text_factory = str

    def _refuse(self, error: sqlite3.Error, what: str) -> NoReturn:
        if isinstance(error, sqlite3.IntegrityError):
            reason = _REFUSALS.get(error.sqlite_errorname, "a value has the wrong type")
            raise IntegrityViolation(f"{what} refused: {reason}") from error
        self._fault(error)

    def _fault(self, error: sqlite3.Error) -> NoReturn:
        raise EnvironmentFault(f"SQLite failed: {error}") from error


def _lenient(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _where(layout: Layout) -> str:
    return " AND ".join(f"{quoted(column)} = ?" for column in layout.key_columns)
