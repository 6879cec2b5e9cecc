"""Any point of an episode can be branched: forks, snapshots and copies go on as the original would have."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import agent_envs  # noqa: F401 (registers the environment)
from agent_envs.baselines.reference import Scripted
from agent_envs.envs.refund.env import SUITE
from agent_envs.wrappers import compose

ROOT = Path(__file__).resolve().parents[2]
TASK = max(SUITE.eval_ids, key=lambda task_id: (len(SUITE.references(task_id).references[0].calls), task_id))
SEED = 5


def play(env: Any, task_id: str = TASK, seed: int = SEED) -> list[dict[str, Any]]:
    """Play a reference to its end; the calls as they were sent."""
    policy = Scripted(SUITE.references(task_id).references[0].calls)
    observation, info = env.reset(seed=seed, options={"task": task_id})
    calls = []
    done = False
    while not done:
        calls.append(policy.act(observation, info))
        observation, reward, terminated, truncated, info = env.step(calls[-1])
        done = terminated or truncated
    assert reward == 1.0
    return calls


def finish(env: Any, calls: list[dict[str, Any]]) -> tuple[float, str, str]:
    """Play calls; reward, verdict and head of the log's chain."""
    for call in calls:
        _, reward, _, _, info = env.step(call)
    return reward, info["verdict"], env.unwrapped.episode.log.digest


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    env = gymnasium.make("agenteval/refund-v1")
    yield env
    env.close()


@pytest.fixture(scope="module")
def calls(env: Any) -> list[dict[str, Any]]:
    return play(env)


@pytest.fixture(scope="module")
def ending(env: Any, calls: list[dict[str, Any]]) -> tuple[float, str, str]:
    env.reset(seed=SEED, options={"task": TASK})
    return finish(env, calls)


def test_a_fork_at_every_point_ends_like_the_original(env: Any, calls: list[dict[str, Any]], ending: Any) -> None:
    """Law 12, with everything a later step could observe: rows, clock, rate limits, the customer, the generator."""
    env.reset(seed=SEED, options={"task": TASK})
    for point in range(len(calls)):
        fork: Any = compose(env.unwrapped.fork())
        assert fork.unwrapped.episode.state_hash == env.unwrapped.episode.state_hash
        assert finish(fork, calls[point:]) == ending
        assert fork.get_wrapper_attr("run").outcome_class == "success"
        fork.close()
        result = env.step(calls[point])
    assert (result[1], result[4]["verdict"], env.unwrapped.episode.log.digest) == ending


def test_forks_are_independent(env: Any, calls: list[dict[str, Any]], ending: Any) -> None:
    """B103."""
    env.reset(seed=SEED, options={"task": TASK})
    half = len(calls) // 2
    for call in calls[:half]:
        env.step(call)
    before = env.unwrapped.episode.state_hash
    fork: Any = compose(env.unwrapped.fork())
    ticket = env.unwrapped.world.database
    for text in ("one", "two"):
        number = next(c["arguments"]["ticket_id"] for c in calls if "ticket_id" in c["arguments"])
        fork.step({"tool": "add_note", "arguments": {"ticket_id": number, "text": text}})
        fork.step({"tool": "send_message", "arguments": {"text": text}})
        fork.step({"tool": "wait", "arguments": {"hours": 5}})
    assert fork.unwrapped.world.database is not ticket
    assert env.unwrapped.episode.state_hash == before
    assert env.unwrapped._state_hash(env.unwrapped.world) == before
    assert finish(env, calls[half:]) == ending
    fork.close()


def test_a_snapshot_is_plain_data_that_restores_in_another_environment(
    env: Any, calls: list[dict[str, Any]], ending: Any
) -> None:
    env.reset(seed=SEED, options={"task": TASK})
    other = gymnasium.make("agenteval/refund-v1")
    for point, call in enumerate(calls[:-1]):
        env.step(call)
        snapshot = pickle.loads(pickle.dumps(env.unwrapped.snapshot()))
        other.reset(seed=99)
        other.unwrapped.restore(snapshot)  # type: ignore[attr-defined]
        assert finish(other, calls[point + 1 :]) == ending
    other.close()


