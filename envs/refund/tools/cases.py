"""Work on a ticket: who is calling, what comes back, what was decided."""

# ruff: noqa: D417 (the docstrings are what agents read; the world is no argument of theirs)

import datetime as dt
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field

from agent_envs.contract import ToolError
from agent_envs.envs.refund import schema
from agent_envs.envs.refund.rules import Condition, instant
from agent_envs.envs.refund.tools import records
from agent_envs.envs.refund.tools.arguments import Id, Line, Number, Prose
from agent_envs.envs.refund.world import FAILED_CHECKS, Office
from agent_envs.episode.tools import tool

Team = Literal["risk", "supervisors", "shipping"]
HandOverReason = Literal["fraud_hold", "approval_denied", "other"]
Decision = Literal["refunded", "credited", "cancelled", "refused"]
Reason = Literal[
    "changed_mind",
    "defective",
    "never_arrived",
    "out_of_window",
    "final_sale",
    "already_refunded",
    "not_delivered",
    "identity_failed",
    "not_owner",
]

_checks = schema.identity_checks
_failures = (
    sa.select(_checks.c.check_id, _checks.c.checked_at)
    .where(_checks.c.ticket_id == sa.bindparam("ticket_id"), _checks.c.passed == sa.bindparam("passed"))
    .order_by(_checks.c.checked_at.desc(), _checks.c.check_id.desc())
    .limit(FAILED_CHECKS[0])
)


@tool(
    reads=("tickets", "customers", "identity_checks"),
    writes=("identity_checks", "tickets"),
)
def verify_identity(
    world: Office,
    ticket_id: Id,
    customer_id: Id,
    email: Line | None = None,
    postcode: Line | None = None,
    birth_date: Annotated[str, Field(min_length=1, max_length=10)] | None = None,
) -> dict[str, Any]:
    """Check facts the caller told you against a customer's account; give at least two, and all must match.

    Every check is recorded. After three failed ones for a ticket within 24 hours, further ones are refused.

    Args:
        ticket_id: The open ticket you work on; a passed check links it to the customer.
        customer_id: Number of the customer the caller claims to be.
        email: E-mail address, as the caller gave it.
        postcode: Postcode, as the caller gave it.
        birth_date: Birth date as YYYY-MM-DD, as the caller gave it.
    """
    records.open_ticket(world, ticket_id)
    account = records.customer(world, customer_id)
    if birth_date is not None and not _is_day(birth_date):
        raise ToolError(f"birth_date {birth_date!r} is no date; write it as YYYY-MM-DD")
    given = {"email": email, "postcode": postcode, "birth_date": birth_date}
    facts = {name: _folded(value) for name, value in given.items() if value is not None and _folded(value)}
    if len(facts) < 2:
        raise ToolError("give at least two of email, postcode and birth_date; ask the customer for them")
    _refuse_after_failures(world, ticket_id)
    passed = all(_folded(account[name]) == value for name, value in facts.items())
    world.database.insert(
        _checks,
        check_id=records.next_id(world, _checks),
        ticket_id=ticket_id,
        customer_id=customer_id,
        passed=passed,
        checked_at=world.clock.iso,
    )
    if passed:
        world.database.update(schema.tickets, {"ticket_id": ticket_id}, customer_id=customer_id)
    return {"passed": passed, "ticket_id": ticket_id, "customer_id": customer_id}


@tool(
    reads=("tickets", "orders", "order_lines", "returns"),
    writes=("returns", "order_lines"),
)
def register_return(
    world: Office, ticket_id: Id, order_id: Id, line_no: Number, quantity: Number, condition: Condition
) -> dict[str, Any]:
    """Record that pieces of an order line come back, or that they never arrived.

    Args:
        ticket_id: The open ticket you work on.
        order_id: Number of the order.
        line_no: Number of the line in the order.
        quantity: How many pieces; at most those bought and not returned yet.
        condition: State of the pieces.
    """
    records.open_ticket(world, ticket_id)
    order = records.order(world, order_id)
    line = records.line(world, order_id, line_no)
    left = line["quantity"] - line["returned_quantity"]
    if quantity > left:
        raise ToolError(
            f"order {order_id!r}, line {line_no}: {quantity} pieces are more than the {left} bought and not returned "
            "yet; register at most those"
        )
    number = records.next_id(world, schema.returns)
    world.database.insert(
        schema.returns,
        return_id=number,
        order_id=order_id,
        line_no=line_no,
        quantity=quantity,
        condition=condition,
        registered_at=world.clock.iso,
    )
    world.database.update(
        schema.order_lines,
        {"order_id": order_id, "line_no": line_no},
        returned_quantity=line["returned_quantity"] + quantity,
    )
    return {
        "return_id": number,
        "order_id": order_id,
        "line_no": line_no,
        "quantity": quantity,
        "customer_id": order["customer_id"],
    }


@tool(reads=("tickets", "ticket_notes"), writes=("ticket_notes",))
def add_note(world: Office, ticket_id: Id, text: Prose) -> dict[str, Any]:
    """Write a note on a ticket, for colleagues.

    Args:
        ticket_id: The open ticket you work on.
        text: The note.
    """
    records.open_ticket(world, ticket_id)
    number = records.next_id(world, schema.ticket_notes)
    world.database.insert(
        schema.ticket_notes, note_id=number, ticket_id=ticket_id, text=text, written_at=world.clock.iso
    )
    return {"note_id": number, "ticket_id": ticket_id}


@tool(reads=("tickets",), writes=("tickets",))
def hand_over(world: Office, ticket_id: Id, team: Team, reason: HandOverReason) -> dict[str, Any]:
    """Close a ticket for you by handing it over to another team.

    Args:
        ticket_id: The open ticket you work on.
        team: Who takes over.
        reason: Why.
    """
    return _close(world, ticket_id, status="handed_over", decision="handed_over", reason_code=reason, team=team)


@tool(reads=("tickets",), writes=("tickets",))
def resolve_ticket(world: Office, ticket_id: Id, decision: Decision, reason: Reason) -> dict[str, Any]:
    """Close a ticket with what was decided.

    Args:
        ticket_id: The open ticket you work on.
        decision: What was done.
        reason: Reason code of the decision.
    """
    return _close(world, ticket_id, status="resolved", decision=decision, reason_code=reason)


def _close(world: Office, ticket_id: str, **values: str) -> dict[str, Any]:
    records.open_ticket(world, ticket_id)
    world.database.update(schema.tickets, {"ticket_id": ticket_id}, **values, closed_at=world.clock.iso)
    return {"ticket_id": ticket_id, **values}


def _refuse_after_failures(world: Office, ticket_id: str) -> None:
    most, seconds = FAILED_CHECKS
    recent = world.database.all(_failures, ticket_id=ticket_id, passed=False)
    if len(recent) < most:
        return
    free = instant(recent[-1]["checked_at"]) + dt.timedelta(seconds=seconds)
    if world.clock.now < free:
        raise ToolError(
            f"{most} identity checks of ticket {ticket_id!r} failed within {seconds // 3600} hours; the next one is "
            f"possible at {free:%Y-%m-%dT%H:%M:%SZ}"
        )


def _folded(fact: str) -> str:
    """A fact as it is compared: letter case and white space don't count."""
    return "".join(fact.split()).casefold()


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
