"""The database channel, on both back ends: reads, exact changes, savepoints, reset, freezing, faults."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from agent_envs.contract import AgentEvalError, Change, EnvironmentFault, RowPatch
from agent_envs.state import Database, IntegrityViolation

PATCH = (
    RowPatch(table="item", insert={"id": 50, "money": {"$decimal": "130.00"}, "blob": {"$bytes": "AP8="}}),
    RowPatch(table="item", key={"id": 1}, set={"money": "12.5", "text": "patched"}),
    RowPatch(table="part", key={"left": "a", "right": 2}, delete=True),
)


def change(table: str, key: dict[str, Any], before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
    return Change(channel="database", table=table, key=key, before=before, after=after)


def slot(database: Database, shop: SimpleNamespace, name: str) -> Any:
    row = database.one(sa.select(shop.link.c.slot).where(shop.link.c.id == sa.bindparam("id")), id=name)
    return row and row["slot"]


def test_what_is_no_database_is_refused_before_anything_is_opened(shop: SimpleNamespace) -> None:
    for url in ("mysql://host/x", "sqlite:///file.db", "postgresql://host/x", "no url", "", None, 5):
        with pytest.raises(ValueError, match="is no database for an environment; use 'sqlite://'"):
            Database(shop.fixture, url)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as caught:
        Database(shop.fixture, "mysql://me:secret@host/x")
    assert "secret" not in str(caught.value)


# Reading


def test_reads_give_python_values(database: Database, shop: SimpleNamespace) -> None:
    by_id = sa.select(shop.item).where(shop.item.c.id == sa.bindparam("id"))
    assert database.one(by_id, id=2) == {
        "id": 2,
        "text": "item 2",
        "whole": 1,
        "flag": True,
        "real": 0.2,
        "money": Decimal("0.5"),
        "blob": b"\x02",
        "day": "2026-03-01",
        "moment": "2026-03-01T09:30:00Z",
    }
    assert database.one(by_id, id=99) is None


def test_joins_lists_limits_and_aggregates(database: Database, shop: SimpleNamespace) -> None:
    joined = (
        sa.select(shop.link.c.id, shop.item.c.id.label("item_id"), shop.item.c.flag)
        .join(shop.item, isouter=True)
        .order_by(shop.link.c.id)
    )
    assert database.all(joined) == [
        {"id": "x", "item_id": 1, "flag": False},
        {"id": "y", "item_id": None, "flag": None},
    ]
    some = (
        sa.select(shop.item.c.id)
        .where(shop.item.c.id.in_(sa.bindparam("ids", expanding=True)))
        .order_by(shop.item.c.id)
    )
    assert database.all(some, ids=[3, 1, 9]) == [{"id": 1}, {"id": 3}]
    assert database.all(some, ids=[]) == []
    with pytest.raises(ValueError, match="whole number"):
        database.all(some, ids=["1"])
    last = sa.select(shop.item.c.id).order_by(shop.item.c.id.desc()).limit(1)
    assert database.one(last) == {"id": 3}
    totals = sa.select(
        sa.func.count().label("n"),
        sa.func.sum(shop.item.c.money).label("money"),
        sa.func.max(shop.item.c.id).label("top"),
    ).where(shop.item.c.flag.is_(sa.false()), shop.item.c.id <= sa.bindparam("most"), shop.item.c.id >= 1)
    assert database.one(totals, most=3) == {"n": 2, "money": Decimal("1"), "top": 3}
    twice = sa.select(shop.item.c.id).where(shop.item.c.id == sa.bindparam("x"), shop.item.c.whole < sa.bindparam("x"))
    assert database.one(twice, x=2) == {"id": 2}


def test_statements_that_leave_something_open_are_refused(database: Database, shop: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match="ORDER BY"):
        database.all(sa.select(shop.item.c.id))
    with pytest.raises(ValueError, match="nulls_first"):
        database.all(sa.select(shop.item.c.id).order_by(shop.item.c.whole.desc()))
    assert len(database.all(sa.select(shop.item.c.id).order_by(shop.item.c.whole.desc().nulls_last()))) == 3
    with pytest.raises(ValueError, match="3 rows"):
        database.one(sa.select(shop.item.c.id))
    with pytest.raises(ValueError, match="names repeat"):
        database.one(sa.select(shop.item.c.id.label("a"), shop.item.c.whole.label("a")))
    by_id = sa.select(shop.item.c.id).where(shop.item.c.id == sa.bindparam("id"))
    with pytest.raises(ValueError, match="parameter 'id' is missing"):
        database.one(by_id)
    with pytest.raises(ValueError, match="no parameter 'other'"):
        database.one(by_id, id=1, other=2)


# Writing and changes


def test_changes_are_exact(database: Database, shop: SimpleNamespace) -> None:
    """B021: a deletion nobody asked for stands in the change set, whole."""
    database.update(shop.part, {"left": "a", "right": 1}, price=Decimal("2.50"))
    database.delete(shop.link, {"id": "x"})
    database.insert(shop.part, left="b", right=-1, price=Decimal("0.10"))
    expected = [
        change("link", {"id": "x"}, {"id": "x", "item": 1, "slot": 7}, None),
        change(
            "part",
            {"left": "a", "right": 1},
            {"left": "a", "right": 1, "price": {"$decimal": "1.5"}},
            {"left": "a", "right": 1, "price": {"$decimal": "2.5"}},
        ),
        change("part", {"left": "b", "right": -1}, None, {"left": "b", "right": -1, "price": {"$decimal": "0.1"}}),
    ]
    assert database.take_changes() == expected
    assert database.take_changes() == []
    assert database.changes() == expected


def test_a_write_repeated_is_seen(database: Database, shop: SimpleNamespace) -> None:
    """B022: two equal refunds are two rows, and two changes."""
    for number in (10, 11):
        database.insert(shop.part, left="refund", right=number, price=25)
        assert len(database.take_changes()) == 1
    assert [each.key["right"] for each in database.changes()] == [10, 11]


def test_what_is_undone_by_hand_is_no_change(database: Database, shop: SimpleNamespace) -> None:
    start = database.digest()
    database.insert(shop.link, id="z", slot=1)
    database.update(shop.link, {"id": "x"}, slot=8)
    assert len(database.take_changes()) == 2
    database.delete(shop.link, {"id": "z"})
    database.update(shop.link, {"id": "x"}, slot=7)
    assert database.changes() == []
    assert len(database.take_changes()) == 2  # back again, since they were last taken
    assert database.digest() == start == database.recompute()


def test_a_changed_key_is_a_row_gone_and_a_row_come(database: Database, shop: SimpleNamespace) -> None:
    database.update(shop.link, {"id": "x"}, id="w")
    assert database.changes() == [
        change("link", {"id": "w"}, None, {"id": "w", "item": 1, "slot": 7}),
        change("link", {"id": "x"}, {"id": "x", "item": 1, "slot": 7}, None),
    ]
    assert database.digest() == database.recompute()


def test_raw_sql_is_journaled(database: Database) -> None:
    run = database.driver.execute
    run("UPDATE item SET whole = whole + 1, text = NULL WHERE id > 1")
    run("DELETE FROM link")
    run('INSERT INTO part VALUES (\'a\', 1, 999) ON CONFLICT ("left", "right") DO UPDATE SET price = 999')
    assert [(each.table, *each.key.values()) for each in database.take_changes()] == [
        ("item", 2),
        ("item", 3),
        ("link", "x"),
        ("link", "y"),
        ("part", "a", 1),
    ]
    assert database.digest() == database.recompute()


def test_replaced_rows_are_journaled(shop: SimpleNamespace) -> None:
    """SQLite's INSERT OR REPLACE removes every row in the way, which fires no trigger unless asked to."""
    database = Database(shop.fixture)
    database.restore()
    database.driver.execute("INSERT OR REPLACE INTO link VALUES ('q', NULL, 7)")
    assert [(each.key["id"], each.after is None) for each in database.changes()] == [("q", False), ("x", True)]
    assert database.digest() == database.recompute()


