"""Observations stay inside their space and their limit on every path, and what was returned never changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from agent_envs.episode.env import OBSERVATION_CHARACTERS
from agent_envs.episode.text import cut, joined, json_text

LIMIT = 1000
HUGE = "x" * 5_000_000


@pytest.fixture
def env(dressed: Callable[..., Any]) -> Any:
    return dressed(task={"limits": {"observation_characters": LIMIT}})


def huge_result(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny.say, "function", lambda world, text: {"text": "<" + HUGE + ">"})


def test_five_megabytes_from_a_tool_are_cut_to_head_tail_and_size(
    env: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B122: the call's effect and status are kept."""
    huge_result(tiny, monkeypatch)
    text = env.step({"tool": "say", "arguments": {"text": "x"}})[0]["text"]
    assert len(text) <= LIMIT
    assert text.startswith('{"status":"ok","result":{"text":"<xxx') and text.endswith('xxx>"}}')
    size = len(HUGE) + len('{"status":"ok","result":{"text":"<>"}}')
    assert f" of {size} characters left out" in text
    assert env.unwrapped.episode.log.entries[-1]["status"] == "ok"


def test_a_list_of_answers_is_capped_as_one_and_each_is_shown(
    env: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B221: the cap isn't multiplied by sending many calls."""
    huge_result(tiny, monkeypatch)
    text = env.step([{"tool": "say", "arguments": {"text": "x"}, "id": f"call {n}"} for n in range(4)])[0]["text"]
    assert len(text) <= LIMIT
    assert all(f'"call {n}"' in text for n in range(4))


def test_sixteen_answers_under_the_smallest_limit(
    dressed: Callable[..., Any], tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = dressed(task={"limits": {"observation_characters": 256}})
    huge_result(tiny, monkeypatch)
    assert len(env.step([{"tool": "say", "arguments": {"text": "x"}}] * 16)[0]["text"]) <= 256


def test_a_huge_request_is_capped(dressed: Callable[..., Any]) -> None:
    """B221: the reset is a path as well."""
    env = dressed(task={"user_request": HUGE})
    observation, _ = env.reset(seed=1)
    assert len(observation["text"]) <= env.unwrapped.task.limits.observation_characters
    assert env.observation_space.contains(observation)


@pytest.mark.parametrize(
    "action", [HUGE, {"tool": HUGE, "arguments": {}}, {"tool": "say", "arguments": {"text": HUGE}}, [HUGE] * 16]
)
def test_huge_actions_get_short_answers(env: Any, action: Any) -> None:
    """B221: error paths too."""
    observation = env.step(action)[0]
    assert len(observation["text"]) <= LIMIT
    assert env.observation_space.contains(observation)


def test_refusals_are_capped(env: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """B221: a tool's error message."""

    def refuse(world: Any, text: str) -> Any:
        raise tiny.ToolError(HUGE)

    monkeypatch.setattr(tiny.say, "function", refuse)
    assert len(env.step({"tool": "say", "arguments": {"text": "x"}})[0]["text"]) <= LIMIT


@pytest.mark.parametrize("text", ["\U0001f600" * 50, "a\r\nb\r", "a\x0bb", "", "\u202e\ufeff", "e\u0301"])
def test_odd_characters_are_inside_the_space(env: Any, text: str) -> None:
    """B201."""
    observation = env.step({"tool": "say", "arguments": {"text": text}})[0]
    assert env.observation_space.contains(observation)
    assert json.loads(observation["text"])["result"]["text"] == text


def test_what_was_returned_never_changes(dressed: Callable[..., Any], tiny: Any) -> None:
    """B194, traps 4 and 12: fresh objects each time, and changing one changes nothing inside."""
    env = dressed()
    kept = [env.reset(seed=1)]
    for action in (tiny.DONE, [tiny.DONE, tiny.DONE], "nonsense", tiny.FINISH):
        step = env.step(action)
        kept.append((step[0], step[4]))
    kept.append(env.reset(seed=2))
    copies = copy.deepcopy(kept)
    env.step(tiny.DONE)
    env.reset(seed=3)
    assert kept == copies
    objects = [item for pair in kept for item in pair]
    assert len({id(item) for item in objects}) == len(objects)
    for observation, info in kept:
        observation["text"] = "changed"
        info.clear()
    fresh = dressed()
    assert env.reset(seed=4)[0] == fresh.reset(seed=4)[0]


def test_an_action_that_changes_afterwards_does_not_change_the_log(dressed: Callable[..., Any]) -> None:
    """B194, for what goes in."""
    env = dressed()
    arguments = {"text": "before"}
    env.step({"tool": "note", "arguments": arguments})
    arguments["text"] = "after"
    assert env.unwrapped.episode.log.entries[-1]["arguments"] == {"text": "before"}


@pytest.mark.parametrize("most", [0, 10, 119, 120, 200, 1000, OBSERVATION_CHARACTERS])
@pytest.mark.parametrize("size", [0, 1, 119, 120, 121, 201, 100_000])
def test_cut_texts_fit(most: int, size: int) -> None:
    text = cut("a" + "b" * size, most)
    assert len(text) <= most
    if size + 1 <= most:
        assert text == "a" + "b" * size


def test_answers_that_fit_are_joined_as_json() -> None:
    assert json.loads(joined(['{"a":1}', '{"b":2}'], 100)) == [{"a": 1}, {"b": 2}]


def test_text_for_the_agent_shows_characters_as_themselves() -> None:
    assert json_text({"a": "\u00e9\u2028"}) == '{"a":"\u00e9\u2028"}'
    assert json_text({"a": "\ud835"}) == '{"a":"\\ud835"}'
