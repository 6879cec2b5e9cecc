"""Reading typed values from an agent's text, and normalising text: bounded in size, evaluating nothing.

Every reader wants the whole text to be the value. None of them searches, so a right number inside a wrong sentence is
not an answer. Texts are hostile: sizes are checked before any work that is not linear.
"""

import re
import unicodedata
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from agent_envs.contract.canonical import decimal_text
from agent_envs.evaluator.dates import Unreadable
from agent_envs.evaluator.units import is_currency

MAX_VALUE = 200
"""Characters of a single number, amount or truth value."""
MAX_TEXT = 1_000_000
"""Characters of a text or list."""
MAX_ITEMS = 100_000
"""Items of a list written as text."""
MAX_MARKS = 30
"""Combining marks in a row. Composing a longer run takes quadratic time, and no script needs one."""

_MINUS = str.maketrans({"\u2212": "-"})
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2007": " "})
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?) ?"
    r"(?P<prefix>[^0-9 .,+\-][^0-9.,+\-]{0,11}?)? ?"
    r"(?P<inner>[+-]?)"
    r"(?P<number>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+) ?"
    r"(?P<suffix>[^0-9 .,+\-].{0,39})?"
)
_PLAIN = re.compile(r"-?[0-9]{1,200}(\.[0-9]{1,200})?")
_GROUPED = re.compile(r"[^0-9,]{0,12}[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])[^,]{0,40}")
_GROUP_MARK = re.compile(r"[0-9],[0-9]{3}(?![0-9])")


class Quantity(NamedTuple):
    """A number as it was written."""

    amount: Decimal
    units: tuple[str, ...]
    """Spellings of the units or currencies written beside it."""


class Address(NamedTuple):
    """The parts of a URL that are compared."""

    scheme: str
    user: str | None
    """Everything before the @ of the authority."""
    host: str
    port: int | None
    path: tuple[str, ...]
    """Decoded segments."""
    query: tuple[tuple[str, str], ...]
    """Decoded keys and values, in order."""
    fragment: str


def parse_quantity(text: str) -> Quantity:
    """Read a number with at most a unit behind it or a currency on either side: ``$1,234.50``, ``21 inches``, ``0.``.

    Digits are ASCII, thousands are grouped by commas, the decimal mark is a full stop; one full stop may end the text.

    Raises:
        Unreadable: The text is more, less or something else than that.
    """
    if len(text) > MAX_VALUE:
        raise Unreadable(f"a bare value is required, not a text of {len(text)} characters")
    plain = " ".join(text.translate(_MINUS).split())
    match = _QUANTITY.fullmatch(plain.removesuffix(".").rstrip())
    prefix, suffix = (match["prefix"], match["suffix"]) if match else (None, None)
    if match is None or (match["sign"] and match["inner"]) or (prefix and not is_currency(prefix)):
        raise Unreadable("a bare value is required: a number alone or with its unit, in no sentence")
    amount = Decimal(match["number"].replace(",", ""))
    negative = "-" in (match["sign"], match["inner"])
    return Quantity(-amount if negative else amount, tuple(unit.strip() for unit in (prefix, suffix) if unit))


def parse_plain_decimal(text: str) -> Decimal:
    """Read a decimal as state records it: digits and a full stop, no exponent.

    Raises:
        Unreadable: The text is something else or has more than 400 digits.
    """
    if not _PLAIN.fullmatch(text):
        raise Unreadable("the recorded decimal is no plain decimal number")
    return Decimal(text)


def parse_boolean(text: str) -> bool:
    """Read ``true``, ``yes``, ``false`` or ``no`` in any case, one full stop allowed.

    Raises:
        Unreadable: The text is anything else.
    """
    word = text.strip().removesuffix(".").casefold() if len(text) <= MAX_VALUE else ""
    if word in ("true", "yes"):
        return True
    if word in ("false", "no"):
        return False
    raise Unreadable("a truth value is required: true, false, yes or no")