def test_raw_sql_cannot_store_what_no_column_holds(database: Database) -> None:
    infinite = "9e999" if database.driver.__class__.__module__.startswith("sqlite3") else "'Infinity'"
    with pytest.raises(Exception, match=r"(?i)check"), database.savepoint():
        database.driver.execute(f"UPDATE item SET real = {infinite}")
    assert database.changes() == []


def test_text_that_is_no_unicode_breaks_nothing(shop: SimpleNamespace) -> None:
    """An agent with SQL can put such bytes into SQLite; the run must stay measurable."""
    database = Database(shop.fixture)
    database.restore()
    database.driver.execute("UPDATE item SET text = CAST(x'ff41' AS TEXT) WHERE id = 1")
    (seen,) = database.changes()
    assert seen.after is not None and seen.after["text"] == "\udcffA"
    assert database.digest() == database.recompute()


def test_truncate_is_refused(postgresql_url: str, shop: SimpleNamespace) -> None:
    database = Database(shop.fixture, postgresql_url)
    database.restore()
    with pytest.raises(psycopg.Error, match="use DELETE"):
        database.driver.execute("TRUNCATE part")
    database.close()


def test_constraints_refuse_without_effect(database: Database, shop: SimpleNamespace) -> None:
    database.update(shop.link, {"id": "y"}, slot=1)
    point = database.digest()
    refused = [
        (lambda: database.insert(shop.item, id=1), "insert into 'item' refused"),
        (lambda: database.update(shop.link, {"id": "y"}, slot=7), "unique value"),
        (lambda: database.insert(shop.link, id="n", item=77), "referred to"),
        (lambda: database.delete(shop.item, {"id": 1}), "referred to"),
    ]
    for write, message in refused:
        with pytest.raises(IntegrityViolation, match=message):
            write()
    assert database.digest() == point == database.recompute()
    assert slot(database, shop, "y") == 1


