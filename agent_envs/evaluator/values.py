"""Comparing a value with what a task expects, by the declared type.

The rules, for values from state (JSON in ``typed`` form) and from declared answers (text or JSON, hostile) alike:

* **The whole value counts.** Nothing is searched for in a text: "The count is 0." is not the number 0 but a format
  error, said in the explanation. ``0.`` with a sentence's full stop is accepted.
* **Bare scalars** compare exactly, type included. Text never equals a number then: a task that takes answers in words
  declares ``{number: 5}``.
* **Money**: ``25``, ``25.00``, ``$25.00``, ``25 USD``, ``USD 25.00``, ``1,234.50``; exact decimals. A currency that is
  written must be able to be the declared one. Decimal commas are not read.
* **Numbers**: as money, with the declared unit or none; any other unit fails, nothing is converted. A truth value is no
  number; empty text, null, ``none``, ``undefined``, ``NaN`` and infinities equal no number. JSON floats count as the
  decimal they are written as. Number words (``two``) are not read.
* **Dates**: ISO 8601, English month names, numeric forms in the order of the declared locale or of the only one that is
  a day. **Date-times**: ISO 8601, compared as instants; without an offset the declared zone's clock must show them.
* **Ids**: trimmed text, or the integer spelled like it. **Truth values**: JSON, or true, false, yes, no.
* **Collections**: JSON lists, or text split at semicolons and line ends, else at unambiguous commas. A **bag** counts
  repeats, a **set** drops them, a **list** keeps order. **Fields** refuses fields that aren't named unless open.
* A **missing** value fails every expectation. What this machine can't decide (a zone it has no data for) is
  undetermined, and so is a whole that depends on it.
"""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Context, Decimal
from enum import Enum
from typing import Any, Final, NamedTuple, assert_never

from agent_envs.contract import expected as want
from agent_envs.contract.verdict import Status
from agent_envs.evaluator import parse
from agent_envs.evaluator.dates import Unreadable, parse_day, parse_instant
from agent_envs.evaluator.matching import largest_pairing, without_literals
from agent_envs.evaluator.parse import shown
from agent_envs.evaluator.units import agree, is_currency

# Wide enough for the exact difference of any two numbers the readers let through (exponents up to 999).
_EXACT = Context(prec=4000)


class Missing(Enum):
    """Type of the marker for a value that isn't there, which null is not."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Stands for a field, row or answer that isn't there; fails every expectation."""


class Comparison(NamedTuple):
    """Whether a value is the expected one."""

    status: Status
    explanation: str
    """A sentence for people; its length is bounded unless the task's own values are long."""


def compare(expected: want.Expected, actual: Any) -> Comparison:
    """Compare a value with an expected one by the rules in this module's docstring.

    Args:
        expected: What the task declares.
        actual: JSON in ``typed`` form, text or JSON from an agent, or `MISSING`. Nothing in it is evaluated, and
            nothing in it makes this function raise.
    """
    if actual is MISSING:
        return Comparison(Status.FAIL, "missing: there is no value")
    try:
        return _compare(expected, actual)
    except Unreadable as error:
        return Comparison(Status.FAIL, f"{shown(actual)} can't be compared: {error}")


def fits(expected: want.Expected, actual: Any) -> Status:
    """The status of `compare`, without the words: bare scalars, by far the most frequent, cost next to nothing."""
    if type(expected) is want.Exact and actual is not MISSING:
        value = expected.exact
        return Status.PASS if type(actual) is type(value) and actual == value else Status.FAIL
    return compare(expected, actual).status


