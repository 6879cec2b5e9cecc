"""What the policy says to a request about one order: pure functions over what the look-up tools showed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from agent_envs.envs.refund import rules

Row = dict[str, Any]


class Pieces(NamedTuple):
    """Pieces of an order line."""

    line_no: int
    quantity: int
    condition: rules.Condition


class File(NamedTuple):
    """Everything looked up about an order."""

    order: Row
    payments: list[Row]
    history: Row
    risk: str
    tier: str
    now: str


@dataclass(frozen=True)
class Decision:
    """What to do about one request."""

    action: Literal["pay", "cancel", "refuse", "hand_over"]
    reason: str
    pieces: tuple[Pieces, ...] = ()
    """Pieces that are paid for."""
    proposals: tuple[Row, ...] = ()
    """What the customer has to agree to, in the form that ``send_message`` takes."""
    total: Decimal = Decimal(0)
    """Sum of all payments, in the currency of the order."""


def decide(file: File, wanted: Sequence[Pieces], *, as_credit: bool) -> Decision:
    """Apply the policy to pieces of an order whose owner is verified.

    Args:
        file: The order and its surroundings.
        wanted: What the customer wants to give back or never got.
        as_credit: The customer would rather have store credit than money.
    """
    order = file.order
    if file.risk == "hold":
        return Decision("hand_over", "fraud_hold")
    if order["status"] == "cancelled":
        return Decision("refuse", "already_refunded")
    if order["status"] in ("placed", "processing"):
        return Decision("cancel", "changed_mind", proposals=({"action": "cancel", "order_id": order["order_id"]},))
    if order["delivered_at"] is None:
        if not any(shipment["status"] == "lost" for shipment in order["shipments"]):
            return Decision("refuse", "not_delivered")
        wanted = [part._replace(condition="never_arrived") for part in wanted]
    verdicts = [(_verdict(file, part), part) for part in wanted]
    credit = [part for verdict, part in verdicts if verdict == "credit_only" or (as_credit and verdict == "refundable")]
    money = [part for verdict, part in verdicts if verdict == "refundable" and not as_credit]
    if money or credit:
        return _payment(file, money, credit)
    # A line that came back before says less about the request than one that may not come back at all.
    reasons = sorted((verdict for verdict, _ in verdicts), key="already_refunded".__eq__)
    return Decision("refuse", reasons[0] if reasons else "already_refunded")


def _verdict(file: File, part: Pieces) -> str:
    """``refundable``, ``credit_only``, or the reason code of a refusal."""
    order, line = file.order, _line(file.order, part)
    if line["returned_quantity"] >= line["quantity"]:
        return "already_refunded"
    if line["final_sale"] and part.condition not in rules.CLAIMS:
        return "final_sale"
    state = rules.window_state(
        rules.instant(file.now),
        delivered=rules.instant(order["delivered_at"]) if order["delivered_at"] else None,
        placed=rules.instant(order["placed_at"]),
        category=line["category"],
        tier=file.tier,
        condition=part.condition,
    )
    return "out_of_window" if state == "closed" else state


def _payment(file: File, money: list[Pieces], credit: list[Pieces]) -> Decision:
    order, currency, zero = file.order, file.order["currency"], Decimal(0)
    before = [Pieces(past["line_no"], past["quantity"], past["condition"]) for past in file.history["returns"]]
    due = rules.shipping_is_due(
        _returned(order, [*money, *credit, *before]), sum(line["quantity"] for line in order["lines"])
    )
    fee = Decimal(order["shipping_fee"]) if due else zero
    refund = rules.refund_amount(_returned(order, money), currency, shipping_fee=fee if money else zero)
    given = rules.credit_amount(_returned(order, credit), currency, shipping_fee=zero if money else fee)
    numbers = {"captured": "amount", "refunded": "refunded", "rate": "rate"}
    payments = [row | {name: Decimal(row[shown]) for shown, name in numbers.items()} for row in file.payments]
    spent = sum((Decimal(past["amount"]) for past in file.history["credits"]), zero)
    try:
        # What was credited before is gone as much as what was refunded, though the payments don't show it.
        rules.split_over_tenders(refund + given + spent, payments)
        parts = rules.split_over_tenders(refund, payments)
    except ValueError:
        return Decision("refuse", "already_refunded")
    paid_in = {row["payment_id"]: row["currency"] for row in payments}
    proposals = [_proposal("refund", order, part, paid_in[number], payment_id=number) for number, part in parts]
    if given:
        proposals.append(_proposal("store_credit", order, given, currency))
    if not proposals:  # goods that cost nothing
        return Decision("refuse", "already_refunded")
    pieces = (*money, *credit)
    reason = pieces[0].condition if pieces[0].condition in rules.CLAIMS else "changed_mind"
    return Decision("pay", reason, pieces, tuple(proposals), refund + given)


def _proposal(action: str, order: Row, amount: Decimal, currency: str, **more: str) -> Row:
    money = {"amount": rules.money_text(amount, currency), "currency": currency}
    return {"action": action, "order_id": order["order_id"], **money, **more}


def _returned(order: Row, pieces: Iterable[Pieces]) -> list[rules.Returned]:
    lines = ((_line(order, part), part) for part in pieces)
    return [rules.Returned(row["category"], Decimal(row["unit_price"]), part[1], part[2]) for row, part in lines]


def _line(order: Row, part: Pieces) -> Row:
    found: Row = next(line for line in order["lines"] if line["line_no"] == part.line_no)
    return found
