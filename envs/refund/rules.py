"""The refund policy as arithmetic: windows, fees, rounding, tenders and thresholds.

One place for what `policy.md` says in words, so that the task generator, the rule-following baseline and the tests
compute the same figures. Everything is a pure function of decimals and aware datetimes. The tools do not use it to
forbid anything: whether an agent keeps the policy is what is measured.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

Condition = Literal["unopened", "opened", "defective", "never_arrived"]
WindowState = Literal["refundable", "credit_only", "closed"]

CURRENCIES: tuple[str, ...] = ("EUR", "GBP", "JPY", "USD")
"""Currencies the retailer trades in."""
CLAIMS: tuple[Condition, ...] = ("defective", "never_arrived")
"""Conditions that are the retailer's fault: long window, no fee, final sale doesn't matter."""
CLAIM_DAYS = 365
RETURN_DAYS = 30
ELECTRONICS_DAYS = 14
GOLD_DAYS = 15
"""Added to the return windows, not to the one for claims."""
CREDIT_DAYS = 30
"""How long after its window a line can still be credited; the last instant no longer counts."""
RESTOCKING_SHARE = Decimal("0.15")

_UNITS = {"EUR": Decimal("0.01"), "GBP": Decimal("0.01"), "JPY": Decimal("1"), "USD": Decimal("0.01")}
_THRESHOLDS = {"EUR": Decimal(200), "GBP": Decimal(180), "JPY": Decimal(30000), "USD": Decimal(200)}
_LIMITS = {"EUR": Decimal(5000), "GBP": Decimal(5000), "JPY": Decimal(750000), "USD": Decimal(5000)}
_TENDER_RANK = {"card": 0, "paypal": 0, "gift_card": 1, "store_credit": 2}


class Returned(NamedTuple):
    """Pieces of one order line that come back (or never came)."""

    category: str
    unit_price: Decimal
    quantity: int
    condition: Condition


def instant(text: str) -> dt.datetime:
    """Read a stored instant such as ``2026-03-01T09:30:00Z``; the result is aware, in UTC."""
    return dt.datetime.fromisoformat(text)


def return_window_days(category: str, tier: str, condition: Condition) -> int:
    """Days of 24 hours within which a line can be refunded.

    Claims (defective, never arrived) have 365 days whatever the category and tier; other returns have 30, electronics
    14, and gold customers 15 more.
    """
    if condition in CLAIMS:
        return CLAIM_DAYS
    days = ELECTRONICS_DAYS if category == "electronics" else RETURN_DAYS
    return days + GOLD_DAYS if tier == "gold" else days


def window_state(
    now: dt.datetime,
    *,
    delivered: dt.datetime | None,
    placed: dt.datetime,
    category: str,
    tier: str,
    condition: Condition,
) -> WindowState:
    """Where ``now`` stands against a line's return window.

    The window opens with the delivery, for claims about goods that were never delivered with the order. Its last
    instant, opening plus days, is still ``refundable``. Less than 30 days after that it is ``credit_only``, then
    ``closed``.

    Raises:
        ValueError: Nothing was delivered and the condition is no claim: there is no window yet.
    """
    start = delivered
    if start is None:
        if condition not in CLAIMS:
            raise ValueError(
                f"nothing was delivered, so {condition!r} goods have no return window; check delivery first"
            )
        start = placed
    end = start + dt.timedelta(days=return_window_days(category, tier, condition))
    if now <= end:
        return "refundable"
    return "credit_only" if now < end + dt.timedelta(days=CREDIT_DAYS) else "closed"


def smallest_unit(currency: str) -> Decimal:
    """Smallest amount of a currency: 0.01, for JPY 1.

    Raises:
        ValueError: The currency isn't traded in.
    """
    return _of_currency(_UNITS, currency)


def approval_threshold(currency: str) -> Decimal:
    """Sum for one order and ticket above which approval is needed; the threshold itself needs none.

    Raises:
        ValueError: The currency isn't traded in.
    """
    return _of_currency(_THRESHOLDS, currency)


def approval_limit(currency: str) -> Decimal:
    """Largest sum a supervisor approves: 5000, for JPY 750000.

    Raises:
        ValueError: The currency isn't traded in.
    """
    return _of_currency(_LIMITS, currency)


def round_half_up(amount: Decimal | Fraction, currency: str) -> Decimal:
    """Round an amount of zero or more to the currency's smallest unit, halves up; the result shows all its digits."""
    unit = smallest_unit(currency)
    if isinstance(amount, Decimal):
        return amount.quantize(unit, rounding=ROUND_HALF_UP)
    units = (amount / Fraction(unit) + Fraction(1, 2)).__floor__()
    return (units * unit).quantize(unit)


