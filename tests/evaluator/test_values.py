"""Typed comparison, case by case: the exact values of the known faults, each with what must pass and what must not."""

import time
from decimal import Decimal
from typing import Any

import pytest

from agent_envs.contract.canonical import typed
from agent_envs.contract.expected import load_expected
from agent_envs.contract.verdict import Status
from agent_envs.evaluator.dates import Unreadable
from agent_envs.evaluator.parse import normalise
from agent_envs.evaluator.values import MISSING, Comparison, compare


def judged(raw: Any, actual: Any) -> Comparison:
    return compare(load_expected(raw), actual)


def accepts(raw: Any, actual: Any) -> bool:
    result = judged(raw, actual)
    assert result.status in (Status.PASS, Status.FAIL), result
    return result.status is Status.PASS


SCALARS = [1, "1", True, 1.0, None, "", "null", False, 0]


@pytest.mark.parametrize("expected", SCALARS)
def test_bare_scalars_compare_with_their_type(expected: Any) -> None:
    accepted = [(type(value), value) for value in SCALARS if accepts(expected, value)]
    assert accepted == [(type(expected), expected)]


def test_explanations_say_what_was_expected_and_found() -> None:
    assert judged({"money": "25.00", "currency": "USD"}, "$24.00").explanation == "expected 25 USD, found '$24.00'"
    assert "in no sentence" in judged({"number": 0}, "The count is 0.").explanation
    assert "{number: ...}" in judged(5, "5").explanation
    assert "declared unit" in judged({"number": 21, "unit": "inch"}, "21 cm").explanation


@pytest.mark.parametrize("raw", [1, None, {"any": True}, {"null": True}, {"one_of": [{"any": True}]}, {"text": ""}])
def test_a_missing_value_fails_everything(raw: Any) -> None:
    assert judged(raw, MISSING) == (Status.FAIL, "missing: there is no value")


def test_null_boolean_and_any() -> None:
    assert accepts({"null": True}, None)
    assert not any(accepts({"null": True}, value) for value in ("", "null", 0, False, [], {}))
    assert all(accepts({"boolean": True}, value) for value in (True, "true", "TRUE", "Yes", " yes. "))
    assert not any(accepts({"boolean": True}, value) for value in (1, "1", "on", "y", "no", False, None, 1.0, "yes no"))
    assert accepts({"boolean": False}, "No") and not accepts({"boolean": False}, 0)
    assert all(accepts({"any": True}, value) for value in (None, "", 0, [], {"a": 1}))


@pytest.mark.parametrize(
    "answer", ["", None, "NaN", "undefined", "inf", "none", "-inf", "null", False, [], {}, " ", "."]
)
@pytest.mark.parametrize("raw", [{"number": 0}, {"money": "0", "currency": "USD"}, {"number": 0, "unit": "USD"}, 0])
def test_junk_is_not_zero(raw: Any, answer: Any) -> None:
    """B007: a missing or junk answer never collapses to the number 0."""
    assert not accepts(raw, answer)


@pytest.mark.parametrize("answer", ["0", "0.0", "-0", 0, 0.0, -0.0, "0.", {"$decimal": "0"}])
def test_zeros_are_zero(answer: Any) -> None:
    """B007: what equals zero as a number is zero."""
    assert accepts({"number": 0}, answer) and accepts({"money": "0.00"}, answer)


@pytest.mark.parametrize("answer", ["I see 13 items", "step 3: there are 2", "13", "3 items", "3 3", "33", "3,3"])
def test_a_number_is_not_searched_for(answer: str) -> None:
    """B013: the declared field as a whole is the value."""
    assert not accepts({"number": 3}, answer)
    assert accepts({"number": 3}, "3")


