"""Arbitrary histories of writes against a plain model: digest, stored rows and change set never drift apart.

The model is a dictionary of rows, with a digest computed by a second implementation of the documented encoding.
"""

from __future__ import annotations

import copy
import hashlib
import struct
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from agent_envs.contract import RowPatch, typed
from agent_envs.state import Database, IntegrityViolation

KEYS = {"item": ("id",), "part": ("left", "right"), "link": ("id",)}
COLUMNS = {
    "item": ("id", "text", "whole", "flag", "real", "money", "blob", "day", "moment"),
    "part": ("left", "right", "price"),
    "link": ("id", "item", "slot"),
}
PATCHES: tuple[tuple[RowPatch, ...], ...] = (
    (),
    (
        RowPatch(table="part", insert={"left": "p", "right": 5, "price": "9.90"}),
        RowPatch(table="item", key={"id": 2}, set={"text": "patched", "real": -1.5}),
    ),
)

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
wholes = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
reals = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 1e300, -0.0, 1e15, 1e16, 100.0])
amounts = st.integers(-(2**63), 2**63 - 1).map(lambda count: Decimal(count).scaleb(-4)) | st.sampled_from(
    [Decimal("130.00"), Decimal("130.0"), Decimal(130), 130]
)
ITEM = {
    "text": st.none() | words,
    "whole": st.none() | wholes,
    "flag": st.none() | st.booleans(),
    "real": st.none() | reals,
    "money": st.none() | amounts,
    "blob": st.none() | st.binary(max_size=4),
    "day": st.none() | st.dates().map(lambda day: day.isoformat()),
    "moment": st.none() | st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z"),
}
item_ids = st.integers(1, 6)
part_keys = st.tuples(st.sampled_from(["a", "b", "", "é"]), st.integers(1, 3))
link_ids = st.sampled_from("xyzw")
slots = st.none() | st.integers(6, 9)
prices = st.integers(0, 999).map(lambda count: Decimal(count).scaleb(-2))

writes = st.one_of(
    st.tuples(st.just("insert"), st.just("item"), item_ids.map(lambda i: (i,)), st.fixed_dictionaries(ITEM)),
    st.tuples(st.just("insert"), st.just("part"), part_keys, st.fixed_dictionaries({"price": prices})),
    st.tuples(
        st.just("insert"),
        st.just("link"),
        link_ids.map(lambda i: (i,)),
        st.fixed_dictionaries({"item": st.none() | item_ids, "slot": slots}),
    ),
    st.tuples(
        st.just("update"),
        st.just("item"),
        item_ids.map(lambda i: (i,)),
        st.fixed_dictionaries({}, optional={**ITEM, "id": item_ids}).filter(bool),
    ),
    st.tuples(
        st.just("update"),
        st.just("part"),
        part_keys,
        st.fixed_dictionaries({}, optional={"price": prices, "right": st.integers(1, 3)}).filter(bool),
    ),
    st.tuples(
        st.just("update"),
        st.just("link"),
        link_ids.map(lambda i: (i,)),
        st.fixed_dictionaries({}, optional={"id": link_ids, "item": st.none() | item_ids, "slot": slots}).filter(bool),
    ),
    st.tuples(st.just("delete"), st.just("item"), item_ids.map(lambda i: (i,)), st.none()),
    st.tuples(st.just("delete"), st.just("part"), part_keys, st.none()),
    st.tuples(st.just("delete"), st.just("link"), link_ids.map(lambda i: (i,)), st.none()),
)

Rows = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


