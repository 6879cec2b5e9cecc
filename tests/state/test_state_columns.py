"""Values are checked before a driver sees them, the same on both back ends."""

from __future__ import annotations

import decimal
from decimal import Decimal
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.state import Database, Exact, Fixture, Integer, Text, codecs

BAD = [
    ("text", "a\0b", "NUL"),
    ("text", "\ud800", "lone surrogate"),
    ("text", 1, "not text"),
    ("text", b"a", "not text"),
    ("whole", 2**63, "64 bits"),
    ("whole", -(2**63) - 1, "64 bits"),
    ("whole", True, "whole number"),
    ("whole", "1", "whole number"),
    ("whole", 1.0, "whole number"),
    ("whole", 10**5000, "64 bits"),
    ("flag", 1, "neither true nor false"),
    ("flag", "true", "neither true nor false"),
    ("real", float("nan"), "finite"),
    ("real", float("-inf"), "finite"),
    ("real", 2**53 + 1, "exactly a double"),
    ("real", "1", "not a number"),
    ("real", True, "not a number"),
    ("money", Decimal("0.00001"), "more than 4 decimal places"),
    ("money", Decimal("NaN"), "finite"),
    ("money", Decimal("1E+999999"), "64 bits"),
    ("money", Decimal("1E-999999"), "decimal places"),
    ("money", Decimal("922337203685477.5808"), "64 bits"),
    ("money", 0.1, "exact amount"),
    ("money", True, "exact amount"),
    ("blob", "a", "not bytes"),
    ("day", "2026-02-30", "not a day"),
    ("day", "20260301", "not a day"),
    ("day", "2026-03-01T00:00:00Z", "not a day"),
    ("moment", "2026-03-01 09:30:00Z", "UTC instant"),
    ("moment", "2026-03-01T09:30:00+01:00", "UTC instant"),
    ("moment", "2026-03-01T24:30:00Z", "UTC instant"),
]


@pytest.mark.parametrize(("column", "value", "reason"), BAD, ids=[f"{c}-{r}-{i}" for i, (c, _, r) in enumerate(BAD)])
def test_bad_values_are_refused_by_name(
    database: Database, shop: SimpleNamespace, column: str, value: object, reason: str
) -> None:
    before = database.digest()
    with pytest.raises(ValueError, match=rf"^item\.{column}: .*{reason}"):
        database.insert(shop.item, **{"id": 9, column: value})
    with pytest.raises(ValueError, match=rf"^item\.{column}: .*{reason}"):
        database.update(shop.item, {"id": 1}, **{column: value})
    statement = sa.select(shop.item.c.id).where(shop.item.c[column] == sa.bindparam("x"))
    with pytest.raises(ValueError, match=rf"^item\.{column}: .*{reason}"):
        database.one(statement, x=value)
    assert database.digest() == before == database.recompute()


GOOD = {
    "text": ["", "a", "é\U0001f600\u200d", "'; DROP TABLE item; --", "%s ? :x", "\x7f\x01\r\n", "x" * 5000],
    "whole": [0, 2**63 - 1, -(2**63)],
    "flag": [True, False],
    "real": [0.1, 1e300, -1e-300, 5e-324, 1.7976931348623157e308, 100.0, 1e15, 1e16, 123456789.125],
    "money": [Decimal("0.0001"), Decimal("-922337203685477.5808"), Decimal("25.00"), Decimal("1E2")],
    "blob": [b"", b"\0", bytes(range(256)), b"\\x41"],
    "day": ["2024-02-29", "0001-01-01", "9999-12-31"],
    "moment": ["2026-12-31T23:59:59Z"],
}


@pytest.mark.parametrize("column", GOOD)
def test_values_come_back_exactly(database: Database, shop: SimpleNamespace, column: str) -> None:
    """Through the store, the journal and the hash, null included."""
    read = sa.select(shop.item).where(shop.item.c.id == sa.bindparam("id"))
    for number, value in enumerate([*GOOD[column], None], start=100):
        database.insert(shop.item, **{"id": number, column: value})
        row = database.one(read, id=number)
        assert row is not None and row[column] == value and type(row[column]) is type(value)
        (change,) = database.take_changes()
        assert change.before is None and change.after is not None
        codec = shop.fixture.schema.named("item").codec(column)
        assert codec.from_json(change.after[column]) == value
    assert database.digest() == database.recompute()


def test_negative_zero_is_zero(database: Database, shop: SimpleNamespace) -> None:
    database.update(shop.item, {"id": 1}, real=0.0)
    database.take_changes()
    before = database.digest()
    database.update(shop.item, {"id": 1}, real=-0.0)
    assert database.take_changes() == []
    assert database.digest() == before == database.recompute()
    row = database.one(sa.select(shop.item.c.real).where(shop.item.c.id == 1))
    assert row is not None and repr(row["real"]) == "0.0"


