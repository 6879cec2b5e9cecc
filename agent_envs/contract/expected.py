"""Expected values: how a task author says what a value must be, with the type it is compared by.

A bare scalar (``5``, ``"W1042"``, ``null``) is compared exactly, type included: ``1``, ``"1"``, ``true`` and ``1.0``
are four different values. Everything else is a mapping with exactly one tag key and that tag's options, such as
``{money: "25.00", currency: USD}`` or ``{bag: [{id: W1}, {id: W2}]}``. The evaluator's ``values`` module compares.
"""

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    TypeAdapter,
    model_validator,
)

from agent_envs.contract.canonical import decimal_text
from agent_envs.contract.model import Model

_DECIMAL = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,2})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3]):(?P<minutes>[0-5][0-9])")
_ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")


def _decimal(value: object) -> Decimal:
    """A finite decimal from a YAML number or text; a float counts as the decimal it is written as."""
    text = str(value) if isinstance(value, Decimal | str) or type(value) in (int, float) else ""
    if not _DECIMAL.fullmatch(text):
        raise ValueError('a finite decimal number is required, such as 21 or "25.00" (no symbol, no separators)')
    return Decimal(text)


def _money(value: object) -> Decimal:
    if isinstance(value, float):
        raise ValueError(f'money is exact: write the amount in quotes, such as "25.00", not as the float {value!r}')
    return _decimal(value)


def _day(value: object) -> dt.date:
    if type(value) is dt.date:
        return value
    if isinstance(value, str) and _DAY.fullmatch(value):
        return dt.date.fromisoformat(value)
    raise ValueError("a date is written YYYY-MM-DD, such as 2025-10-21")


def _moment(value: object) -> dt.datetime:
    moment = value
    if isinstance(value, str) and len(value) > 10 and _DAY.match(value):
        moment = dt.datetime.fromisoformat(value)
    if not isinstance(moment, dt.datetime):
        raise ValueError("a date-time is written in ISO 8601, such as 2025-10-21T10:00:00+02:00")
    if not 2 <= moment.year <= 9998:
        raise ValueError("the year of a date-time must lie between 2 and 9998, so that it exists in every zone")
    return moment


def zone_of(name: str) -> dt.tzinfo:
    """The time zone of a declared name: ``UTC``, an offset such as ``+02:00``, or an IANA name.

    Raises:
        LookupError: This machine's time zone data has no such name.
    """
    if name == "UTC":
        return dt.UTC
    if offset := _OFFSET.fullmatch(name):
        size = dt.timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"]))
        return dt.timezone(-size if offset["sign"] == "-" else size)
    try:
        if not _ZONE_NAME.fullmatch(name):
            raise ValueError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise LookupError(
            f"this machine has no time zone {name!r}; give UTC, an offset such as +02:00, or install time zone data"
        ) from None


def _zone(name: object) -> str:
    if not isinstance(name, str) or not (_OFFSET.fullmatch(name) or _ZONE_NAME.fullmatch(name)):
        raise ValueError('a zone is UTC, an offset such as "+02:00" (in quotes) or an IANA name such as Europe/Paris')
    try:
        zone_of(name)
    except LookupError as error:
        try:
            zone_of("Europe/London")
        except LookupError:
            # No time zone data at all: the name can't be called wrong. Comparing by it will be undetermined.
            return name
        raise ValueError(str(error)) from None
    return name


_as_text = PlainSerializer(decimal_text, return_type=str, when_used="json")
ExactNumber = Annotated[Decimal, BeforeValidator(_decimal), _as_text]
ExactAmount = Annotated[Decimal, BeforeValidator(_money), _as_text]


class Exact(Model):
    """The very scalar, type included. Written bare; the tag is its long form."""

    exact: StrictBool | StrictInt | StrictFloat | StrictStr | None
    """The value; null matches null only."""


class Money(Model):
    """An exact amount of money, never a float."""

    money: ExactAmount
    """The amount, in quotes: ``"25.00"``."""
    currency: str | None = Field(default=None, pattern=r"^[A-Z]{3}$")
    """ISO 4217 code; without it only the amount is compared."""


