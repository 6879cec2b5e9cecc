"""Consistent rows for the tables: an order with its total, a refund with its ledger entries, and so on.

The fixture and the tasks both write history through this book, so that neither can hold a refund without its entries.
"""

import datetime as dt
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from agent_envs.envs.refund.schema import metadata

Row = dict[str, Any]
"""Column to logical value; money is a Decimal."""

ZERO = Decimal(0)
ONE = Decimal(1)


def stamp(moment: dt.datetime) -> str:
    """The text form of a UTC time in whole seconds, ``2026-03-01T09:30:00Z``; `rules.instant` reads it back."""
    return moment.replace(tzinfo=None).isoformat() + "Z"


def name_key(name: str) -> str:
    """The form in which names are looked up: composed, single spaces, without letter case."""
    return " ".join(unicodedata.normalize("NFC", name).split()).casefold()


class RowBook:
    """Rows collected table by table; numbered rows count up from ``first``.

    The rows of orders, lines and payments stay editable until they are read: a later refund raises ``refunded`` of the
    payment's row, a return raises ``returned_quantity`` of the line's.
    """

    def __init__(self, first: int = 1) -> None:
        """Start an empty book.

        Args:
            first: First number of returns, refunds, credits, entries, checks, authorisations and notes.
        """
        self.tables: dict[str, list[Row]] = {name: [] for name in metadata.tables}
        self._first = first

    def add(self, table: str, **row: Any) -> Row:
        """Add one whole row as it is."""
        self.tables[table].append(row)
        return row

    def number(self, table: str) -> int:
        """Number of the next row of a table with surrogate ids."""
        return self._first + len(self.tables[table])

    def customer(self, *, customer_id: str, name: str, **rest: str) -> Row:
        """Add a customer; ``rest`` holds email, phone, postcode, birth_date and tier."""
        return self.add("customers", customer_id=customer_id, name=name, name_key=name_key(name), **rest)

    def order(self, *, lines: Iterable[Row], shipping_fee: Decimal, **rest: Any) -> Row:
        """Add an order and its lines.

        Args:
            lines: Rows with sku, name, category, quantity, unit_price and final_sale.
            shipping_fee: In the order's currency.
            **rest: The other columns of the order, but ``total``.
        """
        order_id = rest["order_id"]
        total = shipping_fee
        for line_no, line in enumerate(lines, start=1):
            total += line["quantity"] * line["unit_price"]
            self.add("order_lines", order_id=order_id, line_no=line_no, returned_quantity=0, **line)
        return self.add("orders", shipping_fee=shipping_fee, total=total, **rest)

    def payment(self, **row: Any) -> Row:
        """Add a captured payment; the columns but ``status`` and ``refunded``."""
        return self.add("payments", status="captured", refunded=ZERO, **row)

    def returned(self, line: Row, quantity: int, condition: str, at: str) -> Row:
        """Register a return of pieces of a line."""
        line["returned_quantity"] += quantity
        return self.add(
            "returns",
            return_id=self.number("returns"),
            order_id=line["order_id"],
            line_no=line["line_no"],
            quantity=quantity,
            condition=condition,
            registered_at=at,
        )

    def refund(self, payment: Row, amount: Decimal, reason: str, at: str, authorisation_id: int | None = None) -> Row:
        """Refund an amount, in the payment's currency, to a payment."""
        number = self.number("refunds")
        payment["refunded"] += amount
        self.entries(f"refund:{number}", "sales_returns", payment["tender"], payment["currency"], amount, at)
        return self.add(
            "refunds",
            refund_id=number,
            order_id=payment["order_id"],
            payment_id=payment["payment_id"],
            currency=payment["currency"],
            amount=amount,
            reason=reason,
            authorisation_id=authorisation_id,
            idempotency_key=None,
            created_at=at,
        )

    def credit(self, order: Row, amount: Decimal, reason: str, at: str, authorisation_id: int | None = None) -> Row:
        """Give store credit, in the order's currency, to the order's customer."""
        number = self.number("store_credits")
        self.entries(f"credit:{number}", "sales_returns", "store_credit", order["currency"], amount, at)
        return self.add(
            "store_credits",
            credit_id=number,
            customer_id=order["customer_id"],
            order_id=order["order_id"],
            currency=order["currency"],
            amount=amount,
            reason=reason,
            authorisation_id=authorisation_id,
            idempotency_key=None,
            created_at=at,
        )

    def void(self, payment: Row, at: str) -> None:
        """Void a payment, as the cancellation of its order does."""
        payment["status"] = "voided"
        document = f"void:{payment['payment_id']}"
        self.entries(document, "sales", payment["tender"], payment["currency"], payment["amount"], at)

    def authorisation(self, order: Row, amount: Decimal, decision: str, note: str, at: str) -> int:
        """Record a supervisor's decision and give its number."""
        number = self.number("authorisations")
        self.add(
            "authorisations",
            authorisation_id=number,
            order_id=order["order_id"],
            currency=order["currency"],
            amount=amount,
            decision=decision,
            note=note,
            decided_at=at,
        )
        return number

    def entries(self, document: str, debit: str, credit: str, currency: str, amount: Decimal, at: str) -> None:
        """Post the two entries of a document."""
        for account, debited in ((debit, True), (credit, False)):
            self.add(
                "ledger",
                entry_id=self.number("ledger"),
                document=document,
                account=account,
                currency=currency,
                debit=amount if debited else ZERO,
                credit=ZERO if debited else amount,
                posted_at=at,
            )

    def __iter__(self) -> Iterator[tuple[str, Row]]:
        """All rows with their tables, table by table."""
        for table, rows in self.tables.items():
            for row in rows:
                yield table, row

    def as_rows(self) -> Mapping[str, list[Row]]:
        """Table to rows: what a `Fixture` is made of."""
        return self.tables