def test_an_address_is_compared_in_parts() -> None:
    """B015: no prefix, no other host, no address inside a query."""
    raw = {"url": "https://shop.example/reports/viewed"}
    for answer in (
        "https://shop.example/reports/viewedasdf",
        "https://shop.example/reports",
        "https://shop.example/x?x=/reports/viewed",
        "https://evil.example/reports/viewed",
        "https://shop.example@evil.example/reports/viewed",
        "https://user@shop.example/reports/viewed",
        "https://shop.example.evil.example/reports/viewed",
        "http://shop.example/reports/viewed",
        "https://shop.example:8443/reports/viewed",
        "https://shop.example/reports%2Fviewed",
        "https://shop.example/reports\\viewed",
        "https://shop.example/reports/vie\nwed",
        "/reports/viewed",
        "https://[::1",
        "https://shop.example:99999999/reports/viewed",
        "see https://shop.example/reports/viewed",
        7,
    ):
        assert not accepts(raw, answer), answer
    for answer in (
        "https://shop.example/reports/viewed",
        "HTTPS://Shop.Example:443/reports/viewed",
        "https://shop.example/reports/view%65d#top",
        "https://shop.example/reports/viewed?page=2",
    ):
        assert accepts(raw, answer), answer
    assert accepts({"url": "https://shop.example"}, "https://shop.example/")


def test_an_address_with_declared_query_keys() -> None:
    """B015: declared query keys count, in any order, with every value."""
    raw = {"url": "https://shop.example/s?q=a%20b&sort=asc", "query_keys": ["q", "page"]}
    assert accepts(raw, "https://shop.example/s?utm=1&q=a+b")
    for query in ("q=a", "q=a+b&q=c", "x=1", "q=a+b&page=2", "q=A+B"):
        assert not accepts(raw, f"https://shop.example/s?{query}"), query
    whole = {"url": "https://shop.example/s?q=1&p=2#part"}
    assert accepts(whole, "https://shop.example/s?p=2&q=1#part")
    assert not accepts(whole, "https://shop.example/s?p=2&q=1")
    assert not accepts(whole, "https://shop.example/s?q=1#part")


def test_rows_keep_their_repeats() -> None:
    """B016: a bag counts duplicates and not order; a list counts both; only a set drops repeats."""
    assert not accepts({"bag": ["a", "b"]}, ["a", "a", "b"])
    assert accepts({"bag": ["a", "b"]}, ["b", "a"]) and accepts({"bag": ["a", "b", "a"]}, ["a", "a", "b"])
    assert not accepts({"bag": ["a", "b", "a"]}, ["a", "b", "b"])
    assert not accepts({"list": ["a", "b"]}, ["b", "a"]) and not accepts({"list": ["a", "b"]}, ["a", "a", "b"])
    assert accepts({"list": ["a", "b"]}, ["a", "b"])
    assert accepts({"set": ["a", "b"]}, ["b", "a", "a"])
    for wrong in (["a"], ["a", "a"], ["a", "b", "c"], [], "", None, {"a": 1}, ["a", ["b"]]):
        assert not accepts({"set": ["a", "b"]}, wrong)
        assert not accepts({"bag": ["a", "b"]}, wrong)


def test_pairing_is_the_best_one_not_the_first() -> None:
    near = {"bag": [{"number": 5, "tolerance": 2}, {"number": 4, "tolerance": "0.5"}]}
    assert accepts(near, [4, 6]) and accepts(near, [6, 4]) and not accepts(near, [6, 6])
    assert not accepts({"set": [{"number": 5, "tolerance": 1}, {"number": 6, "tolerance": 1}]}, [5.5])
    # A chain in which each item fits two neighbours and the last frees only one way.
    chain = {"bag": [{"one_of": [number, number + 1]} for number in range(40)]}
    assert accepts(chain, list(range(40, 0, -1)))
    assert not accepts(chain, [*range(1, 40), 41])
    tight = {"bag": [1, {"one_of": [1, 2]}, {"fields": {"a": 1}}]}
    assert accepts(tight, [2, {"a": 1}, 1]) and accepts(tight, [{"a": 1}, 1, 1])
    assert not accepts(tight, [2, {"a": 1}, 2]) and not accepts(tight, [2, {"a": True}, 1])


