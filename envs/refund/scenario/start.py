"""The rows a task adds to the fixture, and the checks that its start is a state the back office can be in."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import islice

from agent_envs.contract import RowPatch, typed
from agent_envs.envs.refund.rows import Row, RowBook, stamp
from agent_envs.envs.refund.rules import instant, round_half_up, smallest_unit
from agent_envs.envs.refund.scenario.form import Order, Payment, Scenario
from agent_envs.envs.refund.words import CARRIERS

Location = tuple[str | int, ...]
Fail = Callable[[Location, str], Exception]
"""Makes the error for a place in the scenario."""

FIRST_NUMBER = 900_001
"""Numbers of the returns, refunds, credits and entries a task adds; far above every fixture's."""


def start_patch(scenario: Scenario, fail: Fail) -> tuple[RowPatch, ...]:
    """Every row the task inserts.

    Raises:
        Exception: What ``fail`` makes, for ids given twice, references to nothing, dates or sums that don't fit.
    """
    _distinct(scenario, fail)
    book = RowBook(FIRST_NUMBER)
    for customer in scenario.customers:
        book.customer(**dict(customer))
    for index, order in enumerate(scenario.orders):
        here: Location = ("orders", index)
        _check_dates(scenario, order, here, fail)
        _check_sums(order, here, fail)
        _write_order(book, scenario, index, fail)
    opened = scenario.ticket.opened or stamp(instant(scenario.clock) - dt.timedelta(minutes=5))
    if opened > scenario.clock:
        raise fail(("ticket", "opened"), f"{opened} is after the clock's start {scenario.clock}")
    book.add(
        "tickets",
        ticket_id=scenario.ticket.ticket_id,
        customer_id=None,
        subject=scenario.ticket.subject,
        status="open",
        decision=None,
        reason_code=None,
        team=None,
        opened_at=opened,
        closed_at=None,
    )
    return tuple(
        RowPatch(table=table, insert={column: typed(value) for column, value in row.items()}) for table, row in book
    )


def covers(amount: Decimal, parts: list[tuple[Decimal, Decimal, str]], currency: str) -> bool:
    """Whether payments come to an amount, with the room that rounding foreign ones leaves.

    Args:
        amount: In the order's currency.
        parts: Amount, rate and currency of each payment.
        currency: Of the order.
    """
    total = sum((Fraction(paid) / Fraction(rate) for paid, rate, _ in parts), Fraction(0))
    foreign = [(rate, unit) for _, rate, unit in parts if unit != currency]
    room = sum((Fraction(smallest_unit(unit)) / (2 * Fraction(rate)) for rate, unit in foreign), Fraction(0))
    return abs(Fraction(amount) - total) <= room


def whole(amount: Decimal, currency: str) -> bool:
    """Whether an amount is no finer than its currency."""
    return amount == round_half_up(amount, currency)


def _distinct(scenario: Scenario, fail: Fail) -> None:
    seen: dict[str, Location] = {}
    for location, name in _names(scenario):
        if name in seen:
            first = ".".join(str(part) for part in seen[name])
            raise fail(location, f"{name!r} is already given in {first}; each needs its own")
        seen[name] = location


def _names(scenario: Scenario) -> Iterator[tuple[Location, str]]:
    for index, customer in enumerate(scenario.customers):
        yield ("customers", index, "customer_id"), customer.customer_id
        yield ("customers", index, "email"), customer.email
    for index, order in enumerate(scenario.orders):
        yield ("orders", index, "order_id"), order.order_id
        for place, payment in enumerate(order.payments):
            yield ("orders", index, "payments", place, "payment_id"), payment.payment_id
        for place, shipment in enumerate(order.shipments):
            yield ("orders", index, "shipments", place, "shipment_id"), shipment.shipment_id


def _check_dates(scenario: Scenario, order: Order, here: Location, fail: Fail) -> None:
    if (order.delivered is None) == (order.status == "delivered"):
        raise fail((*here, "delivered"), f"a delivery time goes with status delivered, not with {order.status!r}")
    if order.placed >= scenario.clock:
        raise fail((*here, "placed"), f"{order.placed} is not before the clock's start {scenario.clock}")
    events: list[tuple[Location, str | None]] = [(("delivered",), order.delivered)]
    for index, shipment in enumerate(order.shipments):
        events += [(("shipments", index, "shipped"), shipment.shipped)]
        events += [(("shipments", index, "delivered"), shipment.delivered)]
        if (shipment.delivered is None) == (shipment.status == "delivered"):
            raise fail((*here, "shipments", index, "delivered"), "a delivery time goes with status delivered only")
    for name in ("returned", "refunds", "credited"):
        events += [((name, index, "at"), item.at) for index, item in enumerate(getattr(order, name))]
    for place, at in events:
        if at is not None and not order.placed <= at <= scenario.clock:
            raise fail((*here, *place), f"{at} lies outside {order.placed} to {scenario.clock}, from order to start")


