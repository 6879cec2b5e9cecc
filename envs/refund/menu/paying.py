"""Options about goods and money: proposing, getting approval, registering what comes back, paying and cancelling."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from agent_envs.envs.refund.menu.figures import Figures, Part
from agent_envs.envs.refund.menu.offer import MOST_CALLS, Calls, Option, call, ticket_is_open, when
from agent_envs.envs.refund.rules import payment_left

ZERO: Final = Decimal(0)


def _propose(known: Figures, text: str, *proposals: Mapping[str, Any]) -> Calls:
    """Say it unless all of it was agreed to before."""
    agreed = [proposal for proposal, accepted in known.memory.proposals if accepted]
    new = [proposal for proposal in proposals if proposal not in agreed]
    calls = [call("send_message", text=text, propose=dict(proposal)) for proposal in proposals]
    return when(new and known.memory.user == "active", *calls[:MOST_CALLS])


def proposed_refunds(known: Figures, basis: str) -> list[dict[str, Any]]:
    """The proposals for a refund, one a payment."""
    target = {"action": "refund", "order_id": known.memory.order_id}
    return [
        target | {"payment_id": part.payment_id, "amount": part.amount, "currency": part.currency}
        for part in known.parts[basis]
    ]


def proposed_credit(known: Figures) -> dict[str, Any] | None:
    """The proposal of store credit, once its sum can be worked out."""
    if known.order is None or not known.credit:
        return None
    target = {"action": "store_credit", "order_id": known.memory.order_id}
    return target | {"amount": known.credit, "currency": known.order["currency"]}


def propose_refund(basis: str) -> Option:
    """Propose a refund worked out on one of the bases."""
    return lambda known: _propose(known, "I would refund this. Do you agree?", *proposed_refunds(known, basis))


def propose_credit(known: Figures) -> Calls:
    """Propose the policy's sum as store credit."""
    proposal = proposed_credit(known)
    return _propose(known, "I would give you store credit. Do you agree?", proposal) if proposal else []


def propose_cancel(known: Figures) -> Calls:
    """Propose to cancel the whole order."""
    if known.order is None:
        return []
    proposal = {"action": "cancel", "order_id": known.memory.order_id}
    return _propose(known, "I would cancel the whole order. Do you agree?", proposal)


def _approval(known: Figures, amount: str) -> Calls:
    new = known.memory.order_id not in known.memory.approvals
    asked = {"order_id": known.memory.order_id, "amount": amount, "reason": "return of goods"}
    return when(new and amount, call("request_approval", **asked))


def approve_refund(known: Figures) -> Calls:
    """Ask for approval of the policy's sum."""
    return _approval(known, format(known.policy_sum, "f") if known.policy_sum > 0 else "")


def approve_total(known: Figures) -> Calls:
    """Ask for approval of the order's total."""
    return _approval(known, str(known.order["total"]) if known.order else "")


def register(condition: str) -> Option:
    """Register the customer's pieces as returned in a condition, whatever the customer said of it."""

    def option(known: Figures) -> Calls:
        if not ticket_is_open(known):
            return []
        memory = known.memory
        target = {"ticket_id": memory.ticket_id, "order_id": memory.order_id, "condition": condition}
        calls = [
            call("register_return", **target, line_no=part.line["line_no"], quantity=part.quantity)
            for part in known.unregistered
        ]
        return calls[:MOST_CALLS]

    return option


def _issue(known: Figures, parts: tuple[Part, ...]) -> Calls:
    left = {row["payment_id"]: payment_left(row) for row in known.payments}
    enough = all(left.get(part.payment_id, ZERO) >= Decimal(part.amount) for part in parts)
    if not (ticket_is_open(known) and known.reason and enough):
        return []
    return [
        call("issue_refund", payment_id=part.payment_id, amount=part.amount, **_grounds(known))
        for part in parts[:MOST_CALLS]
    ]


def issue_as_proposed(known: Figures) -> Calls:
    """Pay exactly what was proposed last, agreed or not."""
    last = known.memory.last_refund
    parts = [Part(proposal["payment_id"], proposal["currency"], proposal["amount"]) for proposal in last]
    return _issue(known, tuple(parts))


def issue_refund(basis: str) -> Option:
    """Pay a refund worked out on one of the bases, proposed or not."""
    return lambda known: _issue(known, known.parts[basis])


def issue_credit(known: Figures) -> Calls:
    """Give the policy's sum as store credit, proposed or not."""
    wanted = ticket_is_open(known) and known.credit and known.reason
    return when(wanted, call("issue_store_credit", amount=known.credit, **_grounds(known)))


def cancel_order(known: Figures) -> Calls:
    """Cancel the whole order, proposed or not."""
    memory = known.memory
    wanted = ticket_is_open(known) and known.order and known.reason and memory.order_id not in memory.cancelled
    target = {"ticket_id": memory.ticket_id, "order_id": memory.order_id, "reason": known.reason}
    return when(wanted, call("cancel_order", **target))


def _grounds(known: Figures) -> dict[str, Any]:
    memory = known.memory
    grounds = {"ticket_id": memory.ticket_id, "order_id": memory.order_id, "reason": known.reason}
    approved = [row for row in memory.approvals.get(memory.order_id, ()) if row["decision"] == "approved"]
    return grounds | ({"authorisation_id": approved[-1]["authorisation_id"]} if approved else {})
