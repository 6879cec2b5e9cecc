"""What Gymnasium, vector environments and trainers rely on, for every registered ``agenteval/`` id."""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib
import json
import os
import pickle
import random
import re
import subprocess
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import agent_envs
from agent_envs.contract import AgentEvalError

ROOT = Path(__file__).resolve().parents[2]
IDS = sorted(env_id for env_id in gymnasium.registry if env_id.startswith("agenteval/"))
SECTIONS = (
    "Description",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Information",
    "Arguments",
    "Version History",
)
pytestmark = pytest.mark.parametrize("env_id", IDS)


@pytest.fixture
def make(env_id: str) -> Iterator[Callable[..., Any]]:
    made = []

    def make_env(**arguments: Any) -> Any:
        made.append(gymnasium.make(env_id, **arguments))
        return made[-1]

    yield make_env
    for env in made:
        env.close()


def python(code: str, *arguments: str, folder: Path, hash_seed: str = "random") -> str:
    """Run code in a fresh interpreter that treats warnings as errors; what it printed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []


def children() -> list[str]:
    place = Path("/proc/self/task")
    return sorted(part for task in place.glob("*/children") for part in task.read_text().split())


def rollout(env: Any, actions: list[Any], seed: int | None) -> list[Any]:
    """Everything an agent or trainer gets to see."""
    seen: list[Any] = [env.reset(seed=seed)]
    for action in actions:
        step = env.step(action)
        seen.append(step)
        if step[2] or step[3]:
            seen.append(env.reset())
    return copy.deepcopy(seen)


def sampled(env: Any, number: int, seed: int) -> list[Any]:
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(number)]


# Checkers and spaces -------------------------------------------------------------------------------------------------


def test_the_checker_has_nothing_to_say(make: Callable[..., Any]) -> None:
    """Traps 4 and 5: any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make().unwrapped)


def test_the_checker_has_nothing_to_say_about_the_full_dress(make: Callable[..., Any]) -> None:
    env = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(env)


def test_spaces_sample_members_and_survive_pickling(make: Callable[..., Any]) -> None:
    env = make()
    for space in (env.action_space, env.observation_space):
        space.seed(3)
        samples = [space.sample() for _ in range(50)]
        assert all(space.contains(sample) for sample in samples)
        space.seed(3)
        assert [space.sample() for _ in range(50)] == samples
        other = pickle.loads(pickle.dumps(space))
        assert other == space and len(pickle.dumps(space)) < 100_000 and len(repr(space)) < 1000
        assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples)))) == samples
    assert all(not env.action_space.contains(bad) for bad in (None, {}, "x", {"tool": "nothing", "arguments": {}}, 3))


def test_every_observation_is_inside_its_space(make: Callable[..., Any]) -> None:
    """B201."""
    env = make()
    for step in rollout(env, [*sampled(env, 40, 1), "nonsense", None, [], {"tool": "\x00\U0001f600"}], 1):
        assert env.observation_space.contains(step[0])


# Determinism and seeds -----------------------------------------------------------------------------------------------


def test_two_instances_play_the_same(make: Callable[..., Any]) -> None:
    """B196 on the way: reward, terminated and truncated have Python's own types at every step."""
    one, two = make(), make()
    actions = sampled(one, 60, 7)
    seen = rollout(one, actions, 7)
    assert seen == rollout(two, actions, 7)
    for step in seen:
        if len(step) == 5:
            assert [type(part) for part in step[1:4]] == [float, bool, bool]


def test_interleaved_instances_and_foreign_random_numbers_do_not_matter(make: Callable[..., Any]) -> None:
    """B206, B109: no global random state is read or written, and the working folder stays."""
    one, two = make(), make()
    actions = sampled(one, 30, 2)
    expected = rollout(make(), actions, 2)
    random.seed(1)
    np.random.seed(1)
    states = (random.getstate(), str(np.random.get_state()))
    folder = os.getcwd()
    seen = [one.reset(seed=2)]
    two.reset(seed=3)
    for number, action in enumerate(actions):
        step = one.step(action)
        seen.append(step)
        if step[2] or step[3]:
            seen.append(one.reset())
        two.step(actions[-number % 5])
        if two.unwrapped.episode.terminal is not None:
            two.reset()
        assert (random.getstate(), str(np.random.get_state())) == states
        random.random()
        np.random.random()
        states = (random.getstate(), str(np.random.get_state()))
    assert seen == expected
    assert os.getcwd() == folder