def model_digest(rows: Rows, schema: bytes) -> str:
    """The database digest, from the description in agent_envs.state.rows alone."""

    def piece(tag: str, payload: bytes) -> bytes:
        return tag.encode() + struct.pack(">I", len(payload)) + payload

    def value(column: str, given: Any) -> bytes:
        if given is None:
            return piece("n", b"")
        if column in ("money", "price"):
            digits = format(Decimal(given), "f")
            return piece(
                "d",
                (digits.rstrip("0").rstrip(".") if "." in digits else digits).encode(),
            )
        if isinstance(given, bool):
            return piece("b", b"1" if given else b"0")
        if isinstance(given, int):
            return piece("i", str(given).encode())
        if isinstance(given, float):
            return piece("f", struct.pack(">d", given or 0.0))
        return piece("y", given) if isinstance(given, bytes) else piece("t", given.encode())

    tables = b""
    for table in sorted(rows):
        total = 0
        for row in rows[table].values():
            encoded = piece("T", table.encode()) + b"".join(piece("K", name.encode()) for name in KEYS[table])
            for column in COLUMNS[table]:
                encoded += piece("C", column.encode()) + value(column, row[column])
            total += int.from_bytes(hashlib.shake_256(encoded).digest(256), "big")
        tables += hashlib.sha256(
            b"agenteval table 1\0"
            + piece("T", table.encode())
            + len(rows[table]).to_bytes(8, "big")
            + (total % 2**2048).to_bytes(256, "big")
        ).digest()
    return hashlib.sha256(b"agenteval database 1\0" + schema + tables).hexdigest()


def shown(column: str, value: Any) -> Any:
    if value is not None and column in ("money", "price"):
        return typed(Decimal(value))
    return value + 0.0 if isinstance(value, float) else typed(value)


def difference(before: Rows, after: Rows) -> list[tuple[str, dict[str, Any], Any, Any]]:
    """Table, key, row before and row after of every row that differs."""
    found = []
    for table in before:
        for key in before[table].keys() | after[table].keys():
            old, new = (
                None
                if key not in rows[table]
                else {name: shown(name, value) for name, value in rows[table][key].items()}
                for rows in (before, after)
            )
            if old != new:
                found.append((table, dict(zip(KEYS[table], key, strict=True)), old, new))
    return sorted(found, key=repr)