@pytest.mark.parametrize("normaliser", ["exact", "line", "prose"])
def test_punctuation_that_carries_meaning_stays(normaliser: str) -> None:
    """B025: '1.5 km' is not '15 km', '-5' is not '5'."""
    assert not accepts({"text": "1.5 km", "normaliser": normaliser}, "15 km")
    assert not accepts({"text": "-5 \u00b0C", "normaliser": normaliser}, "5 \u00b0C")
    assert not accepts({"number": "1.5", "unit": "km"}, "15 km")
    assert not accepts({"number": -5, "unit": "\u00b0C"}, "5 \u00b0C")
    assert accepts({"number": -5, "unit": "celsius"}, "\u22125 \u00b0C")


HOSTILE = {
    "import": '__import__("os").getcwd()',
    "exit": "exit()",
    "power": "9**9**9",
    "10 MB of text": "x" * 10_000_000,
    "10 MB of digits": "9" * 10_000_000,
    "10 MB of separators": ";" * 10_000_000,
    "10 MB of brackets": "[" * 10_000_000,
    "1 MB of accents": "a" + "\u0301\u0316" * 500_000,
    "huge exponent": "1e999999999",
    "largest exponent": "9e999",
    "huge integer": 10**1_000_000,
    "surrogates": "\ud800" * 1000,
    "huge recorded decimal": {"$decimal": "9" * 1_000_000},
    "exponent recorded": {"$decimal": "1e999999999"},
    "not a decimal": {"$decimal": ["1"]},
    "grouped digits": ",".join(["999"] * 100_000),
    "many items": ["1"] * 100_000,
}
EXPECTATIONS: list[Any] = [
    5,
    "x",
    {"money": "9", "currency": "USD"},
    {"number": 9, "tolerance": 1},
    {"number": 9, "tolerance": "0.1", "relative": True},
    {"date": "2025-10-21", "locale": "en-US"},
    {"datetime": "2025-10-21T10:00:00Z"},
    {"id": "x", "ignore_case": True},
    {"text": "x", "normaliser": "prose"},
    {"text": "x", "normaliser": "line"},
    {"set": [{"number": 1}, {"text": "y"}]},
    {"bag": [{"number": 1}, {"text": "y"}]},
    {"list": [{"number": 1}, {"text": "y"}]},
    {"fields": {"a": 1}},
    {"one_of": [1, {"boolean": True}]},
    {"null": True},
    {"boolean": True},
    {"url": "https://a.example/"},
]


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("name", [*HOSTILE, "deep"])
def test_hostile_answers_fail_quickly_and_run_nothing(name: str) -> None:
    """B056: no evaluation, no hang, no exception; explanations stay small."""
    answer = deep(100_000) if name == "deep" else HOSTILE[name]
    start = time.perf_counter()
    for raw in EXPECTATIONS:
        result = judged(raw, answer)
        assert result.status is Status.FAIL, raw
        assert len(result.explanation) < 2000
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("raw", ["130.0", "130", "130.00", 130])
def test_trailing_zeros_do_not_count_in_money(raw: Any) -> None:
    """B064: one amount, however it is written; text stays text."""
    assert accepts({"money": raw}, typed(Decimal("130.00")))
    assert accepts({"number": raw}, typed(Decimal("130.00")))
    assert accepts({"money": raw}, "130.00") and accepts({"money": raw}, 130.0)
    assert not accepts({"money": raw}, typed(Decimal("13")))
    assert not accepts({"text": "007"}, "7") and not accepts("007", "7") and not accepts({"id": "007"}, "7")


def test_money_is_exact() -> None:
    """B065: sums of decimals are exact, and a float that isn't the amount is not taken for it."""
    total = sum((Decimal(part) for part in ("0.10", "0.20", "0.30")), Decimal(0))
    assert accepts({"money": "0.60"}, typed(total))
    assert not accepts({"money": "0.60"}, typed(Decimal("0.61")))
    assert not accepts({"money": "0.60"}, 0.1 + 0.2 + 0.3)
    assert accepts({"money": "349.48"}, 349.48) and not accepts({"money": "349.48"}, 349.4799999999999)
    assert not accepts({"money": "12345678901234567890.0001"}, typed(Decimal("12345678901234567890.0002")))


