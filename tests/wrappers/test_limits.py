"""Each limit ends the episode at its value with its own reason, and the state reached is judged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from pydantic import ValidationError

import agent_envs  # noqa: F401 (registers the environment)
from agent_envs.wrappers import EpisodeLimits

SAY = {"tool": "say", "arguments": {"text": "x"}}
REFUSE = {"tool": "refuse", "arguments": {}}


def play(env: Any, action: Any, most: int = 60) -> tuple[int, tuple[Any, ...]]:
    """Repeat an action to the end of the episode; how many steps that took, and the last one."""
    for number in range(1, most + 1):
        step = env.step(action)
        if step[2] or step[3]:
            return number, step
    raise AssertionError(f"the episode goes on after {most} steps")


def ending(env: Any, step: tuple[Any, ...]) -> tuple[bool, bool, str, float]:
    run = env.get_wrapper_attr("run")
    assert run.terminal.kind == step[4]["terminal_reason"]
    return step[2], step[3], step[4]["terminal_reason"], step[1]


def test_the_step_limit_is_exact(dressed: Callable[..., Any]) -> None:
    """B202, B219, B024: five steps, truncated, no success."""
    env = dressed({"limits": {"steps": 5}})
    number, step = play(env, SAY)
    assert number == 5
    assert ending(env, step) == (False, True, "step_limit", 0.0)
    assert step[4]["is_success"] is False
    assert env.get_wrapper_attr("run").usage.steps == 5


def test_success_on_the_last_step_is_a_termination_and_graded(dressed: Callable[..., Any], tiny: Any) -> None:
    """B202."""
    env = dressed({"limits": {"steps": 2}})
    env.step(tiny.DONE)
    assert ending(env, env.step(tiny.FINISH)) == (True, False, "finished", 1.0)


def test_the_right_state_at_a_limit_is_a_success(dressed: Callable[..., Any], tiny: Any) -> None:
    """B117: a verdict is not thrown away because the episode was cut off."""
    env = dressed({"limits": {"steps": 2}})
    env.step(tiny.DONE)
    assert ending(env, env.step(SAY)) == (False, True, "step_limit", 1.0)
    assert env.get_wrapper_attr("run").outcome_class == "success"


@pytest.mark.parametrize("size", [1, 3, 16])
def test_the_call_limit_is_exact_across_lists(dressed: Callable[..., Any], size: int) -> None:
    """B219: calls beyond the limit are answered but not run."""
    env = dressed({"limits": {"calls": 5, "steps": 50}})
    number, step = play(env, [{"tool": "note", "arguments": {"text": "x"}}] * size)
    assert number == -(-5 // size)
    assert ending(env, step)[2] == "call_limit"
    assert len(env.unwrapped.world.database.changes()) == 5
    answers = json.loads(step[0]["text"])
    answers = answers if isinstance(answers, list) else [answers]
    assert len(answers) == size
    assert [answer["status"] for answer in answers[5 - size * (number - 1) :]] == ["denied"] * (size * number - 5)


def test_calls_that_were_not_run_are_no_errors(dressed: Callable[..., Any]) -> None:
    """B144: the reason is the limit, not the errors that the limit itself made."""
    env = dressed({"limits": {"calls": 2, "errors": 3, "invalid_calls": 3}})
    assert ending(env, env.step([SAY] * 16))[2] == "call_limit"
    env = dressed({"limits": {"tokens": 10, "errors": 3, "invalid_calls": 3}})
    env.get_wrapper_attr("charge")(tokens=11)
    assert ending(env, env.step(["nonsense"] * 16))[2] == "token_limit"


@pytest.mark.parametrize(("name", "kind"), [("tokens", "token_limit"), ("cost", "cost_limit")])
def test_a_spent_budget_stops_the_next_call(dressed: Callable[..., Any], tiny: Any, name: str, kind: str) -> None:
    """B219, B218: what was used stays used; the action that went over is not run."""
    env = dressed({"limits": {name: 1000}})
    charge = env.get_wrapper_attr("charge")
    charge(**{name: 600})
    assert env.step(SAY)[4]["terminal_reason"] == ""
    charge(**{name: 400})
    assert env.step(REFUSE)[4]["terminal_reason"] == ""
    charge(**{name: 1})
    step = env.step(tiny.DONE)
    assert ending(env, step) == (False, True, kind, 0.0)
    assert json.loads(step[0]["text"])["status"] == "denied"
    assert env.unwrapped.world.database.changes() == []
    assert getattr(env.get_wrapper_attr("run").usage, name) == 1001


def test_usage_that_nobody_reported_is_unknown(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed({"limits": {"tokens": 1000}})
    env.get_wrapper_attr("charge")(tokens=None, cost=None)
    env.step(tiny.FINISH)
    usage = env.get_wrapper_attr("run").usage
    assert (usage.tokens, usage.cost) == (None, None)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "5", 10**400, [1]], ids=repr)
@pytest.mark.parametrize("name", ["tokens", "cost"])
def test_charges_that_are_no_figures_are_refused(dressed: Callable[..., Any], name: str, value: Any) -> None:
    """B140: a limit can't be escaped, nor the record spoiled, by what a policy reports."""
    env = dressed()
    with pytest.raises(ValueError, match=name):
        env.get_wrapper_attr("charge")(**{name: value})


