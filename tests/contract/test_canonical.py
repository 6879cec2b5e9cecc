"""The canonical byte form: pinned bytes and digests, and what has no such form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract import canonical_json, digest, parse_json, state_hash

GOLDEN = [
    (None, b"null"),
    (True, b"true"),
    (1, b"1"),
    (1.0, b"1.0"),
    (-0.0, b"-0.0"),
    (0.1, b"0.1"),
    (1e16, b"1e+16"),
    (1e-5, b"1e-05"),
    (2**64, b"18446744073709551616"),
    (-(2**63), b"-9223372036854775808"),
    ("", b'""'),
    ('"\\/', b'"\\"\\\\/"'),
    ("\b\t\n\f\r\x00\x1b\x7f", b'"\\b\\t\\n\\f\\r\\u0000\\u001b\x7f"'),
    ("\u00e9\u2028\U0001d11e", b'"\xc3\xa9\xe2\x80\xa8\xf0\x9d\x84\x9e"'),
    ("\ud835", b'"\\ud835"'),
    ("a\udfffb", b'"a\\udfffb"'),
    ([], b"[]"),
    ({}, b"{}"),
    ((1, "2"), b'[1,"2"]'),
    ({"b": 1, "a": {"z": None, "A": []}}, b'{"a":{"A":[],"z":null},"b":1}'),
    ({"\U00010000": 1, "\uffff": 2, "a": 3}, b'{"a":3,"\xef\xbf\xbf":2,"\xf0\x90\x80\x80":1}'),
]

DIGESTS = [
    ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    (
        {"b": "\u00e9\n", "a": [1, -2.5, True, None]},
        "c612dea5590eb126c05eef759d6d430e489c48a40de74e6787603471f0fe86c3",
    ),
    ("\ud835", "1a4d27cd7a06d7dc65cf2c53d4a53041463a808459aeae310e2d6465519bae1e"),
    (["25.00", -0.0, 1e16, 2**64], "516b0c7d1671ef92a806fc179b78b3ef04925d0ac8f51477b14b9ab74266b582"),
]


@pytest.mark.parametrize(("value", "expected"), GOLDEN, ids=[ascii(value) for value, _ in GOLDEN])
def test_golden_bytes(value, expected):
    assert canonical_json(value) == expected


@pytest.mark.parametrize(("value", "expected"), DIGESTS, ids=["empty", "record", "lone-surrogate", "numbers"])
def test_golden_digests(value, expected):
    assert digest(value) == expected


def test_the_state_hash_is_the_digest_of_the_channels_by_name():
    channels = {"database": "aa", "clock": "bb"}
    assert (
        state_hash(channels) == digest(channels) == "5dc113e13ecb79aa2dff9712d2198be088366cf18401c241384993c0878936c4"
    )


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), [-float("inf")], {"a": {"b": float("nan")}}, 10**4301],
    ids=["nan", "inf", "in-list", "nested", "huge-integer"],
)
def test_numbers_that_are_no_json_are_refused(value):
    """B140: no file may hold a non-standard token."""
    with pytest.raises(ValueError):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, {"a": [{True: 1}]}, {1.5: 0}, ({(1, 2): 3},)])
def test_keys_that_are_no_text_are_refused_at_any_depth(value):
    with pytest.raises(TypeError, match="key"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1}, b"x", object(), {"a": 1j}])
def test_values_of_no_json_type_are_refused(value):
    with pytest.raises(TypeError):
        canonical_json(value)


texts = st.text(st.characters(), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def _reference(value):
    """The form by the standard library alone, surrogates escaped one by one."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b"".join(
        rb"\u%x" % ord(letter) if "\ud800" <= letter <= "\udfff" else letter.encode("utf-8") for letter in text
    )


@given(json_values)
def test_the_fast_encoder_writes_what_the_plain_one_writes(value):
    assert canonical_json(value) == _reference(value)


@given(json_values)
def test_reading_back_gives_the_same_bytes(value):
    """B121, B191."""
    written = canonical_json(value)
    if not any("\ud800" <= letter <= "\udbff" for letter in json.dumps(value, ensure_ascii=False)):
        assert canonical_json(parse_json(written)) == written


@given(st.dictionaries(texts, st.integers(), max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value, random):
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)


def test_kinds_of_scalars_differ():
    forms = {canonical_json(value) for value in (1, 1.0, True, "1", None, "null", "true")}
    assert len(forms) == 7


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', "[NaN]", "Infinity", '{"a":', "", "[" * 100_000, b"\xff", "'a'", "{a:1}", "[1,]"],
    ids=ascii,
)
def test_reading_takes_nothing_but_json(text):
    with pytest.raises(ValueError):
        parse_json(text)
