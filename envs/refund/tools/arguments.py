"""Argument types of the tools: every text is bounded, every amount exact."""

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

LARGEST_AMOUNT = 999_999_999
_PATTERN = r"^[0-9]{1,9}(\.[0-9]{1,10})?$"


def parse_amount(value: Any) -> Decimal:
    """Read an amount of money exactly.

    Text is at most 9 plain digits, with an optional point and decimals (``25.00``): no sign, exponent, separator or
    currency. A JSON number means its shortest decimal text, so 0.1 is a tenth.

    Raises:
        ValueError: It is something else, negative, not finite or too large.
    """
    if isinstance(value, str):
        if not re.fullmatch(_PATTERN, value) or value.endswith("\n"):
            raise ValueError(
                "write an amount in plain digits such as '25.00', without sign, exponent, currency or separators"
            )
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("give an amount as decimal text such as '25.00' or as a number")
    if not 0 <= value <= LARGEST_AMOUNT:  # false for NaN too, and looked at before a huge integer is made text
        raise ValueError(f"an amount is a number from 0 to {LARGEST_AMOUNT}")
    return abs(Decimal(repr(value)))


Amount = Annotated[
    Decimal,
    PlainValidator(parse_amount),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": _PATTERN},
                {"type": "number", "minimum": 0, "maximum": LARGEST_AMOUNT},
            ]
        }
    ),
]
Id = Annotated[str, Field(min_length=1, max_length=40)]
Line = Annotated[str, Field(min_length=1, max_length=200)]
Key = Annotated[str, Field(min_length=1, max_length=100)]
Number = Annotated[int, Field(ge=1, le=10**9)]
Prose = Annotated[str, Field(min_length=1, max_length=2000)]
Message = Annotated[str, Field(min_length=1, max_length=4000)]
Remark = Annotated[str, Field(max_length=2000)]

PaymentReason = Literal["changed_mind", "defective", "never_arrived"]
FactName = Literal[
    "name",
    "email",
    "phone",
    "postcode",
    "birth_date",
    "order_id",
    "items",
    "condition",
    "reason",
    "payment_method",
    "other",
]


class Proposal(BaseModel):
    """What the customer is asked to agree to."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    action: Literal["refund", "store_credit", "cancel"] = Field(description="What you would do.")
    order_id: Id = Field(description="The order it is about.")
    amount: Amount | None = Field(default=None, description="How much money, for a refund or store credit.")
    currency: Literal["EUR", "GBP", "JPY", "USD"] | None = Field(default=None, description="Currency of the amount.")
    payment_id: Id | None = Field(default=None, description="The payment a refund goes to.")
