"""The options: what each one stands for, given what was seen.

An option is on offer when its call can be written and could bring something new: the ids and figures it needs were
seen, a claim's subject was looked at (no "out of window" before the order's dates are known), and what is known isn't
asked again. Nothing asks whether it is right: an unverified caller can be paid, a wrong sum refunded, a fit request
refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agent_envs.envs.refund.menu import inquiry, paying
from agent_envs.envs.refund.menu.figures import BASES, Figures
from agent_envs.envs.refund.menu.offer import Calls, Option, call, ticket_is_open, when


def _moved(known: Figures) -> bool:
    memory = known.memory
    return bool(memory.refunds or memory.credits or memory.cancelled)


def _resolve(decision: str, done: str) -> Option:
    """Close with a decision, once something of the kind was done."""

    def option(known: Figures) -> Calls:
        wanted = ticket_is_open(known) and known.reason and getattr(known.memory, done)
        arguments = {"ticket_id": known.memory.ticket_id, "decision": decision, "reason": known.reason}
        return when(wanted, call("resolve_ticket", **arguments))

    return option


def _refuse(reason: str, looked_at: Callable[[Figures], Any]) -> Option:
    """Refuse, once what the reason is about was looked at."""

    def option(known: Figures) -> Calls:
        arguments = {"ticket_id": known.memory.ticket_id, "decision": "refused", "reason": reason}
        return when(ticket_is_open(known) and looked_at(known), call("resolve_ticket", **arguments))

    return option


def _hand_over(team: str, reason: str, looked_at: Callable[[Figures], Any]) -> Option:
    def option(known: Figures) -> Calls:
        arguments = {"ticket_id": known.memory.ticket_id, "team": team, "reason": reason}
        return when(ticket_is_open(known) and looked_at(known), call("hand_over", **arguments))

    return option


def _report(outcome: str, text: str) -> Option:
    def option(known: Figures) -> Calls:
        settled = known.memory.closed or _moved(known)
        wanted = settled and known.memory.user == "active"
        return when(wanted, call("send_message", text=text, report=outcome))

    return option


def _finish(outcome: str) -> Option:
    def option(known: Figures) -> Calls:
        settled = known.memory.closed or _moved(known) or known.memory.user != "active" or outcome == "unable"
        return when(settled, call("finish", outcome=outcome))

    return option


OPTIONS: Final[Mapping[str, Option]] = {
    "ask_identity": inquiry.ask("Please tell me a few facts of your account.", *inquiry.IDENTITY_FACTS),
    "ask_name": inquiry.ask("Please tell me your name and phone number.", "name", "phone"),
    "ask_request": inquiry.ask("Please tell me what it is about.", *inquiry.REQUEST_FACTS),
    "find_by_email": inquiry.find("email"),
    "find_by_name": inquiry.find("name"),
    "find_by_phone": inquiry.find("phone"),
    "verify_email_postcode": inquiry.verify(0, "email", "postcode"),
    "verify_email_birth_date": inquiry.verify(0, "email", "birth_date"),
    "verify_postcode_birth_date": inquiry.verify(0, "postcode", "birth_date"),
    "verify_other_customer": inquiry.verify(-1, *inquiry.IDENTITY_FACTS),
    "read_policy": inquiry.read_policy,
    "get_ticket": inquiry.get_ticket,
    "get_customer": inquiry.get_customer,
    "list_orders": inquiry.list_orders,
    "get_order_mentioned": inquiry.get_order_mentioned,
    "get_order_listed": inquiry.get_order_listed,
    "get_payments": inquiry.look("get_payments", "payments"),
    "get_history": inquiry.look("get_history", "histories"),
    "check_risk": inquiry.look("check_risk", "risks"),
    **{f"propose_refund_{basis}": paying.propose_refund(basis) for basis in BASES},
    "propose_credit": paying.propose_credit,
    "propose_cancel": paying.propose_cancel,
    "request_approval_refund": paying.approve_refund,
    "request_approval_total": paying.approve_total,
    **{
        f"register_{condition}": paying.register(condition)
        for condition in ("unopened", "opened", "defective", "never_arrived")
    },
    "issue_refund_as_proposed": paying.issue_as_proposed,
    **{f"issue_refund_{basis}": paying.issue_refund(basis) for basis in ("policy", "price", "everything")},
    "issue_credit": paying.issue_credit,
    "cancel_order": paying.cancel_order,
    "resolve_refunded": _resolve("refunded", "refunds"),
    "resolve_credited": _resolve("credited", "credits"),
    "resolve_cancelled": _resolve("cancelled", "cancelled"),
    "refuse_out_of_window": _refuse("out_of_window", lambda known: known.order and known.condition),
    "refuse_final_sale": _refuse("final_sale", lambda known: known.order),
    "refuse_already_refunded": _refuse(
        "already_refunded", lambda known: known.memory.order_id in known.memory.histories
    ),
    "refuse_not_delivered": _refuse("not_delivered", lambda known: known.order),
    "refuse_identity_failed": _refuse("identity_failed", lambda known: known.memory.checks),
    "refuse_not_owner": _refuse("not_owner", lambda known: known.order and known.candidate),
    "hand_over_risk": _hand_over("risk", "fraud_hold", lambda known: known.memory.order_id in known.memory.risks),
    "hand_over_supervisors": _hand_over("supervisors", "approval_denied", lambda known: known.memory.approvals),
    "report_done": _report("done", "That is settled. Thank you for calling."),
    "report_refused": _report("refused", "I am sorry, under our policy I can't do that."),
    "report_handed_over": _report("handed_over", "I have handed this over to colleagues."),
    **{f"finish_{outcome}": _finish(outcome) for outcome in ("completed", "refused", "handed_over", "unable")},
}
"""Every option by name, in the order of the indices. ``finish_unable`` gives up and is always on offer."""
