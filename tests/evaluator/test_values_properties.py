"""Typed comparison, by property: reflexive, independent of spelling, and unmoved by anything an agent can write."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract.canonical import typed
from agent_envs.contract.expected import Expected, load_expected
from agent_envs.contract.verdict import Status
from agent_envs.evaluator.dates import Unreadable, parse_day, parse_instant
from agent_envs.evaluator.matching import largest_pairing
from agent_envs.evaluator.parse import normalise, parse_quantity, parse_url, split_list
from agent_envs.evaluator.values import MISSING, compare

# Lone surrogates included: an agent may write them.
texts = st.text(st.characters(), max_size=60)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
json = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))
tagged = st.builds(lambda text: {"$decimal": text}, texts) | st.builds(lambda data: {"$bytes": data}, json)
near_values = st.from_regex(r"[$-]{0,2}[0-9,.]{0,9} ?(USD|in|kg|Oct|st|-|/|:|T|Z){0,2}[0-9]{0,4}", fullmatch=True)
amounts = st.decimals(-(10**12), 10**12, places=2)


def raw_expectations() -> st.SearchStrategy[Any]:
    """What an author can write; an author's file is UTF-8 and so holds no lone surrogates."""
    texts = st.text(max_size=60)
    leaves = st.one_of(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False),
        texts,
        amounts.map(lambda amount: {"money": str(amount), "currency": "USD"}),
        st.builds(lambda n, unit, near: {"number": n, "unit": unit, "tolerance": near}, st.integers(-999, 999),
                  st.sampled_from([None, "inch", "kg"]), st.integers(0, 3)),
        st.dates().map(lambda day: {"date": day.isoformat(), "year_optional": True}),
        st.datetimes().filter(lambda moment: 2 <= moment.year <= 9998)
        .map(lambda moment: {"datetime": moment.isoformat(), "zone": "+05:30"}),
        st.from_regex(r"[A-Z][0-9]{1,6}", fullmatch=True).map(lambda name: {"id": name}),
        st.builds(lambda text, how: {"text": f"a{text}", "normaliser": how}, texts,
                  st.sampled_from(["exact", "line", "prose"])),
        st.sampled_from([{"any": True}, {"null": True}, {"boolean": True}, {"url": "https://a.example/b?c=d"}]),
    )  # fmt: skip
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: {"bag": items}),
            st.lists(inner, max_size=3).map(lambda items: {"list": items}),
            st.lists(inner, max_size=3, unique_by=lambda raw: load_expected(raw).digest).map(
                lambda items: {"set": items}
            ),
            st.lists(inner, min_size=1, max_size=3).map(lambda items: {"one_of": items}),
            st.dictionaries(st.text(max_size=5), inner, max_size=3).map(lambda named: {"fields": named}),
        ),
        max_leaves=6,
    )


expectations = raw_expectations().map(load_expected)


def example(expected: Expected) -> Any:
    """A right value for an expectation, in the form a state change would hold it."""
    tag = next(iter(type(expected).model_fields))
    value = getattr(expected, tag)
    match tag:
        case "money" | "number":
            return typed(value)
        case "date" | "datetime":
            return value.isoformat()
        case "set" | "bag" | "list":
            return [example(item) for item in value]
        case "fields":
            return {name: example(item) for name, item in value.items()}
        case "one_of":
            return example(value[-1])
        case "null":
            return None
        case _:
            return value


@given(expectations)
def test_the_canonical_form_passes(expected: Expected) -> None:
    assert compare(expected, example(expected)).status is Status.PASS
    assert compare(expected, MISSING).status is Status.FAIL


@given(expectations, json | tagged | near_values)
def test_anything_gets_one_of_three_answers(expected: Expected, actual: Any) -> None:
    result = compare(expected, actual)
    assert result == compare(expected, actual)
    assert result.status in set(Status) and result.explanation
    assert len(result.explanation) < 3000


