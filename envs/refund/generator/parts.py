"""What drafts are put together from: conditions in the caller's words, terms the caller agrees to, goods and sums."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from agent_envs.contract import Terms
from agent_envs.contract.expected import AnyValue, Exact, Expected, OneOf
from agent_envs.envs.refund.rules import Condition, Returned
from agent_envs.envs.refund.words import PRODUCTS, Product

CURRENCIES = ("USD", "USD", "USD", "EUR", "EUR", "GBP", "JPY")
ANY = AnyValue(any=True)
CONDITIONS: dict[Condition, str] = {
    "unopened": "still sealed, never opened",
    "opened": "opened and used a little, but it works",
    "defective": "broken, it doesn't work",
    "never_arrived": "it never arrived",
}
REASONS: dict[Condition, str] = {
    "unopened": "I changed my mind",
    "opened": "I changed my mind",
    "defective": "it is defective",
    "never_arrived": "it never arrived",
}
WORDS = {
    "name": ("full name", "your name"),
    "email": ("e-mail", "mail address"),
    "phone": ("telephone", "phone number"),
    "postcode": ("post code", "postal code", "zip code"),
    "birth_date": ("date of birth", "birthday"),
    "order_id": ("order number", "which order"),
    "items": ("which items", "which goods", "what would you like to return"),
    "condition": ("what condition", "opened", "defective"),
    "reason": ("why",),
}
"""Phrases that ask for a fact, beside its name."""
Row = dict[str, Any]


class Pieces(NamedTuple):
    """Pieces of a line that the customer wants to give back."""

    line: int
    """Number of the line, from 1."""
    quantity: int
    condition: Condition

    @property
    def reason(self) -> str:
        """The reason code that goes with the condition."""
        return "changed_mind" if self.condition in ("unopened", "opened") else self.condition


def returned(line: Row, quantity: int, condition: Condition) -> Returned:
    """Pieces of a line as `rules` takes them."""
    return Returned(line["category"], line["price"], quantity, condition)


def total(order: Row) -> Decimal:
    """Lines and shipping."""
    whole: Decimal = order["shipping"]
    for line in order["lines"]:
        whole += line["price"] * line["quantity"]
    return whole


def refund_terms(*orders: Row) -> Terms:
    """The caller agrees to any refund for these orders that says how much, in which currency and where to."""
    return _terms("refund", orders, amount=ANY, currency=ANY, payment_id=ANY)


def credit_terms(*orders: Row) -> Terms:
    """The caller agrees to any store credit for these orders that says how much and in which currency."""
    return _terms("store_credit", orders, amount=ANY, currency=ANY)


def cancel_terms(*orders: Row) -> Terms:
    """The caller agrees to the cancellation of these orders."""
    return _terms("cancel", orders)


def _terms(action: str, orders: Sequence[Row], **fields: Expected) -> Terms:
    names = tuple(Exact(exact=order["order_id"]) for order in orders)
    about: Expected = names[0] if len(names) == 1 else OneOf(one_of=names)
    return Terms(proposal={"action": Exact(exact=action), "order_id": about, **fields})


def products(*, category: str = "", least: int = 0, most: int = 100_000, other_than: str = "") -> tuple[Product, ...]:
    """Goods of a category within a range of prices in hundredths of a dollar."""
    return tuple(
        item
        for item in PRODUCTS
        if least <= item.cents <= most and category in ("", item.category) and item.category != other_than
    )


def bought(order: Row) -> int:
    """Number of pieces in an order."""
    return sum(line["quantity"] for line in order["lines"])


def payment_row(order: Row, payment: Row) -> Row:
    """A payment as it stands in the table, with its past refunds."""
    back = sum((past["amount"] for past in order["refunds"] if past["payment"] == payment["payment_id"]), Decimal(0))
    return payment | {"refunded": back, "status": "captured"}
