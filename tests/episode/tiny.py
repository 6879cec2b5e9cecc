"""A family of a few rows and many bad tools: what the episode must withstand is easier made than found.

Test modules load it by its path, under the name ``tiny_family``, once a process.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import threading
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from agent_envs.contract import AgentTask, ToolError
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.suite import Suite
from agent_envs.episode.tools import Tool, tool
from agent_envs.episode.world import World
from agent_envs.state import Clock, Database, Exact, Fixture, Integer, RateLimits, Rng, StateChannel, Text

METADATA = sa.MetaData()
ITEMS = sa.Table(
    "items",
    METADATA,
    sa.Column("id", Integer(), primary_key=True),
    sa.Column("label", Text(), nullable=False),
    sa.Column("price", Exact(4), nullable=False),
)
NOTES = sa.Table(
    "notes", METADATA, sa.Column("id", Integer(), primary_key=True), sa.Column("text", Text(), nullable=False)
)
FIXTURE = Fixture(
    "tiny",
    METADATA,
    lambda: {"items": [{"id": number, "label": f"item {number}", "price": Decimal(number)} for number in (1, 2, 3)]},
)
ITEM = sa.select(ITEMS).where(ITEMS.c.id == sa.bindparam("id"))
LAST_NOTE = sa.select(NOTES).order_by(NOTES.c.id.desc()).limit(1)
HELD = [True]
"""Emptied, it lets a tool go that is hanging in a thread left behind."""


class Shelf(World):
    """All channels there are, the user apart."""

    def __init__(self, url: str) -> None:
        self._database = Database(FIXTURE, url)
        self.clock = Clock()
        self.rate_limits = RateLimits(self.clock, {"look": (3, 3600)})
        self.rng = Rng()
        channels = (self._database, self.clock, self.rate_limits, self.rng)
        self._channels: dict[str, StateChannel] = {channel.name: channel for channel in channels}

    @property
    def database(self) -> Database:
        return self._database

    @property
    def channels(self) -> Mapping[str, StateChannel]:
        return self._channels

    def restore(self, task: AgentTask, seed: int) -> None:
        self._database.restore(task.initial_state.patch)
        self.clock.restore(task.initial_state.clock)
        self.rate_limits.restore()
        self.rng.restore(seed)

    def status(self) -> dict[str, str]:
        return {"shelf": "there"}


@tool(reads=("items",))
def look(world: Shelf, item_id: int) -> dict[str, Any]:
    """Look at an item."""
    world.rate_limits.use("look")
    row = world.database.one(ITEM, id=item_id)
    if row is None:
        raise ToolError(f"there is no item {item_id}")
    return {"label": row["label"], "luck": world.rng.integer(1000)}


@tool(reads=("items",), writes=("items",))
def label(world: Shelf, item_id: int, text: str) -> dict[str, Any]:
    """Write an item's label."""
    world.database.update(ITEMS, {"id": item_id}, label=text)
    return {"item_id": item_id}


@tool(writes=("notes",))
def note(world: Shelf, text: str) -> dict[str, Any]:
    """Add a note."""
    last = world.database.one(LAST_NOTE)
    number = 1 if last is None else last["id"] + 1
    world.database.insert(NOTES, id=number, text=text)
    return {"note_id": number}


@tool()
def say(world: Shelf, text: str) -> dict[str, Any]:
    """Say it back."""
    return {"text": text}


@tool(writes=("items",))
def hang(world: Shelf, how: str) -> dict[str, Any]:
    """Change an item and never come back."""
    world.database.update(ITEMS, {"id": 1}, label="hanging")
    world.rng.integer(10)
    HANGS[how](world)
    return {}


@tool(writes=("items",))
def broken(world: Shelf, how: str) -> dict[str, Any]:
    """Change an item, then break."""
    world.database.update(ITEMS, {"id": 1}, label="broken")
    result: Any = BREAKS[how](world)
    return result  # type: ignore[no-any-return]


@tool(reads=("items",))
def sneak(world: Shelf, how: str) -> dict[str, Any]:
    """Write although nothing is declared."""
    if how == "api":
        world.database.update(ITEMS, {"id": 2}, label="sneaked")
    elif how == "refused":
        world.database.update(ITEMS, {"id": 2}, label="sneaked")
        raise ToolError("refused after a write")
    else:
        world.database.driver.cursor().execute("UPDATE items SET label = 'sneaked' WHERE id = 2")
    return {}


@tool(writes=("items",))
def other_table(world: Shelf) -> dict[str, Any]:
    """Write a table that isn't declared."""
    world.database.insert(NOTES, id=9, text="undeclared")
    return {}


