"""From the outcome in short form to the exact change set: every row the tools write, and no other.

A refund is one row of ``refunds``, two entries and the new total on its payment; the author states only the refund.
Numbers, times and notes that depend on the agent's route are not compared.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agent_envs.contract.expected import Exact, Expected, Money, Number, OneOf
from agent_envs.contract.outcome import AnswerAssertion, Assertion, ChangesAssertion, ExpectedChange, TotalAssertion
from agent_envs.envs.refund.rows import ZERO
from agent_envs.envs.refund.rules import CLAIMS, approval_threshold
from agent_envs.envs.refund.scenario.form import Closing, Effects, Order, Payment, Scenario
from agent_envs.envs.refund.scenario.start import Fail, Location, covers, currency_of, whole

_MOVES = {"refunded": "refunds", "credited": "credits", "cancelled": "cancelled"}

Values = dict[str, Any]
"""Column to value; a tuple is one of several."""


def assertions(scenario: Scenario, fail: Fail) -> tuple[Assertion, ...]:
    """The outcome assertions of a task.

    Raises:
        Exception: What ``fail`` makes, for effects the start or the policy's bookkeeping rules out.
    """
    outcome, here = scenario.outcome, ("outcome",)
    index = _Index(scenario)
    ticket_id = scenario.ticket.ticket_id
    totals = [_totals(outcome, group) for group in outcome.either] or [_totals(outcome)]
    # Several pieces of one line may be registered at once or one by one: their number counts, not the rows.
    portioned = tuple(dict.fromkeys(place for counts in totals for place, count in counts.items() if count > 1))
    expect: tuple[ExpectedChange, ...] = ()
    either: tuple[tuple[ExpectedChange, ...], ...] = ()
    if outcome.either:
        # A payment's new total depends on all refunds together, so each alternative states the whole change set.
        either = tuple(
            _changes(index, [(here, outcome), ((*here, "either", number), group)], portioned, fail)
            for number, group in enumerate(outcome.either)
        )
    else:
        expect = _changes(index, [(here, outcome)], portioned, fail)
    allow = tuple(
        ExpectedChange(table=table, kind="insert", values={"ticket_id": Exact(exact=ticket_id)})
        for table in ("identity_checks", "ticket_notes")
    )
    allow += tuple(
        ExpectedChange(table="returns", kind="insert", values=_expected(tuple(_row(place).items())))
        for place in portioned
    )
    pieces = [_pieces(place, {counts.get(place, 0): None for counts in totals}) for place in portioned]
    answers = [
        AnswerAssertion(check="answer", name=f"answer_{name}", field=name, expect=value)
        for name, value in outcome.answer.items()
    ]
    return ChangesAssertion(check="changes", expect=expect, either=either, allow=allow), *pieces, *answers


Place = tuple[str, int, str]
"""Order, line and condition: what registered pieces have in common."""


def _totals(*groups: Effects) -> dict[Place, int]:
    """How many pieces are registered, by place."""
    totals: dict[Place, int] = {}
    for item in (item for group in groups for item in group.returns):
        place = item.order, item.line, item.condition
        totals[place] = totals.get(place, 0) + item.quantity
    return totals


def _pieces(place: Place, totals: Iterable[int]) -> TotalAssertion:
    """The number of pieces registered at a place; each alternative's own is told by its line's new total."""
    order_id, line_no, condition = place
    numbers = [Number(number=Decimal(total)) for total in totals]
    return TotalAssertion(
        check="total",
        name=f"pieces_{order_id}_{line_no}_{condition}",
        table="returns",
        column="quantity",
        where=_expected(tuple(_row(place).items())),
        expect=numbers[0] if len(numbers) == 1 else OneOf(one_of=tuple(numbers)),
    )


def _row(place: Place) -> Values:
    return dict(zip(("order_id", "line_no", "condition"), place, strict=True))


class _Index:
    """The scenario's entities by id."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.orders = {order.order_id: order for order in scenario.orders}
        self.payments = {
            payment.payment_id: (order, payment) for order in scenario.orders for payment in order.payments
        }
        self.customers = tuple(customer.customer_id for customer in scenario.customers)


