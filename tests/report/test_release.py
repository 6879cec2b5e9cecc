"""The release check: all nine promises can be met, and each one is denied when what it says isn't so."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.regression import keep_grader_case
from agent_envs.campaign.results import Results
from agent_envs.campaign.suites import draw_tasks, lock_suite, open_suite
from agent_envs.contract import AgentEvalError, Evidence, Status, TaskReferences, WrongRun
from agent_envs.contract.outcome import PythonAssertion
from agent_envs.envs.refund.env import SUITE
from agent_envs.report.analysis import analyse
from agent_envs.report.export import write_report
from agent_envs.report.promises import Promise, confirmed, decision_stated, one_spec, repeated
from agent_envs.report.proofs import state_decides
from agent_envs.report.records import load
from agent_envs.report.release import as_json, exit_status, print_promises, release_check
from tests.campaign.serial import ENV, SerialEngine, locked, manifest

KEY = b"correct horse battery"
WORDS = {
    "decision": "Whether the hasty clerk may replace the careful one.",
    "population": "Refund calls as the generator draws them.",
    "systems": [{"name": "book", "policy": "rulebook"}, {"name": "hasty", "policy": "hasty"}],
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign on a sealed suite, with report and regression case; the suite stands beside it."""
    folder = tmp_path_factory.mktemp("release")
    lock_suite(folder / "suite.sealed", ENV, draw_tasks(ENV, 4), KEY)
    campaign = folder / "campaign"
    open_suite(folder / "suite.sealed", manifest(**WORDS), campaign, KEY)
    run_campaign(campaign, SerialEngine())
    write_report(campaign)
    run = Results(campaign).read()[0]
    keep_grader_case(campaign, run.run_id, campaign / "regression", confirmed_by="a referee", reason="seen in use")
    return folder


