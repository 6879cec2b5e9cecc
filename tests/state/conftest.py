"""A small database with every column type, on both back ends."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from agent_envs.state import Blob, Boolean, Database, Day, Exact, Fixture, Instant, Integer, Real, Text


def make_shop(name: str = "shop", items: int = 3, reverse: bool = False) -> SimpleNamespace:
    """Tables `item` (one column of each type), `part` (two-column key) and `link` (unique value, reference)."""
    metadata = sa.MetaData()
    item = sa.Table(
        "item",
        metadata,
        sa.Column("id", Integer(), primary_key=True),
        sa.Column("text", Text()),
        sa.Column("whole", Integer()),
        sa.Column("flag", Boolean()),
        sa.Column("real", Real()),
        sa.Column("money", Exact(4)),
        sa.Column("blob", Blob()),
        sa.Column("day", Day()),
        sa.Column("moment", Instant()),
    )
    part = sa.Table(
        "part",
        metadata,
        sa.Column("left", Text(), primary_key=True),
        sa.Column("right", Integer(), primary_key=True),
        sa.Column("price", Exact(2), nullable=False),
    )
    link = sa.Table(
        "link",
        metadata,
        sa.Column("id", Text(), primary_key=True),
        sa.Column("item", Integer(), sa.ForeignKey("item.id")),
        sa.Column("slot", Integer(), unique=True),
    )
    sa.Index("links_by_item", link.c.item)
    content = {
        "item": [
            {
                "id": number,
                "text": f"item {number}",
                "whole": number - 1,
                "flag": number % 2 == 0,
                "real": number / 10,
                "money": Decimal(number) / 4,
                "blob": bytes([number % 256]),
                "day": "2026-03-01",
                "moment": "2026-03-01T09:30:00Z",
            }
            for number in range(1, items + 1)
        ],
        "part": [{"left": "a", "right": 1, "price": Decimal("1.50")}, {"left": "a", "right": 2, "price": 2}],
        "link": [{"id": "x", "item": 1, "slot": 7}, {"id": "y", "item": None, "slot": None}],
    }
    if reverse:
        content = {table: rows[::-1] for table, rows in reversed(content.items())}
    return SimpleNamespace(
        metadata=metadata,
        item=item,
        part=part,
        link=link,
        content=content,
        fixture=Fixture(name, metadata, lambda: content),
    )


@pytest.fixture(scope="session")
def shop() -> SimpleNamespace:
    return make_shop()


@pytest.fixture(scope="session")
def shop_of() -> object:
    return make_shop


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    return "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


@pytest.fixture
def database(shop: SimpleNamespace, url: str) -> Iterator[Database]:
    database = Database(shop.fixture, url)
    database.restore()
    yield database
    database.close()