def test_writes_name_what_is_wrong(database: Database, shop: SimpleNamespace) -> None:
    with pytest.raises(LookupError, match="no row of 'item'"):
        database.update(shop.item, {"id": 99}, text="a")
    with pytest.raises(LookupError, match="no row of 'part'"):
        database.delete(shop.part, {"left": "a", "right": 9})
    with pytest.raises(ValueError, match=r"key of 'part'.*left, right"):
        database.delete(shop.part, {"left": "a"})
    with pytest.raises(ValueError, match="no column 'nope'"):
        database.update(shop.item, {"id": 1}, nope=1)
    with pytest.raises(ValueError, match=r"part\.price: .*no null"):
        database.update(shop.part, {"left": "a", "right": 1}, price=None)
    with pytest.raises(ValueError, match=r"part\.price: .*no null"):
        database.insert(shop.part, left="q", right=1)
    with pytest.raises(ValueError, match="without values"):
        database.update(shop.item, {"id": 1})
    with pytest.raises(ValueError, match="not one of fixture"):
        database.insert(sa.Table("item", sa.MetaData()), id=1)
    assert database.changes() == []


# Savepoints


def test_a_part_that_raises_is_undone(database: Database, shop: SimpleNamespace) -> None:
    with database.savepoint():
        database.update(shop.link, {"id": "x"}, slot=1)
    with pytest.raises(KeyError), database.savepoint():
        database.update(shop.link, {"id": "x"}, slot=2)
        with database.savepoint():
            database.delete(shop.part, {"left": "a", "right": 1})
        raise KeyError
    assert slot(database, shop, "x") == 1
    assert [each.table for each in database.take_changes()] == ["link"]
    assert database.digest() == database.recompute()


def test_a_caught_refusal_leaves_the_part_usable(database: Database, shop: SimpleNamespace) -> None:
    with database.savepoint():
        with contextlib.suppress(IntegrityViolation):
            database.insert(shop.item, id=1)
        database.insert(shop.item, id=60)
    assert [each.key for each in database.changes()] == [{"id": 60}]


def test_changes_taken_and_then_undone_are_reported_back(database: Database, shop: SimpleNamespace) -> None:
    database.update(shop.link, {"id": "x"}, slot=1)
    with pytest.raises(KeyError), database.savepoint():
        database.update(shop.link, {"id": "x"}, slot=2)
        database.insert(shop.link, id="z")
        assert [each.after for each in database.take_changes()] == [
            {"id": "x", "item": 1, "slot": 2},
            {"id": "z", "item": None, "slot": None},
        ]
        raise KeyError
    assert database.take_changes() == [
        change("link", {"id": "x"}, {"id": "x", "item": 1, "slot": 2}, {"id": "x", "item": 1, "slot": 1}),
        change("link", {"id": "z"}, {"id": "z", "item": None, "slot": None}, None),
    ]
    assert [each.after for each in database.changes()] == [{"id": "x", "item": 1, "slot": 1}]
    assert database.digest() == database.recompute()


def test_restoring_within_a_part_ends_it(database: Database, shop: SimpleNamespace) -> None:
    start = database.digest()
    with database.savepoint():
        database.insert(shop.item, id=70)
        database.restore()
    assert database.digest() == start
    with database.savepoint():
        database.insert(shop.item, id=70)
    assert len(database.changes()) == 1


# Reset


