"""The options: what each one stands for, given what was seen.

An option is on offer when its call can be written and could bring something new: the ids and figures it needs were
seen, a claim's subject was looked at (no "out of window" before the order's dates are known), and what is known isn't
asked again. Nothing asks whether it is right: an unverified caller can be paid, a wrong sum refunded, a fit request
refused.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from agent_envs.envs.refund.menu.figures import BASES, Figures, Part
from agent_envs.envs.refund.rules import payment_left

MOST_CALLS: Final = 16
ZERO: Final = Decimal(0)
Calls = list[dict[str, Any]]
Option = Callable[[Figures], Calls]
"""Gives the calls, or none when it isn't on offer."""

IDENTITY_FACTS: Final = ("email", "postcode", "birth_date")
REQUEST_FACTS: Final = ("order_id", "items", "condition", "reason")


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def _when(wanted: Any, *calls: dict[str, Any]) -> Calls:
    return list(calls) if wanted else []


# Asking and finding ----------------------------------------------------------------------------------------------


def _ask(text: str, *facts: str) -> Option:
    def option(known: Figures) -> Calls:
        new = [name for name in facts if name not in known.memory.asked]
        return _when(new and known.memory.user == "active", _call("send_message", text=text, ask=new))

    return option


def _find(fact: str) -> Option:
    def option(known: Figures) -> Calls:
        value = known.memory.facts.get(fact, "")
        return _when(value and fact not in known.memory.searched, _call("find_customer", **{fact: value}))

    return option


def _verify(place: int, *facts: str) -> Option:
    """Check the first (0) or last (-1) customer found; the last only where there are several."""

    def option(known: Figures) -> Calls:
        memory = known.memory
        if not _open(known) or not memory.found or (place and len(memory.found) < 2):
            return []
        told = {name: memory.facts[name] for name in facts if name in memory.facts}
        number = memory.found[place]
        call = _call("verify_identity", ticket_id=memory.ticket_id, customer_id=number, **told)
        return _when(len(told) == len(facts) and number != known.verified, call)

    return option


# Looking up ------------------------------------------------------------------------------------------------------


def _read_policy(known: Figures) -> Calls:
    return _when(not known.memory.policy_read, _call("read_policy", section="all"))


def _get_ticket(known: Figures) -> Calls:
    memory = known.memory
    return _when(memory.ticket_id and memory.opened is None, _call("get_ticket", ticket_id=memory.ticket_id))


def _get_customer(known: Figures) -> Calls:
    number = known.candidate
    return _when(number and number not in known.memory.tiers, _call("get_customer", customer_id=number))


def _list_orders(known: Figures) -> Calls:
    number = known.candidate
    return _when(number and number not in known.memory.listed, _call("list_orders", customer_id=number))


def _get_order_mentioned(known: Figures) -> Calls:
    number = known.memory.mentioned
    return _when(number and number != known.memory.order_id, _call("get_order", order_id=number))


def _get_order_listed(known: Figures) -> Calls:
    memory = known.memory
    number = next((number for number in memory.listed.get(known.candidate, ()) if number not in memory.orders), "")
    return _when(number, _call("get_order", order_id=number))


def _look(tool: str, seen: str) -> Option:
    def option(known: Figures) -> Calls:
        number = known.memory.order_id
        return _when(number and number not in getattr(known.memory, seen), _call(tool, order_id=number))

    return option


# Proposing and paying --------------------------------------------------------------------------------------------


def _propose(known: Figures, text: str, *proposals: Mapping[str, Any]) -> Calls:
    """Say it unless all of it was agreed to before."""
    agreed = [proposal for proposal, accepted in known.memory.proposals if accepted]
    new = [proposal for proposal in proposals if proposal not in agreed]
    calls = [_call("send_message", text=text, propose=dict(proposal)) for proposal in proposals]
    return _when(new and known.memory.user == "active", *calls[:MOST_CALLS])


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


def _propose_refund(basis: str) -> Option:
    return lambda known: _propose(known, "I would refund this. Do you agree?", *proposed_refunds(known, basis))


def _propose_credit(known: Figures) -> Calls:
    proposal = proposed_credit(known)
    return _propose(known, "I would give you store credit. Do you agree?", proposal) if proposal else []


def _propose_cancel(known: Figures) -> Calls:
    if known.order is None:
        return []
    proposal = {"action": "cancel", "order_id": known.memory.order_id}
    return _propose(known, "I would cancel the whole order. Do you agree?", proposal)


def _approval(known: Figures, amount: str) -> Calls:
    new = known.memory.order_id not in known.memory.approvals
    asked = {"order_id": known.memory.order_id, "amount": amount, "reason": "return of goods"}
    return _when(new and amount, _call("request_approval", **asked))


def _approve_refund(known: Figures) -> Calls:
    return _approval(known, format(known.policy_sum, "f") if known.policy_sum > 0 else "")


def _approve_total(known: Figures) -> Calls:
    return _approval(known, str(known.order["total"]) if known.order else "")


def _register(condition: str) -> Option:
    def option(known: Figures) -> Calls:
        if not _open(known):
            return []
        memory = known.memory
        target = {"ticket_id": memory.ticket_id, "order_id": memory.order_id, "condition": condition}
        calls = [
            _call("register_return", **target, line_no=part.line["line_no"], quantity=part.quantity)
            for part in known.unregistered
        ]
        return calls[:MOST_CALLS]

    return option