def test_order_counts_only_where_it_is_declared() -> None:
    """B067: gift cards in any order, an itinerary in its order."""
    cards = [
        {"id": "gift_1", "amount": {"$decimal": "50"}},
        {"id": "gift_2", "amount": {"$decimal": "50"}},
    ]
    declared = [{"fields": {"id": {"id": card["id"]}, "amount": {"money": "50.00"}}} for card in cards]
    assert accepts({"set": declared}, cards) and accepts({"set": declared}, cards[::-1])
    assert accepts({"fields": {"cards": {"bag": declared}}}, {"cards": cards[::-1]})
    assert accepts({"list": declared}, cards) and not accepts({"list": declared}, cards[::-1])


def test_zero_amounts_in_any_spelling() -> None:
    """B069: '$0.00', '0 USD' and '0' are nought dollars."""
    for raw in ({"number": 0, "unit": "USD"}, {"money": "0", "currency": "USD"}):
        assert all(accepts(raw, answer) for answer in ("$0.00", "0 USD", "0"))
        assert not any(accepts(raw, answer) for answer in ("0.5", "$10.00", "0 EUR", "\u20ac0"))


def test_a_full_stop_may_end_a_bare_number() -> None:
    """B070: '0.' is 0; a sentence is a format error that says so."""
    assert accepts({"number": 0}, "0.") and accepts({"number": 21, "unit": "inch"}, "21 inches.")
    assert not accepts({"number": 0}, "The count is 0.")
    assert "a bare value is required" in judged({"number": 0}, "The count is 0.").explanation


def test_a_unit_may_be_given_or_left_out() -> None:
    """B072: spellings of the declared unit, no other unit, no conversion."""
    raw = {"number": 21, "unit": "inch"}
    assert all(
        accepts(raw, answer) for answer in ("21", "21 inches", "21 in", '21"', "21in", "21 Inches", 21, "21 in.")
    )
    assert not any(accepts(raw, answer) for answer in ("21 cm", "53.34 cm", "21 inches tall", "$21", "21 21", "22 in"))
    assert not accepts({"number": 21}, "21 inches")
    assert accepts({"number": 3, "unit": "widgets"}, "3 widgets") and not accepts(
        {"number": 3, "unit": "widgets"}, "3 W"
    )
    assert not accepts({"number": 5, "unit": "m"}, "5 M") and not accepts({"number": 2, "unit": "minute"}, "2 m")


def test_tolerances() -> None:
    near = {"number": 21, "tolerance": "0.1"}
    assert accepts(near, "21.1") and accepts(near, "20.9") and not accepts(near, "21.100000000000000000000000000000001")
    share = {"number": -200, "tolerance": "0.01", "relative": True}
    assert accepts(share, -202) and accepts(share, -198) and not accepts(share, -203) and not accepts(share, 202)


def test_forms_of_a_date() -> None:
    """B073: unambiguous forms of the day; ambiguous ones follow the locale."""
    raw = {"date": "2025-10-21", "year_optional": True, "locale": "en-US"}
    for answer in ("October 21st", "Oct 21st", "21 October", "10/21", "2025-10-21", "October 21, 2025", "21 Oct 2025"):
        assert accepts(raw, answer), answer
    for answer in (
        "the 21st of October",
        "Tuesday, October 21, 2025",
        "10/21/2025",
        "21/10/2025",
        "21-Oct-2025",
        "oct. 21",
    ):
        assert accepts(raw, answer), answer
    for answer in (
        *(
            "22 Oct",
            "21 Oct 2024",
            "2025-10-12",
            "21",
            "October",
            "Monday, October 21",
            "31 Feb",
            "Oct 21 or 22",
            20251021,
        ),
        *("2025-10-21T00:00:00Z", "10/21/25", "10.21", "", "Octobre 21", "2025-10-211", None),
    ):
        assert not accepts(raw, answer), answer
    assert not accepts({"date": "2025-10-21"}, "Oct 21st")
    assert "year is missing" in judged({"date": "2025-10-21"}, "Oct 21st").explanation


