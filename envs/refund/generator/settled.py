"""Tasks in which money moves or an order is cancelled. Each function fills a draft.

Times keep a full day away from the edges of windows, so that the minutes a talk takes never decide.
"""

from typing import Literal

from agent_envs.contract import Turn, Wish
from agent_envs.envs.refund.generator.callers import (
    ASKS,
    SEALED,
    SMALL,
    any_tender,
    ask_back,
    delivered_order,
    everything,
    items_of,
    parcel,
    window_days,
)
from agent_envs.envs.refund.generator.draft import Draft
from agent_envs.envs.refund.generator.parts import (
    CONDITIONS,
    CURRENCIES,
    REASONS,
    Pieces,
    Row,
    cancel_terms,
    credit_terms,
    products,
    refund_terms,
    total,
)
from agent_envs.envs.refund.rules import CREDIT_DAYS, round_half_up

CHEAP = products(most=4_800, other_than="electronics")
GADGETS = products(category="electronics", most=17_000)
DEAR = products(least=31_000, most=90_000)


def _paid_back(draft: Draft, customer: Row, order: Row, pieces: list[Pieces]) -> None:
    """The whole course of a lawful refund."""
    ask_back(draft, customer, order, pieces)
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.refund(order, pieces)
    draft.close("refunded", pieces[0].reason, customer=customer)


def full(draft: Draft) -> None:
    """Everything comes back unopened: the goods are refunded, shipping is not."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(
        draft, draft.lines(1 + draft.rng.integer(2), currency, SMALL), currency, "unopened"
    )
    draft.pay(order, any_tender(draft))
    _paid_back(draft, customer, order, everything(order, "unopened"))


def partial(draft: Draft) -> None:
    """Some pieces of an order come back."""
    currency = draft.rng.choice(CURRENCIES)
    lines = [draft.line((item,), currency, quantity=2) for item in draft.pick(CHEAP, 3)]
    customer, order = delivered_order(draft, lines, currency, "unopened")
    draft.pay(order, any_tender(draft))
    kept = 1 + draft.rng.integer(3)
    pieces = [Pieces(number, 1 + draft.rng.integer(2), "unopened") for number in (1, 2, 3) if number != kept]
    _paid_back(draft, customer, order, pieces[: 1 + draft.rng.integer(2)])


def defective(draft: Draft) -> None:
    """A broken line: no fee, a long window; shipping too when all of the order is broken."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(
        draft, draft.lines(1 + draft.rng.integer(2), currency, SMALL), currency, "defective"
    )
    draft.pay(order, any_tender(draft))
    pieces = everything(order, "defective")
    _paid_back(draft, customer, order, pieces[: 1 + draft.rng.integer(len(pieces))])


def fee(draft: Draft) -> None:
    """Opened electronics: the restocking fee comes off."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, [draft.line(GADGETS, currency, quantity=1)], currency, "opened")
    draft.pay(order, any_tender(draft))
    _paid_back(draft, customer, order, everything(order, "opened"))


def split(draft: Draft) -> None:
    """Two payments: the first in the policy's order is used up before the second gets money."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, draft.lines(2, currency, SEALED), currency, "unopened")
    share = round_half_up(total(order) * (2 + draft.rng.integer(5)) / 10, currency)
    first, second = draft.rng.choice((("gift_card", "card"), ("store_credit", "paypal"), ("store_credit", "gift_card")))
    draft.pay(order, first, share)
    draft.pay(order, second)
    _paid_back(draft, customer, order, everything(order, "unopened"))


def foreign(draft: Draft) -> None:
    """The card was charged in another currency, at a recorded rate."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, draft.lines(2, currency, SEALED), currency, "unopened")
    others = tuple(name for name in ("EUR", "GBP", "JPY", "USD") if name != currency)
    draft.pay(order, "card", currency=draft.rng.choice(others))
    pieces = everything(order, "unopened")
    _paid_back(draft, customer, order, pieces[: 1 + draft.rng.integer(2)])


def approval(draft: Draft) -> None:
    """A sum over the threshold: a supervisor approves it first."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, [draft.line(DEAR, currency, quantity=1)], currency, "unopened")
    draft.pay(order, "card")
    _paid_back(draft, customer, order, everything(order, "unopened"))


def lost(draft: Draft) -> None:
    """The parcel was lost: goods and shipping are refunded."""
    currency = draft.rng.choice(CURRENCIES)
    customer = draft.customer(tier=draft.tier())
    order = draft.order(customer, draft.lines(2, currency, SMALL), currency, delivered=None, status="shipped")
    parcel(draft, order, "lost", 20)
    draft.pay(order, any_tender(draft))
    _paid_back(draft, customer, order, everything(order, "never_arrived"))