def test_reset_undoes_everything(database: Database, shop: SimpleNamespace) -> None:
    """B100, B102: after a dirty episode every row, and the next free id, is as in a fresh database."""
    top = sa.select((sa.func.max(shop.item.c.id) + 1).label("next"))
    start = database.digest()
    for _ in range(40):
        for number in range(4, 7):
            database.insert(shop.item, id=number)
        database.driver.execute("DELETE FROM part")
        assert database.digest() != start
        database.restore()
        assert database.digest() == start == shop.fixture.digest
        assert database.changes() == database.take_changes() == []
        assert database.one(top) == {"next": 4}
    assert database.recompute() == start


def test_patches(database: Database, shop: SimpleNamespace) -> None:
    plain = database.digest()
    database.restore(PATCH)
    patched = database.digest()
    assert patched == database.recompute() != plain
    assert database.changes() == database.take_changes() == []
    money = sa.select(shop.item.c.id, shop.item.c.money).where(shop.item.c.id.in_([1, 50])).order_by(shop.item.c.id)
    assert database.all(money) == [{"id": 1, "money": Decimal("12.5")}, {"id": 50, "money": Decimal("130")}]
    for number in range(40):
        database.delete(shop.item, {"id": 50})
        assert len(database.changes()) == 1
        database.restore(list(PATCH) if number % 3 == 0 else PATCH)
        assert database.digest() == patched
        if number % 5 == 0:
            assert database.recompute() == patched
            database.restore(PATCH[:1])
            assert database.digest() == database.recompute() not in (plain, patched)
            database.restore(PATCH)
            assert database.digest() == patched == database.recompute()
    database.restore()
    assert database.digest() == plain == database.recompute()


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (RowPatch(table="itme", insert={"id": 1}), "no table 'itme'"),
        (RowPatch(table="item", key={"id": 99}, set={"text": "a"}), "no row of 'item'"),
        (RowPatch(table="item", key={"id": 99}, delete=True), "no row of 'item'"),
        (RowPatch(table="item", key={"id": 1}, set={}), "sets nothing"),
        (RowPatch(table="item", key={"id": 1}, set={"money": 0.1}), r"item\.money: 0\.1 .*quotes"),
        (RowPatch(table="item", key={"id": 1}, set={"money": "1e9"}), r"item\.money"),
        (RowPatch(table="item", key={"id": 1}, set={"blob": "AP8="}), r"item\.blob"),
        (RowPatch(table="item", insert={"id": 1}), "refused"),
    ],
)
def test_bad_patches_are_refused(database: Database, patch: RowPatch, message: str) -> None:
    start = database.digest()
    with pytest.raises((ValueError, AgentEvalError), match=message):
        database.restore([patch])
    database.restore()
    assert database.digest() == start == database.recompute()


def test_two_live_databases_share_nothing(url: str, shop: SimpleNamespace) -> None:
    """B103: what one does is neither in the other nor in one made later."""
    one, two = Database(shop.fixture, url), Database(shop.fixture, url)
    one.restore()
    two.restore(PATCH)
    before = two.digest()
    one.driver.execute("DELETE FROM link")
    one.insert(shop.item, id=77)
    assert two.digest() == before == two.recompute()
    later = Database(shop.fixture, url)
    later.restore()
    assert later.digest() == shop.fixture.digest == later.recompute()
    one.close()
    assert two.recompute() == before
    two.close()
    later.close()


def test_both_back_ends_have_one_digest(postgresql_url: str, shop: SimpleNamespace) -> None:
    databases = [Database(shop.fixture), Database(shop.fixture, postgresql_url)]
    frozen = []
    for database in databases:
        database.restore(PATCH)
        database.update(shop.item, {"id": 2}, real=1e300, text="é", flag=None, blob=b"\0\xff")
        frozen.append(database.freeze())
    assert frozen[0] == frozen[1]
    for database, other in zip(databases, frozen[::-1], strict=True):
        database.restore(PATCH)
        database.thaw(other)
        assert database.digest() == database.recompute() == other["end"]
        database.close()