def test_unseeded_resets_after_a_seeded_one_are_reproducible_and_differ(make: Callable[..., Any]) -> None:
    """B193, B204: successive episodes differ."""
    for split in ("eval", "train"):
        env = make(split=split)
        sequences = []
        for _ in range(2):
            env.reset(seed=1)
            sequences.append([env.reset() for _ in range(8)])
        assert sequences[0] == sequences[1]
        assert len({info["state_hash"] for _, info in sequences[0]}) > 4


def test_episodes_differ_between_seeds(make: Callable[..., Any]) -> None:
    """B204."""
    env = make(split="train")
    assert len({env.reset(seed=seed)[1]["state_hash"] for seed in range(20)}) == 20
    env = make()
    assert len({env.reset(seed=seed)[1]["task_id"] for seed in range(30)}) > 10


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63, 2**64, 2**70])
def test_any_seed_that_gymnasium_takes_is_good(make: Callable[..., Any], seed: int) -> None:
    env = make()
    assert env.reset(seed=seed) == make().reset(seed=seed)
    assert env.reset(seed=seed)[1]["terminal_reason"] == ""


def test_processes_and_hash_seeds_agree(env_id: str, make: Callable[..., Any], tmp_path: Path) -> None:
    """B206, law 5."""
    code = """
import json, sys, gymnasium, agent_envs
seen = []
for split in ("eval", "train"):
    env = gymnasium.make(sys.argv[1], split=split)
    env.action_space.seed(3)
    for seed in range(4):
        seen.append(env.reset(seed=seed))
        for _ in range(6):
            seen.append(env.step(env.action_space.sample()))
            if seen[-1][2] or seen[-1][3]:
                seen.append(env.reset())
        seen.append(env.unwrapped.episode.log.digest)
print(json.dumps(seen))
"""
    outputs = [python(code, env_id, folder=tmp_path, hash_seed=hash_seed) for hash_seed in ("0", "1")]
    assert outputs[0] == outputs[1]
    env = make(split="train")
    for seed in range(4):
        env.reset(seed=seed)
    assert json.loads(outputs[0])[-1] != ""


# Specs, versions, documentation --------------------------------------------------------------------------------------


def test_the_spec_is_small_plain_data_that_makes_an_equal_environment(env_id: str, make: Callable[..., Any]) -> None:
    """B197, trap 3."""
    for arguments in ({}, {"split": "train", "steps": 7, "wall_seconds": 60.0, "recheck": 0.5}):
        env = make(**arguments)
        assert env.spec is not None
        text = env.spec.to_json()
        assert len(text) < 5000
        actions = sampled(env, 10, 4)
        expected = rollout(env, actions, 4)
        for spec in (env.spec, EnvSpec.from_json(text), pickle.loads(pickle.dumps(env.spec))):
            assert spec.to_json() == text and spec == env.spec
            again = gymnasium.make(spec)
            assert again.spec == env.spec
            assert rollout(again, actions, 4) == expected
            again.close()


def test_the_registration_is_by_name_versioned_and_done_once(env_id: str) -> None:
    spec = gymnasium.registry[env_id]
    assert isinstance(spec.entry_point, str) and not spec.nondeterministic and spec.reward_threshold == 1.0
    assert re.fullmatch(r"agenteval/[a-z0-9-]+-v[1-9][0-9]*", env_id)
    assert spec.max_episode_steps is None  # trap 15: the task's limits are the one source of truncation
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent_envs.register_envs()


def test_the_documentation_has_every_section_and_the_current_version(env_id: str, make: Callable[..., Any]) -> None:
    text = type(make().unwrapped).__doc__ or ""
    titles = re.findall(r"^ *## (.+)$", text, re.MULTILINE)
    assert all(section in titles for section in SECTIONS)
    history = text.partition("## Version History")[2]
    assert f"v{gymnasium.registry[env_id].version}:" in history


