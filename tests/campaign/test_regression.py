"""Regression cases: confirmed failures are kept, checked again, and never pass by being unreadable."""

from pathlib import Path

import pytest

from agent_envs.baselines import load
from agent_envs.campaign.cases import RegressionError, TaskCase, read_case
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.regression import check_cases, keep_grader_case, keep_task_case
from agent_envs.campaign.results import ResultsError
from agent_envs.campaign.runner import Attempt, run_attempts
from agent_envs.contract import EvidenceError
from agent_envs.contract.outcome import ChangesAssertion
from agent_envs.envs.refund.env import SUITE
from tests.campaign.serial import ENV

TASK = "refund/three-lanterns"
WHO = {"confirmed_by": "A. Referee", "reason": "money moved without the customer's yes"}


def hostile(observation, info):
    """Calls with whatever YAML readers disagree on, then a malformed one."""
    step = info["step"]
    if step == 0:
        return {"tool": "add_note", "arguments": {"ticket_id": "T9318", "text": "1e5"}}
    if step == 1:
        text = 'null: "x"\n# 12:30 007 \u202e\x07 &a *b !c'
        return {"tool": "add_note", "arguments": {"ticket_id": "T9318", "text": text}}
    if step == 2:
        return {"tool": "no_such", "arguments": {"n": 1e21, "deep": [{"yes": None, "on": True, "1": 0}]}}
    return {"tool": "finish", "arguments": {"outcome": "completed"}}


def garbled(observation, info):
    return "refund(" if info["step"] == 0 else {"tool": "finish", "arguments": {"outcome": "completed"}}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    with make_env(ENV) as env:
        for name in ("hasty", "rulebook", "noop"):
            run_attempts(env, load(name), [Attempt(f"lanterns.{name}", TASK, 0, 11)], folder)
        for policy in (hostile, garbled):
            from agent_envs.baselines.policy import as_policy

            run_attempts(env, as_policy(policy), [Attempt(f"lanterns.{policy.__name__}", TASK, 0, 11)], folder)
    return folder


def loosened(monkeypatch, **changes):
    """The task's checks changed, its play not."""
    real = SUITE.task

    def task(task_id):
        found = real(task_id)
        return found.model_copy(update={name: change(found) for name, change in changes.items()} | {"rubric": ()})

    monkeypatch.setattr(SUITE, "task", task)


def test_a_grader_case_is_judged_again(results, tmp_path):
    keep_grader_case(results, "lanterns.hasty", tmp_path, **WHO)
    (found,) = check_cases(tmp_path)
    assert (found.name, found.kind, found.ok, found.detail) == ("lanterns.hasty.grader", "grader", True, "")


def test_a_grader_that_goes_soft_is_caught(results, tmp_path, monkeypatch):
    keep_grader_case(results, "lanterns.hasty", tmp_path, **WHO)
    loosened(monkeypatch, constraints=lambda task: ())
    (found,) = check_cases(tmp_path)
    assert not found.ok
    assert "no check 'confirm_refund' any more" in found.detail


def test_a_grader_that_accepts_what_it_must_not_is_caught(results, tmp_path, monkeypatch):
    keep_grader_case(results, "lanterns.hostile", tmp_path, **WHO)

    def anything(task):
        changes = next(item for item in task.outcome if isinstance(item, ChangesAssertion))
        notes = next(item for item in changes.allow if item.table == "ticket_notes")
        notes = notes.model_copy(update={"count": 2})
        return (changes.model_copy(update={"expect": (notes,)}),)

    loosened(monkeypatch, outcome=anything)
    (found,) = check_cases(tmp_path)
    assert not found.ok
    assert "changes must be fail, is pass" in found.detail


def test_what_the_grader_gets_wrong_fails_until_it_is_mended(results, tmp_path):
    """A wrong verdict that a person has confirmed as wrong: the case says what is right."""
    keep_grader_case(results, "lanterns.rulebook", tmp_path, expected={"changes": "fail"}, **WHO)
    (found,) = check_cases(tmp_path)
    assert not found.ok
    assert "changes must be fail, is pass" in found.detail


def test_damaged_evidence_fails(results, tmp_path):
    place = keep_grader_case(results, "lanterns.hasty", tmp_path, **WHO)
    log = place / "evidence" / "log.jsonl.zst"
    log.write_bytes(log.read_bytes()[:-3])
    (found,) = check_cases(tmp_path)
    assert not found.ok


def test_evidence_of_another_run_fails(results, tmp_path):
    place = keep_grader_case(results, "lanterns.hasty", tmp_path / "a", **WHO)
    other = keep_grader_case(results, "lanterns.noop", tmp_path / "b", **WHO)
    for name in ("log.jsonl.zst", "evidence.json"):
        (place / "evidence" / name).write_bytes((other / "evidence" / name).read_bytes())
    (found,) = check_cases(tmp_path / "a")
    assert (found.ok, found.detail) == (False, "the evidence isn't what was kept")


def test_a_task_that_plays_differently_makes_the_evidence_worthless(results, tmp_path, monkeypatch):
    keep_grader_case(results, "lanterns.hasty", tmp_path, **WHO)
    loosened(monkeypatch, user_request=lambda task: "Do something else.")
    (found,) = check_cases(tmp_path)
    assert not found.ok
    assert "plays differently now" in found.detail