def test_numeric_dates_follow_the_locale() -> None:
    """B073: 10/11 is two days; without a locale it is refused."""
    day = "2025-10-11"
    assert accepts({"date": day, "locale": "en-US"}, "10/11/2025") and accepts(
        {"date": day, "locale": "en-GB"}, "11/10/2025"
    )
    assert not accepts({"date": day, "locale": "en-US"}, "11/10/2025")
    assert not accepts({"date": day, "locale": "en-GB"}, "10/11/2025")
    assert not accepts({"date": day}, "10/11/2025") and "two ways" in judged({"date": day}, "10/11/2025").explanation
    assert accepts({"date": "2025-10-10"}, "10/10/2025") and accepts({"date": "2025-10-21"}, "21/10/2025")


def test_thousands_inside_a_list() -> None:
    """B075: a comma that groups is not one that separates."""
    raw = {"list": [{"number": 1234}, {"number": 5}]}
    for answer in (
        "1,234; 5",
        "1234, 5",
        "1,234, 5",
        "1,234\n5",
        "1234;5",
        "1234,5",
        "1,234; 5;",
        [1234, 5],
        ["1,234", "5"],
    ):
        assert accepts(raw, answer), answer
    for answer in ("1, 234, 5", "1,234,5", "1234 5", "5; 1234", "1,234;; 5", "1;234;5"):
        assert not accepts(raw, answer), answer
    assert "semicolons" in judged(raw, "1,234,5").explanation
    assert accepts({"bag": [{"money": "1234.50"}]}, "$1,234.50")
    assert accepts({"list": [{"money": "1234"}, {"money": "5"}]}, "$1,234.00, $5.00")


def test_separators_inside_items_separate_nothing() -> None:
    cities = {"set": [{"text": "New York, NY"}, {"text": "Boston, MA"}]}
    assert accepts(cities, "Boston, MA; New York, NY") and accepts(cities, "Boston, MA\r\nNew York, NY\r\n")
    days = {"list": [{"date": "2025-10-21"}, {"date": "2025-10-22"}]}
    assert accepts(days, "October 21, 2025; October 22, 2025") and accepts(days, "2025-10-21, 2025-10-22")
    assert accepts({"bag": [{"id": "170"}, {"id": "189"}]}, "189,170")
    assert accepts({"bag": [{"id": "a;b"}, {"id": "c"}]}, "a;b, c")


def test_any_of_a_tie_is_right() -> None:
    """B078: tied best sellers, a column with null, numbers kept as text."""
    tie = {"one_of": [{"text": "Mug"}, {"text": "Cup"}]}
    assert accepts(tie, "Mug") and accepts(tie, "Cup") and not accepts(tie, "Mug, Cup") and not accepts(tie, "Plate")
    column = {"bag": [None, "9", "10"]}
    assert accepts(column, ["10", "9", None])
    assert not accepts(column, ["10", 9, None]) and not accepts(column, ["10", "9", ""])


def test_tables_compare_by_typed_content() -> None:
    """B079: a year inserted as text is the year, in whatever order rows are stored."""
    rows = [
        {"fields": {"title": {"text": title}, "year": {"number": year}}} for title, year in (("A", 2019), ("B", 2020))
    ]
    assert accepts({"bag": rows}, [{"title": "B", "year": 2020}, {"title": "A", "year": "2019"}])
    assert not accepts({"bag": rows}, [{"title": "B", "year": 2019}, {"title": "A", "year": "2020"}])
    assert not accepts({"bag": rows}, [{"title": "B", "year": 2020}, {"title": "A", "year": "2019", "note": "x"}])


def test_large_tables_are_compared_without_the_square_of_their_rows() -> None:
    expected = load_expected({"bag": [{"fields": {"n": number, "t": str(number)}} for number in range(3000)]})
    rows = [{"n": number, "t": str(number)} for number in reversed(range(3000))]
    start = time.perf_counter()
    assert compare(expected, rows).status is Status.PASS
    assert compare(expected, [*rows[:-1], {"n": 0, "t": 0}]).status is Status.FAIL
    assert time.perf_counter() - start < 5


