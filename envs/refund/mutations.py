"""What mutation testing has to know of refunds: a second opinion on outcomes and rules, and mutants of its own.

Nothing here uses the evaluator, the tasks' assertions or the scenario's constraints: outcomes are compared in a normal
form of their own, and the rules are read off the policy's text once more. The audit finds this module by its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from agent_envs.contract import AgentTask, Call, Change, canonical_json, untyped
from agent_envs.envs.refund.rules import approval_threshold

Calls = tuple[Call, ...]
Named = tuple[str, str, Calls]
Event = Mapping[str, Any]

ENTITIES: Mapping[str, str] = {
    "ticket_id": "ticket",
    "customer_id": "customer",
    "order_id": "order",
    "payment_id": "payment",
    "authorisation_id": "authorisation",
}
AMOUNTS = frozenset({"amount"})
LOOKUPS = frozenset(
    {
        "read_policy", "get_ticket", "find_customer", "get_customer", "list_orders", "get_order", "get_payments",
        "get_history", "get_ledger", "check_risk",
    }
)  # fmt: skip
FREE: Mapping[str, frozenset[str]] = {
    "returns": frozenset({"return_id", "registered_at"}),
    "refunds": frozenset({"refund_id", "authorisation_id", "idempotency_key", "created_at"}),
    "store_credits": frozenset({"credit_id", "authorisation_id", "idempotency_key", "created_at"}),
    "ledger": frozenset({"entry_id", "document", "posted_at"}),
    "authorisations": frozenset({"authorisation_id", "note", "decided_at"}),
    "identity_checks": frozenset({"check_id", "customer_id", "passed", "checked_at"}),
    "ticket_notes": frozenset({"note_id", "text", "written_at"}),
}
"""The tools alone write the numbers that tie rows together, so a task needn't compare them; `form` does."""

_NUMBER = {
    "returns": "return_id",
    "refunds": "refund_id",
    "store_credits": "credit_id",
    "ledger": "entry_id",
    "authorisations": "authorisation_id",
    "identity_checks": "check_id",
    "ticket_notes": "note_id",
}
_REMARKS = frozenset({"registered_at", "idempotency_key", "created_at", "posted_at", "note", "decided_at", "closed_at"})
_PAYING = ("issue_refund", "issue_store_credit")
_UNVERIFIED = ("identity_failed", "changed_mind", "defective", "never_arrived", "other")
"""Reasons of closing a ticket that need no verified caller by themselves: the payments before them do."""

_CLOSINGS = (("refused", "not_owner"), ("refunded", "defective"), ("refused", "identity_failed"))


# The second opinion --------------------------------------------------------------------------------------------------


def form(task: AgentTask, changes: Sequence[Change]) -> list[Any]:
    """A change set with rows named by what they say instead of by number, without times and remarks, sorted.

    Pieces of one line that came back in one condition are added up. Identity checks and notes of the task's own ticket
    are left out: policy and tools allow any number.
    """
    tickets = {row["ticket_id"] for row in _own(task, "tickets")}
    names = {
        (change.table, change.key[_NUMBER[change.table]]): _said(change)
        for change in changes
        if change.before is None and change.table in ("refunds", "store_credits", "authorisations")
    }
    pieces: dict[tuple[Any, ...], int] = {}
    rows: list[Any] = []
    for change in changes:
        row = change.after
        if row is not None and change.before is None:
            if change.table in ("identity_checks", "ticket_notes") and row["ticket_id"] in tickets:
                continue
            if change.table == "returns":
                place = (row["order_id"], row["line_no"], row["condition"])
                pieces[place] = pieces.get(place, 0) + row["quantity"]
                continue
            rows.append([change.table, "insert", _linked(_said(change), names)])
        elif row is None:
            rows.append([change.table, "delete", change.key])
        else:
            before = change.before or {}
            altered = {name: row[name] for name in row if row[name] != before.get(name) and name not in _REMARKS}
            rows.append([change.table, "update", change.key, altered])
    rows += [["returns", *place, quantity] for place, quantity in pieces.items()]
    return sorted(rows, key=canonical_json)


def _said(change: Change) -> dict[str, Any]:
    dropped = {_NUMBER.get(change.table, ""), *_REMARKS}
    return {name: value for name, value in (change.after or {}).items() if name not in dropped}


