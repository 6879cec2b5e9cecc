"""Whatever an agent hands over can be recorded, and exact values keep their type."""

import datetime as dt
import decimal
import enum
import json
import pathlib
import time
from collections import OrderedDict
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract import canonical_json, decimal_text, jsonable, parse_json, typed, untyped


class Level(enum.IntEnum):
    HIGH = 3


class LoudText(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


class LoudNumber(int):
    def __int__(self):
        raise RuntimeError("no")

    __index__ = __repr__ = __str__ = __int__


class LoudFloat(float):
    def __float__(self):
        raise RuntimeError("no")

    __repr__ = __sub__ = __float__


class LoudError(Exception):
    def __str__(self):
        raise RuntimeError("no")


class LoudKeys(dict):
    def items(self):
        raise RuntimeError("no")


class Endless(list):
    def __iter__(self):
        while True:
            yield None


class EndlessKeys(dict):
    def items(self):
        number = 0
        while True:
            number += 1
            yield str(number), 1


class Masked:
    @property
    def __class__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


class NamelessType(type):
    @property
    def __name__(cls):
        raise RuntimeError("no")


class Nameless(metaclass=NamelessType):
    pass


CONVERSIONS = [
    (None, None),
    (Level.HIGH, 3),
    (np.int64(7), 7),
    (np.float32(1.5), 1.5),
    (np.bool_(True), True),
    (np.str_("x"), "x"),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (Decimal("25.00"), {"$decimal": "25"}),
    (Decimal("NaN"), "NaN"),
    (b"\x00\xff", {"$bytes": "AP8="}),
    (bytearray(b"a"), {"$bytes": "YQ=="}),
    (memoryview(b"abcd")[::2], {"$bytes": "YWM="}),
    (dt.date(2026, 3, 1), "2026-03-01"),
    (dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC), "2026-03-01T09:30:00+00:00"),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
    (ValueError("bad"), "ValueError: bad"),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"b", 1}), ["b", 1]),
    ((1, [2]), [1, [2]]),
    ({(1, 2): "x", 3: "y"}, {"(1, 2)": "x", "3": "y"}),
    (OrderedDict(a=1), {"a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (float("nan"), "nan"),
    (-float("inf"), "-inf"),
    (-0.0, -0.0),
    (1j, {"$unrecordable": "complex"}),
    (object(), {"$unrecordable": "object"}),
    (range(3), {"$unrecordable": "range"}),
    (LoudText("x"), "x"),
    ({LoudText("k"): LoudText("v")}, {"k": "v"}),
    (LoudNumber(5), 5),
    (LoudFloat(2.5), 2.5),
    (LoudError(), {"$unrecordable": "LoudError"}),
    (LoudKeys(a=1), {"$unrecordable": "LoudKeys"}),
    (Masked(), {"$unrecordable": "Masked"}),
    (Nameless(), {"$unrecordable": "Nameless"}),
    (10**5000, {"$unrecordable": "integer too large"}),
    (Decimal("1E+999999999"), "1E+999999999"),
    ("\ud835", "\ud835"),
    ("\ud835\udd04", "\U0001d504"),
    ({"\ud835": "\udfff"}, {"\\ud835": "\udfff"}),
]


@pytest.mark.parametrize(("value", "expected"), CONVERSIONS, ids=[str(number) for number in range(len(CONVERSIONS))])
def test_documented_conversions_are_recorded_and_read_back(value, expected):
    """B121, B191."""
    plain = jsonable(value)
    assert canonical_json(plain) == canonical_json(expected)
    assert parse_json(canonical_json(plain)) == plain


def test_cycles_and_shared_structures_end_quickly():
    cycle = []
    cycle += [cycle, cycle]
    layers = ["x"]
    for _ in range(60):
        layers = [layers] * 10
    started = time.monotonic()
    for value in (cycle, layers, Endless(), EndlessKeys(), np.zeros(10**9, dtype="i1")):
        assert len(canonical_json(jsonable(value))) < 20_000_000
    assert time.monotonic() - started < 20


def test_deep_nesting_is_cut_with_a_tag():
    value = current = []
    for _ in range(100_000):
        current.append([])
        current = current[0]
    assert "nested too deeply" in json.dumps(jsonable(value))


def test_what_is_returned_is_plain_and_fresh():
    inner = [1]
    plain = jsonable({"a": inner, LoudText("b"): LoudText("c")})
    inner.append(2)
    assert plain == {"a": [1], "b": "c"}
    assert {type(key) for key in plain} == {str}
    assert type(plain["b"]) is str


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters()) | st.integers() | st.tuples(st.integers()), inner, max_size=4)
        | st.tuples(inner)
    ),
    max_leaves=15,
)


@given(anything)
def test_anything_can_be_recorded_and_read_back(value):
    """B191."""
    plain = jsonable(value)
    assert parse_json(canonical_json(plain)) == plain
    assert canonical_json(jsonable(plain)) == canonical_json(plain)


@given(st.decimals(allow_nan=False, allow_infinity=False).filter(lambda value: abs(value.as_tuple().exponent) < 500))
def test_decimals_keep_their_value(value):
    text = typed(value)["$decimal"]
    assert untyped(typed(value)) == value
    assert "E" not in text.upper()
    assert not (("." in text) and text.endswith(("0", ".")))
    assert text != "-0"


@given(st.binary())
def test_bytes_keep_their_value(value):
    assert untyped(typed(value)) == value


@given(st.none() | st.booleans() | st.integers() | st.text())
def test_other_scalars_are_left_alone(value):
    assert typed(value) is value
    assert untyped(value) is value


@pytest.mark.parametrize(
    ("one", "other"), [("25.00", "25"), ("2.5E+1", "25.0"), ("-0.00", "0"), ("0.10", "0.1"), ("100", "1E+2")]
)
def test_equal_amounts_are_one_text(one, other):
    """B064."""
    assert decimal_text(Decimal(one)) == decimal_text(Decimal(other))


def test_equal_amounts_are_one_text_in_any_decimal_context():
    with decimal.localcontext(decimal.Context(prec=3)):
        assert decimal_text(Decimal("1234567.8900")) == "1234567.89"


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_an_amount_that_is_not_finite_has_no_text(value):
    with pytest.raises(ValueError, match="finite"):
        decimal_text(Decimal(value))