def test_a_wrong_run_is_played_again_and_must_fail_by_its_check(results, tmp_path, monkeypatch):
    place = keep_task_case(results, "lanterns.hasty", tmp_path, **WHO)
    case = read_case(place)
    assert isinstance(case, TaskCase)
    assert case.wrong is not None
    assert case.wrong.fails == "confirm_refund"
    assert [found.ok for found in check_cases(tmp_path)] == [True]
    loosened(monkeypatch, constraints=lambda task: tuple(c for c in task.constraints if c.name != "confirm_refund"))
    (found,) = check_cases(tmp_path)
    assert not found.ok
    assert "passes, although it is wrong" in found.detail


def test_a_right_run_is_played_again_and_must_pass(results, tmp_path):
    keep_task_case(results, "lanterns.rulebook", tmp_path, right=True, **WHO)
    assert [(found.kind, found.ok) for found in check_cases(tmp_path)] == [("task", True)]


def test_a_failure_is_not_kept_as_a_right_run(results, tmp_path):
    with pytest.raises(RegressionError, match="confirm_refund is fail"):
        keep_task_case(results, "lanterns.hasty", tmp_path, right=True, **WHO)
    with pytest.raises(RegressionError, match="no check failed"):
        keep_task_case(results, "lanterns.rulebook", tmp_path, **WHO)
    with pytest.raises(RegressionError, match="no check 'chnages'"):
        keep_task_case(results, "lanterns.hasty", tmp_path, fails="chnages", **WHO)
    with pytest.raises(RegressionError, match="'identity', which is pass"):
        keep_task_case(results, "lanterns.hasty", tmp_path, fails="identity", **WHO)
    assert not list(tmp_path.iterdir())


def test_a_case_file_keeps_every_text_as_it_was(results, tmp_path):
    place = keep_task_case(results, "lanterns.hostile", tmp_path, **WHO)
    case = read_case(place)
    assert isinstance(case, TaskCase)
    calls = case.script.calls
    assert calls[0].arguments["text"] == "1e5"
    assert calls[1].arguments["text"].startswith('null: "x"\n# 12:30')
    assert calls[2].arguments == {"n": 1e21, "deep": [{"yes": None, "on": True, "1": 0}]}
    assert calls[2].error
    assert check_cases(tmp_path)[0].ok


def test_calls_that_no_script_can_repeat_are_not_dropped(results, tmp_path):
    """B231."""
    with pytest.raises(RegressionError, match="grader case"):
        keep_task_case(results, "lanterns.garbled", tmp_path, **WHO)
    keep_grader_case(results, "lanterns.garbled", tmp_path, **WHO)
    assert check_cases(tmp_path)[0].ok


def test_no_case_is_not_all_right(tmp_path):
    """B010."""
    with pytest.raises(RegressionError, match="no regression case"):
        check_cases(tmp_path)
    with pytest.raises(RegressionError, match="can't be read"):
        check_cases(tmp_path / "missing")


@pytest.mark.parametrize("content", ["", "kind: task\n", "kind: other\n", "- 1\n", "kind: grader\nextra: 1\n"])
def test_a_case_that_cannot_be_read_is_not_ok(results, tmp_path, content):
    place = keep_grader_case(results, "lanterns.hasty", tmp_path, **WHO)
    (place / "case.yaml").write_text(content)
    (tmp_path / "empty").mkdir()
    assert [found.ok for found in check_cases(tmp_path)] == [False, False]


def test_an_unknown_key_is_refused(results, tmp_path):
    """B012."""
    place = keep_grader_case(results, "lanterns.hasty", tmp_path, **WHO)
    with (place / "case.yaml").open("a") as file:
        file.write("expectd: {}\n")
    (found,) = check_cases(tmp_path)
    assert not found.ok
    assert "expectd" in found.detail


def test_what_cannot_be_kept_is_said(results, tmp_path):
    keep_grader_case(results, "lanterns.hasty", tmp_path, name="one", **WHO)
    with pytest.raises(RegressionError, match="there is such a case"):
        keep_grader_case(results, "lanterns.hasty", tmp_path, name="one", **WHO)
    with pytest.raises(RegressionError, match=r"name '\.\./x'"):
        keep_grader_case(results, "lanterns.hasty", tmp_path, name="../x", **WHO)
    with pytest.raises(ResultsError, match="no run is named"):
        keep_grader_case(results, "nobody", tmp_path, **WHO)
    with pytest.raises(RegressionError, match="no check 'x'"):
        keep_grader_case(results, "lanterns.hasty", tmp_path, expected={"x": "pass"}, **WHO)
    with pytest.raises(RegressionError, match="pass, fail or undetermined"):
        keep_grader_case(results, "lanterns.hasty", tmp_path, expected={"changes": "maybe"}, **WHO)
    with pytest.raises(RegressionError, match="confirmed_by"):
        keep_grader_case(results, "lanterns.hasty", tmp_path, name="two", confirmed_by=" ", reason="x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]


def test_a_run_whose_evidence_is_gone_is_not_kept(results, tmp_path):
    import shutil

    shutil.copytree(results, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "evidence" / "lanterns.hasty")
    with pytest.raises(EvidenceError):
        keep_grader_case(tmp_path / "copy", "lanterns.hasty", tmp_path / "cases", **WHO)
