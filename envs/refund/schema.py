"""Tables of the retailer's back office.

Money columns are exact decimals in the currency named beside them. Every instant is UTC. New surrogate ids are the
highest one plus one, so they depend on the state alone.
"""

import sqlalchemy as sa

from agent_envs.state.columns import Boolean, Day, Exact, Instant, Integer, Text

metadata = sa.MetaData()


def _text(name: str, *, key: bool = False, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, Text(), primary_key=key, nullable=null)


def _number(name: str, *, key: bool = False, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, Integer(), primary_key=key, autoincrement=False, nullable=null)


def _money(name: str) -> sa.Column[object]:
    return sa.Column(name, Exact(4), nullable=False)


def _instant(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, Instant(), nullable=null)


customers = sa.Table(
    "customers",
    metadata,
    _text("customer_id", key=True),  # C1001
    _text("name"),
    _text("name_key"),  # casefolded, for look-up; namesakes share it
    _text("email"),
    _text("phone"),
    _text("postcode"),
    sa.Column("birth_date", Day(), nullable=False),
    _text("tier"),  # standard, gold
    sa.Index("customers_by_name", "name_key"),
    sa.Index("customers_by_email", "email"),
    sa.Index("customers_by_phone", "phone"),
)

orders = sa.Table(
    "orders",
    metadata,
    _text("order_id", key=True),  # W1001
    _text("customer_id"),
    _text("status"),  # placed, processing, shipped, delivered, cancelled
    _text("risk"),  # clear, hold
    _text("currency"),
    _money("shipping_fee"),
    _money("total"),  # lines and shipping
    _instant("placed_at"),
    _instant("delivered_at", null=True),
    sa.Index("orders_by_customer", "customer_id"),
)

order_lines = sa.Table(
    "order_lines",
    metadata,
    _text("order_id", key=True),
    _number("line_no", key=True),
    _text("sku"),
    _text("name"),
    _text("category"),  # electronics has its own window and fee
    _number("quantity"),
    _money("unit_price"),
    sa.Column("final_sale", Boolean(), nullable=False),
    _number("returned_quantity"),
)

payments = sa.Table(
    "payments",
    metadata,
    _text("payment_id", key=True),  # P1001
    _text("order_id"),
    _text("tender"),  # card, paypal, gift_card, store_credit
    _text("detail"),  # last digits or similar
    _text("status"),  # captured, voided
    _text("currency"),
    _money("amount"),
    _money("rate"),  # units of this currency per unit of the order's currency, at capture
    _money("refunded"),
    _instant("captured_at"),
    sa.Index("payments_by_order", "order_id"),
)

shipments = sa.Table(
    "shipments",
    metadata,
    _text("shipment_id", key=True),  # S1001
    _text("order_id"),
    _text("carrier"),
    _text("status"),  # in_transit, delivered, lost
    _instant("shipped_at"),
    _instant("delivered_at", null=True),
    sa.Index("shipments_by_order", "order_id"),
)

returns = sa.Table(
    "returns",
    metadata,
    _number("return_id", key=True),
    _text("order_id"),
    _number("line_no"),
    _number("quantity"),
    _text("condition"),  # unopened, opened, defective, never_arrived
    _instant("registered_at"),
    sa.Index("returns_by_order", "order_id"),
)

refunds = sa.Table(
    "refunds",
    metadata,
    _number("refund_id", key=True),
    _text("order_id"),
    _text("payment_id"),
    _text("currency"),
    _money("amount"),
    _text("reason"),
    _number("authorisation_id", null=True),
    _text("idempotency_key", null=True),
    _instant("created_at"),
    sa.Index("refunds_by_order", "order_id"),
    sa.Index("refunds_by_key", "idempotency_key"),
)

store_credits = sa.Table(
    "store_credits",
    metadata,
    _number("credit_id", key=True),
    _text("customer_id"),
    _text("order_id"),
    _text("currency"),
    _money("amount"),
    _text("reason"),
    _number("authorisation_id", null=True),
    _text("idempotency_key", null=True),
    _instant("created_at"),
    sa.Index("store_credits_by_order", "order_id"),
    sa.Index("store_credits_by_key", "idempotency_key"),
)

ledger = sa.Table(
    "ledger",
    metadata,
    _number("entry_id", key=True),
    _text("document"),  # refund:7, credit:3, void:P1001
    _text("account"),  # sales_returns, card, paypal, gift_card, store_credit
    _text("currency"),
    _money("debit"),
    _money("credit"),
    _instant("posted_at"),
    sa.Index("ledger_by_document", "document"),
)

identity_checks = sa.Table(
    "identity_checks",
    metadata,
    _number("check_id", key=True),
    _text("ticket_id"),
    _text("customer_id"),
    sa.Column("passed", Boolean(), nullable=False),
    _instant("checked_at"),
    sa.Index("identity_checks_by_ticket", "ticket_id"),
)

authorisations = sa.Table(
    "authorisations",
    metadata,
    _number("authorisation_id", key=True),
    _text("order_id"),
    _text("currency"),
    _money("amount"),
    _text("decision"),  # approved, denied
    _text("note"),
    _instant("decided_at"),
    sa.Index("authorisations_by_order", "order_id"),
)

tickets = sa.Table(
    "tickets",
    metadata,
    _text("ticket_id", key=True),  # T1001
    _text("customer_id", null=True),  # known once somebody linked it
    _text("subject"),
    _text("status"),  # open, resolved, handed_over
    _text("decision", null=True),  # refunded, credited, cancelled, refused, handed_over
    _text("reason_code", null=True),
    _text("team", null=True),  # where it was handed over to
    _instant("opened_at"),
    _instant("closed_at", null=True),
)

ticket_notes = sa.Table(
    "ticket_notes",
    metadata,
    _number("note_id", key=True),
    _text("ticket_id"),
    _text("text"),
    _instant("written_at"),
    sa.Index("ticket_notes_by_ticket", "ticket_id"),
)