def test_amounts_add_up_exactly(database: Database, shop: SimpleNamespace) -> None:
    """B065: 0.10 + 0.20 + 0.30 is 0.60, in the database too."""
    for number, amount in enumerate(("0.10", "0.20", "0.30"), start=10):
        database.insert(shop.part, left="sum", right=number, price=Decimal(amount))
    total = sa.select(sa.func.sum(shop.part.c.price).label("total")).where(shop.part.c.left == sa.bindparam("left"))
    assert database.one(total, left="sum") == {"total": Decimal("0.60")}
    over = sa.select(sa.func.count().label("n")).where(shop.part.c.price * 2 > sa.bindparam("limit"))
    assert database.one(over, limit=Decimal("3.99")) == {"n": 1}
    values = sa.select((shop.part.c.right * shop.part.c.price - shop.part.c.price).label("v")).where(
        shop.part.c.left == "a"
    )
    assert database.all(values.order_by(shop.part.c.right)) == [{"v": Decimal(0)}, {"v": Decimal(2)}]


def test_arithmetic_without_an_exact_result_is_refused(shop: SimpleNamespace) -> None:
    price, money = shop.part.c.price, shop.item.c.money
    for calculate in (
        lambda: price * price,
        lambda: price / 2,
        lambda: price + money,
        lambda: shop.item.c.whole + price,
    ):
        with pytest.raises(ValueError, match="no exact result"):
            calculate()


def test_numbers_as_text_are_refused_or_stored_as_numbers(database: Database, shop: SimpleNamespace) -> None:
    """B079: the year '2019' as text can't make a second kind of 2019, not even through raw SQL."""
    database.insert(shop.item, id=10, whole=2019)
    database.take_changes()
    expected = database.digest()
    database.restore()
    database.driver.execute("INSERT INTO item (id, whole) VALUES (10, '2019')")
    assert database.digest() == expected == database.recompute()


def test_text_is_ordered_by_code_point_and_like_minds_case(database: Database, shop: SimpleNamespace) -> None:
    for number, text in enumerate(["b", "B", "a", "é", "Z", "z"], start=50):
        database.insert(shop.part, left=text, right=number, price=1)
    ordered = sa.select(shop.part.c.left).where(shop.part.c.right >= 50).order_by(shop.part.c.left)
    assert [row["left"] for row in database.all(ordered)] == ["B", "Z", "a", "b", "z", "é"]
    like = sa.select(shop.part.c.left).where(shop.part.c.left.like("Z%"), shop.part.c.right >= 50)
    assert database.one(like) == {"left": "Z"}


def test_the_server_neither_orders_nor_numbers_rows_its_own_way(postgresql_url: str, shop: SimpleNamespace) -> None:
    """B102: no sequence that outlives a reset; and no order that depends on the server's locale."""
    database = Database(shop.fixture, postgresql_url)
    database.restore()
    described = database.driver.execute(
        "SELECT column_default, is_identity, data_type = 'text', collation_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name IN ('item', 'part', 'link')"
    ).fetchall()
    database.close()
    assert sorted(set(described), key=repr) == [(None, "NO", False, None), (None, "NO", True, "C")]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 18))
def test_counts_and_amounts_are_one_to_one(count: int, scale: int) -> None:
    codec = codecs.exact(scale)
    value = codecs.amount(count, scale)
    assert value * 10**scale == count or decimal.getcontext().prec < 40
    assert codec.to_driver(value) == count
    assert codec.from_json(codec.to_json(count)) == value  # type: ignore[misc]
    assert "E" not in codecs.amount_text(count, scale)


def test_a_callers_decimal_context_changes_nothing() -> None:
    with decimal.localcontext() as context:
        context.prec = 3
        codec = codecs.exact(4)
        assert codec.to_driver(Decimal("123456.7891")) == 1234567891
        assert codec.from_driver is not None and str(codec.from_driver(1234567891)) == "123456.7891"


def test_unportable_metadata_is_refused() -> None:
    def fixture(*columns: sa.Column[object], **options: object) -> Fixture:
        metadata = sa.MetaData()
        sa.Table("parent", metadata, sa.Column("id", Integer(), primary_key=True))
        sa.Table("t", metadata, *columns, **options)
        return Fixture("bad", metadata, dict)

    def key() -> sa.Column[int]:
        return sa.Column("id", Integer(), primary_key=True)

    cases = [
        (r"^t\.x: .*no type", [key(), sa.Column("x", sa.String())]),
        (r"'t' has no primary key", [sa.Column("x", Text())]),
        (r"^t\.x: .*server", [key(), sa.Column("x", Integer(), server_default="1")]),
        (r"^t\.x: .*defaults", [key(), sa.Column("x", Integer(), default=1)]),
        (r"^t\.x: .*cascade", [key(), sa.Column("x", Integer(), sa.ForeignKey("parent.id", ondelete="CASCADE"))]),
    ]
    for message, columns in cases:
        with pytest.raises(ValueError, match=message):
            fixture(*columns)
    with pytest.raises(ValueError, match="scale 19"):
        Exact(19)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"item": [{"id": 1, "text": "\0"}]}, r"item\.text: .*NUL"),
        ({"item": [{"text": "a"}]}, r"item\.id: .*takes no null"),
        ({"item": [{"id": 1, "txt": "a"}]}, r"no column 'txt'"),
        ({"item": [{"id": 1}, {"id": 1}]}, r"UNIQUE"),
        ({"link": [{"id": "x", "item": 5}]}, r"'link' refers to a missing row of 'item'"),
        ({"lnik": []}, r"unknown table 'lnik'"),
    ],
)
def test_bad_rows_are_refused_by_name(
    shop: SimpleNamespace, content: dict[str, list[dict[str, object]]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Fixture("bad", shop.metadata, lambda: content).digest  # noqa: B018