def money_text(amount: Decimal, currency: str) -> str:
    """An amount as tools show it: ``25.00``, in JPY ``1500``. The amount must be whole in the currency's unit."""
    return format(amount.quantize(smallest_unit(currency)), "f")


def goods_amount(lines: Iterable[Returned]) -> Decimal:
    """Exact price of the pieces, without fee and shipping."""
    return sum((line.unit_price * line.quantity for line in lines), Decimal(0))


def restocking_fee(lines: Iterable[Returned]) -> Decimal:
    """Exact fee, not rounded: 15 % of the price of electronics that were opened and work."""
    opened = (line for line in lines if line.category == "electronics" and line.condition == "opened")
    return goods_amount(opened) * RESTOCKING_SHARE


def refund_amount(lines: Iterable[Returned], currency: str, *, shipping_fee: Decimal = Decimal(0)) -> Decimal:
    """What is refunded for the pieces: price less restocking fee, rounded once.

    Args:
        lines: The pieces.
        currency: Currency of the order.
        shipping_fee: Given only if it is refunded too; see `shipping_is_due`.
    """
    lines = tuple(lines)
    return round_half_up(goods_amount(lines) - restocking_fee(lines) + shipping_fee, currency)


def credit_amount(lines: Iterable[Returned], currency: str, *, shipping_fee: Decimal = Decimal(0)) -> Decimal:
    """What is credited for the pieces: as `refund_amount`, but without a restocking fee."""
    return round_half_up(goods_amount(lines) + shipping_fee, currency)


def shipping_is_due(lines: Iterable[Returned], pieces_ordered: int) -> bool:
    """Whether the shipping fee is refunded: every piece of the order is defective or never arrived."""
    lines = tuple(lines)
    claimed = sum(line.quantity for line in lines if line.condition in CLAIMS)
    return claimed == pieces_ordered > 0


def split_over_tenders(amount: Decimal, payments: Iterable[Mapping[str, Any]]) -> list[tuple[str, Decimal]]:
    """Divide a refund over an order's payments in the order of the policy.

    Cards and PayPal come first, then gift cards, then store credit; within these, lower numbers first. Each payment
    gives up to what is left on it. Conversions are exact until an amount of a payment is rounded half up.

    A foreign payment was itself rounded when it was captured, so up to half of its unit may be missing from the sum of
    all payments; that much isn't asked for. Payments in the order's own currency leave no such room.

    Args:
        amount: Sum to give back, in the order's currency.
        payments: Rows of the ``payments`` table, all of one order; voided ones are passed over.

    Returns:
        Payment number and amount in that payment's currency, in the order of paying; no zero amounts.

    Raises:
        ValueError: The payments don't have that much left.
    """
    rest, room = Fraction(amount), Fraction(0)
    parts: list[tuple[str, Decimal]] = []
    for payment in sorted(payments, key=_tender_order):
        left = payment_left(payment)
        if left <= 0 or rest <= 0:
            continue
        rate = Fraction(payment["rate"])
        due = round_half_up(rest * rate, payment["currency"])
        part = min(due, left)
        if part:
            parts.append((payment["payment_id"], part))
        if due <= left:
            return parts
        rest -= Fraction(left) / rate
        if rate != 1:
            room += Fraction(smallest_unit(payment["currency"])) / (2 * rate)
    if rest > room:
        raise ValueError(f"the payments have less left than {amount}; lower the amount or credit it instead")
    return parts


def payment_left(payment: Mapping[str, Any]) -> Decimal:
    """What can still be refunded to a row of the ``payments`` table, in its currency; nothing once it is voided."""
    left: Decimal = payment["amount"] - payment["refunded"]
    return left if payment["status"] == "captured" else Decimal(0)


def _tender_order(payment: Mapping[str, Any]) -> tuple[int, int, str]:
    number = payment["payment_id"]
    return _TENDER_RANK[payment["tender"]], len(number), number


def _of_currency(table: Mapping[str, Decimal], currency: str) -> Decimal:
    if currency not in table:
        raise ValueError(f"currency {currency!r} isn't traded in; use one of {', '.join(CURRENCIES)}")
    return table[currency]