class Histories(RuleBasedStateMachine):
    """Rules are what tools, raw SQL and the runtime can do to a database."""

    url = "sqlite://"
    shop: SimpleNamespace

    def __init__(self) -> None:
        super().__init__()
        self.database = Database(self.shop.fixture, self.url)
        self.patch: int = 0
        self.frozen: list[tuple[int, Any, Rows]] = []
        self.start_at(0)

    def start_at(self, patch: int) -> None:
        self.database.restore(PATCHES[patch])
        self.patch = patch
        self.rows: Rows = {
            table: {
                tuple(row[name] for name in KEYS[table]): {name: row.get(name) for name in COLUMNS[table]}
                for row in self.shop.content[table]
            }
            for table in KEYS
        }
        if patch:
            self.rows["part"][("p", 5)] = {"left": "p", "right": 5, "price": Decimal("9.9")}
            self.rows["item"][(2,)].update(text="patched", real=-1.5)
        self.begin = copy.deepcopy(self.rows)
        self.taken = copy.deepcopy(self.rows)

    def allowed(self, table: str, key: tuple[Any, ...], row: dict[str, Any], old: tuple[Any, ...] | None) -> bool:
        if key != old and key in self.rows[table]:
            return False
        if table == "link":
            others = [other["slot"] for name, other in self.rows["link"].items() if name != old]
            return (row["slot"] is None or row["slot"] not in others) and (
                row["item"] is None or (row["item"],) in self.rows["item"]
            )
        return True

    def used(self, table: str, key: tuple[Any, ...]) -> bool:
        return table == "item" and any(link["item"] == key[0] for link in self.rows["link"].values())

    def do(self, write: tuple[str, str, tuple[Any, ...], dict[str, Any]]) -> None:
        kind, table, key, values = write
        target = getattr(self.shop, table)
        names = dict(zip(KEYS[table], key, strict=True))
        rows = self.rows[table]
        if kind == "insert":
            row = {**names, **values}
            if self.allowed(table, key, row, None):
                self.database.insert(target, **row)
                rows[key] = row
            else:
                with pytest.raises(IntegrityViolation):
                    self.database.insert(target, **row)
        elif key not in rows:
            with pytest.raises(LookupError):
                self.database.update(target, names, **values) if kind == "update" else self.database.delete(
                    target, names
                )
        elif kind == "update":
            row = {**rows[key], **values}
            new = tuple(row[name] for name in KEYS[table])
            if self.allowed(table, new, row, key) and (new == key or not self.used(table, key)):
                self.database.update(target, names, **values)
                del rows[key]
                rows[new] = row
            else:
                with pytest.raises(IntegrityViolation):
                    self.database.update(target, names, **values)
        elif self.used(table, key):
            with pytest.raises(IntegrityViolation):
                self.database.delete(target, names)
        else:
            self.database.delete(target, names)
            del rows[key]

    @rule(write=writes)
    def write(self, write: Any) -> None:
        self.do(write)

    @rule(batch=st.lists(writes, max_size=6))
    def tool_call(self, batch: list[Any]) -> None:
        with self.database.savepoint():
            for write in batch:
                self.do(write)

    @rule(
        before=st.lists(writes, max_size=3),
        batch=st.lists(writes, max_size=5),
        look=st.sampled_from(["", "digest", "take"]),
    )
    def failed_call(self, before: list[Any], batch: list[Any], look: str) -> None:
        for write in before:
            self.do(write)
        rows = copy.deepcopy(self.rows)
        with pytest.raises(ZeroDivisionError), self.database.savepoint():
            for write in batch[:2]:
                self.do(write)
            if look == "digest":
                assert self.database.digest() == self.database.recompute()
            if look == "take":
                self.take()
            with self.database.savepoint():
                for write in batch[2:]:
                    self.do(write)
            raise ZeroDivisionError
        self.rows = rows

    @rule(number=st.integers(-5, 5))
    def raw_update(self, number: int) -> None:
        self.database.driver.execute(f"UPDATE item SET whole = {number}, flag = NULL WHERE text IS NOT NULL")
        for row in self.rows["item"].values():
            if row["text"] is not None:
                row.update(whole=number, flag=None)

    @rule()
    def raw_delete(self) -> None:
        self.database.driver.execute("DELETE FROM link")
        self.rows["link"].clear()

    @rule(key=part_keys.filter(lambda key: key[0].isascii()), cents=st.integers(0, 99))
    def raw_upsert(self, key: tuple[str, int], cents: int) -> None:
        self.database.driver.execute(
            f"INSERT INTO part VALUES ('{key[0]}', {key[1]}, {cents}) "
            f'ON CONFLICT ("left", "right") DO UPDATE SET price = excluded.price'
        )
        self.rows["part"][key] = {"left": key[0], "right": key[1], "price": Decimal(cents).scaleb(-2)}

    @rule()
    def take(self) -> None:
        taken = [(each.table, each.key, each.before, each.after) for each in self.database.take_changes()]
        assert sorted(taken, key=repr) == difference(self.taken, self.rows)
        self.taken = copy.deepcopy(self.rows)

    @rule(patch=st.integers(0, 1))
    def restore(self, patch: int) -> None:
        self.start_at(patch)

    @rule()
    def freeze(self) -> None:
        self.frozen.append((self.patch, self.database.freeze(), copy.deepcopy(self.rows)))

    @precondition(lambda self: any(patch == self.patch for patch, _, _ in self.frozen))
    @rule(data=st.data())
    def thaw(self, data: st.DataObject) -> None:
        points = [(frozen, rows) for patch, frozen, rows in self.frozen if patch == self.patch]
        frozen, rows = data.draw(st.sampled_from(points))
        self.database.thaw(frozen)
        self.rows = copy.deepcopy(rows)
        self.taken = copy.deepcopy(rows)

    @invariant()
    def books_store_and_model_agree(self) -> None:
        expected = model_digest(self.rows, self.shop.fixture.schema.digest)
        assert self.database.digest() == expected
        assert self.database.recompute() == expected
        changes = [(each.table, each.key, each.before, each.after) for each in self.database.changes()]
        assert sorted(changes, key=repr) == difference(self.begin, self.rows)

    def teardown(self) -> None:
        self.database.close()


@pytest.mark.timeout(300)
def test_histories(url: str, shop: SimpleNamespace) -> None:
    """B021, B064, B100, B102: no history of writes escapes the digest, the change set or the reset."""
    machine = type("Histories", (Histories,), {"url": url, "shop": shop})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100 if url.startswith("sqlite") else 15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