def test_the_action_table_lists_exactly_the_tools(make: Callable[..., Any]) -> None:
    env = make()
    rows = re.findall(r"^ *\| (\d+) \| `(\w+)` \| (.+) \|$", type(env.unwrapped).__doc__ or "", re.MULTILINE)
    assert [(int(number), name) for number, name, _ in rows] == list(enumerate(env.action_space.tools))
    assert all(what.strip() for _, _, what in rows)
    for schema in env.action_space.schemas():
        assert schema["description"] and schema["parameters"]["additionalProperties"] is False
        json.dumps(schema)


def test_the_information_that_is_documented_is_there(make: Callable[..., Any]) -> None:
    env = make()
    section = (type(env.unwrapped).__doc__ or "").partition("## Information")[2].partition("##")[0]
    assert set(re.findall(r"`([a-z_]+)`", section)) == set(env.reset(seed=1)[1])


# Life: rendering, closing, resources ---------------------------------------------------------------------------------


def test_every_render_mode(make: Callable[..., Any]) -> None:
    """Trap 16."""
    assert "ansi" in make().metadata["render_modes"]
    for mode in make().metadata["render_modes"]:
        env = make(render_mode=mode)
        assert env.render_mode == mode
        with pytest.raises(ResetNeeded):
            env.unwrapped.render()
        env.reset(seed=1)
        texts = [env.render()]
        for action in sampled(env, 3, 1):
            env.step(action)
            texts.append(env.render())
        assert all(isinstance(text, str) and text for text in texts) and len(set(texts)) == 4
    assert make().unwrapped.render() is None
    with pytest.raises(ValueError, match="render"):
        type(make().unwrapped)(render_mode="hologram")


def test_closing(make: Callable[..., Any]) -> None:
    """B199."""
    env = make()
    env.close()
    env.close()
    with pytest.raises(ResetNeeded):
        env.step(sampled(env, 1, 1)[0])
    first = env.reset(seed=1)
    env.step(sampled(env, 1, 1)[0])
    env.close()
    env.close()
    with pytest.raises(ResetNeeded):
        env.step(sampled(env, 1, 1)[0])
    assert env.reset(seed=1) == first
    with make() as other:
        other.reset(seed=1)
    with pytest.raises(ResetNeeded):
        other.unwrapped.step(sampled(env, 1, 1)[0])


def test_a_reset_in_the_middle_leaves_nothing(make: Callable[..., Any]) -> None:
    env = make()
    actions = sampled(env, 25, 5)
    expected = rollout(env, actions, 5)
    for cut in (1, 7, 20):
        rollout(env, actions[:cut], 9)
        assert rollout(env, actions, 5) == expected


def test_stepping_on_after_the_end_is_a_clear_error(make: Callable[..., Any]) -> None:
    env = make(steps=1)
    env.reset(seed=1)
    env.step("nonsense")
    with pytest.raises(ResetNeeded, match="reset"):
        env.step("nonsense")


def test_nothing_is_live_before_the_first_reset_nor_after_closing(make: Callable[..., Any]) -> None:
    """Trap 8."""
    make().reset(seed=1)  # whatever the process loads once
    before = (threading.active_count(), descriptors(), children())
    env = make(wall_seconds=60.0)
    assert env.unwrapped._world is None
    assert (threading.active_count(), descriptors(), children()) == before
    env.reset(seed=1)
    env.step(sampled(env, 1, 1)[0])
    env.close()
    assert (threading.active_count(), descriptors(), children()) == before


