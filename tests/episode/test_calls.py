"""Whatever an agent sends is answered: nothing raises out of ``step``, nothing is dropped, nothing is guessed."""

from __future__ import annotations

import datetime as dt
import json
import pathlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract import canonical_json, parse_json, read_evidence
from agent_envs.episode.calls import Calls, parse_action


def answer(env: Any, action: Any) -> Any:
    observation, reward, _, _, info = env.step(action)
    assert env.observation_space.contains(observation)
    assert reward == 0.0
    json.dumps(info)
    return json.loads(observation["text"])


class Evil(Mapping[str, Any]):
    """An object whose every method raises."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("evil")

    def __iter__(self) -> Any:
        raise RuntimeError("evil")

    def __len__(self) -> int:
        raise RuntimeError("evil")

    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError("evil")


class EvilText(str):
    def strip(self, *_: Any) -> str:
        raise RuntimeError("evil")


NOT_JSON = [
    '{"item_id": 7,',
    '{"{"a":',
    "{'item_id': 1}",
    '{"item_id": 1,}',
    "x" * 1_000_000,
    "NaN",
    '{"a": 1, "a": 2}',
]


@pytest.mark.parametrize("arguments", NOT_JSON, ids=range(len(NOT_JSON)))
def test_broken_json_arguments_are_answered_and_the_episode_goes_on(
    dressed: Callable[..., Any], arguments: str
) -> None:
    """B179."""
    env = dressed()
    got = answer(env, {"tool": "look", "arguments": arguments, "id": "call-1"})
    assert (got["status"], got["id"]) == ("invalid", "call-1")
    assert env.unwrapped.episode.step == 1
    assert answer(env, {"tool": "look", "arguments": '{"item_id": 1}'})["status"] == "ok"


@pytest.mark.parametrize("nothing", [None, "", {}])
def test_null_arguments_are_none_at_all(dressed: Callable[..., Any], nothing: Any) -> None:
    """B180."""
    env = dressed()
    missing = answer(env, {"tool": "look", "arguments": nothing})
    assert missing["status"] == "invalid" and "item_id" in missing["error"]
    assert "item_id" in answer(env, {"tool": "look"})["error"]
    assert answer(env, {"tool": "finish", "arguments": nothing})["status"] == "ok"


@pytest.mark.parametrize(
    "arguments",
    [
        "[1]",
        '"7"',
        "3",
        "true",
        [1],
        7,
        {"item_id": True},
        {"item_id": "7"},
        {"item_id": 7.0},
        {"item_id": None},
        {"item_id": 1, "extra": 2},
        {"item_id": {"deep": [1]}},
        {"item_id": 10**400},
        {"item_id": float("nan")},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_arguments_of_a_wrong_type_are_refused(dressed: Callable[..., Any], arguments: Any) -> None:
    """B182."""
    got = answer(dressed(), {"tool": "look", "arguments": arguments})
    assert got["status"] == "invalid"
    assert "arguments" in got["error"] or "item_id" in got["error"] or "extra" in got["error"]


def test_an_invalid_call_beside_a_good_one_is_answered_too(dressed: Callable[..., Any]) -> None:
    """B183."""
    env = dressed()
    calls = [{"tool": "look", "arguments": "{", "id": "a"}, {"tool": "look", "arguments": {"item_id": 1}, "id": "b"}]
    got = answer(env, calls)
    assert [(item["id"], item["status"]) for item in got] == [("a", "invalid"), ("b", "ok")]


@pytest.mark.parametrize(
    "name", ["lok", "", "look ", "Look", None, "x" * 5000, "issue_refund", "\ud835", 7], ids=range(9)
)
def test_unknown_tools_are_answered_with_the_known_ones(dressed: Callable[..., Any], name: Any) -> None:
    """B184."""
    env = dressed()
    got = answer(env, {"tool": name, "arguments": {}})
    assert got["status"] == "invalid"
    if isinstance(name, str):
        assert "finish" in got["error"] and len(got["error"]) < 1000
    assert env.unwrapped.episode.log.entries[-1]["status"] == "invalid"


def test_a_tool_the_task_does_not_offer_is_unknown(dressed: Callable[..., Any], tiny: Any) -> None:
    """B184: a tool of another task."""
    env = dressed(task={"available_tools": ["look", "label", "finish"]})
    got = answer(env, {"tool": "note", "arguments": {"text": "x"}})
    assert got["status"] == "invalid" and "note" not in got["error"].partition("the tools are")[2]


def test_parallel_calls_all_run_in_order(dressed: Callable[..., Any]) -> None:
    """B185: writes that depend on each other, a failing one between them."""
    env = dressed()
    got = answer(
        env,
        [
            {"tool": "note", "arguments": {"text": "first"}},
            {"tool": "refuse", "arguments": {}},
            {"tool": "note", "arguments": {"text": "second"}},
        ],
    )
    assert [item["status"] for item in got] == ["ok", "error", "ok"]
    assert [got[0]["result"]["note_id"], got[2]["result"]["note_id"]] == [1, 2]


def test_too_many_calls_at_once_are_refused_as_a_whole(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    assert "at most 16" in answer(env, [tiny.DONE] * 17)["error"]
    assert env.unwrapped.episode.changes == []
    assert "empty list" in answer(env, [])["error"]


@pytest.mark.parametrize(
    "ids", [["same", "same"], ["a b", "\u00e9\n\x00"], [1, None], ["\ud835\udc00", "\udc00"], [[1], {}]]
)
def test_each_call_id_gets_its_own_answer(dressed: Callable[..., Any], ids: list[Any], tmp_path: pathlib.Path) -> None:
    """B186, B121: the record holds one entry a call, in order, and is read back equal."""
    env = dressed(record=str(tmp_path))
    got = answer(env, [{"tool": "say", "arguments": {"text": str(n)}, "id": item} for n, item in enumerate(ids)])
    assert [item["result"]["text"] for item in got] == ["0", "1"]
    env.step({"tool": "finish", "arguments": {}})
    evidence = env.get_wrapper_attr("evidence")
    assert len(evidence.events) == 4
    assert read_evidence(env.get_wrapper_attr("location")).digest == evidence.digest


@pytest.mark.parametrize(
    "message",
    [None, "", "  \n", [], {}, 7, True, b"x", object(), {"content": None, "refusal": "no"}, [{"type": "text"}], Evil()],
    ids=range(12),
)
def test_messages_that_are_no_call_are_invalid_actions(dressed: Callable[..., Any], message: Any) -> None:
    """B188."""
    got = answer(dressed(), message)
    assert (got[0] if isinstance(got, list) else got)["status"] == "invalid"


@pytest.mark.parametrize("message", [EvilText("{}"), [Evil()], {"tool": "say", "arguments": Evil()}], ids=range(3))
def test_objects_that_raise_when_looked_at_are_invalid_actions(dressed: Callable[..., Any], message: Any) -> None:
    """B188, B191."""
    got = answer(dressed(), message)
    assert (got[0] if isinstance(got, list) else got)["status"] == "invalid"


@pytest.mark.parametrize(
    "value",
    [
        np.int64(3),
        np.float32(0.5),
        np.zeros(3),
        b"\xff",
        pathlib.Path("x"),
        Decimal("1.50"),
        dt.datetime(2026, 3, 1, tzinfo=dt.UTC),
        {1, 2},
        (1, 2),
        {(1, 2): 3},
        ValueError("x"),
        object(),
        float("inf"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_sent_can_be_recorded(dressed: Callable[..., Any], value: Any, tmp_path: pathlib.Path) -> None:
    """B191."""
    env = dressed(record=str(tmp_path))
    env.step({"tool": "say", "arguments": {"text": value}})
    env.step({"tool": "finish", "arguments": {}})
    evidence = env.get_wrapper_attr("evidence")
    assert read_evidence(env.get_wrapper_attr("location")) == evidence


@pytest.mark.parametrize("text", ["\ud835", "\udce2(\udca1", "a\ud835\udc00b", "\ufffe\uffff"])
def test_half_characters_from_the_agent_are_recorded_and_read_back(
    dressed: Callable[..., Any], text: str, tmp_path: pathlib.Path
) -> None:
    """B121."""
    env = dressed(record=str(tmp_path))
    env.step({"tool": "say", "arguments": {"text": text}, "id": text})
    env.step({"tool": text, "arguments": text})
    env.step(text)
    env.step({"tool": "finish", "arguments": {}})
    assert read_evidence(env.get_wrapper_attr("location")) == env.get_wrapper_attr("evidence")


@pytest.mark.parametrize("data", [b"\xe2\x28\xa1", b"\xff\xfe", b"a\x00b"])
def test_bad_bytes_from_a_tool_do_not_end_the_episode(
    dressed: Callable[..., Any], tiny: Any, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B120: a tool that reads text leniently may return half characters and NUL."""
    env = dressed()
    shown = data.decode("utf-8", "surrogateescape")
    monkeypatch.setattr(tiny.say, "function", lambda world, text: {"text": shown})
    got = answer(env, {"tool": "say", "arguments": {"text": "x"}})
    assert (got["status"], got["result"]["text"]) == ("ok", shown)


