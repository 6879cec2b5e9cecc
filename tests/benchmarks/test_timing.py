"""The benchmarks' arithmetic and judgement, with a clock that tells what the test wants to hear."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from benchmarks import __main__ as command
from benchmarks._timing import Result, as_json, compare, seconds, table


def told(operation: Callable[[], object], number: int) -> float:
    return float(str(operation()))


def test_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    # The machine slows down tenfold in the last round; subject and floor feel it alike. First values: warm-up.
    subject = iter([99.0, 2.0, 6.0, 20.0])
    floor = iter([99.0, 1.0, 1.0, 10.0])
    result = compare("x", lambda: next(subject), lambda: next(floor), rounds=3, measure=told, budget=2.0)
    assert (result.value, result.floor, result.ratio, result.within_budget) == (6.0, 1.0, 2.0, True)


def test_subject_and_floor_take_turns_in_going_first() -> None:
    order: list[str] = []

    def noted(name: str) -> float:
        order.append(name)
        return 1.0

    compare("x", lambda: noted("s"), lambda: noted("f"), rounds=4, measure=told)
    assert "".join(order) == "sf" + "sf" + "fs" + "sf" + "fs"


def test_budget_bounds_the_ratio_or_the_value() -> None:
    assert Result("x", 5.0, floor=1.0, ratio=5.0, budget=4.9).within_budget is False
    assert Result("x", 5.0, unit="MiB", budget=5.0).within_budget is True
    assert Result("x", 5.0).within_budget is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_figure_nothing_could_have_measured_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no measurement"):
        Result("x", value)


def test_a_floor_without_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="no measurable time"):
        compare("x", lambda: 1.0, lambda: 0.0, rounds=1, measure=told)


def test_seconds_counts_every_call() -> None:
    calls: list[None] = []
    assert seconds(lambda: calls.append(None), 7) > 0
    assert len(calls) == 7


def test_table_and_json_carry_the_judgement() -> None:
    results = [
        Result("slow", 0.002, floor=0.001, ratio=2.0, budget=1.5, note="floor: memcpy"),
        Result("free", 3.0, "MiB"),
    ]
    lines = table(results).splitlines()
    assert lines[1].split() == ["slow", "2", "ms", "1", "ms", "2.00", "1.5", "EXCEEDED", "(floor:", "memcpy)"]
    assert lines[2].split() == ["free", "3", "MiB"]
    assert [record["within_budget"] for record in json.loads(as_json(results))] == [False, None]


@pytest.fixture
def slow_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Result("slow", 2.0, floor=1.0, ratio=2.0, budget=1.5)
    monkeypatch.setattr(command, "discover", lambda: {"slow": lambda smoke: [slow], "empty": lambda smoke: []})


@pytest.mark.usefixtures("slow_benchmark")
def test_an_exceeded_budget_fails_a_full_run_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["slow"]) == 1
    assert "over budget: slow" in capsys.readouterr().err
    assert command.main(["slow", "--smoke"]) == 0


@pytest.mark.usefixtures("slow_benchmark")
def test_a_benchmark_that_measures_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["empty", "--smoke"]) == 1
    assert "measured nothing" in capsys.readouterr().err


@pytest.mark.usefixtures("slow_benchmark")
def test_an_unknown_name_is_refused_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["quick"])
    assert "no benchmark is called 'quick'; there are: slow, empty" in capsys.readouterr().err


def test_every_module_of_the_folder_is_a_benchmark() -> None:
    assert "import_cost" in command.discover()