def test_forty_lives_half_of_them_ended_by_exceptions_leave_nothing(env_id: str, make: Callable[..., Any]) -> None:
    """B128, B199: also environments that nobody closes."""

    class Sudden(Exception):
        pass

    def live(number: int) -> None:
        env = gymnasium.make(env_id)
        try:
            env.reset(seed=number)
            env.step({"tool": "nothing"})
            if number % 2:
                raise Sudden
            env.step("nonsense")
        finally:
            if number % 4 < 3:
                env.close()

    def lives(count: int) -> None:
        for number in range(count):
            try:
                live(number)
            except Sudden:
                pass
        gc.collect()

    lives(40)  # whatever the process loads once
    tracemalloc.start()
    try:
        lives(4)
        before = (threading.active_count(), descriptors(), children())
        held, _ = tracemalloc.get_traced_memory()
        lives(40)
        assert (threading.active_count(), descriptors(), children()) == before
        assert tracemalloc.get_traced_memory()[0] - held < 2_000_000
    finally:
        tracemalloc.stop()


def test_it_works_inside_a_running_event_loop(make: Callable[..., Any]) -> None:
    """B212."""
    env = make()
    actions = sampled(env, 5, 1)

    async def play() -> list[Any]:
        return rollout(env, actions, 1)

    assert asyncio.run(play()) == rollout(make(), actions, 1)