@pytest.mark.parametrize("seconds", [-1, 0, 10**12, "abc", None, float("nan"), 73, 1.5])
def test_agent_chosen_limits_are_bounded(seconds: Any) -> None:
    """B125: the refund family's ``wait`` takes hours from 1 to 72."""
    import gymnasium

    import agent_envs  # noqa: F401 (registers the environment)

    env = gymnasium.make("agenteval/refund-v1")
    env.reset(seed=1)
    clock = env.unwrapped.world.clock.iso  # type: ignore[attr-defined]
    got = answer(env, {"tool": "wait", "arguments": {"hours": seconds}})
    assert got["status"] == "invalid" and "hours" in got["error"]
    assert env.unwrapped.world.clock.iso == clock  # type: ignore[attr-defined]
    env.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
LIKE_CALLS = st.fixed_dictionaries(
    {}, optional={"tool": st.sampled_from(["say", "look"]) | JSON, "arguments": JSON, "id": JSON, "name": JSON}
)


@given(st.one_of(JSON, LIKE_CALLS, st.lists(LIKE_CALLS, max_size=18), LIKE_CALLS.map(lambda value: repr(value))))
def test_every_action_becomes_calls_that_can_be_recorded(action: Any) -> None:
    """B179 to B191, for what nobody thought of."""
    calls = parse_action(action)
    assert isinstance(calls, Calls) and calls
    for call in calls:
        entry = [call.tool, call.arguments, call.call_id, call.problem]
        assert canonical_json(parse_json(canonical_json(entry))) == canonical_json(entry)
    assert parse_action(calls) is calls
