"""The books of a database: what a journal of writes adds up to.

A back end reports writes one by one, in order. From them the ledger keeps three things that must always agree: the
table sums behind the digest, the net changes since the start state, and the net changes nobody has taken yet. It is
pure bookkeeping over rows in memory and knows no SQL, so it can be tested, and is the same, for every back end.
"""

from collections.abc import Iterable, Sequence
from typing import Self

from agent_envs.contract import Change, canonical_json
from agent_envs.state.rows import MODULUS, Row, database_digest, element, table_digest
from agent_envs.state.schema import Key, Schema

Write = tuple[int, Row | None, Row | None]
"""Table number, the row before (None for an insert) and after (None for a delete)."""
Place = tuple[int, Key]
"""Table number and primary key."""
Net = dict[Place, tuple[Row | None, Row | None]]
"""The row at each place before and after; never equal."""


class Ledger:
    """Table sums and net changes of one database.

    Args:
        schema: The tables.
        channel: Name that changes carry.
        counts: Number of rows of each table, by table number.
        sums: Sum of each table, by table number.
    """

    def __init__(self, schema: Schema, channel: str, counts: Sequence[int], sums: Sequence[int]) -> None:
        """Open the books at a start state: no changes, nothing to take."""
        self._schema = schema
        self._layouts = schema.layouts
        self._channel = channel
        self._counts = list(counts)
        self._sums = list(sums)
        self._tables = [b""] * len(self._counts)
        self._stale: dict[int, None] = dict.fromkeys(range(len(self._counts)))
        self._digest: str | None = None
        self._net: Net = {}
        self._pending: Net = {}

    def copy(self) -> Self:
        """An independent copy at the same point."""
        twin = type(self)(self._schema, self._channel, self._counts, self._sums)
        twin._tables = list(self._tables)
        twin._stale = dict(self._stale)
        twin._digest = self._digest
        twin._net = dict(self._net)
        twin._pending = dict(self._pending)
        return twin

    def start_here(self) -> None:
        """Make the present point the start state: no changes, nothing to take."""
        self._net = {}
        self._pending = {}

    def record(self, writes: Iterable[Write]) -> None:
        """Enter writes, in the order in which they happened."""
        rows: dict[Place, tuple[Row | None, Row | None]] = {}
        layouts = self._layouts
        for number, old, new in writes:
            key = layouts[number].key
            if old is None or new is None or key(old) == key(new):
                steps: tuple[tuple[Row | None, Row | None], ...] = ((old, new),)
            else:
                steps = ((old, None), (None, new))  # a row that changes its key goes, and another one comes
            for before, after in steps:
                place = number, key(after if before is None else before)  # type: ignore[arg-type]
                known = rows.get(place)
                rows[place] = (before if known is None else known[0], after)
        for place, (before, after) in rows.items():
            if before != after:
                self._enter(place, before, after)

    def _enter(self, place: Place, before: Row | None, after: Row | None) -> None:
        number = place[0]
        encode = self._layouts[number].encode
        total = self._sums[number]
        if before is not None:
            total -= element(encode(before))
            self._counts[number] -= 1
        if after is not None:
            total += element(encode(after))
            self._counts[number] += 1
        self._sums[number] = total % MODULUS
        self._stale[number] = None
        self._digest = None
        for net in (self._net, self._pending):
            known = net.get(place)
            first = before if known is None else known[0]
            if known is not None and first == after:
                del net[place]
            else:
                net[place] = (first, after)

    def digest(self) -> str:
        """Digest of the database at this point, 64 hexadecimal digits."""
        if self._digest is None:
            for number in self._stale:
                name = self._layouts[number].name
                self._tables[number] = table_digest(name, self._counts[number], self._sums[number])
            self._stale = {}
            self._digest = database_digest(self._schema.digest, self._tables)
        return self._digest

    def changes(self) -> list[Change]:
        """Net changes since the start state, sorted by table and canonical key."""
        return self._shown(self._net)

    def take(self) -> list[Change]:
        """Net changes since they were last taken, sorted by table and canonical key."""
        if not self._pending:
            return []
        pending, self._pending = self._pending, {}
        return self._shown(pending)

    def undone(self, earlier: Self) -> Self:
        """The books after everything since an earlier copy was undone in the database.

        Whoever took changes that are undone now is told so by the next `take`: it leads from what was last taken to
        the rows of the earlier point.
        """
        result = earlier.copy()
        result._pending = {}
        for place in dict.fromkeys([*self._pending, *self._net, *earlier._net, *earlier._pending]):
            present = self._at(place, earlier)
            known = self._pending[place][0] if place in self._pending else present
            restored = earlier._at(place, self)
            if known != restored:
                result._pending[place] = (known, restored)
        return result

    def _at(self, place: Place, other: Self) -> Row | None:
        """The row at a place that this or another ledger with the same start has changes for."""
        for net in (self._net, self._pending):
            if place in net:
                return net[place][1]
        # Not among the changes here, so it is as it was at the start; the other ledger knows how that was.
        return other._net[place][0] if place in other._net else other._pending[place][1]

    def _shown(self, net: Net) -> list[Change]:
        changes = []
        for (number, key), (before, after) in net.items():
            layout = self._layouts[number]
            # The parts are right by construction and frozen evidence is validated when it is read: no second check.
            changes.append(
                Change.model_construct(
                    channel=self._channel,
                    table=layout.name,
                    key=layout.key_to_json(key),
                    before=None if before is None else layout.to_json(before),
                    after=None if after is None else layout.to_json(after),
                )
            )
        if len(changes) > 1:
            changes.sort(key=lambda change: (change.table, canonical_json(change.key)))
        return changes
