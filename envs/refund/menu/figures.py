"""Sums and dates worked out from the memory by the policy's public arithmetic, with the wrong ones beside the right."""

from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from agent_envs.envs.refund.menu.memory import Memory, Row
from agent_envs.envs.refund.menu.words import changed_mind, condition_of, goods_named
from agent_envs.envs.refund.rules import (
    CLAIMS,
    Condition,
    Returned,
    WindowState,
    approval_threshold,
    credit_amount,
    goods_amount,
    instant,
    money_text,
    payment_left,
    refund_amount,
    round_half_up,
    shipping_is_due,
    split_over_tenders,
    window_state,
)

BASES = ("policy", "price", "shipping", "everything", "first", "last")
"""Ways to work out a refund.

``policy``: the policy's sum, over the payments in the policy's order; ``price``: without a restocking fee;
``shipping``: the policy's sum and the shipping fee; ``everything``: all that is left on every payment; ``first``,
``last``: the policy's sum, as far as it goes, to the payment with the lowest, highest number.
"""


class Pieces(NamedTuple):
    """Pieces of a line that the customer wants to give back."""

    line: Row
    quantity: int

    @property
    def left(self) -> bool:
        """Whether they weren't returned before the episode."""
        left: int = self.line["quantity"] - self.line["returned_quantity"]
        return self.quantity <= left


class Part(NamedTuple):
    """What one payment gets."""

    payment_id: str
    currency: str
    amount: str
    """As the tools take it."""


class Figures:
    """What follows from a memory that no longer changes; each figure is worked out once, when it is asked for."""

    def __init__(self, memory: Memory) -> None:
        """Look at a memory; make new figures when it has taken in more."""
        self.memory = memory

    @cached_property
    def order(self) -> Row | None:
        """The order looked at last."""
        return self.memory.orders.get(self.memory.order_id)

    @cached_property
    def candidate(self) -> str:
        """The customer to work on: the one verified last, else the first found; empty when none was found."""
        return self.verified or (self.memory.found[0] if self.memory.found else "")

    @cached_property
    def verified(self) -> str:
        """The customer whose identity was proved last, or empty."""
        return next((number for number, passed in reversed(self.memory.checks) if passed), "")

    @cached_property
    def condition(self) -> Condition | None:
        """The condition of the goods, in the customer's words."""
        return condition_of(self.memory.remarks)

    @cached_property
    def reason(self) -> str:
        """Reason code of a payment or cancellation, as the customer tells it; empty when nothing was said."""
        if self.condition in CLAIMS:
            return str(self.condition)
        return "changed_mind" if self.condition or changed_mind(self.memory.remarks) else ""

    @cached_property
    def pieces(self) -> tuple[Pieces, ...]:
        """The goods the customer named; if none were named, all that was not returned before the episode."""
        if self.order is None:
            return ()
        lines = self.order["lines"]
        if named := goods_named(self.memory.remarks, lines):
            return tuple(Pieces(line, named[line["line_no"]]) for line in lines if line["line_no"] in named)
        left = (Pieces(line, line["quantity"] - line["returned_quantity"]) for line in lines)
        return tuple(part for part in left if part.quantity > 0)

    @cached_property
    def unregistered(self) -> tuple[Pieces, ...]:
        """The customer's pieces that can still be registered as returned."""
        done = self.memory.registered.get(self.memory.order_id, {})
        rest = (Pieces(line, quantity - done.get(line["line_no"], 0)) for line, quantity in self.pieces)
        return tuple(part for part in rest if part.quantity > 0 and part.left)

    @cached_property
    def returned(self) -> tuple[Returned, ...]:
        """The pieces as `rules` takes them; none before their condition is known."""
        claimed = self.condition
        if claimed is None:
            return ()
        return tuple(
            Returned(line["category"], Decimal(line["unit_price"]), quantity, claimed) for line, quantity in self.pieces
        )

    @cached_property
    def windows(self) -> tuple[WindowState, ...]:
        """Window of each line that comes back.

        None before ticket, order and condition are known, or for goods not delivered yet. The tier counts as standard
        until it was looked up.
        """
        order, claimed, now = self.order, self.condition, self.memory.now
        if order is None or claimed is None or now is None or not (order["delivered_at"] or claimed in CLAIMS):
            return ()
        return tuple(
            window_state(
                now,
                delivered=instant(order["delivered_at"]) if order["delivered_at"] else None,
                placed=instant(order["placed_at"]),
                category=line["category"],
                tier=self.memory.tiers.get(order["customer_id"], "standard"),
                condition=claimed,
            )
            for line, _ in self.pieces
        )

    @cached_property
    def policy_sum(self) -> Decimal:
        """What the policy refunds for the pieces, in the order's currency; zero when it can't be worked out yet."""
        order, lines = self.order, self.returned
        if order is None or not lines:
            return Decimal(0)
        bought = sum(line["quantity"] for line in order["lines"])
        fee = Decimal(order["shipping_fee"]) if shipping_is_due(lines, bought) else Decimal(0)
        return refund_amount(lines, order["currency"], shipping_fee=fee)

    @cached_property
    def credit(self) -> str:
        """What the policy credits for the pieces, as text; empty when it can't be worked out yet."""
        if self.order is None or not self.returned:
            return ""
        amount = credit_amount(self.returned, self.order["currency"])
        return money_text(amount, self.order["currency"]) if amount > 0 else ""

    @cached_property
    def needs_approval(self) -> bool:
        """Whether the policy's sum is above the threshold."""
        return self.order is not None and self.policy_sum > approval_threshold(self.order["currency"])

    @cached_property
    def payments(self) -> tuple[Row, ...]:
        """The order's payments by number, as `rules` takes them, less what was refunded in this episode."""
        rows = []
        for shown in self.memory.payments.get(self.memory.order_id, ()):
            number = shown["payment_id"]
            since = (Decimal(row["amount"]) for row in self.memory.refunds if row["payment_id"] == number)
            row = {name: shown[name] for name in ("payment_id", "tender", "status", "currency")}
            row |= {"amount": Decimal(shown["captured"]), "rate": Decimal(shown["rate"])}
            rows.append(row | {"refunded": Decimal(shown["refunded"]) + sum(since, Decimal(0))})
        return tuple(sorted(rows, key=lambda row: (len(row["payment_id"]), row["payment_id"])))

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """What each payment gets, by `BASES`; nothing where it can't be worked out or the payments have less left."""
        return {basis: self._parts(basis) for basis in BASES}

    def _parts(self, basis: str) -> tuple[Part, ...]:
        order, rows, amount = self.order, self.payments, self.policy_sum
        if order is None or not rows or amount <= 0:
            return ()
        if basis == "everything":
            shares = [(row["payment_id"], payment_left(row)) for row in rows]
        elif basis in ("first", "last"):
            row = rows[0 if basis == "first" else -1]
            due = round_half_up(amount * row["rate"], row["currency"])
            shares = [(row["payment_id"], min(due, payment_left(row)))]
        else:
            if basis == "price":
                amount = round_half_up(goods_amount(self.returned), order["currency"])
            elif basis == "shipping":
                amount += Decimal(order["shipping_fee"])
            try:
                shares = split_over_tenders(amount, rows)
            except ValueError:
                return ()
        paid_in = {row["payment_id"]: row["currency"] for row in rows}
        return tuple(
            Part(number, paid_in[number], money_text(share, paid_in[number])) for number, share in shares if share > 0
        )
