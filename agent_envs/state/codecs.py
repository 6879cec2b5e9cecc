"""How one value travels: from Python to the driver and back, into a hash, and into a change's JSON.

A driver value is what the database stores and the driver returns. The two back ends return the same driver values,
except that SQLite gives 0 and 1 for truth values, which are equal to ``False`` and ``True`` and encoded alike.

The encoding of a value, for hashing, is one tag byte, the length of the payload as four bytes (big-endian), and the
payload:

===== ============ ==========================================================================
tag   value        payload
===== ============ ==========================================================================
``n`` null         nothing
``b`` Boolean      ``0`` or ``1`` (ASCII)
``i`` Integer      decimal digits in ASCII, with a leading ``-`` when negative
``f`` Real         IEEE 754 double, 8 bytes, big-endian; negative zero as zero
``d`` Exact        plain decimal in ASCII without trailing zeros or exponent: ``130``, ``-0.5``
``t`` Text, dates  UTF-8
``y`` Blob         the bytes
===== ============ ==========================================================================

So 1, "1", 1.0, true, null, b"1" and the amount 1 all differ, while 130.00 and 130.0 are one value at any scale.
"""

import base64
import datetime as dt
import decimal
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1

# Private, so that a caller who changes the thread's decimal context can't change what is stored. 64-bit counts have at
# most 19 digits; anything that would need rounding at 60 is out of range anyway.
_CONTEXT = decimal.Context(prec=60, Emin=-999, Emax=999, traps=[decimal.Inexact, decimal.InvalidOperation])

_NULL = b"n\0\0\0\0"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclass(frozen=True, slots=True)
class Codec:
    """The conversions of one column type. Each takes and gives None for null."""

    kind: str
    """Name of the type with its parameters, part of the schema digest."""
    to_driver: Callable[[Any], Any]
    """Check a Python value and turn it into a driver value. Raises ValueError, which names the value."""
    from_driver: Callable[[Any], Any] | None
    """Turn a driver value (never None) into the Python value; None where they are the same."""
    encode: Callable[[Any], bytes]
    """Driver value to bytes for hashing, as in the module's table."""
    to_json: Callable[[Any], Any] | None
    """Driver value (never None) to its form in a change; None where they are the same."""
    from_json: Callable[[Any], Any]
    """The form in a change or a task file to the Python value."""


_POWERS = [10**scale for scale in range(19)]
_HEADS = {tag: [tag + size.to_bytes(4, "big") for size in range(256)] for tag in (b"t", b"i", b"d")}
"""Tag and length of short payloads, ready made: a row hash is on the path of every write."""


def field(tag: bytes, payload: bytes) -> bytes:
    """One tagged, length-prefixed piece of an encoding."""
    return tag + len(payload).to_bytes(4, "big") + payload


_TEXT_HEADS = _HEADS[b"t"]


def _short_field(tag: bytes, payload: bytes) -> bytes:
    size = len(payload)
    return _HEADS[tag][size] + payload if size < 256 else field(tag, payload)


def text_to_driver(value: Any) -> str | None:
    """Check text: no NUL, which PostgreSQL can't store, and no lone surrogate, which is not Unicode text."""
    if type(value) is str and value.isascii() and "\0" not in value:
        return value
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{_short(value)} is not text")
    plain = str.__str__(value)
    if "\0" in plain:
        raise ValueError(f"{_short(value)} contains a NUL character, which no text column can hold")
    try:
        plain.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{_short(value)} contains a lone surrogate, which is not Unicode text") from None
    return plain


def integer_to_driver(value: Any) -> int | None:
    """Check a whole number of 64 bits."""
    if type(value) is int and MIN_INTEGER <= value <= MAX_INTEGER:
        return value
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{_short(value)} is not a whole number")
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise ValueError(f"{_short(value)} does not fit into 64 bits")
    return int(value)


def boolean_to_driver(value: Any) -> bool | None:
    """Check a truth value."""
    if value is None or type(value) is bool:
        return value
    raise ValueError(f"{_short(value)} is neither true nor false")


def real_to_driver(value: Any) -> float | None:
    """Check a finite double; a whole number is taken when a double holds it exactly."""
    if value is None:
        return None
    if type(value) is not float:
        if isinstance(value, bool) or not isinstance(value, float | int):
            raise ValueError(f"{_short(value)} is not a number")
        if isinstance(value, int) and (abs(value) > 2**1000 or int(float(value)) != value):
            raise ValueError(f"{_short(value)} is not exactly a double")
        value = float(value)
    if value - value != 0.0:
        raise ValueError(f"{value!r} is not a finite number")
    return float(value + 0.0)


def blob_to_driver(value: Any) -> bytes | None:
    """Check bytes."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise ValueError(f"{_short(value)} is not bytes")


def day_to_driver(value: Any) -> str | None:
    """Check a calendar day."""
    if value is None:
        return None
    if type(value) is str and _DAY.fullmatch(value):
        try:
            dt.date.fromisoformat(value)
            return value
        except ValueError:
            pass
    raise ValueError(f"{_short(value)} is not a day such as '2026-03-01'")


def instant_to_driver(value: Any) -> str | None:
    """Check a moment."""
    if value is None:
        return None
    if type(value) is str and _INSTANT.fullmatch(value):
        try:
            dt.datetime.fromisoformat(value)
            return value
        except ValueError:
            pass
    raise ValueError(f"{_short(value)} is not a UTC instant such as '2026-03-01T09:30:00Z'")


def any_to_driver(value: Any) -> Any:
    """Check a value whose column type a statement leaves open, by the value's own type."""
    if value is None or type(value) is bool:
        return value
    for kind, check in ((str, text_to_driver), (int, integer_to_driver), (float, real_to_driver), (bytes, None)):
        if isinstance(value, kind):
            return check(value) if check else value
    raise ValueError(f"{_short(value)} has no type a database takes without a declared column type")


