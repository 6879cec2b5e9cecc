"""A broken environment voids the episode, never crashes the loop, never counts, and the next reset works."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from gymnasium.error import ResetNeeded

from agent_envs.contract import EnvironmentFault
from agent_envs.episode.env import AgentEnv
from agent_envs.wrappers import compose

BREAKS = [
    "key_error",
    "recursion",
    "deep",
    "object",
    "nan",
    "infinity",
    "bytes",
    "number_key",
    "huge_number",
    "closed",
    "committed",
]


def assert_void(env: Any, step: tuple[Any, ...], kind: str) -> None:
    observation, reward, terminated, truncated, info = step
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert type(reward) is float
    assert env.observation_space.contains(observation)
    assert (info["terminal_reason"], info["is_success"], info["verdict"]) == (kind, False, "undetermined")
    json.dumps(info)
    run = env.get_wrapper_attr("run")
    assert (run.outcome_class, run.counts, run.infrastructure_status) == ("environment_failure", False, "faulted")
    assert (run.terminal.origin, run.terminal.kind) == ("environment", kind)
    with pytest.raises(ResetNeeded):
        env.step({"tool": "say", "arguments": {"text": "x"}})


def assert_fresh(env: Any, tiny: Any) -> None:
    info = env.reset(seed=1)[1]
    fresh = compose(tiny.TinyEnv(task=info["task_id"]))
    assert info == fresh.reset(seed=1)[1]
    env.step(tiny.DONE)
    assert env.step(tiny.FINISH)[1] == 1.0
    fresh.close()


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_tool_voids_the_episode(dressed: Callable[..., Any], tiny: Any, how: str) -> None:
    """B114, B140: an environment failure is none of the agent's, and what isn't JSON never gets into a record."""
    env = dressed()
    env.step(tiny.DONE)
    assert_void(env, env.step({"tool": "broken", "arguments": {"how": how}}), "tool_fault")
    assert json.loads(json.dumps(env.unwrapped.episode.log.entries[-1]))["status"] == "fault"
    assert_fresh(env, tiny)


def test_a_killed_database_session_voids_the_episode_and_the_next_reset_connects_anew(
    dressed: Callable[..., Any], tiny: Any, postgresql_url: str
) -> None:
    env = dressed(postgresql_url)
    env.step(tiny.DONE)
    assert_void(env, env.step({"tool": "broken", "arguments": {"how": "killed"}}), "tool_fault")
    assert_fresh(env, tiny)


@pytest.mark.parametrize("how", ["closed", "key_error", "nan", "committed"])
def test_broken_tools_on_postgresql(dressed: Callable[..., Any], tiny: Any, postgresql_url: str, how: str) -> None:
    env = dressed(postgresql_url)
    space = schema_of(env)
    assert_void(env, env.step({"tool": "broken", "arguments": {"how": how}}), "tool_fault")
    assert_fresh(env, tiny)
    left = env.unwrapped.world.database.driver.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (space,))
    assert left.fetchall() == []


def schema_of(env: Any) -> str:
    found = env.unwrapped.world.database.driver.execute("SELECT current_schema()").fetchone()
    return str(found[0])


@pytest.mark.parametrize("how", ["api", "sql", "refused"])
def test_a_read_only_tool_that_writes_is_a_fault(dressed: Callable[..., Any], tiny: Any, how: str) -> None:
    env = dressed()
    assert_void(env, env.step({"tool": "sneak", "arguments": {"how": how}}), "undeclared_write")
    assert_fresh(env, tiny)


def test_a_tool_that_writes_another_table_is_a_fault(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    assert_void(env, env.step({"tool": "other_table", "arguments": {}}), "undeclared_write")
    assert_fresh(env, tiny)


def test_a_fault_of_the_last_call_outweighs_its_finish(dressed: Callable[..., Any], tiny: Any) -> None:
    """B140, B144: ``finish`` with a result that can't be recorded doesn't end the episode as finished."""
    env = dressed()
    env.step(tiny.DONE)
    assert_void(env, env.step({"tool": "finish", "arguments": {"outcome": "nan"}}), "tool_fault")
    assert env.unwrapped.episode.answer is None


def test_a_refused_call_leaves_no_effect(dressed: Callable[..., Any]) -> None:
    env = dressed()
    before = env.unwrapped.world.database.digest()
    observation, _, terminated, truncated, _ = env.step({"tool": "refuse", "arguments": {}})
    assert json.loads(observation["text"]) == {"status": "error", "error": "no"}
    assert not terminated and not truncated
    assert env.unwrapped.world.database.recompute() == before
    assert "changes" not in env.unwrapped.episode.log.entries[-1]


def test_a_fault_skips_the_calls_after_it(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    step = env.step([tiny.DONE, {"tool": "broken", "arguments": {"how": "key_error"}}, tiny.FINISH])
    statuses = [answer["status"] for answer in json.loads(step[0]["text"])]
    assert statuses == ["ok", "fault", "skipped"]
    assert_void(env, step, "tool_fault")


def test_arguments_whose_check_breaks_void_the_episode(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = dressed()

    def bad(arguments: Any) -> Any:
        raise ArithmeticError("a validator of the family's own broke")

    monkeypatch.setattr(env.unwrapped._tools["say"], "validate", bad)
    step = env.step({"tool": "say", "arguments": {"text": "x"}})
    monkeypatch.undo()
    assert_void(env, step, "tool_fault")


def wrong_pin(tiny: Any) -> AgentEnv:
    task = tiny.make_task(reset_check={"database": "0" * 64})
    core: AgentEnv = tiny.TinyEnv(task=task.task_id)
    return core


def test_a_start_that_is_not_the_pinned_one_voids_the_episode_before_the_first_move(tiny: Any) -> None:
    """Law 4. The reset itself returns, so that a vector environment or training loop goes on."""
    env = compose(wrong_pin(tiny))
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation) and "void" in observation["text"]
    assert (info["terminal_reason"], info["state_hash"], info["verdict"]) == ("start_state_mismatch", "", "")
    step = env.step(tiny.DONE)
    assert json.loads(step[0]["text"])["status"] == "skipped"
    assert_void(env, step, "start_state_mismatch")
    assert "agenteval pin" in env.get_wrapper_attr("run").terminal.detail
    env.unwrapped.reset(seed=1, options={"task": "tiny/base"})
    assert env.unwrapped.step(tiny.DONE)[4]["terminal_reason"] == ""
    env.close()


def test_a_pin_of_a_channel_that_is_not_there_is_a_mismatch(tiny: Any) -> None:
    env = compose(tiny.TinyEnv(task=tiny.make_task(reset_check={"browser": "0" * 64}).task_id))
    assert env.reset(seed=1)[1]["terminal_reason"] == "start_state_mismatch"
    env.close()


def test_a_world_that_cannot_start_voids_the_episode_and_is_made_anew(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = dressed()
    world = env.unwrapped.world

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(world, "restore", fail)
        assert env.reset(seed=1)[1]["terminal_reason"] == "reset_fault"
    assert_void(env, env.step(tiny.DONE), "reset_fault")
    assert_fresh(env, tiny)
    assert env.unwrapped.world is not world


def test_an_unreachable_server_voids_the_episode(tiny: Any) -> None:
    env = compose(tiny.TinyEnv(task="tiny/base", database="postgresql+psycopg://nobody@127.0.0.1:1/none"))
    assert env.reset(seed=1)[1]["terminal_reason"] == "reset_fault"
    assert_void(env, env.step(tiny.DONE), "reset_fault")
    env.close()


def test_a_point_after_a_fault_is_nothing_to_go_on_from(dressed: Callable[..., Any]) -> None:
    env = dressed()
    env.step({"tool": "broken", "arguments": {"how": "key_error"}})
    with pytest.raises(EnvironmentFault, match="nothing can go on"):
        env.unwrapped.snapshot()


def test_a_damaged_snapshot_leaves_no_half_restored_episode(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.step(tiny.DONE)
    good = env.unwrapped.snapshot()
    for bad in (
        dataclasses.replace(good, state_hash="0" * 64),
        dataclasses.replace(good, channels={**good.channels, "rng": {"seed": "none"}}),
        dataclasses.replace(good, channels={"database": good.channels["database"]}),
    ):
        with pytest.raises((EnvironmentFault, ValueError)):
            env.unwrapped.restore(bad)
        with pytest.raises(ResetNeeded):
            env.unwrapped.step(tiny.FINISH)
    env.unwrapped.restore(good)
    assert env.step(tiny.FINISH)[1] == 1.0


def test_no_fault_figures_are_hidden_in_the_record(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.step({"tool": "broken", "arguments": {"how": "infinity"}})
    run = env.get_wrapper_attr("run")
    assert run.verdict is not None and run.verdict.reward == 0.0 and math.isfinite(run.seconds)
    assert {result.status for result in run.verdict.assertions} == {"undetermined"}