class Number(Model):
    """A number, with a unit and a tolerance where wanted."""

    number: ExactNumber
    """The value."""
    unit: str | None = Field(default=None, pattern=r"^\S.{0,39}$")
    """Unit the value is in; an answer may leave it out, and may not give another one (nothing is converted)."""
    tolerance: ExactNumber = Field(default=Decimal(0), ge=0)
    """Largest allowed distance, inclusive; a share of the value when ``relative``."""
    relative: StrictBool = False
    """Whether the tolerance is a share (0.01 is one per cent)."""

    @model_validator(mode="after")
    def _relative_has_a_share(self) -> Self:
        if self.relative and not (self.tolerance and self.number):
            raise ValueError("'relative: true' needs a tolerance above 0 and a number other than 0")
        return self


class Date(Model):
    """A calendar day."""

    date: Annotated[dt.date, BeforeValidator(_day)]
    """The day, ISO 8601."""
    locale: Literal["en-US", "en-GB", "en-AU", "en-IN", "en-NZ"] | None = None
    """Decides forms like 10/11: en-US reads the month first, the others the day. Without it they are refused."""
    year_optional: StrictBool = False
    """Whether an answer may leave the year out; a year that is given must be right all the same."""


class DateTime(Model):
    """An instant. Two spellings of one instant in different zones are equal."""

    datetime: Annotated[dt.datetime, BeforeValidator(_moment)]
    """ISO 8601, with an offset unless ``zone`` is declared."""
    zone: Annotated[str, BeforeValidator(_zone)] | None = None
    """Zone of date-times without an offset, here and in answers. Offsets don't depend on time zone data, names do."""

    @model_validator(mode="after")
    def _is_an_instant(self) -> Self:
        if self.datetime.tzinfo is not None:
            return self
        if self.zone is None:
            raise ValueError("a date-time without an offset is no instant: add the offset or declare 'zone'")
        try:
            zone = zone_of(self.zone)
        except LookupError:
            return self
        first, second = (self.datetime.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
        if first != second:
            raise ValueError(f"the clocks of {self.zone} show this time twice or never; give the offset")
        return self


class Identifier(Model):
    """An identifier: outer white space is dropped, everything else counts."""

    id: str = Field(pattern=r"^\S(.*\S)?$", max_length=1000)
    """The identifier, in quotes where YAML would read a number."""
    ignore_case: StrictBool = False
    """Whether upper and lower case are one."""


class Text(Model):
    """Text under a named normaliser."""

    text: str = Field(max_length=1_000_000)
    """The text."""
    normaliser: Literal["exact", "line", "prose"] = "line"
    """What does not count. ``exact``: nothing. ``line``: composition (NFC), line ends, byte order mark, no-break spaces
    and outer white space. ``prose``: also case, curly quotes, length of inner white space and final ``. ! ? …``.
    Dashes, invisible characters, full-width forms and all other marks count under each of them."""

    @model_validator(mode="after")
    def _prose_has_words(self) -> Self:
        if self.normaliser == "prose" and all(mark.isspace() or mark in ".!?\u2026\ufeff" for mark in self.text):
            raise ValueError("this text is empty under 'prose', so an empty answer would pass; use 'exact' or 'line'")
        return self


class SetOf(Model):
    """Distinct values in any order; a value given twice counts once. Where repeats matter use ``bag``."""

    set: tuple["Expected", ...]
    """The values."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        seen: dict[bytes, int] = {}
        for number, item in enumerate(self.set, start=1):
            first = seen.setdefault(item.canonical(), number)
            if first != number:
                raise ValueError(f"items {first} and {number} of the set are equal; use 'bag' where repeats count")
        return self


class BagOf(Model):
    """Values in any order, each as often as it stands here."""

    bag: tuple["Expected", ...]
    """The values."""


class ListOf(Model):
    """Values in this order."""

    list: tuple["Expected", ...]
    """The values."""


class Fields(Model):
    """A record, field by field."""

    fields: dict[str, "Expected"]
    """Field name to value; each must be present."""
    open: StrictBool = False
    """Whether other fields may be present."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.open and not self.fields:
            raise ValueError("'fields: {}' with 'open: true' would accept every record; name a field")
        return self


class OneOf(Model):
    """Any of several right values, such as the products of a tie."""

    one_of: tuple["Expected", ...] = Field(min_length=1)
    """The values."""


class AnyValue(Model):
    """Any value at all, null too; only a missing one fails."""

    any: Literal[True]
    """Always true."""


class Null(Model):
    """Null and nothing else."""

    null: Literal[True]
    """Always true."""


class Boolean(Model):
    """A truth value; an answer in words may be true, false, yes or no."""

    boolean: StrictBool
    """The value."""


class Url(Model):
    """An address, compared part by part: scheme, host, port, path and the declared query keys."""

    url: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]+[^\s]*$", max_length=8000)
    """The absolute address; a fragment counts only when it stands here."""
    query_keys: tuple[str, ...] | None = None
    """Query keys that count; the default is those in ``url``. One that isn't in ``url`` must be absent."""