def amount(count: int, scale: int) -> Decimal:
    """The decimal that a count of ``10**-scale`` stands for."""
    if type(count) is not int:
        raise ValueError(f"{count!r} is not a count of 10**-{scale}: select the sum and the count, not an average")
    return Decimal(count).scaleb(-scale, _CONTEXT)


def amount_text(count: int, scale: int) -> str:
    """The same in plain notation without trailing zeros: 1300000 at scale 4 is ``130``."""
    whole, rest = divmod(abs(count), _POWERS[scale])
    text = f"{whole}.{rest:0{scale}d}".rstrip("0") if rest else str(whole)
    return f"-{text}" if count < 0 else text


@cache
def exact(scale: int) -> Codec:
    """The codec of exact decimals with this many places."""
    factor = 10**scale

    def to_driver(value: Any) -> int | None:
        if type(value) is Decimal:
            if not value.is_finite():
                raise ValueError(f"{_short(value)} is not a finite amount")
            if not value:
                return 0
            # Size first: turning 1E+999999 into a whole number would take all memory.
            if value.adjusted() > 20:
                raise ValueError(f"{_short(value)} does not fit into 64 bits at {scale} decimal places")
            try:
                count = int(value.scaleb(scale, _CONTEXT))
            except decimal.DecimalException:
                count = 0
            if amount(count, scale) != value:
                raise ValueError(f"{_short(value)} has more than {scale} decimal places")
        elif value is None:
            return None
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER:
            count = value * factor
        else:
            raise ValueError(f"{_short(value)} is not an exact amount: give a Decimal or a whole number")
        if not MIN_INTEGER <= count <= MAX_INTEGER:
            raise ValueError(f"{_short(value)} does not fit into 64 bits at {scale} decimal places")
        return count

    def from_json(value: Any) -> Decimal | int | None:
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        text = value.get("$decimal") if isinstance(value, dict) and len(value) == 1 else value
        if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", text):
            raise ValueError(f"{_short(value)} is not an exact amount: write it in quotes, such as '25.00'")
        return Decimal(text)

    def encode(count: Any) -> bytes:
        return _NULL if count is None else _short_field(b"d", amount_text(count, scale).encode())

    return Codec(
        kind=f"exact({scale})",
        to_driver=to_driver,
        from_driver=lambda count: amount(count, scale),
        encode=encode,
        to_json=lambda count: {"$decimal": amount_text(count, scale)},
        from_json=from_json,
    )


def _encode_text(value: Any) -> bytes:
    if value is None:
        return _NULL
    try:
        payload = value.encode()
    except UnicodeEncodeError:
        # Raw SQL can put bytes that are no UTF-8 into SQLite's text; they come here as escapes and leave as they were.
        payload = value.encode("utf-8", "surrogateescape")
    size = len(payload)
    return _TEXT_HEADS[size] + payload if size < 256 else field(b"t", payload)


def _encode_integer(value: Any) -> bytes:
    return _NULL if value is None else _short_field(b"i", b"%d" % value)


def _encode_boolean(value: Any) -> bytes:
    return _NULL if value is None else b"b\0\0\0\x011" if value else b"b\0\0\0\x010"


def _encode_real(value: Any) -> bytes:
    return _NULL if value is None else b"f\0\0\0\x08" + struct.pack(">d", value + 0.0)


def _encode_blob(value: Any) -> bytes:
    return _NULL if value is None else field(b"y", value)


def _encode_any(value: Any) -> bytes:
    raise TypeError(f"{value!r} comes from an expression, not from a stored column")


def _same(value: Any) -> Any:
    return value


def _blob_to_json(value: bytes) -> dict[str, str]:
    return {"$bytes": base64.b64encode(value).decode("ascii")}


def _blob_from_json(value: Any) -> bytes | None:
    if value is None:
        return None
    text = value.get("$bytes") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(text, str):
        raise ValueError(f"{_short(value)} is not bytes: write {{$bytes: <base64>}}")
    return base64.b64decode(text, validate=True)


def _short(value: Any) -> str:
    """The value for a message, bounded: it may be an agent's."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**40:
        return "a whole number of more than 40 digits"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}... ({len(text)} characters)"


TEXT = Codec("text", text_to_driver, None, _encode_text, None, _same)
INTEGER = Codec("integer", integer_to_driver, None, _encode_integer, None, _same)
BOOLEAN = Codec("boolean", boolean_to_driver, bool, _encode_boolean, bool, _same)
REAL = Codec("real", real_to_driver, None, _encode_real, None, _same)
BLOB = Codec("blob", blob_to_driver, None, _encode_blob, _blob_to_json, _blob_from_json)
DAY = Codec("day", day_to_driver, None, _encode_text, None, _same)
INSTANT = Codec("instant", instant_to_driver, None, _encode_text, None, _same)
ANY = Codec("any", any_to_driver, None, _encode_any, None, _same)