def _issue(known: Figures, parts: tuple[Part, ...]) -> Calls:
    left = {row["payment_id"]: payment_left(row) for row in known.payments}
    enough = all(left.get(part.payment_id, ZERO) >= Decimal(part.amount) for part in parts)
    if not (_open(known) and known.reason and enough):
        return []
    return [
        _call("issue_refund", payment_id=part.payment_id, amount=part.amount, **_grounds(known))
        for part in parts[:MOST_CALLS]
    ]


def _issue_as_proposed(known: Figures) -> Calls:
    last = known.memory.last_refund
    parts = [Part(proposal["payment_id"], proposal["currency"], proposal["amount"]) for proposal in last]
    return _issue(known, tuple(parts))


def _issue_refund(basis: str) -> Option:
    return lambda known: _issue(known, known.parts[basis])


def _issue_credit(known: Figures) -> Calls:
    wanted = _open(known) and known.credit and known.reason
    return _when(wanted, _call("issue_store_credit", amount=known.credit, **_grounds(known)))


def _cancel_order(known: Figures) -> Calls:
    memory = known.memory
    wanted = _open(known) and known.order and known.reason and memory.order_id not in memory.cancelled
    target = {"ticket_id": memory.ticket_id, "order_id": memory.order_id, "reason": known.reason}
    return _when(wanted, _call("cancel_order", **target))


def _grounds(known: Figures) -> dict[str, Any]:
    memory = known.memory
    grounds = {"ticket_id": memory.ticket_id, "order_id": memory.order_id, "reason": known.reason}
    approved = [row for row in memory.approvals.get(memory.order_id, ()) if row["decision"] == "approved"]
    return grounds | ({"authorisation_id": approved[-1]["authorisation_id"]} if approved else {})


# Closing ---------------------------------------------------------------------------------------------------------


def _open(known: Figures) -> bool:
    return bool(known.memory.ticket_id) and not known.memory.closed


def _moved(known: Figures) -> bool:
    memory = known.memory
    return bool(memory.refunds or memory.credits or memory.cancelled)


def _resolve(decision: str, done: str) -> Option:
    """Close with a decision, once something of the kind was done."""

    def option(known: Figures) -> Calls:
        wanted = _open(known) and known.reason and getattr(known.memory, done)
        arguments = {"ticket_id": known.memory.ticket_id, "decision": decision, "reason": known.reason}
        return _when(wanted, _call("resolve_ticket", **arguments))

    return option


def _refuse(reason: str, looked_at: Callable[[Figures], Any]) -> Option:
    """Refuse, once what the reason is about was looked at."""

    def option(known: Figures) -> Calls:
        arguments = {"ticket_id": known.memory.ticket_id, "decision": "refused", "reason": reason}
        return _when(_open(known) and looked_at(known), _call("resolve_ticket", **arguments))

    return option


def _hand_over(team: str, reason: str, looked_at: Callable[[Figures], Any]) -> Option:
    def option(known: Figures) -> Calls:
        arguments = {"ticket_id": known.memory.ticket_id, "team": team, "reason": reason}
        return _when(_open(known) and looked_at(known), _call("hand_over", **arguments))

    return option


def _report(outcome: str, text: str) -> Option:
    def option(known: Figures) -> Calls:
        settled = known.memory.closed or _moved(known)
        wanted = settled and known.memory.user == "active"
        return _when(wanted, _call("send_message", text=text, report=outcome))

    return option


def _finish(outcome: str) -> Option:
    def option(known: Figures) -> Calls:
        settled = known.memory.closed or _moved(known) or known.memory.user != "active" or outcome == "unable"
        return _when(settled, _call("finish", outcome=outcome))

    return option


OPTIONS: Final[Mapping[str, Option]] = {
    "ask_identity": _ask("Please tell me a few facts of your account.", *IDENTITY_FACTS),
    "ask_name": _ask("Please tell me your name and phone number.", "name", "phone"),
    "ask_request": _ask("Please tell me what it is about.", *REQUEST_FACTS),
    "find_by_email": _find("email"),
    "find_by_name": _find("name"),
    "find_by_phone": _find("phone"),
    "verify_email_postcode": _verify(0, "email", "postcode"),
    "verify_email_birth_date": _verify(0, "email", "birth_date"),
    "verify_postcode_birth_date": _verify(0, "postcode", "birth_date"),
    "verify_other_customer": _verify(-1, *IDENTITY_FACTS),
    "read_policy": _read_policy,
    "get_ticket": _get_ticket,
    "get_customer": _get_customer,
    "list_orders": _list_orders,
    "get_order_mentioned": _get_order_mentioned,
    "get_order_listed": _get_order_listed,
    "get_payments": _look("get_payments", "payments"),
    "get_history": _look("get_history", "histories"),
    "check_risk": _look("check_risk", "risks"),
    **{f"propose_refund_{basis}": _propose_refund(basis) for basis in BASES},
    "propose_credit": _propose_credit,
    "propose_cancel": _propose_cancel,
    "request_approval_refund": _approve_refund,
    "request_approval_total": _approve_total,
    **{
        f"register_{condition}": _register(condition)
        for condition in ("unopened", "opened", "defective", "never_arrived")
    },
    "issue_refund_as_proposed": _issue_as_proposed,
    **{f"issue_refund_{basis}": _issue_refund(basis) for basis in ("policy", "price", "everything")},
    "issue_credit": _issue_credit,
    "cancel_order": _cancel_order,
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
