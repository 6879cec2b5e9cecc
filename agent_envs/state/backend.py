"""What a database channel needs from an engine.

The channel keeps the books; a back end runs statements inside one transaction that is never committed and reports
every write, whoever made it, from a journal that triggers fill. Undoing is the engine's own rollback, so its cost
follows what an episode wrote and never what is stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from agent_envs.contract import AgentEvalError
from agent_envs.state.ledger import Write
from agent_envs.state.rows import Row
from agent_envs.state.schema import Key, Layout
from agent_envs.state.statements import Plan, Plans


class IntegrityViolation(AgentEvalError):
    """A constraint of the database refused a write: a double key, a missing row referred to, a failed check."""


class Backend(Protocol):
    """One open connection, at or after a start state.

    Every method raises EnvironmentFault when the engine fails, and writes raise IntegrityViolation when a constraint
    refuses them; either way a refused write has no effect.
    """

    @property
    def connection(self) -> Any:
        """The driver's connection."""

    @property
    def plans(self) -> Plans:
        """Statements compiled for this engine."""

    def fetch(self, plan: Plan, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """All rows of a select, as driver values."""

    def insert(self, layout: Layout, row: Row) -> None:
        """Add a whole row."""

    def update(self, layout: Layout, key: Key, columns: tuple[str, ...], values: tuple[Any, ...]) -> bool:
        """Set columns of the row with this key; False when there is none."""

    def delete(self, layout: Layout, key: Key) -> bool:
        """Remove the row with this key; False when there is none."""

    def scan(self, layout: Layout) -> Iterable[Row]:
        """Every stored row of a table."""

    def written(self) -> list[Write]:
        """Writes since the last call, in the order in which they happened."""

    def mark(self) -> int:
        """How far the journal has been read, for `forget`."""

    def forget(self, mark: int) -> None:
        """Take up reading the journal at an earlier mark, after a rollback."""

    def savepoint(self) -> None:
        """Start a part that can be undone; parts may nest."""

    def release(self) -> None:
        """Keep the innermost part."""

    def undo(self) -> None:
        """Undo and end the innermost part."""

    def defer_references(self, on: bool) -> None:
        """Check references between rows at the end of a series of writes instead of at each."""

    def keep_patched(self) -> None:
        """Remember the present point, after a task's patch."""

    def rewind(self, patched: bool) -> bool:
        """Go back to the start, or to the remembered point, and prove that the journal is back there too.

        Args:
            patched: Go to the remembered point.

        Returns:
            Whether the database is there; False when the remembered point has to be made again, from the start.
        """

    def probe(self) -> None:
        """Run a trivial statement."""

    def close(self) -> None:
        """End the connection, and with it the transaction. Never raises."""
