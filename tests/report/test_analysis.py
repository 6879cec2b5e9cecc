"""Numbers of a report, with the exact values that published reports of faults ask for."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from agent_envs.contract import AgentEvalError, OutcomeClass, Terminal
from agent_envs.report.analysis import analyse, analysis_of
from agent_envs.report.content import Analysis
from agent_envs.report.records import load


def test_three_lost_of_four_give_bounds_and_no_headline(folders: ModuleType, tmp_path: Path) -> None:
    """B152: one success, three infrastructure errors."""
    locked = folders.lock(folders.tasks(4), ["agent"], minimum_coverage=0.5)
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS if item.task_id == "made/t0" else folders.LOST)
    (system,) = analyse(folder).systems
    assert (system.planned, system.valid, system.invalid, system.missing) == (4, 1, 3, 0)
    assert (system.tasks, system.tasks_covered, system.coverage) == (4, 1, 0.25)
    assert (system.headline.worst, system.headline.best) == (0.25, 1.0)
    assert system.headline.estimate.value is None
    assert "1 of 4 attempts are valid" in system.headline.withheld


def test_a_campaign_may_declare_that_it_does_with_less(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(4), ["agent"], minimum_coverage=0.25)
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS if item.task_id == "made/t0" else folders.LOST)
    (system,) = analyse(folder).systems
    assert system.headline.withheld == ""
    assert system.headline.estimate.value == 1.0
    assert system.headline.estimate.low is None  # one task: no interval, not one of width 0 (B156)
    assert system.headline.estimate.note


def test_limits_and_invalid_output_stay_in_the_denominator(folders: ModuleType, tmp_path: Path) -> None:
    """B153: 108 pass, 40 fail, 24 end by the agent's own time-out."""
    late = folders.Made(terminal=Terminal(phase="act", origin="agent", kind="wall_time_limit"))
    outcomes = itertools.chain([folders.PASS] * 108, [folders.FAIL] * 40, [late] * 24)
    folder = folders.write(tmp_path, folders.lock(folders.tasks(172), ["agent"]), lambda item: next(outcomes))
    (system,) = analyse(folder).systems
    assert system.over_valid == pytest.approx(108 / 172)
    assert system.headline.estimate.value == pytest.approx(0.6279, abs=5e-5)
    assert system.endings == {"act/agent/finished": 148, "act/agent/wall_time_limit": 24}


def test_both_figures_are_given_where_attempts_were_lost(folders: ModuleType, tmp_path: Path) -> None:
    """B154: 2 pass, 2 infrastructure errors, 4 fail."""
    outcomes = iter([folders.PASS] * 2 + [folders.LOST] * 2 + [folders.FAIL] * 4)
    folder = folders.write(tmp_path, folders.lock(folders.tasks(8), ["agent"]), lambda item: next(outcomes))
    (system,) = analyse(folder).systems
    assert system.over_valid == pytest.approx(2 / 6)
    assert system.over_planned == pytest.approx(2 / 8)
    assert (system.successes, system.valid, system.planned) == (2, 6, 8)


def test_macro_and_micro_are_both_there_and_named(folders: ModuleType, tmp_path: Path) -> None:
    """B158: task A 10 of 10 attempts, task B 0 of 2 (the other eight of B were lost)."""
    locked = folders.lock(folders.tasks(2), ["agent"], attempts=10)

    def outcome(item: object) -> object:
        if item.task_id == "made/t0":  # type: ignore[attr-defined]
            return folders.PASS
        return folders.FAIL if item.attempt < 2 else folders.LOST  # type: ignore[attr-defined]

    found = analyse(folders.write(tmp_path, locked, outcome))
    assert found.systems[0].macro.value == 0.5
    assert found.systems[0].micro.value == pytest.approx(0.8333, abs=5e-5)
    assert found.metric == "success rate, macro average"
    assert found.systems[0].headline.estimate.value == 0.5


def test_declared_weights_make_the_headline(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(2, weight=(3.0, 1.0)), ["agent"], headline={"average": "weighted"})
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS if item.task_id == "made/t0" else folders.FAIL)
    (system,) = analyse(folder).systems
    assert system.headline.estimate.value == 0.75
    assert system.macro.value == 0.5