def namesake(draft: Draft) -> None:
    """Two customers of one name with alike orders; only one of them is calling, and knows no order number."""
    currency = draft.rng.choice(CURRENCIES)
    lines = draft.lines(2, currency, SEALED)
    customer, order = delivered_order(draft, lines, currency, "unopened")
    other = draft.customer(name=customer["name"], tier=customer["tier"])
    twin = draft.order(other, [dict(line) for line in lines], currency, delivered=draft.ago(1, 20))
    draft.pay(order, "card")
    draft.pay(twin, "card")
    pieces = everything(order, "unopened")
    facts = {"items": items_of(order, pieces), "condition": CONDITIONS["unopened"], "reason": REASONS["unopened"]}
    draft.knows(customer, **facts)
    opening = f"{customer['name']} here. I want to return my last order, but I can't find its number."
    draft.wishes.append(draft.wish(opening, refund_terms(order, twin)))
    draft.begin(customer, asks=ASKS)
    draft.call("list_orders", customer_id=customer["customer_id"])
    draft.study(order)
    draft.refund(order, pieces)
    draft.close("refunded", "changed_mind", customer=customer)


def credit(draft: Draft) -> None:
    """Too late for money, early enough for store credit, and the caller agrees."""
    currency = draft.rng.choice(CURRENCIES)
    lines = draft.lines(1, currency, SMALL)
    customer = draft.customer(tier=draft.tier())
    days = window_days(lines, customer["tier"], "unopened")
    order = draft.order(customer, lines, currency, delivered=draft.ago(days + 1, days + CREDIT_DAYS - 3))
    draft.pay(order, any_tender(draft))
    pieces = everything(order, "unopened")
    ask_back(draft, customer, order, pieces)
    draft.wishes[0] = draft.wish(draft.wishes[0].opening, refund_terms(order), credit_terms(order))
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.credit(order, pieces)
    draft.close("credited", "changed_mind", customer=customer)


def cancel(draft: Draft) -> None:
    """An order that hasn't left the house is cancelled."""
    currency = draft.rng.choice(CURRENCIES)
    customer = draft.customer(tier=draft.tier())
    status = draft.rng.choice(("placed", "processing"))
    order = draft.order(customer, draft.lines(2, currency, SMALL), currency, delivered=None, status=status)
    draft.pay(order, any_tender(draft))
    draft.knows(customer, order_id=order["order_id"], reason=REASONS["unopened"])
    draft.wishes.append(
        draft.wish("I ordered something and don't want it any more. Please stop it.", cancel_terms(order))
    )
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.cancel(order)
    draft.close("cancelled", "changed_mind", customer=customer)


def change_of_mind(draft: Draft) -> None:
    """The caller first names one item, then another."""
    rng = draft.rng
    currency = rng.choice(CURRENCIES)
    lines = [draft.line((item,), currency, quantity=1) for item in draft.pick(SEALED, 2)]
    customer, order = delivered_order(draft, lines, currency, "unopened")
    payment = draft.pay(order, any_tender(draft))
    first, second = order["lines"]
    draft.knows(customer, order_id=order["order_id"], condition=CONDITIONS["unopened"], reason=REASONS["unopened"])
    opening = f"Hello, I'd like to return the {first['name']} from my order."
    other = (
        f"Wait, I'd rather keep the {first['name']}. Please take back the {second['name']} instead; it is sealed too."
    )
    draft.wishes.append(draft.wish(opening, refund_terms(order)))
    after: Literal["facts_given", "first_proposal"] = "first_proposal" if rng.integer(2) else "facts_given"
    draft.turn = Turn(after=after, becomes=Wish(opening=other, accepts=(refund_terms(order),)))
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    if after == "first_proposal":
        draft.propose_refund(order, payment, first["price"])
    draft.refund(order, [Pieces(2, 1, "unopened")])
    draft.close("refunded", "changed_mind", customer=customer)


def two_requests(draft: Draft) -> None:
    """Two orders: the first is refunded; the second too, or it is too late for it."""
    rng = draft.rng
    currency = rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, draft.lines(1, currency, SEALED), currency, "unopened", tier="standard")
    draft.pay(order, any_tender(draft))
    refusable = rng.integer(2) == 0
    late_by = 61 if refusable else 1
    other = draft.order(
        customer, draft.lines(1, currency, SEALED), currency, delivered=draft.ago(late_by, late_by + 20)
    )
    draft.pay(other, any_tender(draft))
    draft.knows(customer, condition=CONDITIONS["unopened"], reason=REASONS["unopened"])
    for text, about in (
        ("I want to return all of order {}.", order),
        ("Then there is order {}. The same for it.", other),
    ):
        opening = text.format(about["order_id"])
        draft.wishes.append(
            draft.wish(opening, refund_terms(about), *([credit_terms(about)] if about is other else []))
        )
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.refund(order, everything(order, "unopened"))
    draft.say("The first order is refunded. Is there anything else?", report="done")
    draft.study(other)
    if not refusable:
        draft.refund(other, everything(other, "unopened"))
    draft.close("refunded", "changed_mind", customer=customer, told="refused" if refusable else "done")
