r"""Canonical JSON and digests: the one byte form in which everything here is compared and hashed.

The form, byte for byte:

* UTF-8. In strings ``"`` and ``\`` are escaped, control characters are ``\b \t \n \f \r`` or ``\u00XX``, and a lone
  surrogate, which UTF-8 can't hold, is ``\uXXXX`` (hexadecimal in lower case). Every other character stands as itself.
* Objects: keys are strings, sorted by code point; ``{"a":1,"b":2}`` with no white space anywhere.
* Integers: decimal digits (more than 4300 are refused, as no reader takes them). Floats: the shortest decimal that
  reads back as the same double, as Python's ``repr`` writes it (``1.0``, ``1e+16``, ``1e-05``); NaN and infinities are
  refused. ``true``, ``false``, ``null``.
* Digest: lower-case hexadecimal SHA-256 of those bytes.

JSON has no exact decimals and no bytes. ``typed`` writes them as ``{"$decimal": "25"}`` (no exponent, no trailing
zeros, so 25.00 and 25.0 are one value) and ``{"$bytes": "<base64>"}``; ``untyped`` reads them back.
"""

import base64
import datetime as dt
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NoReturn

import orjson

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = frozenset((str, bool, int, type(None)))
_CONTAINERS = frozenset((dict, list, tuple))
_MOST_PARTS = 262_144
_MOST_BITS = 14_000  # a little less than the 4300 digits that Python writes and reads
_MOST_EXPONENT = 4_000


def canonical_json(value: Any) -> bytes:
    """Encode a JSON value in the canonical form.

    Raises:
        ValueError: A float is not finite, or an integer has more than 4300 digits.
        TypeError: A value is of no JSON type, or a key is no text (the encoder alone would make text of it).
    """
    if _is_simple(value):
        # Both encoders write the same bytes here; this one is several times faster, and every step needs it.
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except TypeError:  # a lone surrogate, or an integer of more than 64 bits
            pass
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", _encode(value)).encode("utf-8")


def _is_simple(value: Any) -> bool:
    """Whether there are only plain containers, text, integers, booleans and nulls, the bulk of all that is encoded.

    Raises:
        TypeError: A key is no text.
    """
    simple = True
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                if not isinstance(key, str):
                    kind = type(key).__name__
                    raise TypeError(f"the key {key!r} is of type {kind}; the keys of a JSON object are text")
                simple = False
        items: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        return type(value) in _PLAIN
    for item in items:
        if type(item) not in _PLAIN:
            simple = _is_simple(item) and simple
    return simple and type(value) in _CONTAINERS


def parse_json(data: bytes | str) -> Any:
    """Read JSON text strictly; lone surrogates are kept.

    Raises:
        ValueError: The text isn't JSON: NaN, infinities and a key twice in one object aren't, and neither is nesting
            too deep to read.
    """
    try:
        return json.loads(data, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def decimal_text(value: Decimal) -> str:
    """A finite decimal without exponent and trailing zeros: ``25.00`` and ``2.5E1`` give ``25``; zero has no sign.

    Raises:
        ValueError: The value is not finite.
    """
    if not value.is_finite():
        raise ValueError(f"{value!r} is not a finite decimal; only finite amounts can be recorded")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def typed(value: Any) -> Any:
    """A scalar in JSON form with its type kept: decimals and bytes are tagged, everything else is unchanged."""
    if isinstance(value, Decimal):
        return {"$decimal": decimal_text(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    return value


def untyped(value: Any) -> Any:
    """Undo ``typed``."""
    if isinstance(value, dict) and len(value) == 1:
        if "$decimal" in value:
            return Decimal(value["$decimal"])
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
    return value


def jsonable(value: Any) -> Any:
    """Turn anything an agent hands over into JSON, so that recording it can't fail.

    Mappings become objects with text keys (text stays, with lone surrogates escaped; any other key is its ``str``; of
    two keys that become one the later counts), sequences and sets lists (sets sorted by their canonical form), NumPy
    scalars and arrays plain values, decimals and bytes tagged as in ``typed``, dates and paths text, non-finite
    numbers their name as text, exceptions ``"Type: message"``, and the rest ``{"$unrecordable": "<type name>"}``. The
    same tag stands in for what is nested deeper than 64 levels, for integers of more than 4200 digits, for whatever
    comes after the first 262144 parts, and for objects that raise when looked at. Text is taken as UTF-16 code units:
    two surrogates that make a pair become the character.
    """
    return _jsonable(value, 64, [_MOST_PARTS])


def _jsonable(value: Any, depth: int, left: list[int]) -> Any:
    if left[0] <= 0:
        return _unrecordable("too large")
    kind = type(value)
    if kind is bool or value is None:
        return value
    try:
        if kind is str or issubclass(kind, str):
            return _text(value)
        if issubclass(kind, int):
            return int.__int__(value) if int.bit_length(value) <= _MOST_BITS else _unrecordable("integer too large")
        if issubclass(kind, float):
            number = float.__float__(value)
            return number if number - number == 0.0 else repr(number)
        return _compound(value, depth, left) if depth else _unrecordable("nested too deeply")
    except Exception:
        return _unrecordable(_name_of(kind))


def _compound(value: Any, depth: int, left: list[int]) -> Any:
    if isinstance(value, Mapping):
        return {_key(key): _jsonable(item, depth - 1, left) for key, item in _first(value.items(), left)}
    if isinstance(value, list | tuple):
        return [_jsonable(item, depth - 1, left) for item in _first(value, left)]
    if isinstance(value, Set):
        return sorted((_jsonable(item, depth - 1, left) for item in _first(value, left)), key=canonical_json)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and abs(exponent) <= _MOST_EXPONENT:
            return typed(value)
        return _text(str(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return typed(bytes(value))
    if isinstance(value, dt.date | dt.time):
        return _text(value.isoformat())
    if isinstance(value, PurePath):
        return _text(str(value))
    if isinstance(value, BaseException):
        return _text(f"{type(value).__name__}: {value}")
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        if value.size > left[0]:
            return _unrecordable("too large")
        plain = value.tolist()
        return _jsonable(plain, depth - 1, left) if type(plain) is not type(value) else _text(str(plain))
    return _unrecordable(type(value).__name__)


def _first(items: Iterable[Any], left: list[int]) -> Iterator[Any]:
    """The items while there is room; the last one to come out then stands for the rest."""
    for item in items:
        left[0] -= 1
        yield item
        if left[0] <= 0:
            return


def _text(value: str) -> str:
    plain = str.__str__(value)
    if plain.isascii():
        return plain
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _key(value: Any) -> str:
    key = str.__str__(value) if isinstance(value, str) else str(value)
    return key if key.isascii() else _text(key).encode("utf-8", "backslashreplace").decode("utf-8")


_name_of = type.__dict__["__name__"].__get__  # past whatever a metaclass makes of it


def _unrecordable(what: Any) -> dict[str, str]:
    return {"$unrecordable": what if type(what) is str else "object"}