def test_charges_are_recorded_as_plain_numbers(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.get_wrapper_attr("charge")(tokens=np.int64(7), cost=np.float32(0.5))
    with pytest.raises(ValueError, match="whole number"):
        env.get_wrapper_attr("charge")(tokens=1.5)
    env.step(tiny.FINISH)
    usage = env.get_wrapper_attr("run").usage
    assert (usage.tokens, usage.cost) == (7, 0.5) and type(usage.tokens) is int and type(usage.cost) is float


def test_wall_time_runs_out_between_calls_too(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed({"limits": {"wall_seconds": 0.05}})
    time.sleep(0.06)
    step = env.step(tiny.DONE)
    assert ending(env, step)[2] == "wall_time_limit"
    assert json.loads(step[0]["text"])["status"] == "denied"


def test_invalid_calls_in_a_row_end_as_a_harness_that_does_not_fit(dressed: Callable[..., Any]) -> None:
    """B219."""
    env = dressed({"limits": {"invalid_calls": 3}})
    env.step("nonsense")
    env.step(SAY)
    number, step = play(env, "nonsense")
    assert number == 3
    assert ending(env, step) == (False, True, "too_many_invalid_calls", 0.0)
    run = env.get_wrapper_attr("run")
    assert (run.outcome_class, run.counts) == ("harness_incompatibility", True)


def test_refused_calls_in_a_row_end_as_too_many_errors(dressed: Callable[..., Any]) -> None:
    """B144: ten tool errors in a row are not 'agent completed'."""
    env = dressed({"limits": {"errors": 10}})
    number, step = play(env, REFUSE)
    assert number == 10
    assert ending(env, step) == (False, True, "too_many_errors", 0.0)
    assert env.get_wrapper_attr("run").outcome_class == "agent_failure"


def test_leaving_by_another_path_does_not_change_the_reason(dressed: Callable[..., Any]) -> None:
    """B144."""
    env = dressed({"limits": {"errors": 2}})
    play(env, REFUSE)
    assert env.get_wrapper_attr("stop")("stopped").terminal.kind == "too_many_errors"
    env.close()


def test_the_tighter_of_task_and_wrapper_holds(dressed: Callable[..., Any]) -> None:
    assert play(dressed({"limits": {"steps": 3}}, steps=5), SAY)[0] == 3
    env = dressed({"limits": {"steps": 5}}, steps=3, tokens=7)
    assert play(env, SAY)[0] == 3
    limits = env.get_wrapper_attr("run").limits
    assert (limits.steps, limits.tokens, limits.calls) == (3, 7, 200)


def test_the_tighter_of_two_wrappers_holds_also_within_a_call(tiny: Any) -> None:
    """B215, for limits: the inner layer doesn't lift the outer one's deadline."""
    inner = EpisodeLimits(tiny.TinyEnv(task="tiny/base"), wall_seconds=60)
    env = EpisodeLimits(inner, wall_seconds=0.1)
    env.reset(seed=1)
    started = time.monotonic()
    step = env.step({"tool": "hang", "arguments": {"how": "sleep"}})
    assert time.monotonic() - started < 5
    assert step[3] and step[4]["terminal_reason"] == "wall_time_limit"
    env.close()


def test_a_budget_starts_afresh_with_each_episode(dressed: Callable[..., Any]) -> None:
    env = dressed({"limits": {"steps": 3, "tokens": 10}})
    for _ in range(2):
        env.get_wrapper_attr("charge")(tokens=10)
        number, step = play(env, SAY)
        assert (number, step[4]["terminal_reason"]) == (3, "step_limit")
        env.reset()


@pytest.mark.parametrize("bad", [{"steps": 0}, {"wall_seconds": -1.0}, {"tokens": 0}, {"cost": 0.0}, {"steps": 1.5}])
def test_limits_that_are_none_are_refused(tiny: Any, bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EpisodeLimits(tiny.TinyEnv(), **bad)


def test_a_limit_nobody_would_enforce_is_refused() -> None:
    """B219: an unknown budget is an error, never ignored."""
    with pytest.raises(TypeError, match="max_turns"):
        gymnasium.make("agenteval/refund-v1", max_turns=5)


def test_limits_outside_the_evaluation_are_refused(dressed: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="inside the evaluation"):
        EpisodeLimits(dressed(), steps=3)


def test_limits_given_to_make_hold_and_stand_in_the_spec() -> None:
    env = gymnasium.make("agenteval/refund-v1", steps=2)
    env.reset(seed=1)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))  # type: ignore[union-attr]
    again.reset(seed=1)
    for one in (env, again):
        number, step = play(one, {"tool": "read_policy", "arguments": {}})
        assert (number, step[4]["terminal_reason"]) == (2, "step_limit")
        one.close()