@given(texts | near_values)
def test_readers_only_ever_say_unreadable(text: str) -> None:
    for reader in (parse_quantity, parse_instant, parse_url, split_list, lambda text: parse_day(text, None)):
        try:
            reader(text)
        except Unreadable:
            pass


@given(st.lists(st.from_regex(r"[a-z]{1,5}( [0-9]{1,3})?", fullmatch=True), min_size=1, max_size=6), st.randoms())
def test_separators_are_alike(items: list[str], random: Any) -> None:
    shuffled = random.sample(items, len(items))
    for tag, answer in (("list", items), ("bag", shuffled)):
        expected = load_expected({tag: items})
        for separator in (";", "; ", "\n", "\r\n", ", ", ",", " ; "):
            assert compare(expected, separator.join(answer)).status is Status.PASS
        assert compare(expected, answer).status is Status.PASS


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=5))
def test_grouped_numbers_in_a_list(numbers: list[int]) -> None:
    expected = load_expected({"list": [{"number": number} for number in numbers]})
    for separator in ("; ", ";", "\n", ", "):
        assert compare(expected, separator.join(f"{number:,}" for number in numbers)).status is Status.PASS
        assert compare(expected, separator.join(map(str, numbers))).status is Status.PASS


def spellings(amount: Decimal) -> list[str]:
    """Accepted forms of an amount of US dollars."""
    sign, size = "-" if amount < 0 else "", abs(amount)
    numbers = [f"{size:.2f}", f"{size:,.2f}", f"{size:f}", f"{size:.4f}"]
    forms = [
        form for number in numbers for form in (number, f"${number}", f"{number} USD", f"USD {number}", f"{number}$")
    ]
    return [f"{sign}{form}" for form in forms] + [
        f"$-{size:.2f}" if amount < 0 else f"+{size:.2f}",
        f" {sign}${size:,.2f}\n",
    ]


@given(amounts, amounts)
def test_an_amount_passes_in_every_form_and_no_other_amount_does(amount: Decimal, other: Decimal) -> None:
    expected = load_expected({"money": str(amount), "currency": "USD"})
    for form in spellings(amount):
        assert compare(expected, form).status is Status.PASS, form
        assert compare(expected, form.replace("$", "\u20ac").replace("USD", "EUR") + " EUR").status is Status.FAIL, form
    for form in spellings(other):
        assert (compare(expected, form).status is Status.PASS) == (amount == other), form
    assert (compare(expected, typed(other)).status is Status.PASS) == (amount == other)


@given(st.dates())
def test_a_day_passes_in_every_form(day: Any) -> None:
    expected = load_expected({"date": day.isoformat(), "locale": "en-GB"})
    long = f"{day.day} {day:%B} {day.year:04}"
    numeric = f"{day.day}/{day.month}/{day.year:04}"
    short = f"{day:%a}, {day:%b} {day.day}, {day.year:04}"
    for form in (day.isoformat(), long, numeric, short, f"the {day.day}th of {day:%B}, {day.year:04}"):
        assert compare(expected, form).status is Status.PASS, form
        other = load_expected({"date": (day.replace(year=day.year % 9999 + 1, day=1)).isoformat(), "locale": "en-GB"})
        assert compare(other, form).status is Status.FAIL, form


@given(texts)
def test_normalisers_are_idempotent_and_nested(text: str) -> None:
    line, prose = normalise(text, "line"), normalise(text, "prose")
    assert normalise(text, "exact") == text
    assert normalise(prose, "prose") == prose
    assert normalise(line, "prose") == prose


@given(st.lists(st.sets(st.integers(0, 5)), max_size=6))
def test_pairing_is_as_large_as_a_search_finds(sets: list[set[int]]) -> None:
    edges = [sorted(items) for items in sets]

    def best(index: int, taken: frozenset[int]) -> int:
        if index == len(edges):
            return 0
        with_it = [1 + best(index + 1, taken | {right}) for right in edges[index] if right not in taken]
        return max([best(index + 1, taken), *with_it])

    assert largest_pairing(edges, 6) == best(0, frozenset())
