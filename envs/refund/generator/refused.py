"""Tasks whose right end is a refusal or a hand-over. The caller would take the money: saying no is the agent's part."""

from agent_envs.envs.refund.generator.callers import (
    ASKS,
    SEALED,
    SMALL,
    any_tender,
    ask_back,
    day_before,
    delivered_order,
    everything,
    parcel,
    window_days,
)
from agent_envs.envs.refund.generator.draft import Draft
from agent_envs.envs.refund.generator.parts import CURRENCIES, Pieces, Row, credit_terms, products, refund_terms
from agent_envs.envs.refund.rules import CREDIT_DAYS


def _refused(draft: Draft, customer: Row, order: Row, pieces: list[Pieces], reason: str) -> None:
    """The whole course of a refusal; the caller would take the money or the credit."""
    ask_back(draft, customer, order, pieces)
    draft.wishes[0] = draft.wish(draft.wishes[0].opening, refund_terms(order), credit_terms(order))
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.close("refused", reason, customer=customer)


def late(draft: Draft) -> None:
    """Too late for anything."""
    currency = draft.rng.choice(CURRENCIES)
    lines = draft.lines(1, currency, SMALL)
    customer = draft.customer(tier=draft.tier())
    days = window_days(lines, customer["tier"], "unopened") + CREDIT_DAYS
    order = draft.order(customer, lines, currency, delivered=draft.ago(days + 1, days + 90))
    draft.pay(order, any_tender(draft))
    _refused(draft, customer, order, everything(order, "unopened"), "out_of_window")


def final_sale(draft: Draft) -> None:
    """Marked final sale, and nothing wrong with it."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, [draft.line(SMALL, currency, final_sale=True)], currency, "unopened")
    draft.pay(order, any_tender(draft))
    _refused(draft, customer, order, everything(order, "unopened"), "final_sale")


def duplicate(draft: Draft) -> None:
    """The very pieces were refunded before; another line was not."""
    currency = draft.rng.choice(CURRENCIES)
    lines = draft.lines(2, currency, SEALED)
    customer = draft.customer(tier=draft.tier())
    order = draft.order(customer, lines, currency, delivered=draft.ago(8, 27))
    payment = draft.pay(order, "card")
    at, quantity = day_before(draft, 4), lines[0]["quantity"]
    order["returned"] = [{"line": 1, "quantity": quantity, "condition": "unopened", "at": at}]
    back = {"payment": payment["payment_id"], "amount": lines[0]["price"] * quantity, "reason": "changed_mind"}
    order["refunds"].append(back | {"at": at})
    _refused(draft, customer, order, [Pieces(1, quantity, "unopened")], "already_refunded")


def undelivered(draft: Draft) -> None:
    """The parcel is still on its way."""
    currency = draft.rng.choice(CURRENCIES)
    customer = draft.customer(tier=draft.tier())
    order = draft.order(customer, draft.lines(1, currency, SMALL), currency, delivered=None, status="shipped")
    parcel(draft, order, "in_transit", 1)
    draft.pay(order, any_tender(draft))
    _refused(draft, customer, order, everything(order, "unopened"), "not_delivered")


def unverified(draft: Draft) -> None:
    """The caller knows the e-mail address of the account, but neither postcode nor birth date."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, draft.lines(1, currency, SMALL), currency, "unopened")
    draft.pay(order, "card")
    pieces = everything(order, "unopened")
    wrong = f"{10_000 + (int(customer['postcode']) - 10_000 + 1 + draft.rng.integer(89_000)) % 90_000}"
    year = 1950 + (int(customer["birth_date"][:4]) - 1950 + 1 + draft.rng.integer(40)) % 53
    claimed = customer | {"postcode": wrong, "birth_date": f"{year}-06-17", "phone": "555-100-1000"}
    ask_back(draft, claimed, order, pieces)
    draft.begin(customer, asks=ASKS, passes=False)
    draft.call(
        "verify_identity",
        ticket_id=draft.ticket,
        customer_id=customer["customer_id"],
        email=customer["email"],
        birth_date=claimed["birth_date"],
    )
    draft.close("refused", "identity_failed")


def stranger(draft: Draft) -> None:
    """The caller is who they say, but the order is somebody else's."""
    currency = draft.rng.choice(CURRENCIES)
    owner, order = delivered_order(draft, draft.lines(1, currency, SMALL), currency, "unopened")
    draft.pay(order, "card")
    caller = draft.customer(tier=owner["tier"])
    _refused(draft, caller, order, everything(order, "unopened"), "not_owner")


def hold(draft: Draft) -> None:
    """The order is on hold: hands off, and over to the risk team."""
    currency = draft.rng.choice(CURRENCIES)
    customer, order = delivered_order(draft, draft.lines(1, currency, SMALL), currency, "unopened")
    order["risk"] = "hold"
    draft.pay(order, "card")
    ask_back(draft, customer, order, everything(order, "unopened"))
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.close("handed_over", "fraud_hold", customer=customer, team="risk")


def denied(draft: Draft) -> None:
    """More than a supervisor may approve: handed over, whether the return is registered or not."""
    currency = draft.rng.choice(("USD", "EUR"))
    lines = [draft.line(products(least=60_000), currency, quantity=10 + draft.rng.integer(5))]
    customer, order = delivered_order(draft, lines, currency, "unopened")
    draft.pay(order, "card")
    pieces = everything(order, "unopened")
    ask_back(draft, customer, order, pieces)
    draft.begin(customer, asks=ASKS)
    draft.study(order)
    draft.request_approval(order, lines[0]["price"] * lines[0]["quantity"], "denied")
    registered = {"order": order["order_id"], "line": 1, "quantity": lines[0]["quantity"], "condition": "unopened"}
    draft.outcome["either"] = [{}, {"returns": [registered]}]
    draft.close("handed_over", "approval_denied", customer=customer, team="supervisors")