@pytest.mark.parametrize(("metric", "value"), [("pass_at_k", 0.9), ("pass_hat_k", 0.0)])
def test_the_headline_may_be_a_curve_point(folders: ModuleType, tmp_path: Path, metric: str, value: float) -> None:
    """B148: n = 5, c = 2, k = 3 is 0.9 exactly."""
    headline = {"metric": metric, "k": 3}
    locked = folders.lock(folders.tasks(2), ["agent"], attempts=5, headline=headline)
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS if item.attempt < 2 else folders.FAIL)
    assert analyse(folder).systems[0].headline.estimate.value == value


def test_curves_reach_every_k_and_are_undefined_beyond_the_attempts(folders: ModuleType, tmp_path: Path) -> None:
    """B147, B150, B163: pass^k of n = 5, c = 3 at k = 2 is 0.3; all k are reported; k > n is undefined."""
    locked = folders.lock(folders.tasks(2), ["agent"], attempts=5)
    folder = folders.write(tmp_path / "whole", locked, lambda item: folders.PASS if item.attempt < 3 else folders.FAIL)
    (system,) = analyse(folder).systems
    assert [point.k for point in system.pass_at] == [1, 2, 3, 4, 5]
    assert [point.estimate.value for point in system.pass_hat] == pytest.approx([0.6, 0.3, 0.1, 0.0, 0.0])

    def lossy(item: object) -> object:
        return folders.LOST if item.task_id == "made/t1" and item.attempt == 4 else folders.FAIL  # type: ignore[attr-defined]

    (system,) = analyse(folders.write(tmp_path / "lossy", locked, lossy)).systems
    last = system.pass_at[-1]
    assert last.estimate.value is None
    assert last.coverage == 0.5
    assert system.pass_at[3].estimate.value == 0.0


def test_bands_enclose_the_curve(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(30), ["agent"], attempts=3)
    folder = folders.write(
        tmp_path, locked, lambda item: folders.PASS if (int(item.task_id[6:]) + item.attempt) % 3 else folders.FAIL
    )
    flat = analyse(folder).systems[0].pass_at[0]
    assert flat.band_low is None  # all tasks alike: the bootstrap has nothing to say, and says nothing
    folder = folders.write(
        tmp_path / "b", locked, lambda item: folders.PASS if int(item.task_id[6:]) % 3 else folders.FAIL
    )
    point = analyse(folder).systems[0].pass_at[1]
    assert point.band_low is not None
    assert point.band_high is not None
    assert point.band_low < (point.estimate.value or 0.0) < point.band_high


def test_a_campaign_without_a_valid_attempt_is_invalid(folders: ModuleType, tmp_path: Path) -> None:
    """B142: no headline, no comparison with numbers."""
    folder = folders.write(tmp_path, folders.lock(folders.tasks(3), ["a", "b"]), lambda item: folders.LOST)
    found = analyse(folder)
    assert found.status == "invalid"
    assert found.ranking == ()
    assert all(system.headline.estimate.value is None and system.headline.withheld for system in found.systems)
    assert all(system.over_valid is None for system in found.systems)
    assert [pair.difference.value for pair in found.comparisons] == [None]


def test_unknown_endings_beyond_the_declared_share_void_the_campaign(folders: ModuleType, tmp_path: Path) -> None:
    odd = folders.Made(terminal=Terminal(phase="act", origin="harness", kind="from_outer_space"))
    locked = folders.lock(folders.tasks(20), ["agent"])
    found = analyse(folders.write(tmp_path, locked, lambda item: odd if item.task_id == "made/t1" else folders.PASS))
    assert found.status == "invalid"
    assert found.systems[0].classes["unclassified"] == 1