TAGS: dict[str, type[Model]] = {
    "exact": Exact,
    "money": Money,
    "number": Number,
    "date": Date,
    "datetime": DateTime,
    "id": Identifier,
    "text": Text,
    "set": SetOf,
    "bag": BagOf,
    "list": ListOf,
    "fields": Fields,
    "one_of": OneOf,
    "any": AnyValue,
    "null": Null,
    "boolean": Boolean,
    "url": Url,
}
"""Tag key to model, in the order in which messages name them."""
_TAG_OF = {model: tag for tag, model in TAGS.items()}


def _tagged(raw: Any) -> Any:
    """Bring what the author wrote into the one form ``{tag: value, option: ...}``."""
    if isinstance(raw, Model):
        return raw
    if raw is None or isinstance(raw, bool | int | float | str):
        if isinstance(raw, float) and not math.isfinite(raw):
            raise ValueError(f"{raw!r} equals nothing and can't be expected; write a finite number")
        return {"exact": raw}
    known = ", ".join(TAGS)
    if isinstance(raw, list | tuple):
        raise ValueError("a list must say how it is compared: {list: [...]} in order, {bag: [...]} or {set: [...]}")
    if not isinstance(raw, Mapping):
        raise ValueError(f"a {type(raw).__name__} can't be expected; write text, or one of the tags {known}")
    # YAML reads the plain key null as the null value.
    data = {"null" if key is None else key: value for key, value in raw.items()}
    found = [tag for tag in TAGS if tag in data]
    if not found:
        raise ValueError(f"unknown tag {', '.join(repr(key) for key in data) or '{}'}; the tags that exist are {known}")
    if len(found) > 1:
        raise ValueError(f"the tags {' and '.join(found)} stand together; an expected value has exactly one")
    return data


def _tag_of(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return next((tag for tag in TAGS if tag in value), None)
    return _TAG_OF.get(type(value))


Expected: TypeAlias = Annotated[
    Annotated[Exact, Tag("exact")]
    | Annotated[Money, Tag("money")]
    | Annotated[Number, Tag("number")]
    | Annotated[Date, Tag("date")]
    | Annotated[DateTime, Tag("datetime")]
    | Annotated[Identifier, Tag("id")]
    | Annotated[Text, Tag("text")]
    | Annotated[SetOf, Tag("set")]
    | Annotated[BagOf, Tag("bag")]
    | Annotated[ListOf, Tag("list")]
    | Annotated[Fields, Tag("fields")]
    | Annotated[OneOf, Tag("one_of")]
    | Annotated[AnyValue, Tag("any")]
    | Annotated[Null, Tag("null")]
    | Annotated[Boolean, Tag("boolean")]
    | Annotated[Url, Tag("url")],
    Discriminator(_tag_of),
    BeforeValidator(_tagged),
]
"""Any expected value, as a field type for task models."""

_adapter: TypeAdapter[Expected] = TypeAdapter(Expected)


def load_expected(raw: object) -> Expected:
    """Make an expected value of what an author wrote (YAML or JSON data).

    Raises:
        pydantic.ValidationError: Names the unknown tag and those that exist, or the option that is wrong.
    """
    return _adapter.validate_python(raw)
