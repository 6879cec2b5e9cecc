"""What several kinds of tasks share: a caller with a delivered order who wants something back."""

from agent_envs.envs.refund.generator.draft import Draft
from agent_envs.envs.refund.generator.parts import CONDITIONS, REASONS, Pieces, Row, products, refund_terms
from agent_envs.envs.refund.rows import stamp
from agent_envs.envs.refund.rules import Condition, return_window_days

ASKS = ("order_id", "items", "condition", "reason")
SMALL = products(most=6_000)
SEALED = products(most=6_000, other_than="electronics")


def items_of(order: Row, pieces: list[Pieces]) -> str:
    """Pieces as the caller names them: ``2 x Yoga mat, 1 x Kite``."""
    return ", ".join(f"{part.quantity} x {order['lines'][part.line - 1]['name']}" for part in pieces)


def everything(order: Row, condition: Condition) -> list[Pieces]:
    """All pieces of an order."""
    return [Pieces(number, line["quantity"], condition) for number, line in enumerate(order["lines"], start=1)]


def window_days(order_lines: list[Row], tier: str, condition: Condition) -> int:
    """The shortest window of the lines."""
    return min(return_window_days(line["category"], tier, condition) for line in order_lines)


def delivered_order(
    draft: Draft, lines: list[Row], currency: str, condition: Condition, *, tier: str = ""
) -> tuple[Row, Row]:
    """A customer with a delivered order whose window is open, not paid yet."""
    customer = draft.customer(tier=tier or draft.tier())
    delivered = draft.ago(1, min(window_days(lines, customer["tier"], condition) - 2, 120))
    return customer, draft.order(customer, lines, currency, delivered=delivered)


def ask_back(draft: Draft, customer: Row, order: Row, pieces: list[Pieces]) -> None:
    """The caller knows everything, wants pieces back as money, and takes any refund."""
    condition = pieces[0].condition
    draft.knows(
        customer,
        order_id=order["order_id"],
        items=items_of(order, pieces),
        condition=CONDITIONS[condition],
        reason=REASONS[condition],
    )
    opening = draft.rng.choice(
        (
            "Hello, I'd like to give something back and get my money.",
            "Good day. I want a refund for something I ordered from you.",
            "Hi, this is about an order of mine. I'd like my money back.",
        )
    )
    draft.wishes.append(draft.wish(opening, refund_terms(order)))


def any_tender(draft: Draft) -> str:
    """A way of paying."""
    return draft.rng.choice(("card", "card", "paypal", "gift_card"))


def parcel(draft: Draft, order: Row, status: str, days: int) -> None:
    """An undelivered order some days old, with its parcel."""
    order["placed"] = day_before(draft, days + 2)
    parcel = {"shipment_id": f"S{draft.ticket[1:]}", "carrier": "Blue Van", "status": status}
    order["shipments"] = [parcel | {"shipped": day_before(draft, days), "delivered": None}]


def day_before(draft: Draft, days: int) -> str:
    """An instant of the day that lies so many days before the start."""
    return stamp(draft.ago(days, days))
