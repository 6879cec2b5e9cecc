"""The PostgreSQL back end: a schema that only one transaction ever sees.

The schema, its tables and its rows are made inside a transaction that is never committed. Parallel environments share
nothing, no right but CREATE on the database is needed, and a killed process leaves nothing behind: the server rolls
back what its connection had begun.
"""

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NoReturn

import psycopg
import sqlalchemy as sa
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect

from agent_envs.contract import EnvironmentFault
from agent_envs.state.backend import IntegrityViolation
from agent_envs.state.fixture import Fixture, create_tables, quoted, select_all
from agent_envs.state.ledger import Write
from agent_envs.state.rows import Row, table_sum
from agent_envs.state.schema import Key, Layout
from agent_envs.state.statements import Plan, Plans
from agent_envs.state.triggers import JOURNAL, postgresql_triggers

_DIALECT: sa.Dialect = psycopg_dialect.dialect()  # type: ignore[no-untyped-call]
PLANS = Plans(_DIALECT)

_SETTINGS = (
    "TimeZone = 'UTC'",
    "bytea_output = 'hex'",
    "extra_float_digits = 1",
    "idle_in_transaction_session_timeout = 0",
    "statement_timeout = 0",
)
_REFUSALS = {
    "23505": "a row with this key or unique value exists already",
    "23503": "a row that is referred to would be missing",
    "23502": "a column that takes no null would be null",
    "23514": "a check constraint fails",
}


class _WholeNumber(Loader):
    """PostgreSQL adds BIGINTs up to a NUMERIC; a whole one is an ``int`` here, as on SQLite."""

    def load(self, data: Any) -> int | Decimal:
        text = bytes(data).decode("ascii")
        return int(text) if text.lstrip("-").isdecimal() else Decimal(text)


