"""Look-ups. They show what a clerk may see; never the facts by which a customer proves who they are."""

# ruff: noqa: D417 (the docstrings are what agents read; the world is no argument of theirs)

import unicodedata
from typing import Any

import sqlalchemy as sa

from agent_envs.contract import ToolError, decimal_text
from agent_envs.envs.refund import schema
from agent_envs.envs.refund.rules import money_text, payment_left
from agent_envs.envs.refund.tools import records
from agent_envs.envs.refund.tools.arguments import Id, Line
from agent_envs.envs.refund.world import Office
from agent_envs.episode.tools import tool

_SEPARATORS = " -()./"


def _digits(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    """A phone number without the characters people separate its groups with."""
    bare: sa.ColumnElement[str] = column
    for mark in _SEPARATORS:
        bare = sa.func.replace(bare, sa.literal_column(f"'{mark}'"), sa.literal_column("''"), type_=column.type)
    return bare


_people = schema.customers
_by_name = records.by_column(_people, "name_key", "customer_id")
_by_email = records.listing(
    sa.select(_people)
    .where(sa.or_(_people.c.email == sa.bindparam("email"), _people.c.email == sa.bindparam("lower")))
    .order_by(_people.c.customer_id)
)
_by_phone = records.listing(
    sa.select(_people).where(_digits(_people.c.phone) == sa.bindparam("phone")).order_by(_people.c.customer_id)
)
_orders = records.listing(
    sa.select(schema.orders)
    .where(schema.orders.c.customer_id == sa.bindparam("customer_id"))
    .order_by(schema.orders.c.placed_at.desc(), schema.orders.c.order_id)
)
_lines = records.by_column(schema.order_lines, "order_id")
_shipments = records.by_column(schema.shipments, "order_id")
_payments = records.by_column(schema.payments, "order_id")
_returns = records.by_column(schema.returns, "order_id")
_refunds = records.by_column(schema.refunds, "order_id")
_credits = records.by_column(schema.store_credits, "order_id")
_authorisations = records.by_column(schema.authorisations, "order_id")
_entries = records.by_column(schema.ledger, "document")
_documents = tuple(
    (
        kind,
        sa.select(number.label("number")).where(number.table.c.order_id == sa.bindparam("order_id")).order_by(number),
    )
    for kind, number in (
        ("refund", schema.refunds.c.refund_id),
        ("credit", schema.store_credits.c.credit_id),
        ("void", schema.payments.c.payment_id),
    )
)
_notes = records.by_column(schema.ticket_notes, "ticket_id")


@tool(reads=("customers",))
def find_customer(
    world: Office, name: Line | None = None, email: Line | None = None, phone: Line | None = None
) -> dict[str, Any]:
    """Find customers by full name, e-mail address or phone number; give exactly one of them.

    Args:
        name: Full name; several customers may share it.
        email: E-mail address, whole.
        phone: Phone number, whole; separators don't matter.
    """
    if sum(value is not None for value in (name, email, phone)) != 1:
        raise ToolError("find_customer: give exactly one of name, email and phone")
    world.rate_limits.use("find_customer")
    if name is not None:
        key = " ".join(unicodedata.normalize("NFC", name).split()).casefold()
        rows, total = records.fetch(world, _by_name, name_key=key)
    elif email is not None:
        address = email.strip()
        rows, total = records.fetch(world, _by_email, email=address, lower=address.lower())
    else:
        bare = (phone or "").translate({ord(mark): None for mark in _SEPARATORS})
        rows, total = records.fetch(world, _by_phone, phone=bare)
    found = [
        {"customer_id": row["customer_id"], "name": row["name"], "email": mask_email(row["email"])} for row in rows
    ]
    return {"customers": found, "customers_total": total}


@tool(reads=("customers",))
def get_customer(world: Office, customer_id: Id) -> dict[str, Any]:
    """One customer. Facts that prove identity are hidden: ask the customer for them.

    Args:
        customer_id: Number of the customer, such as "C1001".
    """
    row = records.customer(world, customer_id)
    return {
        "customer_id": customer_id,
        "name": row["name"],
        "tier": row["tier"],
        "email": mask_email(row["email"]),
        "phone": f"***{row['phone'][-2:]}",
    }


@tool(reads=("customers", "orders"))
def list_orders(world: Office, customer_id: Id) -> dict[str, Any]:
    """The orders of a customer, latest first.

    Args:
        customer_id: Number of the customer, such as "C1001".
    """
    records.customer(world, customer_id)
    rows, total = records.fetch(world, _orders, customer_id=customer_id)
    return {"customer_id": customer_id, "orders": [_order(row) for row in rows], "orders_total": total}


@tool(reads=("orders", "order_lines", "shipments"))
def get_order(world: Office, order_id: Id) -> dict[str, Any]:
    """One order with its lines and shipments.

    Args:
        order_id: Number of the order, such as "W1042".
    """
    order = records.order(world, order_id)
    lines, lines_total = records.fetch(world, _lines, order_id=order_id)
    shipments, shipments_total = records.fetch(world, _shipments, order_id=order_id)
    return {
        **_order(order),
        "lines": [_priced(row, order["currency"], "unit_price", without="order_id") for row in lines],
        "lines_total": lines_total,
        "shipments": [_without(row, "order_id") for row in shipments],
        "shipments_total": shipments_total,
    }


@tool(reads=("orders", "payments"))
def get_payments(world: Office, order_id: Id) -> dict[str, Any]:
    """The payments of an order: how much was captured, refunded and is left on each.

    Args:
        order_id: Number of the order, such as "W1042".
    """
    records.order(world, order_id)
    rows, total = records.fetch(world, _payments, order_id=order_id)
    return {"order_id": order_id, "payments": [_payment(row) for row in rows], "payments_total": total}


@tool(reads=("orders", "returns", "refunds", "store_credits", "authorisations"))
def get_history(world: Office, order_id: Id) -> dict[str, Any]:
    """What happened to an order so far: returns, refunds, store credits and approval requests.

    Args:
        order_id: Number of the order, such as "W1042".
    """
    records.order(world, order_id)
    result: dict[str, Any] = {"order_id": order_id}
    rows, result["returns_total"] = records.fetch(world, _returns, order_id=order_id)
    result["returns"] = [_without(row, "order_id") for row in rows]
    for name, wanted in (("refunds", _refunds), ("credits", _credits), ("authorisations", _authorisations)):
        rows, result[f"{name}_total"] = records.fetch(world, wanted, order_id=order_id)
        result[name] = [_priced(row, row["currency"], "amount", without="order_id") for row in rows]
    return result


@tool(reads=("orders", "refunds", "store_credits", "payments", "ledger"))
def get_ledger(world: Office, order_id: Id) -> dict[str, Any]:
    """The ledger entries made for an order's refunds, store credits and voided payments.

    Args:
        order_id: Number of the order, such as "W1042".
    """
    records.order(world, order_id)
    entries = [
        entry
        for kind, numbers in _documents
        for row in world.database.all(numbers, order_id=order_id)
        for entry in world.database.all(_entries.page, document=f"{kind}:{row['number']}")
    ]
    shown = [_priced(entry, entry["currency"], "debit", "credit") for entry in entries[: records.ROWS]]
    return {"order_id": order_id, "entries": shown, "entries_total": len(entries)}


@tool(reads=("tickets", "ticket_notes"))
def get_ticket(world: Office, ticket_id: Id) -> dict[str, Any]:
    """One ticket with its notes, and the time on the office clock.

    Args:
        ticket_id: Number of the ticket, such as "T1001".
    """
    ticket = records.ticket(world, ticket_id)
    rows, total = records.fetch(world, _notes, ticket_id=ticket_id)
    return {
        "now": world.clock.iso,
        **ticket,
        "notes": [_without(row, "ticket_id") for row in rows],
        "notes_total": total,
    }


@tool(reads=("orders",))
def check_risk(world: Office, order_id: Id) -> dict[str, Any]:
    """Whether an order is held by the risk team: "hold" or "clear".

    Args:
        order_id: Number of the order, such as "W1042".
    """
    return {"order_id": order_id, "risk": records.order(world, order_id)["risk"]}


def mask_email(address: str) -> str:
    """The first letter and nothing else, enough to tell namesakes apart."""
    return f"{address[:1]}***@***"


def _without(row: records.Row, column: str) -> records.Row:
    return {name: value for name, value in row.items() if name != column}


def _priced(row: records.Row, currency: str, *columns: str, without: str = "") -> records.Row:
    return {
        name: money_text(value, currency) if name in columns else value
        for name, value in row.items()
        if name != without
    }


def _order(row: records.Row) -> records.Row:
    return _priced(row, row["currency"], "shipping_fee", "total", without="risk")


def _payment(row: records.Row) -> records.Row:
    currency = row["currency"]
    return {
        "payment_id": row["payment_id"],
        "tender": row["tender"],
        "detail": row["detail"],
        "status": row["status"],
        "currency": currency,
        "captured": money_text(row["amount"], currency),
        "refunded": money_text(row["refunded"], currency),
        "left": money_text(payment_left(row), currency),
        "rate": decimal_text(row["rate"]),
        "captured_at": row["captured_at"],
    }