def _compare(expected: want.Expected, actual: Any) -> Comparison:
    match expected:
        case want.Exact():
            return _exact(expected, actual)
        case want.Money():
            return _money(expected, actual)
        case want.Number():
            return _number(expected, actual)
        case want.Date():
            return _date(expected, actual)
        case want.DateTime():
            return _instant(expected, actual)
        case want.Identifier():
            return _identifier(expected, actual)
        case want.Text():
            return _text(expected, actual)
        case want.SetOf():
            return _unordered(expected.set, _items(expected.set, actual), repeats=False)
        case want.BagOf():
            return _unordered(expected.bag, _items(expected.bag, actual), repeats=True)
        case want.ListOf():
            return _ordered(expected.list, _items(expected.list, actual))
        case want.Fields():
            return _fields(expected, actual)
        case want.OneOf():
            return _one_of(expected, actual)
        case want.AnyValue():
            return Comparison(Status.PASS, "any value will do")
        case want.Null():
            return _judge(actual is None, "null", actual)
        case want.Boolean():
            truth = parse.parse_boolean(actual) if isinstance(actual, str) else actual
            return _judge(truth is expected.boolean, shown(expected.boolean), actual)
        case want.Url():
            return _url(expected, actual)
    assert_never(expected)


def _judge(right: bool, wanted: str, actual: Any, but: str = "") -> Comparison:
    if right:
        return Comparison(Status.PASS, f"{shown(actual)} is {wanted}")
    return Comparison(Status.FAIL, f"expected {wanted}, found {shown(actual)}{but}")


def _exact(expected: want.Exact, actual: Any) -> Comparison:
    value = expected.exact
    same_type = type(actual) is type(value)
    but = "" if same_type else "; a bare scalar compares with its type (else declare {number: ...} or the like)"
    return _judge(same_type and actual == value, shown(value), actual, but)


def _quantity(actual: Any) -> parse.Quantity:
    if isinstance(actual, str):
        return parse.parse_quantity(actual)
    if isinstance(actual, int) and not isinstance(actual, bool) and actual.bit_length() <= 512:
        return parse.Quantity(Decimal(actual), ())
    if isinstance(actual, float) and math.isfinite(actual):
        return parse.Quantity(Decimal(repr(actual)), ())
    if isinstance(actual, dict) and len(actual) == 1 and isinstance(actual.get("$decimal"), str):
        return parse.Quantity(parse.parse_plain_decimal(actual["$decimal"]), ())
    raise Unreadable("a number is required")


def _money(expected: want.Money, actual: Any) -> Comparison:
    amount, currencies = _quantity(actual)
    wanted = f"{shown(expected.money)} {expected.currency or '(any currency)'}"
    for written in currencies:
        right = agree(written, expected.currency) if expected.currency else is_currency(written)
        if not right:
            return _judge(False, wanted, actual, f": {written!r} is another currency or none")
    return _judge(amount == expected.money, wanted, actual)


def _number(expected: want.Number, actual: Any) -> Comparison:
    amount, units = _quantity(actual)
    wanted = " ".join(filter(None, (shown(expected.number), expected.unit)))
    if expected.tolerance:
        wanted += f" within {shown(expected.tolerance)}" + (" of its size" if expected.relative else "")
    for written in units:
        if expected.unit is None or not agree(written, expected.unit):
            return _judge(False, wanted, actual, f": {written!r} is not the declared unit, and nothing is converted")
    allowed = expected.tolerance
    if expected.relative:
        allowed = _EXACT.multiply(allowed, expected.number.copy_abs())
    return _judge(_EXACT.subtract(amount, expected.number).copy_abs() <= allowed, wanted, actual)


def _date(expected: want.Date, actual: Any) -> Comparison:
    if not isinstance(actual, str):
        raise Unreadable("a date is required, as text")
    found = parse_day(actual, None if expected.locale is None else expected.locale == "en-US")
    wanted = expected.date.isoformat()
    if found.year is None and not expected.year_optional:
        return _judge(False, wanted, actual, ": the year is missing")
    if found.weekday not in (None, expected.date.weekday()):
        return _judge(False, wanted, actual, ": that day is another day of the week")
    year = expected.date.year if found.year is None else found.year
    return _judge((year, found.month, found.day) == expected.date.timetuple()[:3], wanted, actual)


