"""The retailer's books add up, and stay the same for ever."""

import datetime as dt
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from agent_envs.envs.refund.fixture import DIGEST, END, NAME, fixture, mail_name, price
from agent_envs.envs.refund.rules import CLAIMS, instant, return_window_days, round_half_up
from agent_envs.envs.refund.schema import metadata
from agent_envs.envs.refund.words import PRODUCTS

Tables = Mapping[str, list[dict[str, Any]]]
SCALES = (1, 3)


@pytest.fixture(scope="module", params=SCALES)
def tables(request: pytest.FixtureRequest) -> Tables:
    """The stored rows, with money as decimals again."""
    money = {
        (table.name, column.name)
        for table in metadata.tables.values()
        for column in table.columns
        if column.type.python_type is Decimal or type(column.type).__name__ == "Exact"
    }
    found = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(fixture(request.param).content.image)
        connection.row_factory = sqlite3.Row
        for name in metadata.tables:
            rows = [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
            for row in rows:
                row |= {key: Decimal(value).scaleb(-4) for key, value in row.items() if (name, key) in money}
            found[name] = rows
    return found


def by(rows: list[dict[str, Any]], column: str) -> dict[Any, list[dict[str, Any]]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def test_content_is_pinned() -> None:
    """Every task starts from this: a change must be meant, and change the pin."""
    assert fixture().name == NAME == "retail"
    assert fixture().digest == DIGEST


def test_is_built_once() -> None:
    assert fixture() is fixture(1)
    assert fixture(3).name == "retail-x3"
    assert fixture(3).digest != fixture().digest


def test_scale_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="scale 0 is below 1"):
        fixture(0)


def test_size(tables: Tables) -> None:
    scale = len(tables["customers"]) // 250
    assert scale in SCALES
    assert len(tables["customers"]) == 250 * scale
    assert len(tables["orders"]) == 700 * scale
    for name, least in {"returns": 50, "refunds": 30, "store_credits": 15, "tickets": 100, "ledger": 150}.items():
        assert len(tables[name]) >= least * scale, name
    assert 500_000 * scale < len(fixture(scale).content.image) < 1_200_000 * scale


def test_larger_scale_holds_the_smaller_one() -> None:
    small, large = fixture(1), fixture(3)
    stored = {layout.name: set(rows) for layout, rows in large.stored_rows()}
    for layout, rows in small.stored_rows():
        assert set(rows) <= stored[layout.name], layout.name


def test_ids_leave_room_for_tasks(tables: Tables) -> None:
    keys = {"customers": "customer_id", "orders": "order_id", "payments": "payment_id", "tickets": "ticket_id"}
    for table, column in keys.items():
        reserved = [row[column] for row in tables[table] if len(row[column]) == 5 and row[column][1] in "789"]
        assert not reserved, table
    for table, column in {"returns": "return_id", "refunds": "refund_id", "ledger": "entry_id"}.items():
        assert max(row[column] for row in tables[table]) < 900_001


def test_namesakes(tables: Tables) -> None:
    sizes = Counter(Counter(row["name_key"] for row in tables["customers"]).values())
    assert sum(count for size, count in sizes.items() if size >= 2) >= 12
    assert any(size >= 3 for size in sizes)
    assert len({row["email"] for row in tables["customers"]}) == len(tables["customers"])


def test_references_resolve(tables: Tables) -> None:
    customers, orders = by(tables["customers"], "customer_id"), by(tables["orders"], "order_id")
    payments, tickets = by(tables["payments"], "payment_id"), by(tables["tickets"], "ticket_id")
    assert all(row["customer_id"] in customers for row in tables["orders"])
    for name in ("order_lines", "payments", "shipments", "returns", "refunds", "store_credits", "authorisations"):
        assert all(row["order_id"] in orders for row in tables[name]), name
    assert all(payments[row["payment_id"]][0]["order_id"] == row["order_id"] for row in tables["refunds"])
    assert all(row["ticket_id"] in tickets for name in ("identity_checks", "ticket_notes") for row in tables[name])
    granted = {row["authorisation_id"] for row in tables["authorisations"] if row["decision"] == "approved"}
    used = {row["authorisation_id"] for name in ("refunds", "store_credits") for row in tables[name]} - {None}
    assert used and used <= granted


def test_totals(tables: Tables) -> None:
    lines = by(tables["order_lines"], "order_id")
    for order in tables["orders"]:
        goods = sum(line["quantity"] * line["unit_price"] for line in lines[order["order_id"]])
        assert order["total"] == goods + order["shipping_fee"]
        assert [line["line_no"] for line in lines[order["order_id"]]] == list(
            range(1, len(lines[order["order_id"]]) + 1)
        )


def test_payments_cover_totals(tables: Tables) -> None:
    """At most one payment of an order is foreign; it is the rest at its rate, rounded half up."""
    kinds: Counter[str] = Counter()
    orders = {row["order_id"]: row for row in tables["orders"]}
    for order_id, payments in by(tables["payments"], "order_id").items():
        order = orders[order_id]
        foreign = [payment for payment in payments if payment["currency"] != order["currency"]]
        own = sum((payment["amount"] for payment in payments if payment not in foreign), Decimal(0))
        assert all(payment["rate"] == 1 for payment in payments if payment not in foreign)
        rest = order["total"] - own
        if foreign:
            assert len(foreign) == 1
            exact = Fraction(rest) * Fraction(foreign[0]["rate"])
            assert foreign[0]["amount"] == round_half_up(exact, foreign[0]["currency"])
        else:
            assert rest == 0
        kinds["foreign"] += bool(foreign)
        kinds["split"] += len(payments) > 1
    assert kinds["foreign"] >= 30
    assert kinds["split"] >= 30
    assert {payment["currency"] for payment in tables["payments"]} == {"USD", "EUR", "GBP", "JPY"}


def test_amounts_are_whole_units(tables: Tables) -> None:
    for name, columns in {
        "payments": ("amount", "refunded"),
        "refunds": ("amount",),
        "store_credits": ("amount",),
        "orders": ("total", "shipping_fee"),
        "ledger": ("debit", "credit"),
    }.items():
        for row in tables[name]:
            assert all(row[column] == round_half_up(row[column], row["currency"]) for column in columns)


def test_refunds_stay_within_payments(tables: Tables) -> None:
    refunds = by(tables["refunds"], "payment_id")
    for payment in tables["payments"]:
        back = sum((refund["amount"] for refund in refunds[payment["payment_id"]]), Decimal(0))
        assert payment["refunded"] == back <= payment["amount"]
        assert not (back and payment["status"] == "voided")
    returned: dict[tuple[str, int], int] = defaultdict(int)
    for row in tables["returns"]:
        returned[row["order_id"], row["line_no"]] += row["quantity"]
    for line in tables["order_lines"]:
        assert line["returned_quantity"] == returned[line["order_id"], line["line_no"]] <= line["quantity"]


def test_ledger_balances(tables: Tables) -> None:
    """Per document and currency, and every document is there."""
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for entry in tables["ledger"]:
        assert (entry["debit"] == 0) != (entry["credit"] == 0)
        sums[entry["document"], entry["currency"]] += entry["debit"] - entry["credit"]
    assert not any(sums.values())
    documents = {f"refund:{row['refund_id']}": row["amount"] for row in tables["refunds"]}
    documents |= {f"credit:{row['credit_id']}": row["amount"] for row in tables["store_credits"]}
    documents |= {f"void:{row['payment_id']}": row["amount"] for row in tables["payments"] if row["status"] == "voided"}
    posted = {entry["document"]: entry["debit"] for entry in tables["ledger"] if entry["debit"]}
    assert posted == documents


def test_statuses_fit_dates(tables: Tables) -> None:
    shipments = by(tables["shipments"], "order_id")
    for order in tables["orders"]:
        parcels = shipments[order["order_id"]]
        assert (order["delivered_at"] is not None) == (order["status"] == "delivered")
        assert bool(parcels) == (order["status"] in ("shipped", "delivered"))
        age = END - instant(order["placed_at"])
        assert age > dt.timedelta(0)
        if order["status"] in ("placed", "processing"):
            assert age < dt.timedelta(days=2)
        for parcel in parcels:
            assert order["placed_at"] < parcel["shipped_at"] < (order["delivered_at"] or "2027")
            assert parcel["delivered_at"] == order["delivered_at"]
            assert (parcel["status"] == "lost") <= (age > dt.timedelta(days=14))
    statuses = Counter(order["status"] for order in tables["orders"])
    assert set(statuses) == {"placed", "processing", "shipped", "delivered", "cancelled"}
    cancelled_orders = {order["order_id"] for order in tables["orders"] if order["status"] == "cancelled"}
    for payment in tables["payments"]:
        cancelled = payment["order_id"] in cancelled_orders
        assert (payment["status"] == "voided") == cancelled


def test_everything_is_before_march(tables: Tables) -> None:
    last = "2026-03-01T00:00:00Z"
    for name, rows in tables.items():
        for row in rows:
            for column, value in row.items():
                if column.endswith("_at") and value is not None:
                    assert value < last, (name, row)


def test_history_keeps_the_policy(tables: Tables) -> None:
    """Returned in time, nothing on final sale without a fault, nothing on hold."""
    lines = {(row["order_id"], row["line_no"]): row for row in tables["order_lines"]}
    orders = {row["order_id"]: row for row in tables["orders"]}
    tiers = {row["customer_id"]: row["tier"] for row in tables["customers"]}
    for row in tables["returns"]:
        line, order = lines[row["order_id"], row["line_no"]], orders[row["order_id"]]
        days = return_window_days(line["category"], tiers[order["customer_id"]], row["condition"])
        assert instant(row["registered_at"]) <= instant(order["delivered_at"]) + dt.timedelta(days=days)
        assert not line["final_sale"] or row["condition"] in CLAIMS
        assert order["risk"] == "clear"
    assert any(order["risk"] == "hold" for order in tables["orders"])


def test_tickets_are_closed_with_a_decision(tables: Tables) -> None:
    checks = by(tables["identity_checks"], "ticket_id")
    for ticket in tables["tickets"]:
        assert ticket["status"] == ("handed_over" if ticket["team"] else "resolved")
        assert ticket["decision"] and ticket["reason_code"]
        assert ticket["opened_at"] < ticket["closed_at"]
        assert (ticket["customer_id"] is None) == (ticket["reason_code"] == "identity_failed")
        assert [bool(check["passed"]) for check in checks[ticket["ticket_id"]]] == [ticket["customer_id"] is not None]


def test_prices_are_whole_units() -> None:
    for product in PRODUCTS:
        for currency in ("USD", "EUR", "GBP", "JPY"):
            assert price(product, currency) == round_half_up(price(product, currency), currency) > 0


def test_mail_names_are_ascii() -> None:
    assert mail_name("Zoë Müller") == "zoe.muller"
