"""Tools that move money. They keep the books right; whether the policy allows a payment is the agent's to know."""

# ruff: noqa: D417 (the docstrings are what agents read; the world is no argument of theirs)

from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from agent_envs.contract import ToolError
from agent_envs.envs.refund import schema
from agent_envs.envs.refund.rules import (
    approval_limit,
    money_text,
    payment_left,
    round_half_up,
    smallest_unit,
    split_over_tenders,
)
from agent_envs.envs.refund.tools import records
from agent_envs.envs.refund.tools.arguments import Amount, Id, Key, Line, Number, PaymentReason
from agent_envs.envs.refund.world import Office
from agent_envs.episode.tools import tool

DECISION_SECONDS = 2 * 3600
"""How long a supervisor takes to decide."""

_payments = (
    sa.select(schema.payments)
    .where(schema.payments.c.order_id == sa.bindparam("order_id"))
    .order_by(schema.payments.c.payment_id)
)
_refund_by_key, _credit_by_key = (
    sa.select(table)
    .where(table.c.idempotency_key == sa.bindparam("idempotency_key"))
    .order_by(*table.primary_key)
    .limit(1)
    for table in (schema.refunds, schema.store_credits)
)


@tool(
    reads=("tickets", "orders", "payments", "authorisations", "refunds", "store_credits", "ledger"),
    writes=("refunds", "payments", "ledger"),
)
def issue_refund(
    world: Office,
    ticket_id: Id,
    order_id: Id,
    payment_id: Id,
    amount: Amount,
    reason: PaymentReason,
    authorisation_id: Number | None = None,
    idempotency_key: Key | None = None,
) -> dict[str, Any]:
    """Pay money back to one payment of an order, in the currency of that payment.

    Args:
        ticket_id: The open ticket you work on.
        order_id: Number of the order.
        payment_id: The payment that gets the money; at most what is left on it.
        amount: How much, such as "25.00".
        reason: Why.
        authorisation_id: Number of the approval, where one is needed.
        idempotency_key: Any text of yours; the same call again with the same key doesn't pay twice.
    """
    ticket = records.ticket(world, ticket_id)
    order = records.order(world, order_id)
    payment = records.payment(world, order_id, payment_id)
    currency = payment["currency"]
    wanted = {
        "order_id": order_id,
        "payment_id": payment_id,
        "currency": currency,
        "amount": amount,
        "reason": reason,
        "authorisation_id": authorisation_id,
    }
    if (earlier := _earlier(world, schema.refunds, idempotency_key, wanted)) is not None:
        return _receipt("refund_id", earlier, order["customer_id"], repeated=True)
    records.require_open(ticket)
    _check_amount(amount, currency)
    if payment["status"] != "captured":
        raise ToolError(f"payment {payment_id!r} is {payment['status']}; nothing can be refunded to it")
    left = payment_left(payment)
    if amount > left:
        raise ToolError(
            f"{money_text(amount, currency)} {currency} is more than the {money_text(left, currency)} left on payment "
            f"{payment_id!r}; refund at most that"
        )
    if authorisation_id is not None:
        records.authorisation(world, order_id, authorisation_id)
    refund = _add(world, schema.refunds, "refund_id", idempotency_key, wanted)
    world.database.update(schema.payments, {"payment_id": payment_id}, refunded=payment["refunded"] + amount)
    _post(world, f"refund:{refund['refund_id']}", currency, amount, debit="sales_returns", credit=payment["tender"])
    return _receipt("refund_id", refund, order["customer_id"], repeated=False)


@tool(
    reads=("tickets", "orders", "authorisations", "refunds", "store_credits", "ledger"),
    writes=("store_credits", "ledger"),
)
def issue_store_credit(
    world: Office,
    ticket_id: Id,
    order_id: Id,
    amount: Amount,
    reason: PaymentReason,
    authorisation_id: Number | None = None,
    idempotency_key: Key | None = None,
) -> dict[str, Any]:
    """Give the customer of an order store credit, in the currency of the order.

    Args:
        ticket_id: The open ticket you work on.
        order_id: Number of the order.
        amount: How much, such as "25.00".
        reason: Why.
        authorisation_id: Number of the approval, where one is needed.
        idempotency_key: Any text of yours; the same call again with the same key doesn't credit twice.
    """
    ticket = records.ticket(world, ticket_id)
    order = records.order(world, order_id)
    wanted = {
        "customer_id": order["customer_id"],
        "order_id": order_id,
        "currency": order["currency"],
        "amount": amount,
        "reason": reason,
        "authorisation_id": authorisation_id,
    }
    if (earlier := _earlier(world, schema.store_credits, idempotency_key, wanted)) is not None:
        return _receipt("credit_id", earlier, order["customer_id"], repeated=True)
    records.require_open(ticket)
    _check_amount(amount, order["currency"])
    if authorisation_id is not None:
        records.authorisation(world, order_id, authorisation_id)
    credit = _add(world, schema.store_credits, "credit_id", idempotency_key, wanted)
    document = f"credit:{credit['credit_id']}"
    _post(world, document, order["currency"], amount, debit="sales_returns", credit="store_credit")
    return _receipt("credit_id", credit, order["customer_id"], repeated=False)