class PostgreSQL:
    """A connection, and a schema in its open transaction, for one database channel.

    Args:
        fixture: Start content.
        url: SQLAlchemy URL with the driver ``postgresql+psycopg``.
    """

    plans = PLANS

    def __init__(self, fixture: Fixture, url: str) -> None:
        """Connect and fill a schema from the fixture.

        Raises:
            EnvironmentFault: The server can't be reached, refuses something or stored other rows than it was given.
        """
        self._layouts = fixture.schema.layouts
        self._from_json = [[_from_json(codec.kind) for codec in layout.codecs] for layout in self._layouts]
        self._space = f"agenteval_{uuid.uuid4().hex}"  # never observed: it only keeps parallel transactions apart
        self._written = False
        self._watched = False
        self._mark = 0
        self._patched_mark = 0
        target = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        try:
            self._connection = psycopg.connect(target, autocommit=True)
        except psycopg.Error as error:
            raise EnvironmentFault(f"PostgreSQL can't be reached: {error}") from error
        self._connection.adapters.register_loader("numeric", _WholeNumber)
        self._cursor = self._connection.cursor()
        try:
            self._fill(fixture)
        except psycopg.Error as error:
            self.close()
            self._fault(error)
        except BaseException:
            self.close()
            raise

    def _fill(self, fixture: Fixture) -> None:
        space = self._space
        execute = self._cursor.execute
        execute("BEGIN")
        execute(f"CREATE SCHEMA {quoted(space)}".encode())
        execute(f"SET LOCAL search_path = {quoted(space)}".encode())
        for setting in _SETTINGS:
            execute(f"SET LOCAL {setting}".encode())
        for statement in create_tables(fixture.schema, _DIALECT):
            execute(statement.encode())
        for layout, rows in fixture.stored_rows():
            columns = ", ".join(map(quoted, layout.columns))
            with self._cursor.copy(f"COPY {quoted(layout.name)} ({columns}) FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
            execute(f"ANALYZE {quoted(layout.name)}".encode())
        for layout, count, total in zip(self._layouts, fixture.content.counts, fixture.content.sums, strict=True):
            if table_sum(map(layout.encode, self.scan(layout))) != (count, total):
                raise EnvironmentFault(
                    f"PostgreSQL stored other rows in {layout.name!r} than fixture {fixture.name!r} has"
                )
        for statement in postgresql_triggers(fixture.schema, space):
            execute(statement.encode())
        execute("SAVEPOINT agenteval_start")

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The driver's connection. Once it is out of hand, the journal is read whenever the books are."""
        self._watched = True
        return self._connection

    def fetch(self, plan: Plan, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """All rows of a select, as driver values."""
        if plan.expand is None:
            sql, arguments = plan.sql, plan.arguments(given)
        else:
            sql, arguments = plan.expand(given)
        try:
            return self._cursor.execute(sql.encode(), arguments).fetchall()
        except psycopg.Error as error:
            self._fault(error)

    def insert(self, layout: Layout, row: Row) -> None:
        """Add a whole row."""
        sql = f"INSERT INTO {_escaped(layout.name)} VALUES ({', '.join(['%s'] * len(row))})"
        self._write(sql, row, f"insert into {layout.name!r}")

    def update(self, layout: Layout, key: Key, columns: tuple[str, ...], values: tuple[Any, ...]) -> bool:
        """Set columns of the row with this key; False when there is none."""
        sets = ", ".join(f"{_escaped(column)} = %s" for column in columns)
        sql = f"UPDATE {_escaped(layout.name)} SET {sets} WHERE {_where(layout)}"
        return self._write(sql, (*values, *key), f"update of {layout.name!r}")

    def delete(self, layout: Layout, key: Key) -> bool:
        """Remove the row with this key; False when there is none."""
        sql = f"DELETE FROM {_escaped(layout.name)} WHERE {_where(layout)}"
        return self._write(sql, key, f"delete from {layout.name!r}")

    def scan(self, layout: Layout) -> Iterable[Row]:
        """Every stored row of a table."""
        return self._run(select_all(layout)).fetchall()

    def written(self) -> list[Write]:
        """Writes since the last call, in the order in which they happened."""
        if not (self._written or self._watched):
            return []
        self._written = False
        entries = self._run(
            f"SELECT seq, number, before, after FROM {JOURNAL} WHERE seq > {self._mark} ORDER BY seq"
        ).fetchall()
        if entries:
            self._mark = entries[-1][0]
        return [(number, self._row(number, before), self._row(number, after)) for _, number, before, after in entries]

    def mark(self) -> int:
        """How far the journal has been read."""
        return self._mark

    def forget(self, mark: int) -> None:
        """Take up reading the journal at an earlier mark, after a rollback."""
        self._mark = mark
        self._written = True  # entries from before the undone part may have to be read a second time

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
        self._run(f"SET CONSTRAINTS ALL {'DEFERRED' if on else 'IMMEDIATE'}")

    def keep_patched(self) -> None:
        """Remember the present point, after a task's patch."""
        self._run("SAVEPOINT agenteval_patched")
        self._patched_mark = self._mark

    def rewind(self, patched: bool) -> bool:
        """Go back to the remembered point, or to the start, and prove it."""
        self._run(f"ROLLBACK TO {'agenteval_patched' if patched else 'agenteval_start'}")
        self._mark = self._patched_mark if patched else 0
        self._written = False
        ((end,),) = self._run(f"SELECT coalesce(max(seq), 0) FROM {JOURNAL}").fetchall()
        if end != self._mark:
            raise EnvironmentFault(
                f"after a rollback the change journal ends at entry {end} instead of {self._mark}: something committed "
                "within the episode; the next restore opens a fresh database"
            )
        return True

    def probe(self) -> None:
        """Run a trivial statement."""
        self._run("SELECT 1").fetchall()

    def close(self) -> None:
        """End the connection; the server rolls everything back."""
        if self._connection.info.transaction_status is TransactionStatus.IDLE:
            # Something ended the transaction from inside, so the schema may have been made for good.
            with contextlib.suppress(psycopg.Error):
                self._cursor.execute(f"DROP SCHEMA IF EXISTS {quoted(self._space)} CASCADE".encode())
        self._connection.close()

    def _run(self, sql: str) -> psycopg.Cursor[Any]:
        try:
            return self._cursor.execute(sql.encode())
        except psycopg.Error as error:
            self._fault(error)

    def _write(self, sql: str, arguments: tuple[Any, ...], what: str) -> bool:
        # A failed statement spoils a PostgreSQL transaction up to the last savepoint; SQLite undoes it alone.
        self._run("SAVEPOINT agenteval_write")
        self._written = True
        try:
            found = self._cursor.execute(sql.encode(), arguments).rowcount > 0
        except psycopg.IntegrityError as error:
            self._run("ROLLBACK TO agenteval_write")
            self._run("RELEASE agenteval_write")
            reason = _REFUSALS.get(error.sqlstate or "", "a constraint fails")
            raise IntegrityViolation(f"{what} refused: {reason}") from error
        except psycopg.Error as error:
            self._fault(error)
        self._run("RELEASE agenteval_write")
        return found

    def _row(self, number: int, noted: dict[str, Any] | None) -> Row | None:
        if noted is None:
            return None
        converted = []
        for name, convert in zip(self._layouts[number].columns, self._from_json[number], strict=True):
            value = noted[name]
            converted.append(value if convert is None or value is None else convert(value))
        return tuple(converted)

    def _fault(self, error: psycopg.Error) -> NoReturn:
        raise EnvironmentFault(f"PostgreSQL failed: {str(error).strip() or type(error).__name__}") from error


def _from_json(kind: str) -> Any:
    """How a value comes back from the journal's JSON, where it isn't itself."""
    if kind == "real":
        return float
    return (lambda text: bytes.fromhex(text[2:])) if kind == "blob" else None


def _escaped(name: str) -> str:
    return quoted(name).replace("%", "%%")


def _where(layout: Layout) -> str:
    return " AND ".join(f"{_escaped(column)} = %s" for column in layout.key_columns)