def test_missing_attempts_are_no_failures(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(4), ["agent"])
    found = analyse(folders.write(tmp_path, locked, lambda item: None if item.task_id == "made/t3" else folders.PASS))
    (system,) = found.systems
    assert found.status == "incomplete"
    assert (system.missing, system.classes["missing"], system.classes["agent_failure"]) == (1, 1, 0)
    assert (system.headline.estimate.value, system.headline.worst, system.headline.best) == (1.0, 0.75, 1.0)


def test_nothing_on_record_is_no_number_at_all(folders: ModuleType, tmp_path: Path) -> None:
    found = analyse(folders.write(tmp_path, folders.lock(folders.tasks(2), ["a", "b"], attempts=2), lambda item: None))
    for system in found.systems:
        assert system.headline.estimate.value is None
        assert system.macro.value is system.micro.value is system.over_valid is system.money.total is None
        assert system.flip_rate.value is system.times.mean is None
        assert (system.headline.worst, system.headline.best) == (0.0, 1.0)


def test_right_but_broke_a_rule_is_a_cell_of_its_own(folders: ModuleType, tmp_path: Path) -> None:
    broke = folders.Made(good=True, kept=False)
    outcomes = iter([broke, folders.PASS, folders.FAIL, dataclasses.replace(folders.FAIL, claimed=False)])
    folder = folders.write(tmp_path, folders.lock(folders.tasks(4), ["agent"]), lambda item: next(outcomes))
    (system,) = analyse(folder).systems
    assert (system.right_but_broke_rule, system.successes, system.classes["agent_failure"]) == (1, 1, 3)
    assert system.false_claims == 1


def test_an_unknown_cost_makes_the_total_unknown(folders: ModuleType, tmp_path: Path) -> None:
    costs = iter([0.5, 0.25, None, 0.25])
    outcomes = lambda item: folders.Made(good=True, cost=next(costs))  # noqa: E731
    folder = folders.write(tmp_path / "some", folders.lock(folders.tasks(4), ["agent"]), outcomes)
    money = analyse(folder).systems[0].money
    assert (money.known, money.recorded, money.total, money.per_success) == (3, 4, None, None)
    assert money.known_total == 1.0
    folder = folders.write(
        tmp_path / "all",
        folders.lock(folders.tasks(4), ["agent"]),
        lambda item: folders.Made(good=item.task_id != "made/t0", cost=0.5, retried=1),
    )
    system = analyse(folder).systems[0]
    assert system.money.total == 4.0  # the failed tries were paid for too
    assert system.money.per_success == pytest.approx(4.0 / 3)
    assert system.retries == 4


def test_retries_count_as_tries_and_not_as_attempts(folders: ModuleType, tmp_path: Path) -> None:
    """B160."""
    retried = dataclasses.replace(folders.PASS, retried=2)
    folder = folders.write(tmp_path, folders.lock(folders.tasks(3), ["agent"]), lambda item: retried)
    found = analyse(folder)
    assert (found.systems[0].planned, found.systems[0].valid, found.systems[0].retries) == (3, 3, 6)
    assert found.invalid.total == 6
    assert all("database went away" in note.why for note in found.invalid.shown)


def test_statuses_are_compared_by_value_after_a_round_trip(folders: ModuleType, tmp_path: Path) -> None:
    """B162: the same counts before and after JSON."""
    outcomes = iter([folders.PASS, folders.FAIL, folders.LOST] * 2)
    folder = folders.write(tmp_path, folders.lock(folders.tasks(6), ["agent"]), lambda item: next(outcomes))
    found = analyse(folder)
    again = Analysis.parse(found.canonical())
    assert again == found
    assert again.systems[0].classes[OutcomeClass.SUCCESS.value] == 2
    assert again.systems[0].classes["environment_failure"] == 2


def test_oracles_are_shown_and_never_ranked_or_compared(folders: ModuleType, tmp_path: Path) -> None:
    systems = {"agent": {}, "cheat": {"policy": {"name": "cheat", "oracle": True}}, "still": {}}
    locked = folders.lock(folders.tasks(4), systems, policies={"still": "noop"})
    found = analyse(folders.write(tmp_path, locked, lambda item: folders.PASS))
    assert [system.role for system in found.systems] == ["system", "oracle", "baseline"]
    assert found.ranking == ("agent", "still")
    assert [(pair.a, pair.b) for pair in found.comparisons] == [("agent", "still")]