@dataclass
class _Changes:
    """Expected rows; equal patterns become one with a count."""

    counts: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(
        self,
        table: str,
        kind: str,
        values: Values,
        key: Values | None = None,
        free: tuple[str, ...] = (),
        count: int = 1,
    ) -> None:
        pattern = (table, kind, tuple((key or {}).items()), tuple(values.items()), free)
        self.counts[pattern] = self.counts.get(pattern, 0) + count

    def entries(self, debit: str, credit: str, currency: str, amount: Decimal) -> None:
        for account, debited in ((debit, True), (credit, False)):
            sides = {"debit": amount if debited else ZERO, "credit": ZERO if debited else amount}
            self.add("ledger", "insert", {"account": account, "currency": currency, **sides})

    def finished(self) -> tuple[ExpectedChange, ...]:
        return tuple(
            ExpectedChange(table=table, kind=kind, key=_expected(key), values=_expected(values), free=free, count=count)
            for (table, kind, key, values, free), count in self.counts.items()
        )


def _expected(items: tuple[tuple[str, Any], ...]) -> dict[str, Expected]:
    return {name: _value(value) for name, value in items}


def _value(value: Any) -> Expected:
    if isinstance(value, Decimal):
        return Money(money=value)
    if isinstance(value, tuple):
        return OneOf(one_of=tuple(Exact(exact=item) for item in value))
    return Exact(exact=value)


Groups = list[tuple[Location, Effects]]


def _changes(index: _Index, groups: Groups, portioned: Iterable[Place], fail: Fail) -> tuple[ExpectedChange, ...]:
    changes = _Changes()
    authorised = _authorisations(index, groups, changes, fail)
    _returns(index, groups, portioned, changes, fail)
    sums = _refunds(index, groups, authorised, changes, fail)
    _credits(index, groups, authorised, sums, changes, fail)
    _cancellations(index, groups, changes, fail)
    _check_approval(index, groups, authorised, sums, fail)
    _ticket(index, groups, changes, fail)
    return changes.finished()


def _each(groups: Groups, name: str) -> Iterator[tuple[Location, Any]]:
    for here, group in groups:
        for place, item in enumerate(getattr(group, name)):
            yield (*here, name, place), item


def _order(index: _Index, here: Location, order_id: str, fail: Fail, *, pays: bool = True) -> Order:
    if order_id not in index.orders:
        raise fail((*here, "order"), f"{order_id!r} is none of the task's orders")
    order = index.orders[order_id]
    if pays and order.risk == "hold":
        raise fail((*here, "order"), f"{order_id} is on hold: nothing may be paid or cancelled")
    return order


def _authorisations(index: _Index, groups: Groups, changes: _Changes, fail: Fail) -> dict[str, tuple[Decimal, str]]:
    authorised: dict[str, tuple[Decimal, str]] = {}
    for here, item in _each(groups, "authorisations"):
        order = _order(index, here, item.order, fail, pays=False)
        if item.order in authorised:
            raise fail((*here, "order"), f"{item.order} has one already; it is asked for the whole sum")
        if not whole(item.amount, order.currency):
            raise fail((*here, "amount"), f"{item.amount} is finer than the smallest amount of {order.currency}")
        authorised[item.order] = item.amount, item.decision
        row = {"order_id": item.order, "currency": order.currency, "amount": item.amount, "decision": item.decision}
        changes.add("authorisations", "insert", row)
    return authorised


