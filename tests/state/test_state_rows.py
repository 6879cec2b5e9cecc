"""The hash, checked against an encoder written a second time from its description."""

from __future__ import annotations

import hashlib
import struct
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.state import codecs
from agent_envs.state.rows import MODULUS, database_digest, element, row_encoder, table_digest, table_sum

COLUMNS = [("id", codecs.INTEGER), ("note", codecs.TEXT)]


def piece(tag: str, payload: bytes) -> bytes:
    return tag.encode() + struct.pack(">I", len(payload)) + payload


def test_row_encoding_byte_for_byte() -> None:
    encode = row_encoder("tab", COLUMNS, ["id"])
    assert encode((12, "é")) == (
        b"T\x00\x00\x00\x03tab"
        b"K\x00\x00\x00\x02id"
        b"C\x00\x00\x00\x02idi\x00\x00\x00\x0212"
        b"C\x00\x00\x00\x04notet\x00\x00\x00\x02\xc3\xa9"
    )
    assert encode((-1, None)).endswith(b"noten\x00\x00\x00\x00")


@pytest.mark.parametrize(
    ("codec", "value", "encoded"),
    [
        (codecs.INTEGER, 1, piece("i", b"1")),
        (codecs.INTEGER, -(2**63), piece("i", b"-9223372036854775808")),
        (codecs.TEXT, "1", piece("t", b"1")),
        (codecs.TEXT, "", piece("t", b"")),
        (codecs.TEXT, "x" * 300, piece("t", b"x" * 300)),
        (codecs.REAL, 1.0, piece("f", struct.pack(">d", 1.0))),
        (codecs.REAL, -0.0, piece("f", bytes(8))),
        (codecs.BOOLEAN, True, piece("b", b"1")),
        (codecs.BOOLEAN, 1, piece("b", b"1")),
        (codecs.BOOLEAN, False, piece("b", b"0")),
        (codecs.BLOB, b"1", piece("y", b"1")),
        (codecs.exact(4), 1_300_000, piece("d", b"130")),
        (codecs.exact(1), 1_300, piece("d", b"130")),
        (codecs.exact(4), -5_000, piece("d", b"-0.5")),
        (codecs.exact(4), 0, piece("d", b"0")),
        (codecs.exact(0), 100, piece("d", b"100")),
        (codecs.DAY, "2026-03-01", piece("t", b"2026-03-01")),
        (codecs.TEXT, None, piece("n", b"")),
        (codecs.exact(4), None, piece("n", b"")),
    ],
)
def test_value_encoding(codec: codecs.Codec, value: object, encoded: bytes) -> None:
    assert codec.encode(value) == encoded


def test_equal_looking_values_of_different_types_differ() -> None:
    values = [
        codecs.INTEGER.encode(1),
        codecs.TEXT.encode("1"),
        codecs.REAL.encode(1.0),
        codecs.BOOLEAN.encode(True),
        codecs.BLOB.encode(b"1"),
        codecs.exact(0).encode(1),
        codecs.TEXT.encode(None),
    ]
    assert len(set(values)) == len(values)


def test_golden_digests() -> None:
    """Pinned: a change here changes every state hash ever recorded."""
    encode = row_encoder("tab", COLUMNS, ["id"])
    count, total = table_sum([encode((1, "a")), encode((2, None))])
    assert hashlib.sha256(total.to_bytes(256, "big")).hexdigest() == (
        "240059c37a05f6fe20e633100e3c2eb00b749b66773b526226145a04a1b45fee"
    )
    assert table_digest("tab", count, total).hex() == "e01b5b3bf473726f2b62eece2b0d246c15d96d8bacf6689b0cbbeada89840e89"
    assert database_digest(bytes(32), [table_digest("tab", count, total)]) == (
        "e54979f3ba035b6cb3014f86b908ebb52a79d65010549b2d177a93bc2abdbe14"
    )


def test_digests_as_described() -> None:
    rows = [b"one", b"two"]
    total = sum(int.from_bytes(hashlib.shake_256(row).digest(256), "big") for row in rows) % 2**2048
    assert table_sum(rows) == (2, total)
    expected = hashlib.sha256(
        b"agenteval table 1\0" + piece("T", b"tab") + (2).to_bytes(8, "big") + total.to_bytes(256, "big")
    ).digest()
    assert table_digest("tab", 2, total) == expected
    assert database_digest(b"s" * 32, [expected]) == (
        hashlib.sha256(b"agenteval database 1\0" + b"s" * 32 + expected).hexdigest()
    )


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.text(st.characters(codec="utf-8")))),
    st.randoms(),
)
def test_sum_does_not_depend_on_order_and_can_be_undone(rows: list[tuple[int, str | None]], random: object) -> None:
    encode = row_encoder("tab", COLUMNS, ["id"])
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    count, total = table_sum(map(encode, rows))
    assert table_sum(map(encode, shuffled)) == (count, total)
    for row in shuffled:
        total = (total - element(encode(row))) % MODULUS
    assert total == 0


def test_a_row_twice_is_not_a_row_once_or_never() -> None:
    """B016: a multiset, not a set (nor an exclusive-or, in which pairs vanish)."""
    once, twice, never = (table_sum([b"row"] * times) for times in (1, 2, 0))
    assert len({once, twice, never}) == 3
    assert len({once[1], twice[1], never[1]}) == 3


@given(
    st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2),
    st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2),
)
def test_texts_cannot_run_into_each_other(first: list[str], second: list[str]) -> None:
    encode = row_encoder("tab", [("a", codecs.TEXT), ("b", codecs.TEXT)], ["a"])
    assert (encode(tuple(first)) == encode(tuple(second))) == (first == second)


@pytest.mark.parametrize("written", ["130.00", "130.0", "130", "1.3E2"])
def test_trailing_zeros_do_not_count_in_money(written: str) -> None:
    """B064: 130.00, 130.0 and 130 are one amount."""
    codec = codecs.exact(4)
    assert codec.encode(codec.to_driver(Decimal(written))) == piece("d", b"130")


def test_text_keeps_its_zeros() -> None:
    """B064: a text column still tells '007' from '7'."""
    assert codecs.TEXT.encode("007") != codecs.TEXT.encode("7")


def test_fixture_digest_depends_on_content_and_schema_only(shop_of: object) -> None:
    """B079: rows in another physical order have the same digest; another row or column has not."""
    make: type[SimpleNamespace] = shop_of  # type: ignore[assignment]
    assert make("one").fixture.digest == make("two", reverse=True).fixture.digest
    assert make("one").fixture.digest != make("one", items=4).fixture.digest
