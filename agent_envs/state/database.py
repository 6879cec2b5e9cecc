"""The database channel: typed reads and writes, exact changes, an incremental hash and a reset that undoes.

Tools read with SQLAlchemy statements built once and write whole rows by primary key. Whatever they do, and whatever
raw SQL does beside them, reaches the same journal; the state hash and the change set are both made from it, so they
can't disagree. The hash and the reset cost what was changed, not what is stored.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from agent_envs.contract import Change, EnvironmentFault, RowPatch
from agent_envs.state.backend import Backend
from agent_envs.state.channel import StateChannel
from agent_envs.state.edits import Start, apply, patch_edit, replacement
from agent_envs.state.fixture import Fixture
from agent_envs.state.ledger import Ledger
from agent_envs.state.rows import database_digest, table_digest, table_sum
from agent_envs.state.schema import Layout
from agent_envs.state.sqlite import SQLite

_STARTS = 256
"""Start states kept for each database: about as many hashes as tables each."""


def check_url(url: str) -> None:
    """Refuse a URL that no database channel can be made of; nothing is opened.

    Raises:
        ValueError: It is no URL, or names another kind of database or an SQLite file.
    """
    try:
        kind = sa.make_url(url)
    except sa.exc.ArgumentError:
        shown = f"a text of {len(url)} characters" if isinstance(url, str) else repr(url)  # it may hold a password
    else:
        if kind.drivername == "postgresql+psycopg" or (kind.drivername == "sqlite" and not kind.database):
            return
        shown = repr(kind.render_as_string())
    raise ValueError(
        f"{shown} is no database for an environment; use 'sqlite://' (in memory) or 'postgresql+psycopg://...'"
    )


class Database(StateChannel):
    """Rows of one environment. Two live databases share nothing but the fixture.

    Args:
        fixture: Start content.
        url: ``sqlite://`` for a database in memory, or ``postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE``.

    Raises:
        ValueError: The URL names another kind of database or an SQLite file.
    """

    name = "database"

    def __init__(self, fixture: Fixture, url: str = "sqlite://") -> None:
        """Check the URL; nothing is opened before the first `restore`."""
        check_url(url)
        self.fixture = fixture
        self._url = url
        self._layouts = {fixture.metadata.tables[layout.name]: layout for layout in fixture.schema.layouts}
        self._backend: Backend | None = None
        self._start: Start | None = None
        self._starts: dict[int, Start] = {}
        self._ledger = Ledger(fixture.schema, self.name, (), ())
        self._parts: list[_Part] = []
        self._plans = SQLite.plans

    # Life

    def restore(self, patch: Sequence[RowPatch] = ()) -> None:
        """Go to the start state: the fixture with a task's patch. Opens the database at first use.

        Args:
            patch: Rows to add, edit or remove, in this order. Restoring the same patch again undoes to a point kept
                after it.

        Raises:
            ValueError: The patch doesn't fit the fixture.
            EnvironmentFault: The database can't be opened, or undoing failed; the next restore opens a fresh one.
        """
        self._parts.clear()
        wanted = tuple(patch)
        try:
            if self._backend is None:
                self._open()
                there = False
            else:
                same = self._start is not None and wanted == self._start.patch
                there = self._backend.rewind(patched=same and bool(wanted)) and same
            if self._start is None or not there:
                self._start = self._patched(wanted)
        except BaseException:
            self.close()
            raise
        self._ledger = self._start.ledger.copy()

    def _open(self) -> None:
        if self._url.startswith("sqlite"):
            self._backend = SQLite(self.fixture)
        else:
            from agent_envs.state.postgresql import PostgreSQL  # the driver is an extra

            self._backend = PostgreSQL(self.fixture, self._url)
        self._plans = self._backend.plans

    def _patched(self, patch: tuple[RowPatch, ...]) -> Start:
        """Make a start state out of the bare fixture."""
        backend = self._opened()
        # Found by identity, which is enough: the start keeps its patch alive, and tasks keep theirs. Rows aren't
        # hashed again for a patch seen before, but the journal has to say the same again.
        start = self._starts.get(id(patch))
        if start is not None:
            apply(backend, start.edits)
            if backend.written() != start.writes:
                raise EnvironmentFault("a patch had another effect than the first time; the fixture was not restored")
        else:
            content = self.fixture.content
            ledger = Ledger(self.fixture.schema, self.name, content.counts, content.sums)
            edits = [patch_edit(self.fixture.schema, row) for row in patch]
            apply(backend, edits)
            writes = backend.written()
            ledger.record(writes)
            ledger.start_here()
            ledger.digest()
            start = Start(patch, edits, writes, ledger)
            if len(self._starts) >= _STARTS:
                self._starts.clear()
            self._starts[id(patch)] = start
        if patch:
            backend.keep_patched()
        return start

    def probe(self) -> None:
        """Check that the database answers.

        Raises:
            EnvironmentFault: It doesn't, or it isn't open.
        """
        self._opened().probe()

    def close(self) -> None:
        """Close the connection; everything in it is gone."""
        backend, self._backend = self._backend, None
        self._start = None
        self._parts.clear()
        if backend is not None:
            backend.close()

    def _opened(self) -> Backend:
        if self._backend is None:
            raise EnvironmentFault(f"the database of fixture {self.fixture.name!r} is not open; call restore() first")
        return self._backend

    # Reading

    def one(self, statement: sa.SelectBase, /, **params: Any) -> dict[str, Any] | None:
        """The row of a statement that finds one row at most.

        Args:
            statement: Built once, with ``sa.bindparam("x")`` for parameters: it is compiled at first use.
            **params: Values of the parameters.

        Returns:
            Python values by column name (``Decimal`` for Exact), or None.

        Raises:
            ValueError: A parameter is missing, unknown or of the wrong type; or two rows were found.
        """
        backend = self._backend or self._opened()
        plan = self._plans[statement]
        rows = backend.fetch(plan, params)
        if not rows:
            return None
        if len(rows) > 1:
            raise ValueError(
                f"{len(rows)} rows where one was expected; use all(), or a limit with an order: {plan.sql}"
            )
        return plan.record(rows[0])

    def all(self, statement: sa.SelectBase, /, **params: Any) -> list[dict[str, Any]]:
        """All rows of a statement, in its order.

        Args:
            statement: Built once. Needs an ORDER BY that leaves no ties open: the order of rows must not depend on how
                they are stored.
            **params: Values of the parameters; a list for an expanding one.

        Raises:
            ValueError: The statement has no ORDER BY, or a parameter is missing, unknown or of the wrong type.
        """
        backend = self._backend or self._opened()
        plan = self._plans[statement]
        if not plan.ordered:
            raise ValueError(f"a statement without ORDER BY returns rows in any order; add one: {plan.sql}")
        return [plan.record(row) for row in backend.fetch(plan, params)]

    # Writing

    def insert(self, table: sa.Table, /, **values: Any) -> None:
        """Add a row.

        Args:
            table: A table of the fixture.
            **values: Every column; a nullable one that is left out is null.

        Raises:
            ValueError: A column is missing or unknown, or can't hold its value; the message names it.
            IntegrityViolation: A constraint refuses the row.
        """
        layout = self._layout(table)
        self._opened().insert(layout, layout.whole_row(values))

    def update(self, table: sa.Table, key: Mapping[str, Any], /, **values: Any) -> None:
        """Set columns of one row.

        Args:
            table: A table of the fixture.
            key: The whole primary key, by column.
            **values: New values, by column.

        Raises:
            LookupError: There is no such row.
            ValueError: A column is unknown or can't hold its value; the message names it.
            IntegrityViolation: A constraint refuses the change.
        """
        layout = self._layout(table)
        place = layout.read_key(key)
        if not values:
            raise ValueError(f"an update of {layout.name!r} without values; name the columns to set")
        if not self._opened().update(layout, place, tuple(values), tuple(layout.to_driver(values))):
            raise LookupError(f"no row of {layout.name!r} has the key {dict(key)!r}")

    def delete(self, table: sa.Table, key: Mapping[str, Any], /) -> None:
        """Remove one row.

        Args:
            table: A table of the fixture.
            key: The whole primary key, by column.

        Raises:
            LookupError: There is no such row.
            IntegrityViolation: Other rows refer to it.
        """
        layout = self._layout(table)
        if not self._opened().delete(layout, layout.read_key(key)):
            raise LookupError(f"no row of {layout.name!r} has the key {dict(key)!r}")

    def savepoint(self) -> "_Part":
        """A context for one tool call: kept when it ends, undone when it raises. Contexts may nest."""
        return _Part(self)

    @property
    def driver(self) -> Any:
        """The driver's open connection, for raw SQL (``%s`` or ``?`` and driver values).

        Rows it writes are journaled like any other. It must not end the transaction, nor change tables or triggers:
        SQL that an agent wrote has to pass an authoriser first.
        """
        return self._opened().connection

    def _layout(self, table: sa.Table) -> Layout:
        layout = self._layouts.get(table)
        if layout is None:
            raise ValueError(f"table {table!r} is not one of fixture {self.fixture.name!r}")
        return layout

    # Books

    def take_changes(self) -> list[Change]:
        """Net changes since they were last taken, or since the start; advances the incremental hash.

        Returns:
            Changes sorted by table and canonical key; a row that is as it was isn't among them.
        """
        return self._booked().take()

    def changes(self) -> list[Change]:
        """Net changes since the start state, sorted by table and canonical key."""
        return self._booked().changes()

    def digest(self) -> str:
        """Digest of schema and rows at this point, brought up to date from the journal."""
        return self._booked().digest()

    def recompute(self) -> str:
        """The same digest from every stored row: slow, and independent of journal and books."""
        backend = self._opened()
        schema = self.fixture.schema
        tables = [
            table_digest(layout.name, *table_sum(map(layout.encode, backend.scan(layout)))) for layout in schema.layouts
        ]
        return database_digest(schema.digest, tables)

    def freeze(self) -> dict[str, Any]:
        """Net changes since the start, with the digests of both ends."""
        changes = [
            {"table": change.table, "key": change.key, "before": change.before, "after": change.after}
            for change in self.changes()
        ]
        return {"start": self._started().ledger.digest(), "end": self.digest(), "changes": changes}

    def thaw(self, frozen: Any) -> None:
        """Go back to a frozen point. There is nothing to take afterwards.

        Raises:
            ValueError: It is relative to another start state, or damaged: the digest at its end isn't reached.
        """
        patch, start = self._started().patch, self._started().ledger.digest()
        try:
            origin, end = frozen["start"], frozen["end"]
            edits = [edit for change in frozen["changes"] for edit in replacement(self.fixture.schema, change)]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no frozen point of a database: {error!r}") from error
        if origin != start:
            raise ValueError(
                f"the frozen point starts from state {origin!r} but this database from {start!r}; "
                "restore the same fixture and patch first"
            )
        self.restore(patch)
        backend = self._opened()
        backend.defer_references(True)
        # First all old rows go, then all new ones come: no unique value is ever in the way of another row's.
        apply(backend, [edit for edit in edits if edit.key is not None])
        apply(backend, [edit for edit in edits if edit.key is None])
        backend.defer_references(False)
        ledger = self._booked()
        ledger.take()
        if ledger.digest() != end:
            raise ValueError("the frozen point is damaged: its changes don't lead to its digest")

    def _started(self) -> Start:
        self._opened()
        if self._start is None:
            raise EnvironmentFault(f"the database of fixture {self.fixture.name!r} has no start state; call restore()")
        return self._start

    def _booked(self) -> Ledger:
        backend = self._backend or self._opened()
        mark = backend.mark()
        writes = backend.written()
        for part in self._parts:
            part.keep(self._ledger, mark)
        if writes:
            self._ledger.record(writes)
        return self._ledger


class _Part:
    """One open savepoint, and the books as they were when it began, once they have moved on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books: tuple[Ledger, int] | None = None

    def keep(self, ledger: Ledger, mark: int) -> None:
        """Keep a copy of the books before they are written to for the first time within this part."""
        if self._books is None:
            self._books = ledger.copy(), mark

    def __enter__(self) -> None:
        database = self._database
        database._opened().savepoint()
        database._parts.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        database = self._database
        if self not in database._parts:
            return  # restored or closed meanwhile: the savepoint went with the rest
        del database._parts[database._parts.index(self) :]
        backend = database._opened()
        if kind is None:
            backend.release()
            return
        backend.undo()
        if self._books is not None:
            earlier, mark = self._books
            database._ledger = database._ledger.undone(earlier)
            backend.forget(mark)