def _linked(row: dict[str, Any], names: Mapping[tuple[str, Any], Any]) -> dict[str, Any]:
    """A row in which the numbers of other new rows are replaced by what those rows say."""
    row = dict(row)
    if (number := row.get("authorisation_id")) is not None:
        row["authorisation_id"] = names.get(("authorisations", number), number)
    kind, colon, digits = str(row.get("document", "")).partition(":")
    table = {"refund": "refunds", "credit": "store_credits"}.get(kind)
    if colon and table and digits.isdecimal() and (table, int(digits)) in names:
        row["document"] = [kind, _linked(names[table, int(digits)], names)]
    return row


def _own(task: AgentTask, table: str) -> list[dict[str, Any]]:
    """The rows that a task adds to a table."""
    return [patch.insert for patch in task.initial_state.patch if patch.table == table and patch.insert is not None]


def breaches(task: AgentTask, events: Sequence[Event]) -> list[str]:
    """The policy's rules that a run broke on its way."""
    held = {row["order_id"] for row in _own(task, "orders") if row["risk"] == "hold"}
    verified: set[str] = set()
    passed: set[str] = set()
    failed: set[str] = set()
    registered: set[str] = set()
    agreed: list[dict[str, Any]] = []
    broken: list[str] = []
    for event in events:
        if event.get("status") != "ok":
            continue
        tool, given, result = event["tool"], event["arguments"], event["result"]
        where = f"step {event['step']} ({tool})"
        if tool == "verify_identity":
            (passed if result["passed"] else failed).add(given["ticket_id"])
            if result["passed"]:
                verified.add(result["customer_id"])
        elif tool == "send_message" and result["customer"]["accepted"] is True:
            agreed.append(given["propose"])
        elif tool in ("resolve_ticket", "hand_over"):
            reason = given["reason"]
            if reason == "identity_failed" and given["ticket_id"] not in failed:
                broken.append(f"{where}: no failed check is on record")
            elif reason not in _UNVERIFIED and given["ticket_id"] not in passed:
                broken.append(f"{where}: nobody was verified")
        elif tool in ("register_return", "cancel_order", *_PAYING) and result.get("repeated") is not True:
            if result["customer_id"] not in verified:
                broken.append(f"{where}: {result['customer_id']} wasn't verified")
            if tool == "register_return":
                registered.add(given["order_id"])
                continue
            if given["order_id"] in held:
                broken.append(f"{where}: {given['order_id']} is on hold")
            if tool in _PAYING and given["order_id"] not in registered:
                broken.append(f"{where}: nothing was registered for {given['order_id']} before")
            match = next((item for item in agreed if _agrees(item, tool, given, result)), None)
            if match is None:
                broken.append(f"{where}: the customer didn't agree to this")
            else:
                agreed.remove(match)
    return broken + _unapproved(task, events)


