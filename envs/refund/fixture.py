"""The retailer's books as every task finds them: customers, orders and a year of history before March 2026.

The content comes from a fixed seed and the word lists alone, so it is the same for ever on every platform; `DIGEST`
pins it. Ids from C9000, W7000, P7000, S9000 and T9000 on, and numbers from 900001 on, are left to tasks.
"""

import datetime as dt
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache, partial

from agent_envs.envs.refund.rows import ONE, ZERO, Row, RowBook, stamp
from agent_envs.envs.refund.rules import approval_threshold, round_half_up
from agent_envs.envs.refund.schema import metadata
from agent_envs.envs.refund.words import (
    CARRIERS,
    FIRST_NAMES,
    LAST_NAMES,
    MAIL_DOMAINS,
    NOTES,
    PRODUCTS,
    SUBJECTS,
    Product,
)
from agent_envs.state import Fixture
from agent_envs.state.random import Rng

NAME = "retail"
DIGEST = "e26eaba4b48a0e58323c6cbe15499333ae80576905f55d8bb656a31c0dd6477a"
"""Digest of the content at scale 1. A change here changes every task that starts from the fixture."""

CUSTOMERS = 250
ORDERS = 700
END = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
"""Everything in the fixture happened before this."""
_SEED = 412_070_001
_CURRENCIES = ("USD",) * 10 + ("EUR",) * 5 + ("GBP",) * 3 + ("JPY",) * 2
_WORTH = {"USD": Decimal(1), "EUR": Decimal("0.92"), "GBP": Decimal("0.79"), "JPY": Decimal(150)}
_SHIPPING = {"JPY": ("0", "500", "800")}
_TENDERS = ("card",) * 12 + ("paypal",) * 5 + ("gift_card",) * 2 + ("store_credit",)


def fixture(scale: int = 1) -> Fixture:
    """The start content, built once a process.

    Args:
        scale: How many times the content of scale 1; a larger scale holds everything a smaller one does.

    Raises:
        ValueError: The scale is below 1.
    """
    if scale < 1:
        raise ValueError(f"scale {scale!r} is below 1; the fixture holds at least its own content once")
    return _fixture(scale)


@lru_cache(maxsize=4)
def _fixture(scale: int) -> Fixture:
    return Fixture(NAME if scale == 1 else f"{NAME}-x{scale}", metadata, partial(_rows, scale))


