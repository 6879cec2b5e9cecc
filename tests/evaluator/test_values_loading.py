"""Expected values as authors write them: what loads, what is refused and with which words."""

import datetime as dt
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from agent_envs.contract.expected import TAGS, Fields, load_expected

GOOD: list[Any] = [
    5,
    True,
    1.0,
    None,
    "x",
    {"exact": None},
    {"money": "25.00", "currency": "USD"},
    {"money": 25},
    {"number": 21, "unit": "inch", "tolerance": 0.1, "relative": False},
    {"number": 2.5, "tolerance": "0.01", "relative": True},
    {"date": "2025-10-21", "locale": "en-US", "year_optional": True},
    {"datetime": "2025-10-21T10:00:00+02:00"},
    {"datetime": "2025-10-21T10:00:00", "zone": "Europe/Berlin"},
    {"id": "W1042", "ignore_case": True},
    {"text": "It is so.", "normaliser": "prose"},
    {"set": [1, True, 1.0, "1"]},
    {"bag": [1, 1]},
    {"list": []},
    {"fields": {"a": {"fields": {"b": None, "text": {"text": "x"}}}}, "open": True},
    {"one_of": [{"one_of": [1, 2]}, {"list": [3]}]},
    {"any": True},
    {"null": True},
    {"boolean": False},
    {"url": "https://a.example/b?x=1", "query_keys": ["x"]},
]


@pytest.mark.parametrize("raw", GOOD, ids=str)
def test_a_loaded_value_survives_json(raw: Any) -> None:
    expected = load_expected(raw)
    assert load_expected(expected.as_json()) == expected == load_expected(expected)
    assert type(expected).parse(expected.canonical()) == expected


def test_every_tag_is_tried_above() -> None:
    assert {tag for raw in GOOD for tag in load_expected(raw).as_json() if tag in TAGS} == set(TAGS)


def test_equal_amounts_have_one_digest() -> None:
    assert load_expected({"money": "25.00"}).digest == load_expected({"money": "25.0"}).digest
    assert load_expected({"money": "25.00"}).digest != load_expected({"money": "25.01"}).digest


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"mony": 1}, "unknown tag 'mony'; the tags that exist are exact, money, number"),
        ({}, "unknown tag {}; the tags that exist"),
        ({"currency": "USD"}, "unknown tag 'currency'"),
        ({"set": [1, {"bag": [{"foo": 2}]}]}, "unknown tag 'foo'"),
        ({"text": "a", "id": "b"}, "the tags id and text stand together"),
        ({"money": "1", "curency": "USD"}, "Extra inputs are not permitted"),
        ({"money": 25.5}, "write the amount in quotes"),
        ({"money": "$25"}, "a finite decimal number is required"),
        ({"money": "25", "currency": "usd"}, "should match pattern"),
        ({"number": True}, "a finite decimal number is required"),
        ({"number": "NaN"}, "a finite decimal number is required"),
        ({"number": float("inf")}, "a finite decimal number is required"),
        ({"number": 5, "tolerance": -1}, "greater than or equal to 0"),
        ({"number": 5, "relative": True}, "needs a tolerance above 0"),
        ({"number": 0, "tolerance": 1, "relative": True}, "a number other than 0"),
        (float("nan"), "equals nothing"),
        ([1, 2], "a list must say how it is compared"),
        (b"x", "a bytes can't be expected"),
        ({"id": 1042}, "valid string"),
        ({"id": " W1 "}, "should match pattern"),
        ({"text": 7}, "valid string"),
        ({"text": " ...\n", "normaliser": "prose"}, "an empty answer would pass"),
        ({"text": "x", "normaliser": "loose"}, "'exact', 'line' or 'prose'"),
        ({"date": "21.10.2025"}, "YYYY-MM-DD"),
        ({"date": "2025-02-30"}, "day"),
        ({"date": 20251021}, "YYYY-MM-DD"),
        ({"date": "2025-10-21", "locale": "fr-FR"}, "en-US"),
        ({"datetime": "2025-10-21T10:00:00"}, "no instant"),
        ({"datetime": 1761033600}, "ISO 8601"),
        ({"datetime": "2025-10-21"}, "ISO 8601"),
        ({"datetime": "2025-10-26T02:30:00", "zone": "Europe/Berlin"}, "twice or never"),
        ({"datetime": "2025-03-30T02:30:00", "zone": "Europe/Berlin"}, "twice or never"),
        ({"datetime": "2025-10-21T10:00:00Z", "zone": "Europe/Berlln"}, "no time zone 'Europe/Berlln'"),
        ({"datetime": "2025-10-21T10:00:00Z", "zone": "../../etc/passwd"}, "a zone is UTC"),
        ({"set": [1, 2, 1]}, "items 1 and 3 of the set are equal"),
        ({"one_of": []}, "at least 1 item"),
        ({"fields": {}, "open": True}, "would accept every record"),
        ({"any": False}, "should be True"),
        ({"boolean": 1}, "valid boolean"),
        ({"url": "/reports"}, "should match pattern"),
        ({"list": "a, b"}, "valid tuple"),
    ],
    ids=str,
)
def test_mistakes_are_refused_in_words(raw: Any, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        load_expected(raw)
    assert words in str(caught.value)


def test_yaml_spellings() -> None:
    raw = yaml.safe_load(
        "{fields: {day: {date: 2025-10-21}, at: {datetime: 2025-10-21T10:00:00Z}, gone: {null: true}}}"
    )
    expected = load_expected(raw)
    assert isinstance(expected, Fields)
    assert expected.fields["day"] == load_expected({"date": "2025-10-21"})
    assert expected.fields["at"] == load_expected({"datetime": dt.datetime(2025, 10, 21, 10, tzinfo=dt.UTC)})
    assert expected.fields["gone"] == load_expected({"null": True})