def _instant(expected: want.DateTime, actual: Any) -> Comparison:
    if not isinstance(actual, str):
        raise Unreadable("a date-time is required, as text")
    found = parse_instant(actual)
    wanted, moment = expected.datetime.isoformat(), expected.datetime
    zone: dt.tzinfo | None = None
    if moment.tzinfo is None or found.tzinfo is None:
        if expected.zone is None:
            return _judge(False, wanted, actual, ": it has no offset, and the task declares no zone")
        try:
            zone = want.zone_of(expected.zone)
        except LookupError as error:
            return Comparison(Status.UNDETERMINED, f"expected {wanted}, found {shown(actual)}: {error}")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    if found.tzinfo is None:
        # Asking what the zone's clock shows then settles the hours it shows twice or never.
        return _judge(moment.astimezone(zone).replace(tzinfo=None) == found, wanted, actual)
    return _judge(moment.astimezone(dt.UTC) == found, wanted, actual)


def _identifier(expected: want.Identifier, actual: Any) -> Comparison:
    if isinstance(actual, int) and not isinstance(actual, bool) and actual.bit_length() <= 512:
        text = str(actual)
    elif isinstance(actual, str):
        text = actual.strip()
    else:
        raise Unreadable("an identifier is required, as text")
    if expected.ignore_case and len(text) <= 2000:
        return _judge(text.casefold() == expected.id.casefold(), f"the id {shown(expected.id)} in any case", actual)
    return _judge(text == expected.id, f"the id {shown(expected.id)}", actual)


def _text(expected: want.Text, actual: Any) -> Comparison:
    if not isinstance(actual, str):
        raise Unreadable("text is required")
    if expected.normaliser != "exact" and len(actual) > 10 * len(expected.text) + 10_000:
        raise Unreadable("it is far longer than the expected text")
    wanted, found = (parse.normalise(text, expected.normaliser) for text in (expected.text, actual))
    # Texts that look alike are told apart by their escapes.
    but = f" (code points {found[:40]!a})" if wanted != found and not found[:40].isascii() else ""
    return _judge(wanted == found, f"{shown(expected.text)} as {expected.normaliser} text", actual, but)


def _url(expected: want.Url, actual: Any) -> Comparison:
    if not isinstance(actual, str):
        raise Unreadable("an address is required, as text")
    wanted, found = parse.parse_url(expected.url), parse.parse_url(actual)
    address = shown(expected.url)
    for part in ("scheme", "user", "host", "port", "path"):
        if getattr(wanted, part) != getattr(found, part):
            return _judge(False, address, actual, f": the {part} differs")
    keys = expected.query_keys if expected.query_keys is not None else tuple(dict(wanted.query))
    for key in keys:
        if [value for name, value in wanted.query if name == key] != [v for name, v in found.query if name == key]:
            return _judge(False, address, actual, f": the query key {key!r} differs")
    return _judge(not wanted.fragment or wanted.fragment == found.fragment, address, actual, ": the fragment differs")


def _one_of(expected: want.OneOf, actual: Any) -> Comparison:
    results = [compare(alternative, actual) for alternative in expected.one_of]
    for status in (Status.PASS, Status.UNDETERMINED):
        for result in results:
            if result.status is status:
                return result
    return Comparison(Status.FAIL, f"none of {len(results)} right values; the first: {results[0].explanation}")


def _fields(expected: want.Fields, actual: Any) -> Comparison:
    if not isinstance(actual, dict):
        raise Unreadable("a record is required")
    extra = [name for name in actual if name not in expected.fields]
    if extra and not expected.open:
        return Comparison(Status.FAIL, f"field {shown(extra[0])} is not expected ({len(extra)} such)")
    results = {name: compare(value, actual.get(name, MISSING)) for name, value in expected.fields.items()}
    return _all_of([(f"field {name!r}", result) for name, result in results.items()])