def price(product: Product, currency: str) -> Decimal:
    """List price of one piece in a currency: the dollar figure in euros, less in pounds, whole tens of yen."""
    if currency == "JPY":
        return Decimal(product.cents * 3 // 20 * 10)
    cents = product.cents * 17 // 20 if currency == "GBP" else product.cents
    return Decimal(cents).scaleb(-2)


def exchange_rate(order_currency: str, payment_currency: str, permille: int = 0) -> Decimal:
    """Units of the payment's currency per unit of the order's, to four places, ``permille`` off the middle rate."""
    middle = _WORTH[payment_currency] / _WORTH[order_currency]
    return (middle * (1000 + permille) / 1000).quantize(Decimal("0.0001"))


def mail_name(name: str) -> str:
    """A name as it stands in an e-mail address: lower case ASCII, joined by a dot."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    return plain.lower().replace(" ", ".")


def _rows(scale: int) -> Mapping[str, list[Row]]:
    book = RowBook()
    for branch in range(scale):
        _Branch(book, branch).write()
    return book.as_rows()


class _Branch:
    """One run of the content: its own customers, orders and history."""

    def __init__(self, book: RowBook, branch: int) -> None:
        self.book = book
        self.branch = branch
        self.rng = Rng()
        self.rng.restore(_SEED + branch)

    def write(self) -> None:
        customers = [self._customer(index) for index in range(CUSTOMERS)]
        for index in range(ORDERS):
            self._order(index, customers[self.rng.integer(CUSTOMERS)])

    def _id(self, letter: str, index: int, size: int) -> str:
        """C1001 and so on in the first branch; further branches use six digits, out of the way of tasks' ids."""
        return f"{letter}{1001 + index}" if self.branch == 0 else f"{letter}{100001 + self.branch * size + index}"

    def _next_id(self, letter: str, table: str) -> str:
        count = len(self.book.tables[table])
        return f"{letter}{1001 + count}" if self.branch == 0 else f"{letter}{100001 + count}"

    def _customer(self, index: int) -> Row:
        rng = self.rng
        first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
        name = f"{first} {last}"
        # Every tenth customer shares a name with the next one, every fiftieth with the next two.
        if index % 10 == 1 or index % 50 == 2:
            name = str(self.book.tables["customers"][-1]["name"])
        born = dt.date(1948, 1, 1) + dt.timedelta(days=rng.integer(20_000))
        return self.book.customer(
            customer_id=self._id("C", index, CUSTOMERS),
            name=name,
            email=f"{mail_name(name)}{self.branch * CUSTOMERS + index + 11}@{rng.choice(MAIL_DOMAINS)}",
            phone=f"555-{rng.integer(900) + 100}-{rng.integer(9000) + 1000}",
            postcode=f"{rng.integer(90_000) + 10_000}",
            birth_date=born.isoformat(),
            tier="gold" if rng.integer(5) == 0 else "standard",
        )

    def _order(self, index: int, customer: Row) -> None:
        rng = self.rng
        days = 6 if rng.integer(8) == 0 else 400
        age = rng.integer(days * 1440) + 60
        placed = END - dt.timedelta(minutes=age)
        status, delivered = self._progress(placed)
        currency = rng.choice(_CURRENCIES)
        fees = _SHIPPING.get(currency, ("0", "4.90", "7.50"))
        order = self.book.order(
            order_id=self._id("W", index, ORDERS),
            customer_id=customer["customer_id"],
            status=status,
            risk="hold" if rng.integer(50) == 0 and status != "cancelled" else "clear",
            currency=currency,
            shipping_fee=Decimal(rng.choice(fees)),
            placed_at=stamp(placed),
            delivered_at=stamp(delivered) if delivered else None,
            lines=self._lines(currency),
        )
        payments = self._payments(order)
        if status in ("shipped", "delivered"):
            self._shipment(order, placed, delivered)
        if status == "cancelled":
            self._cancellation(order, payments, placed)
        elif status == "delivered" and delivered and order["risk"] == "clear" and rng.integer(6) == 0:
            self._return(order, payments, delivered)
        elif order["risk"] == "hold" or rng.integer(14) == 0:
            self._refusal(order, delivered or placed)

    def _progress(self, placed: dt.datetime) -> tuple[str, dt.datetime | None]:
        """Status and delivery that fit an order of that age."""
        age = END - placed
        delivered = placed + dt.timedelta(hours=36 + self.rng.integer(96), minutes=self.rng.integer(60))
        if self.rng.integer(25) == 0 and age > dt.timedelta(days=1):
            return "cancelled", None
        if age < dt.timedelta(hours=18):
            return "placed", None
        if age < dt.timedelta(hours=34):
            return "processing", None
        if delivered >= END or self.rng.integer(100) == 0:
            return "shipped", None
        return "delivered", delivered

    def _lines(self, currency: str) -> list[Row]:
        rng = self.rng
        start, step = rng.integer(len(PRODUCTS)), 1 + rng.integer(13)
        lines = []
        for place in range(1 + rng.integer(4)):
            product = PRODUCTS[(start + place * step) % len(PRODUCTS)]
            lines.append(
                {
                    "sku": product.sku,
                    "name": product.name,
                    "category": product.category,
                    "quantity": 1 + (rng.integer(3) if product.cents < 6000 else 0),
                    "unit_price": price(product, currency),
                    "final_sale": rng.integer(12) == 0,
                }
            )
        return lines

    def _payments(self, order: Row) -> list[Row]:
        rng = self.rng
        total: Decimal = order["total"]
        payments = []
        if rng.integer(12) == 0:
            part = round_half_up(total * (rng.integer(6) + 2) / 10, order["currency"])
            payments.append(self._payment(order, rng.choice(("gift_card", "store_credit")), part, order["currency"]))
            total -= part
        others = tuple(name for name in ("USD", "EUR", "GBP", "JPY") if name != order["currency"])
        currency = rng.choice(others) if rng.integer(10) == 0 else order["currency"]
        tender = rng.choice(_TENDERS) if currency == order["currency"] else "card"
        payments.append(self._payment(order, tender, total, currency))
        return payments

    def _payment(self, order: Row, tender: str, due: Decimal, currency: str) -> Row:
        rng = self.rng
        foreign = currency != order["currency"]
        rate = exchange_rate(order["currency"], currency, rng.integer(41) - 20) if foreign else ONE
        details = {
            "card": f"ending {rng.integer(9000) + 1000}",
            "paypal": "PayPal account",
            "gift_card": f"gift card {rng.integer(900_000) + 100_000}",
            "store_credit": "store credit",
        }
        return self.book.payment(
            payment_id=self._next_id("P", "payments"),
            order_id=order["order_id"],
            tender=tender,
            detail=details[tender],
            currency=currency,
            amount=round_half_up(due * rate, currency),
            rate=rate,
            captured_at=order["placed_at"],
        )

    def _shipment(self, order: Row, placed: dt.datetime, delivered: dt.datetime | None) -> None:
        shipped = placed + dt.timedelta(hours=20 + self.rng.integer(12), minutes=self.rng.integer(60))
        if delivered:
            status = "delivered"
        else:
            status = "in_transit" if END - placed < dt.timedelta(days=14) else "lost"
        self.book.add(
            "shipments",
            shipment_id=self._next_id("S", "shipments"),
            order_id=order["order_id"],
            carrier=self.rng.choice(CARRIERS),
            status=status,
            shipped_at=stamp(shipped),
            delivered_at=order["delivered_at"],
        )

    def _cancellation(self, order: Row, payments: list[Row], placed: dt.datetime) -> None:
        called = placed + dt.timedelta(hours=1 + self.rng.integer(16))
        for payment in payments:
            self.book.void(payment, stamp(called))
        self._ticket(order, called, "cancelled", "changed_mind")

    def _return(self, order: Row, payments: list[Row], delivered: dt.datetime) -> None:
        """One returned line, refunded to the only payment or credited; nothing where the calendar has no room."""
        rng = self.rng
        called = delivered + dt.timedelta(days=1 + rng.integer(12), minutes=rng.integer(600))
        lines = [line for line in self.book.tables["order_lines"][-4:] if line["order_id"] == order["order_id"]]
        lines = [line for line in lines if not line["final_sale"]]
        if called >= END - dt.timedelta(hours=1) or not lines:
            return
        line = rng.choice(lines)
        pieces = 1 + rng.integer(line["quantity"])
        reason = rng.choice(("changed_mind", "changed_mind", "defective"))
        now = stamp(called)
        self.book.returned(line, pieces, "defective" if reason == "defective" else "unopened", now)
        amount = pieces * line["unit_price"]
        authorisation = None
        if amount > approval_threshold(order["currency"]):
            note = "Checked the photos." if reason == "defective" else "Within the window."
            authorisation = self.book.authorisation(order, amount, "approved", note, now)
        if len(payments) > 1 or rng.integer(4) == 0:
            self.book.credit(order, amount, reason, now, authorisation)
            self._ticket(order, called, "credited", reason)
        else:
            payment = payments[0]
            back = min(round_half_up(amount * payment["rate"], payment["currency"]), payment["amount"])
            if back > ZERO:
                self.book.refund(payment, back, reason, now, authorisation)
            self._ticket(order, called, "refunded", reason)

    def _refusal(self, order: Row, since: dt.datetime) -> None:
        """A call that moved nothing, for a reason that the order shows."""
        called = since + dt.timedelta(hours=3 + self.rng.integer(20))
        lines = self.book.tables["order_lines"][-4:]
        if order["risk"] == "hold":
            decision, reason = "handed_over", "fraud_hold"
        elif order["status"] == "shipped":
            decision, reason = "refused", "not_delivered"
        elif any(line["final_sale"] for line in lines if line["order_id"] == order["order_id"]):
            decision, reason = "refused", "final_sale"
        elif order["status"] == "delivered" and self.rng.integer(3):
            decision, reason = "refused", "out_of_window"
            called += dt.timedelta(days=80 + self.rng.integer(40))
        else:
            decision, reason = "refused", "identity_failed"
        if called < END - dt.timedelta(hours=1):
            self._ticket(order, called, decision, reason)

    def _ticket(self, order: Row, called: dt.datetime, decision: str, reason: str) -> None:
        """A closed ticket with its identity check and, now and then, a note."""
        known = reason != "identity_failed"
        ticket_id = self._next_id("T", "tickets")
        handed_over = decision == "handed_over"
        self.book.add(
            "tickets",
            ticket_id=ticket_id,
            customer_id=order["customer_id"] if known else None,
            subject=self.rng.choice(SUBJECTS),
            status="handed_over" if handed_over else "resolved",
            decision=decision,
            reason_code=reason,
            team="risk" if handed_over else None,
            opened_at=stamp(called - dt.timedelta(minutes=6)),
            closed_at=stamp(called + dt.timedelta(minutes=4)),
        )
        self.book.add(
            "identity_checks",
            check_id=self.book.number("identity_checks"),
            ticket_id=ticket_id,
            customer_id=order["customer_id"],
            passed=known,
            checked_at=stamp(called - dt.timedelta(minutes=2)),
        )
        if self.rng.integer(2) == 0:
            self.book.add(
                "ticket_notes",
                note_id=self.book.number("ticket_notes"),
                ticket_id=ticket_id,
                text=self.rng.choice(NOTES),
                written_at=stamp(called + dt.timedelta(minutes=3)),
            )