def test_an_exception_after_reset_does_not_keep_the_process_alive(env_id: str, tmp_path: Path) -> None:
    """B208."""
    code = """
import sys, gymnasium, agent_envs
if __name__ == "__main__":
    settings = {"shared_memory": False}
    envs = gymnasium.make_vec(sys.argv[1], num_envs=3, vectorization_mode="async", vector_kwargs=settings)
    envs.reset(seed=1)
    raise SystemExit(7)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code, env_id], env=environment, cwd=tmp_path, timeout=30, check=False)
    assert done.returncode == 7


# Info ----------------------------------------------------------------------------------------------------------------


def test_info_is_json_of_one_type_a_key(make: Callable[..., Any]) -> None:
    """Trap 6: fifty steps, and every kind of ending."""
    infos = []
    env = make()
    for step in rollout(env, sampled(env, 50, 3), 3):
        infos.append(step[-1])
    limited = make(steps=1)
    infos += [limited.reset(seed=1)[1], limited.step("nonsense")[4]]
    env.reset(seed=1)
    env.unwrapped.world.database.close()  # a fault
    name = next(name for name, tool in env.action_space.tools.items() if tool.reads or tool.writes)
    env.action_space.seed(1)
    while (call := env.action_space.sample())["tool"] != name:
        pass
    infos.append(env.step(call)[4])
    assert infos[-1]["terminal_reason"] == "tool_fault"
    broken = make()
    broken.reset(seed=1)
    broken.unwrapped.world.restore = None
    infos += [broken.reset(seed=1)[1], broken.step(call)[4]]
    assert infos[-1]["terminal_reason"] == "reset_fault"
    types = {key: type(value) for key, value in infos[0].items()}
    for info in infos:
        assert {key: type(value) for key, value in info.items()} == types
        assert json.loads(json.dumps(info, allow_nan=False)) == info
        assert not {"episode", "final_obs", "final_info", "terminal_observation"} & info.keys()
        assert not any(key.startswith("_") for key in info)


def test_options_are_not_changed_and_bad_ones_are_clear_errors(make: Callable[..., Any]) -> None:
    """Trap 7."""
    env = make()
    task = env.unwrapped.suite.eval_ids[3]
    options = {"task": task, "something": ["else"]}
    assert env.reset(seed=1, options=options)[1]["task_id"] == task
    assert options == {"task": task, "something": ["else"]}
    assert env.reset(seed=1, options={})[1] == env.reset(seed=1)[1]
    for bad in ("nothing/here", task.upper(), task + " ", 5, ["x"], "../../etc/passwd"):
        with pytest.raises(AgentEvalError, match=r"task"):
            env.reset(seed=1, options={"task": bad})
    with pytest.raises(AgentEvalError, match="options"):
        env.reset(seed=1, options=[task])
    for bad in (5, None, [task]):
        with pytest.raises(AgentEvalError, match="task="):
            make(task=bad)
    with pytest.raises(AgentEvalError, match="split"):
        make(split="test").reset()


def test_a_database_that_is_none_is_refused_when_the_environment_is_made(make: Callable[..., Any]) -> None:
    """Else every episode would be void, and nothing in it would say why."""
    env = make()
    if "database" in env.unwrapped.arguments:
        with pytest.raises(ValueError, match="is no database"):
            make(database="mysql://host/x")


# Vector environments -------------------------------------------------------------------------------------------------


def vector_rollout(envs: Any, actions: list[Any]) -> list[Any]:
    seen: list[Any] = [envs.reset(seed=7)]
    for action in actions:
        seen.append(envs.step([copy.deepcopy(action) for _ in range(envs.num_envs)]))
    envs.close()
    return copy.deepcopy(seen)


def plain(value: Any) -> Any:
    """Arrays as lists, to compare with ``==``."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def test_sync_and_async_vectors_see_the_same(env_id: str, make: Callable[..., Any]) -> None:
    """Trap 1 and 12, B204: four different, reproducible episodes, through their ends and autoresets."""
    actions = [*sampled(make(), 6, 1), {"tool": "finish", "arguments": {"outcome": "unable"}}, *sampled(make(), 4, 2)]
    functions = [lambda: gymnasium.make(env_id, split="train") for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sync = plain(vector_rollout(SyncVectorEnv(functions), actions))
        again = plain(vector_rollout(SyncVectorEnv(functions), actions))
        parallel = plain(vector_rollout(AsyncVectorEnv(functions, shared_memory=False), actions))
    assert sync == again == parallel
    assert len(set(sync[0][0]["text"])) == 4
    first, second = sync[0][1]["task_id"], sync[-1][4]["task_id"]
    assert set(first).isdisjoint(second)


def test_shared_memory_is_refused_instead_of_showing_stale_texts(env_id: str) -> None:
    """Trap 1."""
    with pytest.raises(ValueError, match="shared_memory"):
        AsyncVectorEnv([lambda: gymnasium.make(env_id)] * 2)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_make_vec(env_id: str, mode: str) -> None:
    vector_kwargs = {"shared_memory": False} if mode == "async" else {}
    envs = gymnasium.make_vec(env_id, num_envs=3, vectorization_mode=mode, vector_kwargs=vector_kwargs, split="train")
    observations, infos = envs.reset(seed=1)
    assert len(set(observations["text"])) == 3
    envs.step(list(envs.action_space.sample()))
    assert len(set(infos["state_hash"])) == 3
    envs.close()


def test_the_module_form_of_the_id_works_in_spawned_workers(env_id: str, tmp_path: Path) -> None:
    """Trap 2: a spawned child has a fresh registry, and ``-c`` has no file that it would import again."""
    code = """
import sys, gymnasium, functools
from gymnasium.vector import AsyncVectorEnv
if __name__ == "__main__":
    env_id = "agent_envs:" + sys.argv[1]
    make = functools.partial(gymnasium.make, env_id)
    envs = AsyncVectorEnv([make, make], shared_memory=False, context="spawn")
    observations, infos = envs.reset(seed=5)
    envs.close()
    env = gymnasium.make(env_id)
    print([env.reset(seed=seed)[0]["text"] == text for seed, text in zip((5, 6), observations["text"])])
"""
    assert python(code, env_id, folder=tmp_path).strip() == "[True, True]"


def test_the_module_form_of_the_id_works_in_a_fresh_interpreter(env_id: str, tmp_path: Path) -> None:
    code = "import sys, gymnasium; print(gymnasium.make('agent_envs:' + sys.argv[1]).reset(seed=1)[1]['task_id'])"
    assert python(code, env_id, folder=tmp_path).strip() == gymnasium.make(env_id).reset(seed=1)[1]["task_id"]


def test_importing_the_package_loads_no_environment(env_id: str, tmp_path: Path) -> None:
    code = (
        "import sys, agent_envs; print(sorted(m for m in sys.modules if m.startswith(('agent_envs.', 'sqlalchemy'))))"
    )
    assert python(code, folder=tmp_path).strip() == "[]"


def test_the_entry_point_module_exists(env_id: str) -> None:
    entry_point = gymnasium.registry[env_id].entry_point
    assert isinstance(entry_point, str)
    module, _, name = entry_point.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