def _check_sums(order: Order, here: Location, fail: Fail) -> None:
    for place, amount, currency in _amounts(order):
        if not whole(amount, currency):
            raise fail((*here, *place), f"{amount} is finer than the smallest amount of {currency}")
    for index, payment in enumerate(order.payments):
        if payment.rate <= 0 or (payment.rate != 1 and currency_of(payment, order) == order.currency):
            raise fail((*here, "payments", index, "rate"), f"{payment.rate} can't be the rate of these currencies")
    parts = [(payment.amount, payment.rate, currency_of(payment, order)) for payment in order.payments]
    if not covers(order.total, parts, order.currency):
        raise fail((*here, "payments"), f"the payments don't come to the total of {order.total} {order.currency}")


def currency_of(payment: Payment, order: Order) -> str:
    """The payment's currency: the order's unless stated."""
    return payment.currency or order.currency


def _amounts(order: Order) -> Iterator[tuple[Location, Decimal, str]]:
    yield ("shipping",), order.shipping, order.currency
    for index, line in enumerate(order.lines):
        yield ("lines", index, "price"), line.price, order.currency
    currencies = {}
    for index, payment in enumerate(order.payments):
        currencies[payment.payment_id] = currency_of(payment, order)
        yield ("payments", index, "amount"), payment.amount, currency_of(payment, order)
    for index, refund in enumerate(order.refunds):
        yield ("refunds", index, "amount"), refund.amount, currencies.get(refund.payment, order.currency)
    for index, credit in enumerate(order.credited):
        yield ("credited", index, "amount"), credit.amount, order.currency


def _write_order(book: RowBook, scenario: Scenario, index: int, fail: Fail) -> None:
    order, here = scenario.orders[index], ("orders", index)
    if order.customer not in {customer.customer_id for customer in scenario.customers}:
        raise fail((*here, "customer"), f"{order.customer!r} is none of the task's customers")
    first_line = len(book.tables["order_lines"])
    row = book.order(
        order_id=order.order_id,
        customer_id=order.customer,
        status=order.status,
        risk=order.risk,
        currency=order.currency,
        shipping_fee=order.shipping,
        placed_at=order.placed,
        delivered_at=order.delivered,
        lines=[
            {
                "sku": line.sku,
                "name": line.name,
                "category": line.category,
                "quantity": line.quantity,
                "unit_price": line.price,
                "final_sale": line.final_sale,
            }
            for line in order.lines
        ],
    )
    payments = {
        payment.payment_id: book.payment(
            payment_id=payment.payment_id,
            order_id=order.order_id,
            tender=payment.tender,
            detail=payment.detail,
            currency=currency_of(payment, order),
            amount=payment.amount,
            rate=payment.rate,
            captured_at=order.placed,
        )
        for payment in order.payments
    }
    _write_shipments(book, scenario, order, index)
    if order.status == "cancelled":
        for payment in payments.values():
            book.void(payment, order.placed)
    if order.status == "cancelled" and (order.returned or order.refunds or order.credited):
        raise fail((*here, "status"), "a cancelled order has neither returns nor refunds nor credits")
    _write_history(book, order, (row, book.tables["order_lines"][first_line:], payments), here, fail)


def _write_shipments(book: RowBook, scenario: Scenario, order: Order, index: int) -> None:
    shipments = [dict(shipment) for shipment in order.shipments]
    if not shipments and order.status in ("shipped", "delivered"):
        taken = {shipment.shipment_id for other in scenario.orders for shipment in other.shipments}
        free = (name for name in (f"S9{number:03}" for number in range(1, 1000)) if name not in taken)
        shipped = min(stamp(instant(order.placed) + dt.timedelta(hours=20)), order.delivered or scenario.clock)
        status = "delivered" if order.delivered else "in_transit"
        shipments = [
            {
                "shipment_id": next(islice(free, index, None)),
                "carrier": CARRIERS[index % len(CARRIERS)],
                "status": status,
                "shipped": shipped,
                "delivered": order.delivered,
            }
        ]
    for shipment in shipments:
        shipped, delivered = shipment.pop("shipped"), shipment.pop("delivered")
        book.add("shipments", order_id=order.order_id, shipped_at=shipped, delivered_at=delivered, **shipment)


def _write_history(
    book: RowBook, order: Order, written: tuple[Row, list[Row], dict[str, Row]], here: Location, fail: Fail
) -> None:
    row, lines, payments = written
    for index, item in enumerate(order.returned):
        if item.line > len(lines):
            raise fail((*here, "returned", index, "line"), f"there is no line {item.line}; the order has {len(lines)}")
        line = lines[item.line - 1]
        if item.quantity > line["quantity"] - line["returned_quantity"]:
            raise fail((*here, "returned", index, "quantity"), f"{item.quantity} is more than what is left of the line")
        book.returned(line, item.quantity, item.condition, item.at)
    for index, refund in enumerate(order.refunds):
        if refund.payment not in payments:
            raise fail((*here, "refunds", index, "payment"), f"{refund.payment!r} is no payment of {order.order_id}")
        payment = payments[refund.payment]
        if refund.amount > payment["amount"] - payment["refunded"]:
            raise fail((*here, "refunds", index, "amount"), f"{refund.amount} is more than what is left on the payment")
        book.refund(payment, refund.amount, refund.reason, refund.at)
    for credit in order.credited:
        book.credit(row, credit.amount, credit.reason, credit.at)
