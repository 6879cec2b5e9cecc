"""The reward is the verdict of frozen evidence; a grader that breaks decides nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_envs.contract import Status
from agent_envs.evaluator import evaluate
from agent_envs.wrappers import Evaluation

RIGHT_ORDER = {
    "constraint": "requires_before",
    "name": "look_first",
    "first": {"tool": "look"},
    "then": {"tool": "label"},
    "same": [{"first": "arguments.item_id", "then": "arguments.item_id"}],
}
LOOK = {"tool": "look", "arguments": {"item_id": 1}}


def graded(env: Any, *actions: Any) -> tuple[Any, ...]:
    for action in actions:
        step: tuple[Any, ...] = env.step(action)
    return step


def test_success_is_one_and_anything_else_zero(dressed: Callable[..., Any], tiny: Any) -> None:
    """B196: plain Python types, at every step."""
    for actions, reward in (([tiny.DONE], 1.0), ([], 0.0)):
        env = dressed()
        _, info = env.reset(seed=1)
        assert (info["is_success"], info["verdict"]) == (False, "")
        for action in actions:
            step = env.step(action)
            assert (step[1], step[4]["is_success"], step[4]["verdict"]) == (0.0, False, "")
            assert [type(part) for part in step[1:4]] == [float, bool, bool]
        step = env.step(tiny.FINISH)
        assert [type(part) for part in step[1:4]] == [float, bool, bool]
        assert (step[1], step[2], step[3]) == (reward, True, False)
        assert (step[4]["is_success"], step[4]["verdict"]) == (reward == 1.0, "pass" if reward else "fail")


def test_saying_done_is_not_doing(dressed: Callable[..., Any], tiny: Any) -> None:
    """B024, B057: neither the claim nor a marker in any output ends or wins an episode."""
    env = dressed()
    step = env.step({"tool": "say", "arguments": {"text": "finish() DONE verdict: pass"}})
    assert not step[2] and not step[3]
    step = env.step({"tool": "finish", "arguments": {"outcome": "completed"}})
    run = env.get_wrapper_attr("run")
    assert (step[1], run.declared_success, run.verdict.G) == (0.0, True, "fail")


def test_a_write_too_many_is_no_success(dressed: Callable[..., Any], tiny: Any) -> None:
    """B022 and law 3."""
    step = graded(dressed(), tiny.DONE, {"tool": "note", "arguments": {"text": "x"}}, tiny.FINISH)
    assert (step[1], step[4]["verdict"]) == (0.0, "fail")


def test_a_broken_rule_costs_the_success(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed({"constraints": [RIGHT_ORDER]})
    assert graded(env, LOOK, tiny.DONE, tiny.FINISH)[1] == 1.0
    env.reset(seed=1)
    assert graded(env, tiny.DONE, LOOK, tiny.FINISH)[1] == 0.0
    assert env.get_wrapper_attr("verdict").broke_rule


@pytest.mark.parametrize(
    "failed",
    [
        {"tool": "look", "arguments": {"item_id": 99}},
        {"tool": "look", "arguments": {"item_id": 1, "extra": 1}},
        {"tool": "look", "arguments": {"item_id": 2}},
    ],
    ids=["refused", "invalid", "another"],
)
def test_a_failed_call_is_not_the_call_that_was_required(dressed: Callable[..., Any], tiny: Any, failed: Any) -> None:
    """B216."""
    env = dressed({"constraints": [RIGHT_ORDER]})
    assert graded(env, failed, tiny.DONE, tiny.FINISH)[1] == 0.0


def test_a_denied_call_is_not_the_call_that_was_required(dressed: Callable[..., Any], tiny: Any) -> None:
    """B216."""
    env = dressed({"constraints": [RIGHT_ORDER], "permissions": [{"tools": ["look"], "reason": "no"}]})
    assert graded(env, LOOK, tiny.DONE, tiny.FINISH)[1] == 0.0


def test_a_breach_can_end_the_episode_at_once(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed({"constraints": [RIGHT_ORDER | {"on_breach": "terminate"}]})
    _, reward, terminated, truncated, info = env.step([tiny.DONE, tiny.FINISH])
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert (info["terminal_reason"], info["verdict"]) == ("forbidden_action", "fail")
    assert env.unwrapped.episode.log.entries[-1]["status"] == "skipped"
    env.reset(seed=1)
    assert graded(env, LOOK, tiny.DONE, tiny.FINISH)[1] == 1.0


def test_constraints_of_one_task_do_not_watch_the_next(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed({"constraints": [RIGHT_ORDER | {"on_breach": "terminate"}]})
    env.reset(seed=1, options={"task": "tiny/base"})
    assert graded(env, tiny.DONE, tiny.FINISH)[1] == 1.0


@pytest.mark.parametrize("error", [KeyError("x"), ZeroDivisionError(), RecursionError()])
def test_a_grader_that_raises_is_a_grader_failure(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """B115: no verdict is not 0."""

    def broken(*_: Any) -> Any:
        raise error

    env = dressed()
    monkeypatch.setattr("agent_envs.wrappers.evaluation.evaluate", broken)
    step = graded(env, tiny.DONE, tiny.FINISH)
    assert (step[1], step[4]["is_success"], step[4]["verdict"]) == (0.0, False, "undetermined")
    run = env.get_wrapper_attr("run")
    assert (run.outcome_class, run.counts, run.verdict, run.terminal.kind) == (
        "grader_failure",
        False,
        None,
        "grader_fault",
    )


@pytest.mark.parametrize("how", ["differs", "raises"])
def test_two_evaluations_that_disagree_are_a_grader_failure(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    from agent_envs.wrappers import evaluation

    calls: list[int] = []

    def unsteady(task: Any, evidence: Any) -> Any:
        calls.append(1)
        if len(calls) % 2 == 0 and how == "raises":
            raise ValueError("only the second time")
        verdict = evaluate(task, evidence)
        return verdict if len(calls) % 2 else verdict.model_copy(update={"grader_revision": 2})

    monkeypatch.setattr(evaluation, "evaluate", unsteady)
    env = dressed(recheck=1.0)
    step = graded(env, tiny.DONE, tiny.FINISH)
    assert (len(calls), step[1], step[4]["verdict"]) == (2, 0.0, "undetermined")
    run = env.get_wrapper_attr("run")
    assert run.outcome_class == "grader_failure"
    assert run.terminal.kind == ("disagreement" if how == "differs" else "grader_fault")


def test_a_monitor_that_raises_ends_the_episode_as_a_grader_failure(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_envs.evaluator import Monitor

    env = dressed({"constraints": [RIGHT_ORDER | {"on_breach": "terminate"}]})

    def broken(self: Any, event: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(Monitor, "feed", broken)
    _, reward, terminated, truncated, info = env.step(LOOK)
    assert (reward, terminated, truncated, info["terminal_reason"]) == (0.0, False, True, "grader_fault")
    assert env.get_wrapper_attr("run").outcome_class == "grader_failure"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2, -1, "1", True, None], ids=repr)
def test_a_check_that_returns_no_status_decides_nothing(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    """B140: rewards are made from a three-valued verdict only."""
    monkeypatch.setattr("agent_envs.contract.digest_for_the_test", lambda evidence: (value, ""), raising=False)
    env = dressed(
        {"outcome": [{"check": "python", "name": "own", "function": "agent_envs.contract:digest_for_the_test"}]}
    )
    step = graded(env, tiny.DONE, tiny.FINISH)
    assert (step[1], step[4]["verdict"]) == (0.0, "undetermined")
    assert env.get_wrapper_attr("run").outcome_class == "grader_failure"
    json.dumps(step[4], allow_nan=False)


def test_stopping_from_outside_is_judged(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.step(tiny.DONE)
    with pytest.raises(RuntimeError, match="hasn't ended"):
        _ = env.get_wrapper_attr("run")
    run = env.get_wrapper_attr("stop")()
    assert (run.terminal.kind, run.outcome_class) == ("stopped", "success")
    assert env.get_wrapper_attr("run") is run


def test_a_policy_that_fails_is_an_agent_failure(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.step(tiny.DONE)
    run = env.get_wrapper_attr("stop")("policy_error", "it raised", "agent")
    assert (run.outcome_class, run.counts) == ("agent_failure", True)


def test_an_ending_nobody_knows_is_quarantined(dressed: Callable[..., Any], tiny: Any) -> None:
    """Law 8: never a zero and never a pass."""
    env = dressed()
    env.step(tiny.DONE)
    run = env.get_wrapper_attr("stop")("meteorite")
    assert (run.outcome_class, run.counts) == ("unclassified", False)
    assert run.verdict is None or run.verdict.Y is Status.UNDETERMINED


def test_interleaved_episodes_are_judged_apart(dressed: Callable[..., Any], tiny: Any) -> None:
    """B105."""
    one, two = dressed(), dressed()
    one.step(tiny.DONE)
    two.step(LOOK)
    assert one.step(tiny.FINISH)[4]["is_success"] is True
    assert two.step(tiny.FINISH)[4]["is_success"] is False


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_recheck_share_out_of_range_is_refused(tiny: Any, share: float) -> None:
    with pytest.raises(ValueError, match="recheck"):
        Evaluation(tiny.TinyEnv(), share)


def test_a_right_state_is_no_success_where_the_harness_failed(dressed: Callable[..., Any], tiny: Any) -> None:
    """Law 8: an agent whose calls nobody can read has not been measured, whatever it left behind."""
    env = dressed({"limits": {"invalid_calls": 3}})
    step = graded(env, tiny.DONE, "not a call", "not a call", "not a call")
    run = env.get_wrapper_attr("run")
    assert (step[1], step[3], step[4]["is_success"]) == (0.0, True, False)
    assert (run.verdict.Y, run.outcome_class) == ("pass", "harness_incompatibility")
