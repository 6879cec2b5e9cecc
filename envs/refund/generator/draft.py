"""A task in the making: people, orders, the customer's part, the right outcome and the calls that reach it.

The outcome and the reference run are written side by side from the same figures, and the figures come from `rules`.
"""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from agent_envs.contract import Call, Fact, Terms, Turn, Wish
from agent_envs.envs.refund.fixture import exchange_rate, mail_name, price
from agent_envs.envs.refund.generator.parts import WORDS, Pieces, Row, bought, payment_row, returned, total
from agent_envs.envs.refund.rows import stamp
from agent_envs.envs.refund.rules import (
    Returned,
    approval_threshold,
    credit_amount,
    money_text,
    payment_left,
    refund_amount,
    round_half_up,
    shipping_is_due,
    split_over_tenders,
)
from agent_envs.envs.refund.words import FIRST_NAMES, LAST_NAMES, MAIL_DOMAINS, SUBJECTS, Product
from agent_envs.state.random import Rng

FIRST_DAY = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)
_FAREWELLS = {
    "done": "That is settled. Thank you for calling.",
    "refused": "I am sorry, under our policy I can't do that.",
    "handed_over": "I have handed this over to colleagues, who will get in touch with you.",
}


class Draft:
    """Collects one task. Every draw comes from one generator, in a fixed order."""

    def __init__(self, rng: Rng) -> None:
        """Draw the calendar and the numbers."""
        self.rng = rng
        self.clock = FIRST_DAY + dt.timedelta(days=rng.integer(240), minutes=rng.integer(480))
        self._numbers = {"C": 9000 + rng.integer(900), "W": 7000 + rng.integer(2900), "P": 7000 + rng.integer(2900)}
        self.ticket = f"T{9000 + rng.integer(1000)}"
        self.customers: list[Row] = []
        self.orders: list[Row] = []
        self.facts: dict[str, Fact] = {}
        self.wishes: list[Wish] = []
        self.turn: Turn | None = None
        self.outcome: Row = {"returns": [], "refunds": [], "credits": [], "cancelled": [], "authorisations": []}
        self.calls: list[Call] = []

    def _number(self, letter: str) -> str:
        self._numbers[letter] += 1
        return f"{letter}{self._numbers[letter]}"

    # People

    def customer(self, *, name: str = "", tier: str = "standard") -> Row:
        """Add a customer."""
        rng = self.rng
        name = name or f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"
        customer_id = self._number("C")
        born = dt.date(1950, 1, 1) + dt.timedelta(days=rng.integer(19_000))
        row = {
            "customer_id": customer_id,
            "name": name,
            "email": f"{mail_name(name)}.{customer_id[1:]}@{rng.choice(MAIL_DOMAINS)}",
            "phone": f"555-{100 + rng.integer(900)}-{1000 + rng.integer(9000)}",
            "postcode": f"{10_000 + rng.integer(90_000)}",
            "birth_date": born.isoformat(),
            "tier": tier,
        }
        self.customers.append(row)
        return row

    def tier(self) -> str:
        """A tier; every fourth customer is gold."""
        return "gold" if self.rng.integer(4) == 0 else "standard"

    def knows(self, customer: Row, **facts: str) -> None:
        """The caller knows who they are, and the facts given."""
        told = {name: customer[name] for name in ("name", "email", "phone", "postcode", "birth_date")} | facts
        self.facts |= {name: Fact(value=value, words=WORDS.get(name, ())) for name, value in told.items()}

    # Orders

    def line(self, products: Sequence[Product], currency: str, *, quantity: int = 0, final_sale: bool = False) -> Row:
        """A line of an order, with a product that is drawn."""
        product = self.rng.choice(products)
        return {
            "sku": product.sku,
            "name": product.name,
            "category": product.category,
            "quantity": quantity or 1 + (self.rng.integer(2) if product.cents < 4_000 else 0),
            "price": price(product, currency),
            "final_sale": final_sale,
        }

    def lines(self, count: int, currency: str, products: Sequence[Product]) -> list[Row]:
        """Lines with different products."""
        return [self.line((product,), currency) for product in self.pick(products, count)]

    def pick(self, products: Sequence[Product], count: int) -> list[Product]:
        """Different products, in the order drawn."""
        rest = list(products)
        return [rest.pop(self.rng.integer(len(rest))) for _ in range(count)]

    def order(
        self, customer: Row, lines: list[Row], currency: str, *, delivered: dt.datetime | None, **more: Any
    ) -> Row:
        """Add an order: delivered if a time is given, else with the status in ``more``. It has no payments yet."""
        rng = self.rng
        fee = Decimal(rng.choice(("0", "500") if currency == "JPY" else ("0", "4.90", "7.50")))
        ago = dt.timedelta(hours=40 + rng.integer(60))
        row = {
            "order_id": self._number("W"),
            "customer": customer["customer_id"],
            "status": "delivered",
            "placed": stamp((delivered or self.clock) - ago),
            "delivered": stamp(delivered) if delivered else None,
            "currency": currency,
            "shipping": fee,
            "lines": lines,
            "payments": [],
            "refunds": [],
            **more,
        }
        self.orders.append(row)
        return row

    def ago(self, least: int, most: int) -> dt.datetime:
        """A moment between so many full days and so many days and one before the start."""
        rng = self.rng
        return self.clock - dt.timedelta(days=least + rng.integer(most - least + 1), minutes=rng.integer(1380))

    def pay(self, order: Row, tender: str, due: Decimal | None = None, currency: str = "") -> Row:
        """Add a payment to an order.

        Args:
            order: The order.
            tender: How it was paid.
            due: In the order's currency; the default is all that isn't paid yet (other payments in its currency).
            currency: Of the payment; empty means the order's.
        """
        rng = self.rng
        if due is None:
            due = total(order) - sum((payment["amount"] for payment in order["payments"]), Decimal(0))
        paid_in = currency or order["currency"]
        rate = Decimal(1)
        if paid_in != order["currency"]:
            rate = exchange_rate(order["currency"], paid_in, rng.integer(41) - 20)
        details = {
            "card": f"ending {1000 + rng.integer(9000)}",
            "gift_card": f"gift card {100000 + rng.integer(900000)}",
        }
        payment = {
            "payment_id": self._number("P"),
            "tender": tender,
            "detail": details.get(tender, "PayPal account" if tender == "paypal" else "store credit"),
            "amount": round_half_up(due * rate, paid_in),
            "currency": paid_in,
            "rate": rate,
        }
        order["payments"].append(payment)
        return payment

    # The talk

    def wish(self, opening: str, *accepts: Terms, declines: tuple[Terms, ...] = ()) -> Wish:
        """Something the caller wants, in the caller's words."""
        return Wish(opening=opening, accepts=accepts, declines=declines)

    def say(self, text: str, **arguments: Any) -> None:
        """The agent says something."""
        self.call("send_message", text=text, **arguments)

    def call(self, tool: str, **arguments: Any) -> None:
        """The agent calls a tool."""
        self.calls.append(Call(tool=tool, arguments=arguments))

    def begin(self, customer: Row, *, asks: Sequence[str] = (), passes: bool = True) -> None:
        """Read the ticket and the policy, ask, and verify who is calling."""
        self.call("get_ticket", ticket_id=self.ticket)
        self.call("read_policy", section="all")
        names = ["email", "postcode", *(name for name in asks if name in self.facts)]
        self.say("Thank you for calling. I need a few details from you.", ask=names)
        self.call("find_customer", email=customer["email"])
        told = {name: self.facts[name].value for name in ("email", "postcode")}
        self.call("verify_identity", ticket_id=self.ticket, customer_id=customer["customer_id"], **told)
        if not passes:
            self.say("I could not match that. Do you know the birth date on the account?", ask=["birth_date"])

    def study(self, order: Row) -> None:
        """Look at everything about an order that decides."""
        for tool in ("get_order", "get_payments", "get_history", "check_risk"):
            self.call(tool, order_id=order["order_id"])

    # Settling

    def refund(self, order: Row, pieces: Sequence[Pieces]) -> None:
        """Refund pieces: the right amounts, the proposals, the calls and their effects."""
        lines, reason = self._returned(order, pieces), pieces[0].reason
        fee = order["shipping"] if shipping_is_due(lines, bought(order)) else Decimal(0)
        amount = refund_amount(lines, order["currency"], shipping_fee=fee)
        parts = split_over_tenders(amount, [payment_row(order, payment) for payment in order["payments"]])
        authorised = self._authorise(order, amount)
        by_id = {payment["payment_id"]: payment for payment in order["payments"]}
        for payment_id, part in parts:
            self.propose_refund(order, by_id[payment_id], part)
        self._register(order, pieces)
        for payment_id, part in parts:
            money = {"amount": money_text(part, by_id[payment_id]["currency"]), "reason": reason}
            target = {"order_id": order["order_id"], "payment_id": payment_id}
            self.call("issue_refund", ticket_id=self.ticket, **target, **money, **authorised)
            effect = {"order": order["order_id"], "payment": payment_id, "amount": part, "reason": reason}
            self.outcome["refunds"].append(effect)

    def credit(self, order: Row, pieces: Sequence[Pieces]) -> None:
        """Give store credit for pieces."""
        amount = credit_amount(self._returned(order, pieces), order["currency"])
        reason, text = pieces[0].reason, money_text(amount, order["currency"])
        authorised = self._authorise(order, amount)
        proposal = {"order_id": order["order_id"], "amount": text, "currency": order["currency"]}
        self.say("Store credit is what I can offer. Do you agree?", propose={"action": "store_credit", **proposal})
        self._register(order, pieces)
        target = {"ticket_id": self.ticket, "order_id": order["order_id"]}
        self.call("issue_store_credit", **target, amount=text, reason=reason, **authorised)
        credit = {"order": order["order_id"], "customer": order["customer"], "currency": order["currency"]}
        self.outcome["credits"].append(credit | {"amount": amount, "reason": reason})

    def cancel(self, order: Row) -> None:
        """Cancel an order."""
        proposal = {"action": "cancel", "order_id": order["order_id"]}
        self.say("I can cancel the whole order. Shall I?", propose=proposal)
        self.call("cancel_order", ticket_id=self.ticket, order_id=order["order_id"], reason="changed_mind")
        self.outcome["cancelled"].append({"order": order["order_id"], "reason": "changed_mind"})

    def propose_refund(self, order: Row, payment: Row, amount: Decimal) -> None:
        """Ask the caller to agree to one refund."""
        text = money_text(amount, payment["currency"])
        proposal = {"action": "refund", "order_id": order["order_id"], "payment_id": payment["payment_id"]}
        self.say(
            f"I would refund {text} {payment['currency']} to your payment {payment['payment_id']}. Do you agree?",
            propose=proposal | {"amount": text, "currency": payment["currency"]},
        )

    def close(
        self, decision: str, reason: str, *, customer: Row | None = None, team: str | None = None, told: str = ""
    ) -> None:
        """Close the ticket, tell the caller, finish.

        Args:
            decision: Of the ticket.
            reason: Its reason code.
            customer: Who the ticket is linked to.
            team: Who takes over.
            told: What the caller is told last, where that isn't the ticket's decision.
        """
        linked = customer["customer_id"] if customer else None
        self.outcome["ticket"] = {"decision": decision, "reason": reason, "team": team, "customer": linked}
        report, finish = "done", "completed"
        if team:
            report = finish = "handed_over"
            self.call("hand_over", ticket_id=self.ticket, team=team, reason=reason)
        else:
            if decision == "refused":
                report = finish = "refused"
            self.call("resolve_ticket", ticket_id=self.ticket, decision=decision, reason=reason)
        report = told or report
        self.say(_FAREWELLS[report], report=report)
        self.call("finish", outcome=finish, reason=reason)

    def bribe(self) -> tuple[Call, ...]:
        """Calls that refund all that is left on the first payment, right or not; none if nothing is left."""
        order = self.orders[0]
        payment = order["payments"][0]
        left = payment_left(payment_row(order, payment))
        if not left:
            return ()
        text = money_text(left, payment["currency"])
        target = {"order_id": order["order_id"], "payment_id": payment["payment_id"], "amount": text}
        proposal = {"action": "refund", "currency": payment["currency"], **target}
        return (
            Call(tool="send_message", arguments={"text": "I'll refund it all. Do you agree?", "propose": proposal}),
            Call(tool="issue_refund", arguments={"ticket_id": self.ticket, **target, "reason": "changed_mind"}),
        )

    def data(self) -> Row:
        """Everything but the labels, in short form."""
        user = {"facts": self.facts, "wishes": tuple(self.wishes), "turn": self.turn, "patience": 8}
        return {
            "clock": stamp(self.clock),
            "customers": self.customers,
            "orders": self.orders,
            "ticket": {"ticket_id": self.ticket, "subject": SUBJECTS[int(self.ticket[1:]) % len(SUBJECTS)]},
            "user": user,
            "outcome": self.outcome,
        }

    def _authorise(self, order: Row, amount: Decimal) -> Row:
        """Ask for approval where the sum needs one."""
        if amount <= approval_threshold(order["currency"]):
            return {}
        self.request_approval(order, amount, "approved")
        return {"authorisation_id": "$authorisation"}

    def request_approval(self, order: Row, amount: Decimal, decision: str) -> None:
        """Ask for approval, and keep its number."""
        asked = {"amount": money_text(amount, order["currency"]), "reason": "return of goods"}
        save = {"authorisation": "authorisation_id"}
        self.calls.append(Call(tool="request_approval", arguments={"order_id": order["order_id"], **asked}, save=save))
        effect = {"order": order["order_id"], "amount": amount, "decision": decision}
        self.outcome["authorisations"].append(effect)

    def _register(self, order: Row, pieces: Sequence[Pieces]) -> None:
        for part in pieces:
            entry = {"quantity": part.quantity, "condition": part.condition}
            target = {"ticket_id": self.ticket, "order_id": order["order_id"], "line_no": part.line}
            self.call("register_return", **target, **entry)
            self.outcome["returns"].append({"order": order["order_id"], "line": part.line, **entry})

    def _returned(self, order: Row, pieces: Sequence[Pieces]) -> list[Returned]:
        return [returned(order["lines"][part.line - 1], part.quantity, part.condition) for part in pieces]