@tool(
    reads=("tickets", "orders", "payments", "ledger"),
    writes=("orders", "payments", "ledger"),
)
def cancel_order(world: Office, ticket_id: Id, order_id: Id, reason: PaymentReason) -> dict[str, Any]:
    """Cancel a whole order that is placed or processing, and void its payments.

    Args:
        ticket_id: The open ticket you work on.
        order_id: Number of the order.
        reason: Why.
    """
    records.open_ticket(world, ticket_id)
    order = records.order(world, order_id)
    if order["status"] not in ("placed", "processing"):
        raise ToolError(f"order {order_id!r} is {order['status']}; only placed and processing orders can be cancelled")
    world.database.update(schema.orders, {"order_id": order_id}, status="cancelled")
    voided = []
    for payment in world.database.all(_payments, order_id=order_id):
        left = payment_left(payment)
        if payment["status"] != "captured":
            continue
        number = payment["payment_id"]
        world.database.update(schema.payments, {"payment_id": number}, status="voided")
        if left > 0:
            _post(world, f"void:{number}", payment["currency"], left, debit="sales", credit=payment["tender"])
        voided.append(number)
    return {
        "order_id": order_id,
        "customer_id": order["customer_id"],
        "status": "cancelled",
        "reason": reason,
        "voided": voided,
    }


@tool(reads=("orders", "payments", "authorisations"), writes=("authorisations",))
def request_approval(world: Office, order_id: Id, amount: Amount, reason: Line) -> dict[str, Any]:
    """Ask a supervisor to approve a sum for one order, in the currency of the order. The decision takes two hours.

    Args:
        order_id: Number of the order.
        amount: The whole sum of the refunds and credits you want to make for the order.
        reason: Why, for the supervisor.
    """
    order = records.order(world, order_id)
    currency = order["currency"]
    _check_amount(amount, currency)
    decision, note = "approved", "within the limit"
    if order["risk"] == "hold":
        decision, note = "denied", "the order is on hold"
    elif amount > approval_limit(currency):
        decision, note = "denied", "more than a supervisor may approve"
    elif not _covered(amount, world.database.all(_payments, order_id=order_id)):
        decision, note = "denied", "more than is left on the payments"
    world.clock.advance(DECISION_SECONDS)
    number = records.next_id(world, schema.authorisations)
    world.database.insert(
        schema.authorisations,
        authorisation_id=number,
        order_id=order_id,
        currency=currency,
        amount=amount,
        decision=decision,
        note=note,
        decided_at=world.clock.iso,
    )
    return {
        "authorisation_id": number,
        "order_id": order_id,
        "customer_id": order["customer_id"],
        "decision": decision,
        "note": note,
        "amount": money_text(amount, currency),
        "currency": currency,
    }


def _check_amount(amount: Decimal, currency: str) -> None:
    if amount <= 0:
        raise ToolError(f"the amount is {amount}; give one above zero")
    if round_half_up(amount, currency) != amount:
        raise ToolError(
            f"amount {amount} is finer than {smallest_unit(currency)} {currency}, the smallest there is; round it"
        )


def _covered(amount: Decimal, payments: list[records.Row]) -> bool:
    try:
        split_over_tenders(amount, payments)
    except ValueError:
        return False
    return True


def _earlier(world: Office, table: sa.Table, key: str | None, wanted: records.Row) -> records.Row | None:
    """The payment made before with this idempotency key, if it is the very same one.

    The ticket isn't kept with a payment and so isn't compared.
    """
    if key is None:
        return None
    for kind, statement in ((schema.refunds, _refund_by_key), (schema.store_credits, _credit_by_key)):
        found = world.database.one(statement, idempotency_key=key)
        if found is None:
            continue
        if kind is table and all(found[name] == value for name, value in wanted.items()):
            return found
        raise ToolError(
            f"idempotency_key {key!r} was used for another payment (order {found['order_id']!r}, "
            f"{money_text(found['amount'], found['currency'])} {found['currency']}); use a new key for a new payment"
        )
    return None


def _add(world: Office, table: sa.Table, id_name: str, key: str | None, wanted: records.Row) -> records.Row:
    row = {
        id_name: records.next_id(world, table),
        **wanted,
        "idempotency_key": key,
        "created_at": world.clock.iso,
    }
    world.database.insert(table, **row)
    return row


def _post(world: Office, document: str, currency: str, amount: Decimal, *, debit: str, credit: str) -> None:
    """Make the two ledger entries of a document."""
    zero = Decimal(0)
    first = records.next_id(world, schema.ledger)
    for number, account, debited, credited in ((first, debit, amount, zero), (first + 1, credit, zero, amount)):
        world.database.insert(
            schema.ledger,
            entry_id=number,
            document=document,
            account=account,
            currency=currency,
            debit=debited,
            credit=credited,
            posted_at=world.clock.iso,
        )


def _receipt(id_name: str, row: records.Row, customer_id: str, *, repeated: bool) -> dict[str, Any]:
    names = [id_name, "order_id", *(["payment_id"] if "payment_id" in row else [])]
    return {
        **{name: row[name] for name in names},
        "customer_id": customer_id,
        "amount": money_text(row["amount"], row["currency"]),
        "currency": row["currency"],
        "repeated": repeated,
    }