def test_instants_and_zones() -> None:
    """B092: instants compare with their zone, whatever the machine's zone is."""
    raw = {"datetime": "2025-10-21T10:00:00+02:00"}
    assert all(
        accepts(raw, text) for text in ("2025-10-21T08:00:00Z", "2025-10-21 03:00-0500", "2025-10-21T10:00+02:00")
    )
    assert not any(
        accepts(raw, text) for text in ("2025-10-21T10:00:00Z", "2025-10-21T10:00:00", "2025-10-21", 1761033600)
    )
    assert "no zone" in judged(raw, "2025-10-21T10:00:00").explanation
    local = raw | {"zone": "+02:00"}
    assert accepts(local, "2025-10-21T10:00:00") and not accepts(local, "2025-10-21T08:00:00")
    assert accepts({"datetime": "2025-10-21T23:30:00", "zone": "-09:00"}, "2025-10-22T08:30:00Z")
    for junk in ("2025-10-21T25:00Z", "2025-02-30T10:00Z", "2025-10-21T10:00+99:99", "2025-10-21T10:00:00.1Z", "10:00"):
        assert not accepts(raw, junk), junk


def test_the_hour_that_a_clock_shows_twice_or_never() -> None:
    """B092: at the end of summer time 02:30 is two instants; in the gap of its start it is none."""
    for instant in ("2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"):
        raw = {"datetime": instant, "zone": "Europe/Berlin"}
        assert accepts(raw, "2025-10-26T02:30:00") and not accepts(raw, "2025-10-26T03:30:00")
    gap = {"datetime": "2025-03-30T01:30:00Z", "zone": "Europe/Berlin"}
    assert accepts(gap, "2025-03-30T03:30:00") and not accepts(gap, "2025-03-30T02:30:00")


