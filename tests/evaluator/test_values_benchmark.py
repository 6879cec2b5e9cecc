"""The public answer variants of WebArena-Verified: accepted and refused alike here, but for the kinds listed below."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_envs.contract.expected import load_expected
from agent_envs.contract.verdict import Status
from agent_envs.evaluator.values import compare

DIFFERENT = {
    "fmt_word_form": "number words are not read: a number has one alphabet, its digits",
    "fmt_euro_format": "decimal commas are not read: 1,234 would be two amounts",
    "fmt_em_dash": "a dash is not a space: the text looks different",
    "fmt_en_dash": "a dash is not a space: the text looks different",
    "fmt_hyphen_minus": "a hyphen is not a space: the text looks different",
    "fmt_with_quotes": "quotes around a text are part of it",
    "fmt_word_order_swap": "words in another order are another text",
    "fmt_numeric": "1 is a number, not a truth value",
    "fmt_string_numeric": "1 and 0 are numbers, not truth values",
    "fmt_string_on_off": "only true, false, yes and no are truth values",
    "fmt_string_abbrev": "only true, false, yes and no are truth values",
    "fmt_short_abbrev": "m is a metre, not a minute",
    "fmt_hms_colon": "a number has one unit: hours and minutes are two numbers",
    "fmt_text_long": "a number has one unit: hours and minutes are two numbers",
    "fmt_meters": "nothing is converted",
    "fmt_miles": "nothing is converted",
    "tol_minus_5m": "nothing is converted",
    "tol_plus_5m": "nothing is converted",
    "tol_plus_1_percent": "nothing is converted",
}
"""Kinds of variant that must pass there and may fail here, with the reason."""


class Case(NamedTuple):
    """One variant of one task's answer."""

    task: int
    kind: str
    valid: bool
    expected: dict[str, Any]
    answers: list[list[Any]]
    """Where the data nests a list, its members are alternatives: one answer with each."""


def item_expectation(value: Any, schema: dict[str, Any]) -> Any:
    """Declare a published gold item the way an author here would."""
    kind = schema.get("format")
    if isinstance(value, list):
        return {"one_of": [item_expectation(item, schema) for item in value]}
    if isinstance(value, bool):
        return {"boolean": value}
    if kind == "currency":
        return {"money": str(value)}
    if isinstance(value, int | float):
        return {"number": value}
    if isinstance(value, dict):
        return {"fields": {name: {"number": number} for name, number in value.items()}}
    if kind == "duration":
        return {"number": in_minutes(value).removesuffix(" min"), "unit": "min", "tolerance": 2}
    if kind == "distance":
        number, unit = re.fullmatch(r"([0-9.]+)(km|m)", value).groups()
        return {"number": number, "unit": unit, "tolerance": "7.5" if unit == "m" else 0}
    if kind == "date":
        return {"date": iso(value), "locale": "en-US"}
    if order := re.fullmatch(r"\^#\?\\s\*0\*([0-9]+)\$", value):
        # No pattern type exists here: an author lists the right spellings.
        return {"one_of": [{"id": f"{mark}{zero}{order[1]}"} for mark in ("", "#", "# ") for zero in ("", "0")]}
    return {"text": value, "normaliser": "prose"}


def iso(text: str) -> str:
    """A gold date as ISO 8601: MM/DD/YYYY, or with an English month name."""
    if numeric := re.fullmatch(r"([0-9]{2})/([0-9]{2})/([0-9]{4})", text):
        return f"{numeric[3]}-{numeric[1]}-{numeric[2]}"
    name, day, year = re.fullmatch(r"([A-Z][a-z]{2})[a-z]* ([0-9]{1,2}),? ([0-9]{4})", text).groups()
    month = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split().index(name) + 1
    return f"{year}-{month:02}-{int(day):02}"


def alternatives(answer: list[Any]) -> list[list[Any]]:
    longest = max([1, *(len(item) for item in answer if isinstance(item, list))])
    return [
        [item[index % len(item)] if isinstance(item, list) else item for item in answer] for index in range(longest)
    ]


@pytest.fixture(scope="module")
def cases(benchmark_data: Path) -> list[Case]:
    folder = benchmark_data / "webarena-verified"
    variants = json.loads((folder / "fixtures/e2e_test_retrieved_data.json").read_text(encoding="utf-8"))
    tasks = {
        task["task_id"]: task for task in json.loads((folder / "webarena-verified.json").read_text(encoding="utf-8"))
    }
    found = []
    for name, data in variants.items():
        evaluators = [item for item in tasks[int(name)]["eval"] if item["evaluator"] == "AgentResponseEvaluator"]
        schema = evaluators[0]["results_schema"].get("items", {})
        expected = {"bag": [item_expectation(item, schema) for item in data["exact_match"]]}
        for group in ("valid", "invalid"):
            for kind, answer in data[group].items():
                found.append(Case(int(name), kind, group == "valid", expected, alternatives(answer)))
    assert len(variants) == 216 and len(found) > 300
    return found


def passes(case: Case) -> bool:
    expected = load_expected(case.expected)
    return all(compare(expected, answer).status is Status.PASS for answer in case.answers)


def in_minutes(text: str) -> str:
    """A duration in one unit: hours added, and minutes not written as m, which is a metre."""
    hours, minutes = re.fullmatch(r"(?:([0-9]+) ?h(?:r|ours)? ?)?([0-9]+) ?m(?:in|inutes)?", text).groups()
    return f"{int(hours or 0) * 60 + int(minutes)} min"


def test_what_must_pass_passes_but_for_the_listed_kinds(cases: list[Case]) -> None:
    wrong = [
        case
        for case in cases
        if case.valid and case.kind not in DIFFERENT and "min" not in units(case) and not passes(case)
    ]
    # The published set also accepts a pattern's own source text as the answer to it.
    assert [case.answers for case in wrong] == [[[f"^#?\\s*0*{order}$"]] for order in (170, 189, 180)]


def test_what_must_fail_fails(cases: list[Case]) -> None:
    assert [case for case in cases if not case.valid and passes(case)] == []


def units(case: Case) -> set[str]:
    return {str(item.get("unit")) for item in case.expected["bag"]}


def test_minutes_agree_once_they_are_spelled_out(cases: list[Case]) -> None:
    minutes = [case for case in cases if "min" in units(case)]
    assert len(minutes) > 100
    for case in minutes:
        spelled_out = case._replace(answers=[[in_minutes(item) for item in answer] for answer in case.answers])
        assert passes(spelled_out) == case.valid, case


def test_every_listed_difference_is_one(cases: list[Case]) -> None:
    """A kind stays on the list only while some variant of it really fails here."""
    failing = Counter(case.kind for case in cases if case.valid and not passes(case))
    assert [kind for kind in DIFFERENT if not failing[kind]] == []
