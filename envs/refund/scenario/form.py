"""The short form in which refund tasks are written: what an author states, and nothing that follows from it.

Every level refuses unknown keys. Amounts are text in quotes, instants are UTC to the second.
"""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agent_envs.contract import AgentEvalError, Model, Permission, RubricItem, ScriptedUserSpec
from agent_envs.contract.expected import Expected
from agent_envs.contract.outcome import Constraint
from agent_envs.envs.refund.rules import Condition, smallest_unit

Currency = Literal["USD", "EUR", "GBP", "JPY"]
Reason = Literal["changed_mind", "defective", "never_arrived"]
Team = Literal["risk", "supervisors", "shipping"]

TICKET_REASONS: dict[str, tuple[str, ...]] = {
    "refunded": ("changed_mind", "defective", "never_arrived"),
    "credited": ("changed_mind", "defective", "never_arrived"),
    "cancelled": ("changed_mind", "defective", "never_arrived"),
    "refused": (
        "out_of_window",
        "final_sale",
        "already_refunded",
        "not_delivered",
        "identity_failed",
        "not_owner",
    ),
    "handed_over": ("fraud_hold", "approval_denied", "other"),
}
"""Decision to the reasons it can have."""


def _amount(value: object) -> Decimal:
    if isinstance(value, Decimal):
        return value
    whole, _, part = value.partition(".") if isinstance(value, str) else ("", "", "")
    digits = whole + part
    if not (isinstance(value, str) and whole and digits.isascii() and digits.isdigit() and len(digits) <= 15):
        raise ValueError('an amount is written in quotes, such as "44.80", with up to 15 digits and no sign')
    if len(part) > 4 or value.endswith("."):
        raise ValueError("an amount has up to four decimal places")
    return Decimal(value)


def _real_moment(value: str) -> str:
    dt.datetime.fromisoformat(value)
    return value


def _real_day(value: str) -> str:
    dt.date.fromisoformat(value)
    return value


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a whole number is required, not true or false")
    return value


Amount = Annotated[Decimal, BeforeValidator(_amount)]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"), AfterValidator(_real_moment)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$"), AfterValidator(_real_day)]
Pieces = Annotated[int, BeforeValidator(_no_flag), Field(strict=True, ge=1, le=1000)]
CustomerId = Annotated[str, Field(pattern=r"^C9\d{3}$")]
OrderId = Annotated[str, Field(pattern=r"^W[789]\d{3}$")]
PaymentId = Annotated[str, Field(pattern=r"^P[789]\d{3}$")]
ShipmentId = Annotated[str, Field(pattern=r"^S9\d{3}$")]
TicketId = Annotated[str, Field(pattern=r"^T9\d{3}$")]
Words = Annotated[str, Field(min_length=1, max_length=400)]


class Customer(Model):
    """A customer the task adds."""

    customer_id: CustomerId
    name: Words
    email: Words
    phone: Words
    postcode: Words
    birth_date: Day
    tier: Literal["standard", "gold"] = "standard"


class Line(Model):
    """A line of an order; lines are numbered from 1 as they stand."""

    sku: Words
    name: Words
    category: Words
    quantity: Pieces
    price: Amount
    """Of one piece, in the order's currency."""
    final_sale: bool = Field(default=False, strict=True)


class Payment(Model):
    """A payment captured when the order was placed."""

    payment_id: PaymentId
    tender: Literal["card", "paypal", "gift_card", "store_credit"]
    detail: Words
    amount: Amount
    """In the payment's currency."""
    currency: Currency | None = None
    """Null: the order's."""
    rate: Amount = Decimal(1)
    """Units of this currency per unit of the order's."""


class Shipment(Model):
    """A parcel. Orders without any get one that fits their status."""

    shipment_id: ShipmentId
    carrier: Words
    status: Literal["in_transit", "delivered", "lost"]
    shipped: Moment
    delivered: Moment | None = None


class PastReturn(Model):
    """Pieces that came back before the task starts."""

    line: Pieces
    quantity: Pieces
    condition: Condition
    at: Moment


class PastRefund(Model):
    """Money that went back before the task starts."""

    payment: PaymentId
    amount: Amount
    reason: Reason
    at: Moment


class PastCredit(Model):
    """Store credit given before the task starts, in the order's currency."""

    amount: Amount
    reason: Reason
    at: Moment