def test_going_back_on_the_same_environment_forgets_what_came_after(
    env: Any, calls: list[dict[str, Any]], ending: Any
) -> None:
    """Wrappers must not keep evidence or verdict of the future that was undone."""
    env.reset(seed=SEED, options={"task": TASK})
    start = env.unwrapped.snapshot()
    env.step({"tool": "finish", "arguments": {"outcome": "unable"}})
    failed = env.get_wrapper_attr("run")
    assert failed.outcome_class == "agent_failure"
    env.unwrapped.restore(start)
    with pytest.raises(RuntimeError, match="hasn't ended"):
        _ = env.get_wrapper_attr("run")
    assert finish(env, calls) == ending
    run = env.get_wrapper_attr("run")
    assert run.outcome_class == "success" and run.evidence_digest != failed.evidence_digest
    env.unwrapped.restore(start)
    assert env.step({"tool": "finish", "arguments": {"outcome": "unable"}})[1] == 0.0
    assert env.get_wrapper_attr("run").evidence_digest == failed.evidence_digest


def test_a_snapshot_restores_in_another_process(
    env: Any, calls: list[dict[str, Any]], ending: Any, tmp_path: Path
) -> None:
    env.reset(seed=SEED, options={"task": TASK})
    half = len(calls) // 2
    for call in calls[:half]:
        env.step(call)
    (tmp_path / "point").write_bytes(pickle.dumps((env.unwrapped.snapshot(), calls[half:], env)))
    script = """
import pickle, sys, gymnasium, agent_envs
snapshot, calls, copied = pickle.loads(open(sys.argv[1], "rb").read())
env = gymnasium.make("agenteval/refund-v1")
env.reset(seed=1)
env.unwrapped.restore(snapshot)
for one in (env, copied):
    for call in calls:
        _, reward, _, _, info = one.step(call)
    print(reward, info["verdict"], one.unwrapped.episode.log.digest)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(tmp_path / "point")],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(part) for part in ending] * 2


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
def test_a_copy_of_a_dressed_environment_goes_on(
    env: Any, calls: list[dict[str, Any]], ending: Any, duplicate: Any
) -> None:
    """B198: the spec is kept, the wrappers are the copy's own."""
    env.reset(seed=SEED, options={"task": TASK})
    for call in calls[:4]:
        env.step(call)
    other = duplicate(env)
    assert other.spec == env.spec and other.unwrapped.spec == env.unwrapped.spec
    assert other.unwrapped is not env.unwrapped
    assert other.get_wrapper_attr("_core") is other.unwrapped
    assert finish(other, calls[4:]) == ending
    assert env.unwrapped.episode.terminal is None
    assert finish(env, calls[4:]) == ending
    # The next, unseeded episodes are the same as well.
    assert other.reset()[0] == env.reset()[0]
    other.close()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
def test_environments_that_never_started_or_are_closed_can_be_copied(duplicate: Any) -> None:
    env = gymnasium.make("agenteval/refund-v1")
    assert duplicate(env).reset(seed=3)[0] == env.reset(seed=3)[0]
    env.close()
    assert duplicate(env).reset(seed=3)[0] == env.reset(seed=3)[0]
    env.close()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"]
)
def test_the_record_of_an_ended_episode_survives_copying(env: Any, calls: list[dict[str, Any]], duplicate: Any) -> None:
    env.reset(seed=SEED, options={"task": TASK})
    finish(env, calls)
    run, other = env.get_wrapper_attr("run"), duplicate(env)
    same = other.get_wrapper_attr("run")
    assert (same.evidence_digest, same.verdict, same.outcome_class) == (
        run.evidence_digest,
        run.verdict,
        run.outcome_class,
    )
    other.close()