def test_nothing_is_left_on_the_server(postgresql_url: str, shop: SimpleNamespace) -> None:
    database = Database(shop.fixture, postgresql_url)
    database.restore()
    database.insert(shop.item, id=9)
    database.close()
    address = sa.make_url(postgresql_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'agenteval%'").fetchone()
    assert found == (0,)


# Freezing


def test_freeze_and_thaw(database: Database, shop: SimpleNamespace) -> None:
    database.restore(PATCH)
    # The unique slot moves on and the referred row goes and comes: no order of single edits would be free of conflict.
    database.insert(shop.item, id=80, real=0.1)
    database.update(shop.link, {"id": "x"}, slot=None, item=80)
    database.update(shop.link, {"id": "y"}, slot=7, item=50)
    database.update(shop.link, {"id": "x"}, slot=3)
    database.delete(shop.item, {"id": 3})
    frozen, digest, changes = database.freeze(), database.digest(), database.changes()
    database.update(shop.link, {"id": "y"}, slot=9)
    database.delete(shop.link, {"id": "x"})
    database.thaw(frozen)
    assert database.digest() == digest == database.recompute()
    assert database.changes() == changes
    assert database.take_changes() == []
    assert database.freeze() == frozen
    with pytest.raises(IntegrityViolation):  # references are checked at once again
        database.insert(shop.link, id="n", item=77)


def test_a_frozen_point_of_another_start_is_refused(database: Database, shop: SimpleNamespace) -> None:
    database.insert(shop.item, id=9)
    frozen = database.freeze()
    database.restore(PATCH)
    with pytest.raises(ValueError, match="restore the same fixture and patch"):
        database.thaw(frozen)
    database.restore()
    with pytest.raises(ValueError, match="damaged"):
        database.thaw({**frozen, "changes": []})
    with pytest.raises(ValueError, match="no frozen point"):
        database.thaw({"start": frozen["start"]})
    database.restore()
    database.thaw(frozen)
    assert database.digest() == frozen["end"]


# Faults


def test_nothing_is_open_before_restore_and_after_close(url: str, shop: SimpleNamespace) -> None:
    database = Database(shop.fixture, url)
    database.close()
    for use in (database.probe, database.digest, database.take_changes, database.freeze, lambda: database.thaw({})):
        with pytest.raises(EnvironmentFault, match="restore"):
            use()
    database.restore()
    database.probe()
    database.close()
    database.close()
    with pytest.raises(EnvironmentFault, match="restore"):
        database.insert(shop.item, id=9)
    database.restore()
    assert database.digest() == shop.fixture.digest
    database.close()


def test_a_commit_within_the_episode_is_found_out(shop: SimpleNamespace) -> None:
    """What was committed can't be rolled back: reset must say so instead of starting from a dirty state."""
    database = Database(shop.fixture)
    database.restore()
    database.driver.execute("DELETE FROM part")
    database.driver.execute("COMMIT")
    with pytest.raises(EnvironmentFault, match="ended from outside"):
        database.probe()
    database.driver.execute("BEGIN")
    with pytest.raises(EnvironmentFault, match="something committed"):
        database.restore()
    database.restore()
    assert database.digest() == shop.fixture.digest == database.recompute()


def test_a_patch_on_a_dirty_fixture_is_found_out(shop: SimpleNamespace) -> None:
    """Even with the journal wiped: the patch's rows were others the first time."""
    database = Database(shop.fixture)
    database.restore(PATCH)
    database.restore()
    for sql in ("UPDATE item SET text = 'old'", "DELETE FROM agenteval_journal", "COMMIT", "BEGIN"):
        database.driver.execute(sql)
    with pytest.raises(EnvironmentFault, match="another effect"):
        database.restore(PATCH)
    database.restore(PATCH)
    assert database.digest() == database.recompute()


def test_a_dead_server_connection_is_a_fault(postgresql_url: str, shop: SimpleNamespace) -> None:
    database = Database(shop.fixture, postgresql_url)
    database.restore()
    database.probe()
    address = sa.make_url(postgresql_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as killer:
        killer.execute("SELECT pg_terminate_backend(%s)", (database.driver.info.backend_pid,))
    uses = (
        database.probe,
        lambda: database.insert(shop.item, id=9),
        lambda: slot(database, shop, "x"),
        database.changes,
        database.restore,
    )
    for use in uses:
        with pytest.raises(EnvironmentFault, match="PostgreSQL failed"):
            use()
    database.restore()
    assert database.digest() == shop.fixture.digest
    database.close()


def test_an_unreachable_server_is_a_fault(shop: SimpleNamespace) -> None:
    database = Database(shop.fixture, "postgresql+psycopg://nobody@127.0.0.1:1/none")
    with pytest.raises(EnvironmentFault, match="can't be reached"):
        database.restore()


@pytest.mark.parametrize("address", ["sqlite:///file.db", "mysql://x", "postgresql://x/y"])
def test_other_databases_are_refused(shop: SimpleNamespace, address: str) -> None:
    with pytest.raises(ValueError, match="no database for an environment"):
        Database(shop.fixture, address)