class Order(Model):
    """An order the task adds, with its history."""

    order_id: OrderId
    customer: CustomerId
    status: Literal["placed", "processing", "shipped", "delivered", "cancelled"]
    placed: Moment
    delivered: Moment | None = None
    currency: Currency
    shipping: Amount = Decimal(0)
    """Shipping fee."""
    risk: Literal["clear", "hold"] = "clear"
    lines: tuple[Line, ...] = Field(min_length=1)
    payments: tuple[Payment, ...] = Field(min_length=1)
    shipments: tuple[Shipment, ...] = ()
    returned: tuple[PastReturn, ...] = ()
    refunds: tuple[PastRefund, ...] = ()
    credited: tuple[PastCredit, ...] = ()

    @property
    def total(self) -> Decimal:
        """Lines and shipping."""
        return sum((line.quantity * line.price for line in self.lines), self.shipping)

    def unit(self) -> Decimal:
        """Smallest amount of the order's currency."""
        return smallest_unit(self.currency)


class Ticket(Model):
    """The open ticket the agent works on."""

    ticket_id: TicketId
    subject: Words
    opened: Moment | None = None
    """Null: five minutes before the start."""


class Return(Model):
    """Pieces that must be registered."""

    order: OrderId
    line: Pieces
    quantity: Pieces
    condition: Condition


class Refund(Model):
    """Money that must go back to a payment, in the payment's currency."""

    order: OrderId
    payment: PaymentId
    amount: Amount
    reason: Reason


class Credit(Model):
    """Store credit that must be given, in the order's currency."""

    order: OrderId
    customer: CustomerId
    amount: Amount
    currency: Currency
    reason: Reason


class Cancellation(Model):
    """An order that must be cancelled."""

    order: OrderId
    reason: Reason


class Authorisation(Model):
    """A decision that must have been asked for, in the order's currency."""

    order: OrderId
    amount: Amount
    decision: Literal["approved", "denied"]


class Closing(Model):
    """How the ticket must end."""

    decision: Literal["refunded", "credited", "cancelled", "refused", "handed_over"]
    reason: str
    """Reason code; see `TICKET_REASONS`."""
    team: Team | None = None
    """For a hand-over."""
    customer: CustomerId | None = None
    """Who the ticket is linked to. Null: the only customer of the task, or nobody after a failed identity check."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.reason not in TICKET_REASONS[self.decision]:
            known = ", ".join(TICKET_REASONS[self.decision])
            raise ValueError(f"reason {self.reason!r} doesn't go with decision {self.decision!r}; use one of {known}")
        if (self.team is None) == (self.decision == "handed_over"):
            raise ValueError("a hand-over names its team, and only a hand-over does")
        return self


class Effects(Model):
    """What must be different at the end."""

    returns: tuple[Return, ...] = ()
    refunds: tuple[Refund, ...] = ()
    credits: tuple[Credit, ...] = ()
    cancelled: tuple[Cancellation, ...] = ()
    authorisations: tuple[Authorisation, ...] = ()
    ticket: Closing | None = None


class Outcome(Effects):
    """What must be different at the end, with lawful alternatives."""

    either: tuple[Effects, ...] = ()
    """Groups of which exactly one must hold beside the rest."""
    answer: dict[str, Expected] = Field(default={})
    """Fields of the answer given to ``finish``."""


class Budget(Model):
    """Limits that differ from the family's; see `agent_envs.contract.Limits`."""

    steps: Pieces = 40
    calls: Pieces = 200
    wall_seconds: float | None = Field(default=600, gt=0)
    tokens: int | None = Field(default=None, ge=1, strict=True)
    cost: float | None = Field(default=None, gt=0)


class Scenario(Model):
    """A whole task in short form."""

    task_id: str = Field(pattern=r"^refund/[a-z0-9][a-z0-9_.-]*$")
    task_revision: Pieces = 1
    source: Words = "curated"
    slice_labels: dict[str, str] = Field(default={})
    clock: Moment
    """Virtual time at the start."""
    customers: tuple[Customer, ...] = Field(min_length=1)
    orders: tuple[Order, ...] = ()
    ticket: Ticket
    user: ScriptedUserSpec
    outcome: Outcome
    constraints: tuple[Constraint, ...] = ()
    """Beside the family's."""
    permissions: tuple[Permission, ...] = ()
    limits: Budget = Field(default_factory=Budget)
    rubric: tuple[RubricItem, ...] = ()
    """Empty: the changes count as much as all constraints together."""
    reset_check: dict[str, str] = Field(default={})
    grader_revision: Pieces = 1
    grader_manifest: tuple[str, ...] = ()


class FormError(AgentEvalError):
    """A scenario made in memory contradicts itself; the message names the field."""
