"""Rows the tools work on: found or refused in one way, listed within bounds, numbered by what is stored."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from agent_envs.contract import ToolError
from agent_envs.envs.refund import schema
from agent_envs.envs.refund.world import Office
from agent_envs.state.columns import Integer

Row = dict[str, Any]
ROWS = 50
"""Most rows in any list a tool returns; the total is given beside it."""


class Listing(NamedTuple):
    """A list of rows cut at `ROWS`, and how many there are in all."""

    page: sa.Select[Any]
    total: sa.Select[Any]


def listing(statement: sa.Select[Any]) -> Listing:
    """Bound an ordered statement."""
    rows = statement.order_by(None).subquery()
    return Listing(statement.limit(ROWS), sa.select(sa.func.count().label("total")).select_from(rows))


def fetch(world: Office, wanted: Listing, **parameters: Any) -> tuple[list[Row], int]:
    """The first `ROWS` rows and the number of all; counted in the database only if the page is full."""
    rows = world.database.all(wanted.page, **parameters)
    if len(rows) < ROWS:
        return rows, len(rows)
    counted = world.database.one(wanted.total, **parameters)
    return rows, counted["total"] if counted else 0


def by_column(table: sa.Table, column: str, *order: str) -> Listing:
    """The rows of a table with one value in a column, ordered; the parameter has the column's name."""
    names = order or tuple(key.name for key in table.primary_key)
    wanted = sa.select(table).where(table.c[column] == sa.bindparam(column))
    return listing(wanted.order_by(*(table.c[name] for name in names)))


def _by_key(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table).where(*(key == sa.bindparam(key.name) for key in table.primary_key))


_CUSTOMER = _by_key(schema.customers)
_ORDER = _by_key(schema.orders)
_LINE = _by_key(schema.order_lines)
_PAYMENT = _by_key(schema.payments)
_TICKET = _by_key(schema.tickets)
_AUTHORISATION = _by_key(schema.authorisations)
_LAST = {
    table.name: sa.select(sa.func.max(key).label("last"))
    for table in schema.metadata.sorted_tables
    if len(table.primary_key) == 1
    for key in table.primary_key
    if isinstance(key.type, Integer)
}


def customer(world: Office, customer_id: str) -> Row:
    """A customer.

    Raises:
        ToolError: There is none of that number.
    """
    return _found(
        world.database.one(_CUSTOMER, customer_id=customer_id), "customer", customer_id, "look it up with find_customer"
    )


def order(world: Office, order_id: str) -> Row:
    """An order.

    Raises:
        ToolError: There is none of that number.
    """
    return _found(world.database.one(_ORDER, order_id=order_id), "order", order_id, "look it up with list_orders")


def line(world: Office, order_id: str, line_no: int) -> Row:
    """A line of an order that exists.

    Raises:
        ToolError: The order has no such line.
    """
    found = world.database.one(_LINE, order_id=order_id, line_no=line_no)
    return _found(found, f"order {order_id!r}: line", line_no, "look at the lines with get_order")


def payment(world: Office, order_id: str, payment_id: str) -> Row:
    """A payment of an order that exists.

    Raises:
        ToolError: There is none of that number, or it belongs to another order.
    """
    found = world.database.one(_PAYMENT, payment_id=payment_id)
    if found is None or found["order_id"] != order_id:
        raise ToolError(f"order {order_id!r} has no payment {payment_id!r}; look at its payments with get_payments")
    return found


def ticket(world: Office, ticket_id: str) -> Row:
    """A ticket, open or not.

    Raises:
        ToolError: There is none of that number.
    """
    return _found(world.database.one(_TICKET, ticket_id=ticket_id), "ticket", ticket_id, "use the one you were given")


def open_ticket(world: Office, ticket_id: str) -> Row:
    """A ticket that can still be worked on.

    Raises:
        ToolError: There is none of that number, or it is closed.
    """
    found = ticket(world, ticket_id)
    require_open(found)
    return found


def require_open(ticket: Row) -> None:
    """Refuse work on a closed ticket.

    Raises:
        ToolError: It is closed.
    """
    if ticket["status"] != "open":
        raise ToolError(
            f"ticket {ticket['ticket_id']!r} is {ticket['status']} and can't be changed; only open tickets can"
        )


def authorisation(world: Office, order_id: str, authorisation_id: int) -> Row:
    """An authorisation of an order that exists, whatever was decided.

    Raises:
        ToolError: There is none of that number, or it is about another order.
    """
    found = world.database.one(_AUTHORISATION, authorisation_id=authorisation_id)
    if found is None or found["order_id"] != order_id:
        raise ToolError(f"order {order_id!r} has no authorisation {authorisation_id}; get one with request_approval")
    return found


def next_id(world: Office, table: sa.Table) -> int:
    """The number of the next row: the highest one plus one."""
    highest = world.database.one(_LAST[table.name])
    return (highest["last"] or 0) + 1 if highest else 1


def _found(row: Row | None, kind: str, number: str | int, advice: str) -> Row:
    if row is None:
        raise ToolError(f"{kind} {number!r} doesn't exist; {advice}")
    return row