def test_only_a_changed_model_makes_a_model_comparison(folders: ModuleType, tmp_path: Path) -> None:
    systems = {
        "a": {"model": {"name": "m1"}, "harness": {"loop": "react"}, "policy": {"name": "p"}},
        "b": {"model": {"name": "m2"}, "harness": {"loop": "react"}, "policy": {"name": "p"}},
        "c": {"model": {"name": "m2"}, "harness": {"loop": "plan"}, "policy": {"name": "p"}},
    }
    found = analyse(folders.write(tmp_path, folders.lock(folders.tasks(6), systems), lambda item: folders.PASS))
    kinds = {(pair.a, pair.b): (pair.kind, pair.differs) for pair in found.comparisons}
    assert kinds["a", "b"] == ("model comparison", ("model",))
    assert kinds["a", "c"] == ("system comparison", ("harness", "model"))
    assert kinds["b", "c"] == ("system comparison", ("harness",))
    assert found.factorial is None  # one combination is absent


def test_pairs_are_tested_exactly_and_adjusted_together(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(8), ["a", "b", "c"])
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS if item.system == "b" else folders.FAIL)
    pairs = {(pair.a, pair.b): pair for pair in analyse(folder).comparisons}
    assert pairs["a", "b"].difference.value == 1.0
    assert pairs["a", "b"].exact
    assert pairs["a", "b"].p == pytest.approx(2 / 2**8)
    assert pairs["a", "b"].p_holm == pytest.approx(3 * 2 / 2**8)
    assert (pairs["a", "b"].won, pairs["a", "b"].lost, pairs["a", "b"].tied) == (8, 0, 0)
    assert pairs["a", "c"].p == 1.0
    assert pairs["b", "c"].difference.value == -1.0


def test_models_and_harnesses_make_a_table(folders: ModuleType, tmp_path: Path) -> None:
    systems = {
        f"{model}-{loop}": {"model": {"name": model}, "harness": {"name": loop}}
        for model in ("m1", "m2")
        for loop in ("h1", "h2")
    }
    locked = folders.lock(folders.tasks(12), systems, attempts=2)

    def outcome(item: object) -> object:
        number = int(item.task_id[6:])  # type: ignore[attr-defined]
        good = number % 2 == 0 if item.system.startswith("m1") else number % 4 == 0  # type: ignore[attr-defined]
        return folders.PASS if good else folders.FAIL

    table = analyse(folders.write(tmp_path, locked, outcome)).factorial
    assert table is not None
    assert (table.models, table.harnesses, table.tasks) == (("m1", "m2"), ("h1", "h2"), 12)
    assert [[cell.value for cell in row] for row in table.cells] == [[0.5, 0.5], [0.25, 0.25]]
    effects = dict(table.effects)
    assert effects["model m1"].value == pytest.approx(0.125)
    assert effects["harness h1"].value == pytest.approx(0.0)
    assert sum(share for _, share in table.shares) == pytest.approx(1.0)


def test_a_withheld_cell_withholds_the_table_of_models(folders: ModuleType, tmp_path: Path) -> None:
    systems = {m + h: {"model": {"name": m}, "harness": {"name": h}} for m in ("m", "n") for h in ("h", "i")}
    locked = folders.lock(folders.tasks(4), systems, minimum_coverage=0.9)

    def outcome(item: object) -> object:
        lost = item.system == "mh" and item.task_id == "made/t0"  # type: ignore[attr-defined]
        return folders.LOST if lost else folders.PASS

    found = analyse(folders.write(tmp_path, locked, outcome))
    assert found.factorial is None
    assert all(part.estimate.value is None for part in found.systems[0].lengths)
    assert all(part.estimate.value == 1.0 for part in found.systems[1].lengths)