def test_rate_limits_clock_and_generator_are_part_of_the_point(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    look = {"tool": "look", "arguments": {"item_id": 1}}
    for _ in range(2):
        env.step(look)
    fork: Any = compose(env.unwrapped.fork())
    for _ in range(3):
        assert env.step(look)[0] == fork.step(look)[0]
    assert json.loads(fork.step(look)[0]["text"])["status"] == "error"
    assert env.unwrapped.world.clock.iso != fork.unwrapped.world.clock.iso
    fork.close()


def test_a_fork_of_an_environment_with_limits_goes_on_with_what_is_left(dressed: Callable[..., Any], tiny: Any) -> None:
    """B218."""
    task = {"limits": {"steps": 4, "calls": 6, "tokens": 1000}}
    env = dressed(task=task)
    env.get_wrapper_attr("charge")(tokens=600)
    env.step([tiny.DONE, tiny.DONE])
    fork = compose(env.unwrapped.fork())
    assert fork.get_wrapper_attr("limits") == env.get_wrapper_attr("limits")
    say = {"tool": "say", "arguments": {"text": "x"}}
    fork.step(say)
    fork.step(say)
    assert fork.step(say)[4]["terminal_reason"] == "step_limit"
    again = compose(env.unwrapped.fork())
    again.get_wrapper_attr("charge")(tokens=401)
    assert again.step(say)[4]["terminal_reason"] == "token_limit"
    for one in (fork, again):
        one.close()


def test_time_between_snapshot_and_restoring_is_not_charged(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed(wall_seconds=0.5)
    time.sleep(0.1)
    snapshot = env.unwrapped.snapshot()
    assert 0.1 <= snapshot.elapsed < 0.5
    time.sleep(0.5)
    env.unwrapped.restore(snapshot)
    assert 0.1 <= time.monotonic() - env.unwrapped.episode.started < 0.5
    assert env.step(tiny.DONE)[4]["terminal_reason"] == ""


def test_terminating_constraints_are_followed_in_copies_forks_and_after_going_back(
    dressed: Callable[..., Any], tiny: Any
) -> None:
    task = {
        "constraints": [
            {"constraint": "at_most", "name": "notes", "event": {"tool": "note"}, "count": 1, "on_breach": "terminate"}
        ]
    }
    env = dressed(task=task)
    note = {"tool": "note", "arguments": {"text": "x"}}
    start = env.unwrapped.snapshot()
    env.step(note)
    others: list[Any] = [
        compose(env.unwrapped.fork()),
        copy.deepcopy(env),
        pickle.loads(pickle.dumps(env.unwrapped.snapshot())),
    ]
    for other in others:
        if not isinstance(other, gymnasium.Env):
            point, other = other, compose(tiny.TinyEnv(task=env.unwrapped.task.task_id))
            other.reset(seed=3)
            other.unwrapped.restore(point)  # type: ignore[attr-defined]
        _, reward, terminated, truncated, info = other.step(note)
        assert (reward, terminated, truncated, info["terminal_reason"]) == (0.0, True, False, "forbidden_action")
        other.close()
    env.unwrapped.restore(start)
    assert env.step(note)[4]["terminal_reason"] == ""
    assert env.step(note)[4]["terminal_reason"] == "forbidden_action"


def test_two_live_environments_share_nothing(dressed: Callable[..., Any], tiny: Any) -> None:
    """B103, B105: a third one made later is unchanged, and one episode's end marks no other."""
    one, two = dressed(), dressed()
    start = two.unwrapped.episode.state_hash
    one.step([tiny.DONE, {"tool": "note", "arguments": {"text": "x"}}, {"tool": "look", "arguments": {"item_id": 1}}])
    one.step(tiny.FINISH)
    assert two.unwrapped.episode.terminal is None
    assert two.unwrapped.episode.state_hash == start == dressed().unwrapped.episode.initial_hash
    step = two.step(tiny.FINISH)
    assert (step[1], step[4]["is_success"], step[4]["verdict"]) == (0.0, False, "fail")


def test_new_ids_start_where_a_fresh_database_would(dressed: Callable[..., Any], tiny: Any) -> None:
    """B102, B100."""
    env = dressed()
    for _ in range(3):
        env.step({"tool": "note", "arguments": {"text": "x"}})
    env.reset(seed=1)
    step = env.step({"tool": "note", "arguments": {"text": "x"}})
    assert json.loads(step[0]["text"])["result"]["note_id"] == 1
    assert len(env.unwrapped.world.database.changes()) == 1


def test_episodes_are_equal_on_both_back_ends(postgresql_url: str) -> None:
    """Same seeds and calls: same observations, chains, state hashes and evidence on SQLite and PostgreSQL."""
    sqlite, server = (gymnasium.make("agenteval/refund-v1", database=url) for url in ("sqlite://", postgresql_url))
    for number, task_id in enumerate(SUITE.eval_ids[::9]):
        calls = play(sqlite, task_id, seed=number)
        server.reset(seed=number, options={"task": task_id})
        for call in calls:
            step = server.step(call)
        assert step[1] == 1.0
        one, other = (env.get_wrapper_attr("evidence") for env in (sqlite, server))
        assert one == other and one.digest == other.digest
        core: Any = server.unwrapped
        assert core.world.database.recompute() == core.world.database.digest()
    fork = compose(server.unwrapped.fork())  # type: ignore[attr-defined]
    assert fork.unwrapped.episode.state_hash == server.unwrapped.episode.state_hash  # type: ignore[attr-defined]
    for env in (sqlite, server, fork):
        env.close()