@pytest.fixture
def place(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "campaign"


def unmet(folder: Path, **keywords: Path) -> dict[int, str]:
    return {
        promise.number: " ".join(promise.missing) for promise in release_check(folder, **keywords) if not promise.met
    }


def rewrite(path: Path, change: Callable[[dict], None]) -> None:
    """Change every line of a file of records."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_all_nine_can_be_met(place):
    promises = release_check(place, sealed=place.parent / "suite.sealed")
    assert [promise.number for promise in promises] == list(range(1, 10))
    assert [promise.missing for promise in promises] == [()] * 9
    assert all(promise.evidence for promise in promises)
    assert exit_status(promises) == 0
    data = json.loads(as_json(promises))
    assert (data["met"], data["of"]) == (9, 9)
    assert as_json(promises) == as_json(release_check(place, sealed=place.parent / "suite.sealed"))


def test_the_report_says_how_often_the_suite_was_opened(place):
    assert json.loads((place / "report" / "report.json").read_text())["openings"] == 1
    locked(place.parent / "plain", **WORDS)
    assert analyse(place.parent / "plain").openings is None


def test_nothing_is_written(place):
    before = {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    release_check(place)
    assert {path: path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()} == before


def test_one_unmet_promise_is_an_exit_status():
    kept = Promise(number=1, title="x", met=True, evidence=("y",), missing=())
    assert exit_status([kept] * 9) == 0
    assert exit_status([kept] * 8) == 1
    assert exit_status([*[kept] * 8, kept.model_copy(update={"met": False})]) == 1


def test_it_fits_eighty_columns_and_shows_hostile_text_harmlessly(capsys):
    promise = Promise(number=9, title="t\x1b[31m", met=False, evidence=("x" * 300,), missing=("[bold]\u202e do",))
    print_promises(Console(width=80, force_terminal=False), [promise])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text and "\u202e" not in text
    assert "[bold]" in text and "NOT MET" in text


def test_1_a_word_is_no_decision(place):
    records = load(place)
    lock = records.lock
    short = lock.manifest.model_copy(update={"decision": "Ship it?"})
    promise = decision_stated(dataclasses.replace(records, lock=lock.model_copy(update={"manifest": short})))
    assert not promise.met
    assert "Ship it?" in promise.missing[0]


@pytest.mark.parametrize(
    ("section", "key"), [("tools", "source"), ("tools", "denied"), ("grader", "source"), ("user", "kind")]
)
def test_2_a_part_that_is_in_no_spec(place, section, key):
    records = load(place)
    spec = records.lock.systems["book"]
    part = {name: value for name, value in getattr(spec, section).items() if name != key}
    systems = records.lock.systems | {"book": spec.model_copy(update={section: part})}
    promise = one_spec(dataclasses.replace(records, lock=records.lock.model_copy(update={"systems": systems})))
    assert not promise.met
    assert f"{section}.{key}" in " ".join(promise.missing)


def test_2_who_uses_a_model_must_name_it(place):
    records = load(place)
    records.columns.tokens[:] = 100.0
    promise = one_spec(records)
    assert not promise.met
    assert "uses a model" in promise.missing[0]


def test_2_records_of_another_system(place):
    """B138."""
    rewrite(place / "attempts.jsonl", lambda line: line["run"].update(system_spec_hash="0" * 64))
    assert "another spec" in unmet(place)[2]


def test_3_a_reference_that_does_not_pass(place, monkeypatch):
    """B232, B234."""
    real = SUITE.references

    def broken(task_id: str) -> TaskReferences:
        known = real(task_id)
        reference = known.references[0]
        return known.model_copy(update={"references": (reference.model_copy(update={"calls": reference.calls[:4]}),)})

    monkeypatch.setattr(SUITE, "references", broken)
    found = unmet(place)
    assert "references that don't pass" in found[3]
    assert "known passes that fail" in found[5]


def test_3_a_start_that_is_another_one_now(place):
    def moved(line: dict) -> None:
        if line["kind"] == "reset":
            line["data"]["state_hash"] = "0" * 64

    rewrite(place / "health.jsonl", moved)
    assert "it starts at" in unmet(place)[3]


def test_3_a_reset_that_was_never_proven(place):
    path = place / "health.jsonl"
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines() if '"kind":"reset"' not in line))
    assert "no record of its reset check" in unmet(place)[3]


def test_3_and_5_tasks_that_are_not_the_locked_ones(place, monkeypatch):
    real = SUITE.task
    monkeypatch.setattr(SUITE, "task", lambda task_id: real(task_id).model_copy(update={"task_revision": 7}))
    found = unmet(place)
    assert "aren't what was locked" in found[3]
    assert "aren't what was locked" in found[5]


def test_3_a_task_that_is_gone(place, monkeypatch):
    def gone(task_id: str) -> TaskReferences:
        raise AgentEvalError("no references any more")

    monkeypatch.setattr(SUITE, "references", gone)
    assert "no references any more" in unmet(place)[3]


def many_steps(evidence: Evidence) -> tuple[Status, str]:
    """An outcome that looks at the way there."""
    return (Status.PASS if len(evidence.events) > 3 else Status.FAIL), "counted"


def test_4_an_outcome_that_looks_at_the_trajectory(tmp_path, monkeypatch):
    real = SUITE.task
    monkeypatch.setattr("agent_envs.envs.refund.words.many_steps", many_steps, raising=False)
    look = PythonAssertion(check="python", name="steps", function="agent_envs.envs.refund.words:many_steps")

    def task(task_id: str):
        found = real(task_id)
        return found.model_copy(update={"outcome": (*found.outcome, look)})

    monkeypatch.setattr(SUITE, "task", task)
    locked(tmp_path, **WORDS, attempts=1)
    run_campaign(tmp_path, SerialEngine())
    promise = state_decides(load(tmp_path))
    assert not promise.met
    assert "without the log it is fail" in promise.missing[0]


def test_4_nothing_judged_shows_nothing(place):
    """B142."""
    for name in ("runs.jsonl", "attempts.jsonl"):
        (place / name).unlink()
    found = unmet(place)
    assert "no record has a verdict" in found[4]
    assert {4, 6, 7, 8} <= found.keys()


def test_5_a_grader_nobody_tried_to_fool(place, monkeypatch):
    real = SUITE.references
    monkeypatch.setattr(SUITE, "references", lambda task_id: real(task_id).model_copy(update={"wrong": ()}))
    assert "without a known failure" in unmet(place)[5]
    nothing = (WrongRun(name="nothing", reason="does nothing", fails="changes"),)
    monkeypatch.setattr(SUITE, "references", lambda task_id: real(task_id).model_copy(update={"wrong": nothing}))
    assert "without a near miss" in unmet(place)[5]


def test_5_a_known_failure_that_passes(place, monkeypatch):
    real = SUITE.references

    def fooled(task_id: str) -> TaskReferences:
        known = real(task_id)
        wrong = WrongRun(name="right", reason="none", fails="changes", calls=known.references[0].calls)
        return known.model_copy(update={"wrong": (*known.wrong, wrong)})

    monkeypatch.setattr(SUITE, "references", fooled)
    found = unmet(place)
    assert "passes, although it is wrong" in found[5]
    assert 3 not in found


@pytest.mark.parametrize("content", [b"", b"{}", b'{"certificate": {}, "digest": ""}'])
def test_5_a_certificate_that_does_not_hold_is_no_proof(place, content):
    (place / "report" / "certificate.json").write_bytes(content)
    found = unmet(place)
    assert "report/certificate.json" in found[5]
    assert 8 not in found, "it is no part of the report that the records give"


def test_6_records_that_were_there_before_the_lock(place):
    rewrite(place / "attempts.jsonl", lambda line: line["run"].update(campaign="0" * 64))
    assert "carry another lock's digest" in unmet(place)[6]


def test_6_more_tries_than_declared(place):
    """B160."""
    path = place / "attempts.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in (*lines, *lines[-1:] * 3)))
    assert "beyond the retry rule" in unmet(place)[6]


def test_6_a_retried_failure(place):
    """B160."""

    def retried(line: dict) -> None:
        if line["run"]["outcome_class"] == "agent_failure" and line["purpose"] == "attempt":
            line["decision"] = "retry"

    rewrite(place / "attempts.jsonl", retried)
    assert "beyond the retry rule" in unmet(place)[6]


def test_6_a_plan_that_changed_on_the_way(place):
    (place / "history" / "1").mkdir(parents=True)
    shutil.copy(place / "campaign.lock.json", place / "history" / "1")
    assert "changed 1 times" in unmet(place)[6]


def test_7_one_attempt_shows_no_reliability(tmp_path):
    locked(tmp_path, **WORDS, attempts=1)
    run_campaign(tmp_path, SerialEngine())
    promise = repeated(load(tmp_path))
    assert not promise.met
    assert "shows no reliability" in " ".join(promise.missing)


def test_7_one_task_gives_no_interval(tmp_path):
    """B156."""
    locked(tmp_path, **WORDS, suite=[{"env": ENV, "tasks": ["refund/train-1"]}])
    run_campaign(tmp_path, SerialEngine())
    assert "no interval" in " ".join(repeated(load(tmp_path)).missing)


def test_7_missing_records_are_not_passed_over(place):
    """B136, B152."""
    path = place / "runs.jsonl"
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:-1]))
    assert "incomplete" in unmet(place)[7]


def test_8_a_report_that_was_touched_up(place):
    path = place / "report" / "report.json"
    path.write_bytes(path.read_bytes().replace(b'"valid":', b'"valid" :', 1))
    assert "report/report.json" in unmet(place)[8]


def test_8_a_report_that_is_missing(place):
    shutil.rmtree(place / "report")
    assert "is missing" in unmet(place)[8]


def test_8_evidence_that_is_missing(place):
    shutil.rmtree(sorted((place / "evidence").iterdir())[0])
    shutil.rmtree(sorted((place / "evidence").iterdir())[-1])
    found = unmet(place)
    assert 8 in found
    assert 4 in found


def test_9_an_open_suite(place):
    (place / "sealed.json").unlink()
    assert "isn't a sealed one" in unmet(place)[9]


def test_9_a_damaged_opening(place):
    (place / "sealed.json").write_text("[]")
    assert "the sealed suite" in unmet(place)[9]


def test_9_an_opening_that_the_ledger_does_not_know(place):
    other = place.parent / "other.sealed"
    lock_suite(other, ENV, draw_tasks(ENV, 1), KEY)
    assert "doesn't hold the opening" in unmet(place, sealed=other)[9]


def test_9_no_regression_case(place):
    shutil.rmtree(place / "regression")
    assert "no regression cases" in unmet(place)[9]
    (place / "regression").mkdir()
    assert "no regression case here" in unmet(place)[9]


def test_9_a_regression_case_that_fails(place):
    (case,) = (place / "regression").iterdir()
    (case / "evidence" / "evidence.json").unlink()
    promise = confirmed(load(place), place / "regression", None)
    assert not promise.met
    assert case.name in promise.missing[0]


def test_a_folder_that_is_no_campaign_is_refused(tmp_path):
    with pytest.raises(AgentEvalError, match="no campaign is locked here"):
        release_check(tmp_path)