def test_slices_by_label_and_by_length(folders: ModuleType, tmp_path: Path) -> None:
    planned = folders.tasks(6, labels=lambda number: {"kind": "even" if number % 2 == 0 else "odd"})
    folder = folders.write(
        tmp_path,
        folders.lock(planned, ["agent"]),
        lambda item: folders.Made(good=int(item.task_id[6:]) % 2 == 0, steps=3 if item.task_id == "made/t0" else 30),
    )
    (system,) = analyse(folder).systems
    assert [(part.name, part.value, part.estimate.value, part.planned) for part in system.slices] == [
        ("kind", "even", 1.0, 3),
        ("kind", "odd", 0.0, 3),
    ]
    assert [(part.value, part.estimate.n) for part in system.lengths] == [("1 to 5 steps", 1), ("21 to 50 steps", 5)]


def test_drift_over_the_order_of_starts_is_seen(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(12), ["agent"], attempts=4)
    folder = folders.write(
        tmp_path, locked, lambda item: folders.Made(good=item.attempt < 2, worker=f"w{item.attempt // 2}")
    )
    order, worker = analyse(folder).systems[0].drift
    assert (order.name, worker.name) == ("start order", "worker")
    assert order.p_adjusted is not None
    assert order.p_adjusted < 0.01
    assert worker.p_adjusted is not None
    assert worker.p_adjusted < 0.01
    assert analyse(folder).systems[0].flip_rate.value == pytest.approx(2 * 2 * 2 / (4 * 3))


def test_doubled_foreign_and_torn_lines_are_told(folders: ModuleType, tmp_path: Path) -> None:
    """B131 to B137: a record counts once; one of no plan counts nowhere; a torn end is dropped."""
    locked = folders.lock(folders.tasks(3), ["agent"])
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS)
    path = folder / "runs.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    stranger = lines[1].replace(locked.planned[1].run_id.encode(), b"nobody-planned-this")
    path.write_bytes(b"".join([*lines, lines[0], stranger, lines[2][:40]]))
    found = analyse(folder)
    assert (found.systems[0].planned, found.systems[0].valid, found.systems[0].successes) == (3, 3, 3)
    assert [("repeat" in note, "no planned" in note, "torn" in note) for note in found.notes].count(
        (False, False, False)
    ) == 0
    assert len(found.notes) == 3


def test_damage_in_the_middle_is_an_error_with_its_line(folders: ModuleType, tmp_path: Path) -> None:
    folder = folders.write(tmp_path, folders.lock(folders.tasks(3), ["agent"]), lambda item: folders.PASS)
    path = folder / "runs.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b'"counts":true', b'"counts":"perhaps"'), lines[2]]))
    with pytest.raises(AgentEvalError, match=r"runs\.jsonl, line 2"):
        analyse(folder)


def test_a_folder_that_is_no_campaign_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentEvalError, match="no campaign"):
        analyse(tmp_path)


def test_the_order_of_the_records_makes_no_difference(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(5), ["a", "b"], attempts=2)
    outcome = lambda item: folders.PASS if int(item.task_id[6:]) + item.attempt > 2 else folders.FAIL  # noqa: E731
    folder = folders.write(tmp_path, locked, outcome)
    before = analyse(folder)
    for name in ("runs.jsonl", "attempts.jsonl"):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(reversed(lines)))
    assert analyse(folder).canonical() == before.canonical()


@pytest.mark.timeout(300)
def test_twenty_thousand_records_stay_columns(folders: ModuleType, tmp_path: Path) -> None:
    locked = folders.lock(folders.tasks(1000), ["a", "b"], attempts=10)
    folder = folders.write(tmp_path, locked, lambda item: folders.PASS if (item.seed >> 3) % 3 else folders.FAIL)
    records = load(folder)
    assert sum(getattr(records.columns, field.name).nbytes for field in dataclasses.fields(records.columns)) < 5e6
    assert int(records.columns.valid.sum()) == 20_000
    found = analysis_of(records)
    assert found.failures.total == int((~records.columns.success).sum())
    assert len(found.failures.shown) == 200
    assert {note.system for note in found.failures.shown} == {"a", "b"}
    assert np.isclose(found.systems[0].micro.value or 0.0, records.columns.success[records.columns.system == 0].mean())