@tool()
def finish(world: Shelf, outcome: str = "completed") -> dict[str, Any]:
    """End the work."""
    return {"outcome": outcome} if outcome != "nan" else {"outcome": math.nan}


@tool(writes=("items",))
def refuse(world: Shelf) -> dict[str, Any]:
    """Change an item, then refuse."""
    world.database.update(ITEMS, {"id": 1}, label="refused")
    raise ToolError("no")


def _sleep(world: Shelf) -> None:
    time.sleep(20)


def _spin(world: Shelf) -> None:
    while HELD:
        pass


def _lock(world: Shelf) -> None:
    lock = threading.Lock()
    lock.acquire()
    while HELD:
        lock.acquire(timeout=20)


def _swallow_asleep(world: Shelf) -> None:
    while HELD:
        try:
            time.sleep(0.2)
        except BaseException:
            pass


def _swallow_at_work(world: Shelf) -> None:
    while HELD:
        with contextlib.suppress(BaseException):
            sum(range(1000))


def _query(world: Shelf) -> None:
    world.database.driver.cursor().execute("SELECT pg_sleep(600)")


HANGS = {
    "sleep": _sleep,
    "spin": _spin,
    "lock": _lock,
    "swallow_asleep": _swallow_asleep,
    "swallow_at_work": _swallow_at_work,
    "query": _query,
}


def _key_error(world: Shelf) -> Any:
    empty: dict[str, Any] = {}
    return empty["missing"]


def _recursion(world: Shelf) -> Any:
    return _recursion(world)


def _deep(world: Shelf) -> Any:
    value: Any = {}
    for _ in range(100_000):
        value = {"deeper": value}
    return value


def _closed(world: Shelf) -> Any:
    world.database.driver.close()
    return {}


def _committed(world: Shelf) -> Any:
    world.database.driver.execute("COMMIT")
    return {}


def _killed(world: Shelf) -> Any:
    import psycopg

    number = world.database.driver.info.backend_pid
    with psycopg.connect(os.environ["AGENTEVAL_POSTGRESQL_URL"].replace("+psycopg", ""), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (number,))
    return {}


BREAKS = {
    "key_error": _key_error,
    "recursion": _recursion,
    "deep": _deep,
    "object": lambda world: {"value": object()},
    "nan": lambda world: {"value": math.nan},
    "infinity": lambda world: {"value": math.inf},
    "bytes": lambda world: {"value": b"\xff"},
    "number_key": lambda world: {1: "one"},
    "huge_number": lambda world: {"value": 10**5000},
    "closed": _closed,
    "committed": _committed,
    "killed": _killed,
}

TOOLS: tuple[Tool, ...] = (look, label, note, say, hang, broken, sneak, other_table, refuse, finish)
_numbers = itertools.count()


class Tasks(Suite):
    """Tasks that tests make as they need them."""

    made: ClassVar[dict[str, AgentTask]] = {}

    def task(self, task_id: str) -> AgentTask:
        return self.made[task_id]

    def draw(self, split: str, seed: int) -> AgentTask:
        return self.made["tiny/base"]


def make_task(name: str = "", **changes: Any) -> AgentTask:
    """A task to label item 1 ``done``, with some fields set otherwise."""
    data: dict[str, Any] = {
        "task_id": f"tiny/{name or f'made-{next(_numbers)}'}",
        "source": "curated",
        "initial_state": {"fixture": "tiny", "clock": "2026-03-01T09:30:00Z"},
        "user_request": "Label item 1 with the word done.",
        "available_tools": [item.name for item in TOOLS],
        "outcome": [
            {
                "check": "changes",
                "expect": [
                    {
                        "table": "items",
                        "kind": "update",
                        "key": {"id": {"exact": 1}},
                        "values": {"label": {"exact": "done"}},
                    }
                ],
            }
        ],
    }
    task = AgentTask.model_validate(data | changes)
    Tasks.made[task.task_id] = task
    return task


BASE = make_task("base")
DONE = {"tool": "label", "arguments": {"item_id": 1, "text": "done"}}
FINISH = {"tool": "finish", "arguments": {}}


class TinyEnv(AgentEnv):
    """The family's environment."""

    suite = Tasks("tiny", Path("/nonexistent"))
    tools = TOOLS
    status_keys = ("shelf",)

    def __init__(self, *, database: str = "sqlite://", **arguments: Any) -> None:
        super().__init__(**arguments)
        self.arguments |= {"database": database}

    def make_world(self) -> Shelf:
        return Shelf(self.arguments["database"])