def _ordered(expected: Sequence[want.Expected], actual: Sequence[Any]) -> Comparison:
    if len(expected) != len(actual):
        return Comparison(Status.FAIL, f"expected {len(expected)} items, found {len(actual)}")
    pairs = enumerate(zip(expected, actual, strict=True), start=1)
    return _all_of([(f"item {number}", compare(wanted, found)) for number, (wanted, found) in pairs])


def _all_of(parts: Sequence[tuple[str, Comparison]]) -> Comparison:
    status = Status.all_of(result.status for _, result in parts)
    for name, result in parts:
        if status is not Status.PASS and result.status is status:
            return Comparison(status, f"{name}: {result.explanation}")
    return Comparison(status, f"all {len(parts)} parts are as expected")


def _items(expected: Sequence[want.Expected], actual: Any) -> Sequence[Any]:
    """The items of a list, or of text that lists them."""
    if isinstance(actual, list | tuple):
        return actual
    if not isinstance(actual, str):
        raise Unreadable("a list is required")
    leaves = [leaf for item in expected for leaf in (item.one_of if isinstance(item, want.OneOf) else (item,))]
    inside = "".join(_spelled(leaf) for leaf in leaves)
    if any(isinstance(leaf, want.Date) for leaf in leaves) and any(character.isalpha() for character in actual[:1000]):
        inside += ","  # October 21, 2025
    numeric = any(isinstance(leaf, want.Number | want.Money) for leaf in leaves)
    return parse.split_list(actual, "".join(mark for mark in ";,\n" if mark in inside), numeric)


def _spelled(leaf: want.Expected) -> str:
    """The text an item is declared with, for the separators that stand inside it."""
    match leaf:
        case want.Text():
            return leaf.text
        case want.Identifier():
            return leaf.id
        case want.Url():
            return leaf.url
        case want.Exact():
            return leaf.exact if isinstance(leaf.exact, str) else ""
        case _:
            return ""


def _unordered(expected: Sequence[want.Expected], actual: Sequence[Any], repeats: bool) -> Comparison:
    """Pair expected with actual items one to one; where repeats don't count, further items must equal right ones."""
    if len(actual) < len(expected) or (repeats and len(actual) > len(expected)):
        return Comparison(Status.FAIL, f"expected {len(expected)} items, found {len(actual)}")
    if len(actual) > 10 * len(expected) + 100:
        return Comparison(Status.FAIL, f"expected {len(expected)} distinct items, found {len(actual)} with repeats")
    if repeats:
        if _ordered(expected, actual).status is Status.PASS:
            return Comparison(Status.PASS, f"all {len(expected)} items are as expected")
        expected, actual = without_literals(expected, actual)
    certain: list[list[int]] = []
    possible: list[list[int]] = []
    for wanted in expected:
        results = [compare(wanted, found).status for found in actual]
        certain.append([index for index, status in enumerate(results) if status is Status.PASS])
        possible.append([index for index, status in enumerate(results) if status is not Status.FAIL])
        if not possible[-1]:
            return Comparison(Status.FAIL, f"expected item ({_label(wanted)}) is not there")
    for status, edges in ((Status.PASS, certain), (Status.UNDETERMINED, possible)):
        covered = {index for row in edges for index in row}
        if len(covered) == len(actual) and largest_pairing(edges, len(actual)) == len(expected):
            return Comparison(status, "the items pair with the expected ones, in another order or with repeats")
    stray = sorted(set(range(len(actual))) - {index for row in possible for index in row})
    if stray:
        return Comparison(Status.FAIL, f"item ({shown(actual[stray[0]])}) is not expected")
    return Comparison(Status.FAIL, "the items can't be paired with the expected ones one to one")


def _label(expected: want.Expected) -> str:
    first = next(iter(type(expected).model_fields))
    return f"{first} {shown(getattr(expected, first))}"