def _returns(index: _Index, groups: Groups, portioned: Iterable[Place], changes: _Changes, fail: Fail) -> None:
    registered = _totals(*(group for _, group in groups))
    totals: dict[tuple[str, int], int] = {}
    for here, item in _each(groups, "returns"):
        order = _order(index, here, item.order, fail, pays=False)
        if item.line > len(order.lines):
            raise fail((*here, "line"), f"there is no line {item.line}; {item.order} has {len(order.lines)}")
        line = order.lines[item.line - 1]
        before = sum(past.quantity for past in order.returned if past.line == item.line)
        total = totals.get((item.order, item.line), before) + item.quantity
        if total > line.quantity:
            raise fail((*here, "quantity"), f"{item.quantity} is more than what is left of line {item.line}")
        if line.final_sale and item.condition not in CLAIMS:
            raise fail((*here, "line"), f"line {item.line} is final sale and comes back only if defective or lost")
        totals[item.order, item.line] = total
        place = item.order, item.line, item.condition
        if place not in portioned:
            changes.add("returns", "insert", _row(place) | {"quantity": item.quantity})
    if index.scenario.outcome.either:
        # Any number of rows is allowed at these places; of each alternative, one at least or none at all.
        for place in portioned:
            changes.add("returns", "insert", _row(place), count=int(place in registered))
    for (order_id, line_no), total in totals.items():
        changes.add("order_lines", "update", {"returned_quantity": total}, {"order_id": order_id, "line_no": line_no})


Sums = dict[str, list[tuple[Decimal, Decimal, str]]]
"""Order to amount, rate and currency of all that is paid for it."""


def _refunds(
    index: _Index, groups: Groups, authorised: dict[str, tuple[Decimal, str]], changes: _Changes, fail: Fail
) -> Sums:
    sums: Sums = {}
    totals: dict[str, Decimal] = {}
    for here, item in _each(groups, "refunds"):
        order = _order(index, here, item.order, fail)
        owner, payment = index.payments.get(item.payment, (None, None))
        if owner is not order or payment is None:
            raise fail((*here, "payment"), f"{item.payment!r} is no payment of {item.order}")
        currency = currency_of(payment, order)
        total = totals.get(item.payment, _refunded(order, payment)) + item.amount
        _check_amount(item.amount, currency, here, fail)
        if total > payment.amount or order.status == "cancelled":
            raise fail((*here, "amount"), f"{item.amount} is more than what is left on {item.payment}")
        totals[item.payment] = total
        sums.setdefault(item.order, []).append((item.amount, payment.rate, currency))
        row = {
            "order_id": item.order,
            "payment_id": item.payment,
            "currency": currency,
            "amount": item.amount,
            "reason": item.reason,
        }
        changes.add("refunds", "insert", row if item.order in authorised else row | {"authorisation_id": None})
        changes.entries("sales_returns", payment.tender, currency, item.amount)
    for payment_id, total in totals.items():
        changes.add("payments", "update", {"refunded": total}, {"payment_id": payment_id})
    return sums


def _refunded(order: Order, payment: Payment) -> Decimal:
    return sum((past.amount for past in order.refunds if past.payment == payment.payment_id), ZERO)


def _credits(
    index: _Index, groups: Groups, authorised: dict[str, tuple[Decimal, str]], sums: Sums, changes: _Changes, fail: Fail
) -> None:
    for here, item in _each(groups, "credits"):
        order = _order(index, here, item.order, fail)
        if item.customer != order.customer:
            raise fail((*here, "customer"), f"{item.order} belongs to {order.customer}, not to {item.customer}")
        if item.currency != order.currency:
            raise fail((*here, "currency"), f"credit is given in the order's currency, {order.currency}")
        _check_amount(item.amount, item.currency, here, fail)
        sums.setdefault(item.order, []).append((item.amount, Decimal(1), item.currency))
        row = {
            "customer_id": item.customer,
            "order_id": item.order,
            "currency": item.currency,
            "amount": item.amount,
            "reason": item.reason,
        }
        changes.add("store_credits", "insert", row if item.order in authorised else row | {"authorisation_id": None})
        changes.entries("sales_returns", "store_credit", item.currency, item.amount)