def _agrees(proposal: Mapping[str, Any], tool: str, given: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    action = {"issue_refund": "refund", "issue_store_credit": "store_credit", "cancel_order": "cancel"}[tool]
    if proposal["action"] != action or proposal["order_id"].strip() != given["order_id"].strip():
        return False
    if tool == "cancel_order":
        return True
    amount = proposal.get("amount")
    return (
        amount is not None
        and Decimal(str(amount)) == Decimal(str(given["amount"]))
        and proposal.get("currency") == result["currency"]
        and (tool != "issue_refund" or proposal.get("payment_id") == given["payment_id"])
    )


def _unapproved(task: AgentTask, events: Sequence[Event]) -> list[str]:
    """Orders paid more than the threshold, in their own currency, without an approval named with each payment."""
    currencies = {row["order_id"]: row["currency"] for row in _own(task, "orders")}
    rates = {row["payment_id"]: untyped(row["rate"]) for row in _own(task, "payments")}
    approvals: dict[Any, str] = {}
    sums: dict[str, Decimal] = {}
    bare: dict[str, str] = {}
    for event in events:
        if event.get("status") != "ok":
            continue
        tool, given, result = event["tool"], event["arguments"], event["result"]
        if tool == "request_approval" and result["decision"] == "approved":
            approvals[result["authorisation_id"]] = given["order_id"]
        elif tool in _PAYING and not result["repeated"]:
            order = given["order_id"]
            rate = Decimal(str(rates.get(given.get("payment_id"), 1)))
            sums[order] = sums.get(order, Decimal(0)) + Decimal(str(given["amount"])) / rate
            if approvals.get(given.get("authorisation_id")) != order:
                bare.setdefault(order, f"step {event['step']} ({tool})")
    return [
        f"{where}: {order} is paid {sums[order]} without approval"
        for order, where in bare.items()
        if order in currencies and sums[order] > approval_threshold(currencies[order])
    ]


# Mutants -------------------------------------------------------------------------------------------------------------


def amounts(text: str) -> Iterator[tuple[str, str]]:
    """Amounts that are wrong by a cent, a unit, a restocking fee, a currency, or a factor of two."""
    try:
        value = Decimal(text)
    except ArithmeticError:
        return
    whole = value == value.to_integral_value() and "." not in text
    cent = Decimal(1) if whole else Decimal("0.01")
    wrong = {
        "cent": value + cent,
        "cent_less": value - cent,
        "unit": value + 1,
        "unit_less": value - 1,
        "fee": (value * Decimal("0.85")).quantize(cent),
        "currency": (value * Decimal("1.1")).quantize(cent),
        "half": (value / 2).quantize(cent),
        "double": value * 2,
    }
    for name, amount in wrong.items():
        if amount > 0 and amount != value:
            yield name, str(amount)


def mutants(task: AgentTask, calls: Calls, others: Mapping[str, Sequence[Any]]) -> Iterator[Named]:
    """Runs that go wrong in ways only a refund can."""
    if any(call.tool == "request_approval" for call in calls):
        unapproved = (_without(call, "authorisation_id") for call in calls if call.tool != "request_approval")
        yield "skip_approval", "no approval is asked for", tuple(unapproved)
        yield "skip_approval", "the approval isn't named", tuple(_without(call, "authorisation_id") for call in calls)
    for place, call in enumerate(calls):
        head, tail = calls[:place], calls[place + 1 :]
        if call.tool == "verify_identity":
            wrong = {name: "1900-01-01" for name in ("email", "postcode", "birth_date") if name in call.arguments}
            yield "fail_check", f"call {place + 1} gives wrong facts", (*head, _with(call, **wrong), *tail)
        if call.tool == "issue_refund":
            credit = {k: v for k, v in call.arguments.items() if k != "payment_id"}
            paid = Call(tool="issue_store_credit", arguments=credit)
            yield "wrong_tender", f"call {place + 1} credits", (*head, paid, *tail)
            yield "wrong_tender", "credit is proposed and given", tuple(_as_credit(item) for item in calls)
        if call.tool in _PAYING:
            yield from _split(calls, place)
        if call.tool in ("resolve_ticket", "hand_over"):
            for name, extra in _side_effects(calls, others):
                yield "side_effect", f"{name} before call {place + 1}", (*head, extra, call, *tail)
            for decision, reason in _CLOSINGS:
                closing = {"ticket_id": call.arguments["ticket_id"], "decision": decision, "reason": reason}
                closed = Call(tool="resolve_ticket", arguments=closing)
                yield "closing", f"{decision}, {reason} first", (closed, *calls)
                yield "closing", f"{decision}, {reason} in place of call {place + 1}", (*head, closed, *tail)


def _split(calls: Calls, place: int) -> Iterator[Named]:
    """A payment in two parts: paid so only, or agreed and paid so."""
    call = calls[place]
    amount = Decimal(str(call.arguments["amount"]))
    unit = Decimal("0.01") if "." in str(call.arguments["amount"]) else Decimal(1)
    parts = [_with(call, amount=str(amount - unit)), _with(call, amount=str(unit))]
    yield "split_payment", f"call {place + 1}", (*calls[:place], *parts, *calls[place + 1 :])
    yield "pay_again", f"call {place + 1}, a unit more", (*calls[: place + 1], parts[1], *calls[place + 1 :])
    asks = [number for number in range(place) if "propose" in calls[number].arguments]
    if asks:
        ask = calls[asks[-1]]
        proposals = [
            _with(ask, propose={**ask.arguments["propose"], "amount": part.arguments["amount"]}) for part in parts
        ]
        head, middle = calls[: asks[-1]], calls[asks[-1] + 1 : place]
        script = (*head, proposals[0], *middle, parts[0], proposals[1], parts[1], *calls[place + 1 :])
        yield "split_payment", f"call {place + 1}, agreed in two parts", script
        again = (*calls[: place + 1], proposals[1], parts[1], *calls[place + 1 :])
        yield "pay_again", f"call {place + 1}, agreed once more", again


def _side_effects(calls: Calls, others: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Call]]:
    """Calls that change something beside what was asked for."""
    ticket = next(call.arguments["ticket_id"] for call in calls if call.tool in ("resolve_ticket", "hand_over"))
    for other in others["ticket"]:
        yield f"a note on {other}", Call(tool="add_note", arguments={"ticket_id": other, "text": "noted"})
    for order in others["order"][:8]:
        here = {"ticket_id": ticket, "order_id": order}
        goods = {"line_no": 1, "quantity": 1, "condition": "opened"}
        yield f"a return of {order}", Call(tool="register_return", arguments=here | goods)
        yield f"cancelling {order}", Call(tool="cancel_order", arguments={**here, "reason": "changed_mind"})
        credit = {"amount": "1", "reason": "changed_mind"}
        yield f"a credit on {order}", Call(tool="issue_store_credit", arguments=here | credit)
        request = {"order_id": order, "amount": "1", "reason": "to be safe"}
        yield f"an approval for {order}", Call(tool="request_approval", arguments=request)
        for payment in others["payment"][:6]:
            small = {**here, "payment_id": payment, "amount": "1", "reason": "changed_mind"}
            yield f"a refund to {payment}", Call(tool="issue_refund", arguments=small)


