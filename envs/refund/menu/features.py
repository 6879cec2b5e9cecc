"""The numbers that stand for what was seen: each 0.0 or 1.0, or a share between them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_envs.envs.refund.menu.figures import BASES, Figures
from agent_envs.envs.refund.menu.inquiry import IDENTITY_FACTS, REQUEST_FACTS
from agent_envs.envs.refund.menu.paying import proposed_credit, proposed_refunds

Feature = Callable[[Figures], Any]
"""Gives a truth value, or a number from 0 to 1."""

CONDITIONS: Final = ("unopened", "opened", "defective", "never_arrived")
MOST_STEPS: Final = 50


def _agreed(known: Figures, proposals: list[dict[str, Any]]) -> bool:
    agreed = [proposal for proposal, accepted in known.memory.proposals if accepted]
    return bool(proposals) and all(proposal in agreed for proposal in proposals)


def _agreed_credit(known: Figures) -> bool:
    proposal = proposed_credit(known)
    return proposal is not None and _agreed(known, [proposal])


def _last_parcel(known: Figures, status: str) -> bool:
    shipments = known.order["shipments"] if known.order else []
    return any(row["status"] == status for row in shipments)


def _approval(known: Figures, decision: str) -> bool:
    return any(row["decision"] == decision for row in known.memory.approvals.get(known.memory.order_id, ()))


def _paid(known: Figures) -> bool:
    memory = known.memory
    return any(row["order_id"] == memory.order_id for row in (*memory.refunds, *memory.credits))


def _told(name: str) -> Feature:
    return lambda known: name in known.memory.facts


def _status(status: str) -> Feature:
    return lambda known: known.order and known.order["status"] == status


def _condition(name: str) -> Feature:
    return lambda known: known.condition == name


def _registered(name: str) -> Feature:
    return lambda known: name in known.memory.conditions.get(known.memory.order_id, ())


def _window(state: str) -> Feature:
    return lambda known: known.windows and all(item == state for item in known.windows)


def _agreed_refund(basis: str) -> Feature:
    return lambda known: _agreed(known, proposed_refunds(known, basis))


def _reported(outcome: str) -> Feature:
    return lambda known: outcome in known.memory.reports


def _here(name: str) -> Feature:
    """Whether the order looked at last is in a part of the memory."""
    return lambda known: known.memory.order_id in getattr(known.memory, name)


FEATURES: Final[Mapping[str, Feature]] = {
    **{f"told_{name}": _told(name) for name in ("name", "phone", *IDENTITY_FACTS, *REQUEST_FACTS)},
    "customer_found": lambda known: known.memory.found,
    "several_found": lambda known: len(known.memory.found) > 1,
    "check_failed": lambda known: any(not passed for _, passed in known.memory.checks),
    "verified": lambda known: known.verified,
    "policy_read": lambda known: known.memory.policy_read,
    "ticket_seen": lambda known: known.memory.opened,
    "customer_seen": lambda known: known.memory.tiers,
    "orders_listed": lambda known: known.memory.listed,
    "order_mentioned": lambda known: known.memory.mentioned,
    "other_order_mentioned": lambda known: known.memory.mentioned not in ("", known.memory.order_id),
    "order_seen": lambda known: known.order,
    **{f"order_{status}": _status(status) for status in ("placed", "processing", "shipped", "delivered", "cancelled")},
    "parcel_lost": lambda known: _last_parcel(known, "lost"),
    "owner_is_verified": lambda known: known.order and known.order["customer_id"] == known.verified,
    "owner_is_another": lambda known: known.order and known.verified not in ("", known.order["customer_id"]),
    "payments_seen": _here("payments"),
    "several_payments": lambda known: len(known.payments) > 1,
    "history_seen": _here("histories"),
    "risk_seen": _here("risks"),
    "on_hold": lambda known: known.memory.risks.get(known.memory.order_id) == "hold",
    **{f"condition_{name}": _condition(name) for name in CONDITIONS},
    "reason_known": lambda known: known.reason,
    **{f"window_{state}": _window(state) for state in ("refundable", "credit_only", "closed")},
    "windows_differ": lambda known: len(set(known.windows)) > 1,
    "some_final_sale": lambda known: any(part.line["final_sale"] for part in known.pieces),
    "returned_before": lambda known: any(not part.left for part in known.pieces),
    "sum_known": lambda known: known.policy_sum > 0,
    "needs_approval": lambda known: known.needs_approval,
    "approval_granted": lambda known: _approval(known, "approved"),
    "approval_denied": lambda known: _approval(known, "denied"),
    **{f"agreed_{basis}": _agreed_refund(basis) for basis in BASES},
    "agreed_credit": _agreed_credit,
    "agreed_cancel": lambda known: _agreed(known, [{"action": "cancel", "order_id": known.memory.order_id}]),
    "last_proposal_agreed": lambda known: known.memory.proposals and known.memory.proposals[-1][1],
    "last_proposal_declined": lambda known: known.memory.proposals and not known.memory.proposals[-1][1],
    "last_refund_is_policy": lambda known: (
        known.memory.last_refund and known.memory.last_refund == proposed_refunds(known, "policy")
    ),
    **{f"registered_{name}": _registered(name) for name in CONDITIONS},
    "all_registered": lambda known: known.memory.order_id in known.memory.registered and not known.unregistered,
    "paid_this_order": _paid,
    "refunded": lambda known: known.memory.refunds,
    "credited": lambda known: known.memory.credits,
    "cancelled": lambda known: known.memory.cancelled,
    "ticket_closed": lambda known: known.memory.closed,
    **{f"reported_{name}": _reported(name) for name in ("done", "refused", "handed_over")},
    "customer_content": lambda known: known.memory.user == "finished",
    "customer_gone": lambda known: known.memory.user == "left",
    "last_refused": lambda known: known.memory.refused,
    "steps": lambda known: min(known.memory.steps / MOST_STEPS, 1.0),
}
"""Every feature by name, in the order of the vector."""


def vector(known: Figures) -> list[float]:
    """The features' values."""
    values = [feature(known) for feature in FEATURES.values()]
    return [value if type(value) is float else float(bool(value)) for value in values]