def _cancellations(index: _Index, groups: Groups, changes: _Changes, fail: Fail) -> None:
    seen: set[str] = set()
    for here, item in _each(groups, "cancelled"):
        order = _order(index, here, item.order, fail)
        if order.status not in ("placed", "processing") or order.refunds or item.order in seen:
            raise fail((*here, "order"), f"{item.order} can't be cancelled: {order.status}, refunded or named twice")
        seen.add(item.order)
        changes.add("orders", "update", {"status": "cancelled"}, {"order_id": item.order})
        for payment in order.payments:
            changes.add("payments", "update", {"status": "voided"}, {"payment_id": payment.payment_id})
            changes.entries("sales", payment.tender, currency_of(payment, order), payment.amount)


def _check_amount(amount: Decimal, currency: str, here: Location, fail: Fail) -> None:
    if amount <= 0 or not whole(amount, currency):
        raise fail((*here, "amount"), f"{amount} is zero or finer than the smallest amount of {currency}")


def _check_approval(
    index: _Index, groups: Groups, authorised: dict[str, tuple[Decimal, str]], sums: Sums, fail: Fail
) -> None:
    for order_id, parts in sums.items():
        order, here = index.orders[order_id], groups[-1][0]
        threshold = approval_threshold(order.currency)
        asked, decision = authorised.get(order_id, (None, ""))
        if asked is None and sum(amount / rate for amount, rate, _ in parts) > threshold:
            raise fail(here, f"{order_id} is paid more than {threshold} {order.currency} without an authorisation")
        if asked is not None and (decision != "approved" or not covers(asked, parts, order.currency)):
            raise fail(here, f"what is paid for {order_id} isn't the sum of an approved authorisation")


def _ticket(index: _Index, groups: Groups, changes: _Changes, fail: Fail) -> None:
    closings = [((*here, "ticket"), group.ticket) for here, group in groups if group.ticket is not None]
    if len(closings) != 1:
        raise fail((*groups[-1][0], "ticket"), "the ticket's end must be stated exactly once for each right outcome")
    here, closing = closings[0]
    _check_decision(groups, here, closing, fail)
    handed_over = closing.decision == "handed_over"
    row: Values = {
        "status": "handed_over" if handed_over else "resolved",
        "decision": closing.decision,
        "reason_code": closing.reason,
        "team": closing.team,
        "customer_id": _linked(index, here, closing, fail),
    }
    changes.add("tickets", "update", row, {"ticket_id": index.scenario.ticket.ticket_id}, ("closed_at",))


def _check_decision(groups: Groups, here: Location, closing: Closing, fail: Fail) -> None:
    moved = {name: {item.reason for _, item in _each(groups, name)} for name in _MOVES.values()}
    wanted = _MOVES.get(closing.decision)
    if wanted is None and any(moved.values()):
        raise fail((*here, "decision"), f"{closing.decision!r} can't stand where money moved; name what moved it")
    if wanted is not None and closing.reason not in moved[wanted]:
        raise fail((*here, "reason"), f"none of outcome.{wanted} has the reason {closing.reason!r}")


def _linked(index: _Index, here: Location, closing: Closing, fail: Fail) -> Any:
    """Who the ticket is linked to; where the policy demands no check of the caller, linking is free."""
    if closing.reason == "identity_failed":
        if closing.customer is not None:
            raise fail((*here, "customer"), "nobody is linked after a failed identity check")
        return None
    customer = closing.customer
    if customer is None:
        if len(index.customers) > 1:
            raise fail((*here, "customer"), f"name the caller; the task has {', '.join(index.customers)}")
        customer = index.customers[0]
    if customer not in index.customers:
        raise fail((*here, "customer"), f"{customer!r} is none of the task's customers")
    return (customer, None) if closing.reason == "other" else customer