def test_the_machines_zone_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """B092: TZ=UTC, UTC+7 and UTC-9 give one verdict."""
    raw = {"datetime": "2026-03-29T00:30:00", "zone": "Europe/Berlin"}
    for zone in ("UTC", "Etc/GMT-7", "Etc/GMT+9", "Europe/Berlin"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert accepts(raw, "2026-03-28T23:30:00Z") and not accepts(raw, "2026-03-29T00:30:00Z")
    monkeypatch.undo()
    time.tzset()


def test_a_zone_without_data_is_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load_expected({"datetime": "2025-10-21T10:00:00Z", "zone": "Europe/Berlin"})
    day_and_time = load_expected({"list": [{"datetime": "2025-10-21T10:00:00Z", "zone": "Europe/Berlin"}, 1]})
    monkeypatch.setattr("agent_envs.contract.expected.ZoneInfo", _no_zone)
    assert compare(expected, "2025-10-21T12:00:00").status is Status.UNDETERMINED
    assert compare(expected, "2025-10-21T10:00:00Z").status is Status.PASS
    assert compare(day_and_time, ["2025-10-21T12:00:00", 1]).status is Status.UNDETERMINED
    assert compare(day_and_time, ["2025-10-21T12:00:00", 2]).status is Status.FAIL
    for tag in ("bag", "set"):
        whole = load_expected({tag: list(getattr(day_and_time, "list"))})  # noqa: B009
        assert compare(whole, [1, "2025-10-21T12:00:00"]).status is Status.UNDETERMINED
        assert compare(whole, [2, "2025-10-21T12:00:00"]).status is Status.FAIL
    either = load_expected({"one_of": [expected, "noon"]})
    assert compare(either, "noon").status is Status.PASS
    assert compare(either, "2025-10-21T12:00:00").status is Status.UNDETERMINED


def _no_zone(name: str) -> None:
    raise OSError(name)


def test_same_text_in_other_code_points() -> None:
    """B095: composition and no-break spaces don't count; what looks different, or may, does."""
    gold = "Caf\u00e9 10 km"
    for normaliser in ("line", "prose"):
        raw = {"text": gold, "normaliser": normaliser}
        for same in (
            "Cafe\u0301 10 km",
            "Caf\u00e9\u00a010\u202fkm",
            "\ufeffCaf\u00e9 10 km\r\n",
            "  Caf\u00e9 10 km\n",
        ):
            assert accepts(raw, same), ascii(same)
        for other in (
            "Cafe 10 km",
            "Caf\u00e9 \uff11\uff10 km",
            "Caf\u200d\u00e9 10 km",
            "Caf\u00e9 10\u200bkm",
            "Caf\u00e910km",
        ):
            assert not accepts(raw, other), ascii(other)
    assert "\\u200d" in judged({"text": gold}, "Caf\u200d\u00e9 10 km").explanation
    assert not accepts({"text": gold, "normaliser": "exact"}, "Cafe\u0301 10 km")
    assert accepts({"text": "It's 5", "normaliser": "prose"}, "IT\u2019S   5.") and not accepts(
        {"text": "It's 5"}, "It\u2019s 5"
    )
    assert not accepts({"text": "a-b", "normaliser": "prose"}, "a\u2013b")
    assert not accepts({"number": 10}, "\uff11\uff10")


def test_text_normalisers_step_by_step() -> None:
    assert (
        accepts({"text": "a\nb"}, "a\r\nb\r")
        and not accepts({"text": "a b"}, "a  b")
        and not accepts({"text": "a"}, "A")
    )
    assert accepts({"text": "a b", "normaliser": "prose"}, "A \n\t B!") and not accepts(
        {"text": "a b", "normaliser": "prose"}, "ab"
    )
    assert not accepts({"text": "5"}, 5)


def test_a_pile_of_accents_is_refused_before_it_is_composed() -> None:
    """B056: composing sorts marks in quadratic time; thirty in a row are more than any script needs."""
    with pytest.raises(Unreadable, match="combining marks"):
        normalise("a" + "\u0301\u0316" * 400_000, "line")
    assert normalise("a" + "\u0301" * 30, "line") == "\u00e1" + "\u0301" * 29


def test_identifiers() -> None:
    assert accepts({"id": "W1042"}, " W1042\n") and accepts({"id": "1042"}, 1042)
    assert not any(
        accepts({"id": "W1042"}, value) for value in ("w1042", "W1042.", "#W1042", "W10420", 1042, None, "W\u200b1042")
    )
    assert accepts({"id": "W1042", "ignore_case": True}, "w1042")
    assert not accepts({"id": "1"}, True) and not accepts({"id": "1"}, 1.0)


def test_currencies() -> None:
    usd = {"money": "1234.50", "currency": "USD"}
    for answer in (
        "$1,234.50",
        "1234.5 USD",
        "USD 1234.50",
        "US$1,234.50",
        "1,234.50 dollars",
        "1234.50",
        "$1234.50 USD",
        1234.5,
    ):
        assert accepts(usd, answer), answer
    for answer in (
        *(
            "\u20ac1,234.50",
            "1234.50 EUR",
            "$1,234.50 EUR",
            "C$1234.50",
            "1,23,4.50",
            "1.234,50",
            "12,34.50",
            "1234.50 kg",
        ),
        *("-1234.50", "$-1234.50", "about $1234.50", "1234.50 USD each", "USD", "1 234.50", "(1234.50)", "+-1234.50"),
    ):
        assert not accepts(usd, answer), answer
    assert accepts({"money": "-5", "currency": "EUR"}, "-\u20ac5.00") and accepts({"money": "-5"}, "\u20ac-5")
    assert accepts({"money": "5", "currency": "CAD"}, "$5") and not accepts({"money": "5", "currency": "CAD"}, "US$5")
    assert (
        accepts({"money": "5"}, "5 EUR")
        and not accepts({"money": "5"}, "5 all")
        and not accepts({"money": "5"}, "5 min")
    )


def test_records() -> None:
    raw = {"fields": {"id": {"id": "W1"}, "note": None}}
    assert accepts(raw, {"note": None, "id": "W1"})
    assert "field 'note': missing" in judged(raw, {"id": "W1"}).explanation
    assert not accepts(raw, {"id": "W1", "note": None, "extra": 1})
    assert accepts(raw | {"open": True}, {"id": "W1", "note": None, "extra": 1})
    assert not any(accepts(raw, value) for value in ([], None, "W1", [["id", "W1"], ["note", None]]))
    assert accepts({"fields": {}}, {}) and not accepts({"fields": {}}, {"a": 1}) and not accepts({"fields": {}}, [])


def test_an_empty_list_is_not_an_empty_answer() -> None:
    for tag in ("set", "bag", "list"):
        assert accepts({tag: []}, [])
        assert not any(accepts({tag: []}, value) for value in ("", "none", None, ["a"], {}))