def normalise(text: str, normaliser: str) -> str:
    """Bring text into the form it is compared in.

    ``exact`` changes nothing. ``line`` composes canonically (NFC), turns CRLF and CR into LF and no-break spaces into
    spaces, and drops a byte order mark at the start and outer white space. ``prose`` also folds case and curly quotes,
    makes one space of each run of white space, and drops ``. ! ? …`` at the end. Dashes, zero-width characters,
    full-width forms and every mark inside the text stay what they are.

    Raises:
        Unreadable: The text is longer than a million characters or has more than 30 combining marks in a row.
    """
    if normaliser == "exact":
        return text
    if len(text) > MAX_TEXT:
        raise Unreadable(f"the text has {len(text)} characters; at most {MAX_TEXT} are compared")
    line = _compose(text.removeprefix("\ufeff").translate(_SPACES))
    line = line.replace("\r\n", "\n").replace("\r", "\n").strip()
    if normaliser == "line":
        return line
    return " ".join(_compose(line.casefold()).translate(_QUOTES).split()).rstrip(".!?\u2026 ")


def _compose(text: str) -> str:
    if text.isascii():
        return text
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run > MAX_MARKS:
            raise Unreadable(f"the text has more than {MAX_MARKS} combining marks in a row")
    return unicodedata.normalize("NFC", text)


def split_list(text: str, within: str = "", numeric: bool = False) -> list[str]:
    """Split a list written as text.

    Items are separated by semicolons and line ends; where there are none, by commas. A comma followed by white space
    separates; only when no comma is, bare commas do. Among numbers a bare comma before three digits groups thousands:
    ``1,234`` is one item, and ``1,234,5`` is refused as ambiguous.

    Args:
        text: The list.
        within: Separators (of ``;``, ``,`` and line end) that stand inside expected items and so separate nothing.
        numeric: Whether the items are numbers or amounts.

    Returns:
        The items without outer white space; one empty item at the end is dropped.

    Raises:
        Unreadable: The text is empty, too long, has too many items, or its commas are ambiguous.
    """
    if len(text) > MAX_TEXT:
        raise Unreadable(f"the list has {len(text)} characters; at most {MAX_TEXT} are compared")
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not plain:
        raise Unreadable("the list is empty text")
    strong = [mark for mark in ";\n" if mark not in within and mark in plain]
    if strong:
        for mark in strong[1:]:
            plain = plain.replace(mark, strong[0])
        items = plain.split(strong[0])
    elif "," in within or "," not in plain:
        items = [plain]
    elif re.search(r",\s", plain):
        items = re.split(r",\s", plain.removesuffix(","))
    elif numeric and _GROUPED.fullmatch(plain):
        items = [plain]
    elif numeric and _GROUP_MARK.search(plain):
        raise Unreadable("the commas may separate items or group thousands; separate items by semicolons")
    else:
        items = plain.split(",")
    if len(items) > MAX_ITEMS:
        raise Unreadable(f"the list has {len(items)} items; at most {MAX_ITEMS} are compared")
    if len(items) > 1 and not items[-1].strip():
        items.pop()
    return [item.strip() for item in items]


def parse_url(text: str) -> Address:
    """Take an absolute URL apart. Scheme and host are case-insensitive, default ports and an empty path are filled in.

    Raises:
        Unreadable: The text is no absolute URL, or has white space, control characters or backslashes in it.
    """
    plain = text.strip() if len(text) <= 8000 else ""
    if not plain or any(character <= " " or character in "\\\x7f" or character.isspace() for character in plain):
        raise Unreadable("a bare absolute address is required, such as https://example.org/reports?id=1")
    try:
        parts: SplitResult = urlsplit(plain)
        port = parts.port
    except ValueError:
        raise Unreadable("the address is malformed") from None
    user, at, _ = parts.netloc.rpartition("@")
    if not parts.scheme or not parts.hostname:
        raise Unreadable("a bare absolute address is required, such as https://example.org/reports?id=1")
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return Address(
        scheme=parts.scheme,
        user=user if at else None,
        host=parts.hostname,
        port=default if port is None else port,
        path=tuple(unquote(segment) for segment in (parts.path or "/").split("/")),
        query=tuple(_pair(pair) for pair in parts.query.split("&") if pair),
        fragment=unquote(parts.fragment),
    )


def _pair(pair: str) -> tuple[str, str]:
    key, _, value = pair.replace("+", " ").partition("=")
    return unquote(key), unquote(value)


def shown(value: object) -> str:
    """A value for a message; its length is bounded whatever the value."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 80 else f"{value[:80]!r}... ({len(value)} characters)"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Decimal):
        return decimal_text(value) if abs(value.adjusted()) <= 80 else f"{value:.10E}"
    if isinstance(value, int):
        return repr(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("$decimal"), str):
            return shown(value["$decimal"]).strip("'")
        return f"an object with {len(value)} fields"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)} items"
    return f"a value of type {type(value).__name__}"