def _as_credit(call: Call) -> Call:
    if call.tool == "issue_refund":
        return Call(tool="issue_store_credit", arguments=_without(call, "payment_id").arguments)
    proposal = call.arguments.get("propose")
    if isinstance(proposal, dict) and proposal.get("action") == "refund":
        kept = {name: value for name, value in proposal.items() if name != "payment_id"}
        return _with(call, propose=kept | {"action": "store_credit"})
    return call


# Lawful variations ---------------------------------------------------------------------------------------------------


def variations(task: AgentTask, calls: Calls) -> Iterator[Named]:
    """The same work in other words, other numbers and other portions."""
    ticket = next(row["ticket_id"] for row in _own(task, "tickets"))
    note = Call(tool="add_note", arguments={"ticket_id": ticket, "text": "Took over this call."})
    yield "note", "a note on the ticket comes first", (note, *calls)
    yield "wait", "an hour passes before the end", (*calls[:-1], Call(tool="wait", arguments={"hours": 1}), calls[-1])
    yield "words", "everything is said in other words", tuple(_reworded(call) for call in calls)
    yield "figures", "amounts are written with more decimals", tuple(_rewritten(call) for call in calls)
    for place, call in enumerate(calls):
        head, tail = calls[:place], calls[place + 1 :]
        if call.error:
            continue
        if call.tool == "verify_identity":
            yield "check_twice", f"call {place + 1} is made twice", (*head, call, *calls[place:])
        if call.tool == "register_return" and (pieces := call.arguments["quantity"]) > 1:
            yield "piecewise", f"call {place + 1} piece by piece", (*head, *[_with(call, quantity=1)] * pieces, *tail)
        if call.tool in _PAYING:
            keyed = _with(call, idempotency_key=f"payment-{place}")
            yield "retried_payment", f"call {place + 1} is sent again with its key", (*head, keyed, keyed, *tail)
            slip = _with(call, order_id="W0")
            yield "wrong_order_first", f"call {place + 1} names no order at first", (*head, slip, *calls[place:])
        if "propose" in call.arguments:
            yield "ask_twice", f"the proposal of call {place + 1} is repeated", (*head, call, *calls[place:])


def _reworded(call: Call) -> Call:
    words: dict[str, Any] = {}
    if call.tool == "send_message" and call.arguments.keys() & {"ask", "propose", "report"}:
        words = {"text": "Thank you for waiting."}
    elif call.tool == "finish":
        words = {"summary": "All of it is in the ticket."}
    elif call.tool == "request_approval":
        words = {"reason": "as the policy asks"}
    return _with(call, **words) if words else call


def _rewritten(call: Call) -> Call:
    arguments = dict(call.arguments)
    if "amount" in arguments:
        arguments["amount"] = _longer(arguments["amount"])
    if isinstance(proposal := arguments.get("propose"), dict) and "amount" in proposal:
        arguments["propose"] = {**proposal, "amount": _longer(proposal["amount"])}
    return call.model_copy(update={"arguments": arguments})


def _longer(amount: Any) -> str:
    text = str(amount)
    return f"{text}00" if "." in text else f"{text}.00"


def _with(call: Call, **arguments: Any) -> Call:
    return call.model_copy(update={"arguments": {**call.arguments, **arguments}})


def _without(call: Call, name: str) -> Call:
    return call.model_copy(update={"arguments": {k: v for k, v in call.arguments.items() if k != name}})
