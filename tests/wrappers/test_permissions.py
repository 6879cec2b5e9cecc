"""Denied calls never run; all rules hold together, and what can't be decided is denied."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest

import agent_envs  # noqa: F401 (registers the environment)
from agent_envs.wrappers import Permissions

SMALL = {"tools": ["label"], "unless": {"item_id": {"exact": 1}}, "reason": "only item 1 may be labelled"}
NO_SECRETS = {"tools": ["label", "note"], "when": {"text": {"exact": "secret"}}, "reason": "that word is forbidden"}


def label(item: Any, text: str) -> dict[str, Any]:
    return {"tool": "label", "arguments": {"item_id": item, "text": text}}


def answers(env: Any, *calls: Any) -> list[dict[str, Any]]:
    return [json.loads(env.step(call)[0]["text"]) for call in calls]


def test_denied_calls_have_no_effect_and_are_logged(dressed: Callable[..., Any]) -> None:
    env = dressed({"permissions": [SMALL]})
    before = env.unwrapped.episode.state_hash
    (answer,) = answers(env, label(2, "x"))
    assert answer == {"status": "denied", "error": "only item 1 may be labelled"}
    assert env.unwrapped.episode.state_hash == before == env.unwrapped._state_hash(env.unwrapped.world)
    assert env.unwrapped.episode.log.entries[-1]["status"] == "denied"


def test_two_rules_hold_together(dressed: Callable[..., Any]) -> None:
    """B215: neither layer switches the other off."""
    for rules in ([SMALL, NO_SECRETS], [NO_SECRETS, SMALL]):
        env = dressed({"permissions": rules})
        got = answers(env, label(1, "fine"), label(1, "secret"), label(2, "fine"), label(2, "secret"))
        assert [answer["status"] for answer in got] == ["ok", "denied", "denied", "denied"]
        assert answers(env, {"tool": "note", "arguments": {"text": "secret"}})[0]["status"] == "denied"


def test_the_wrappers_own_rules_hold_beside_the_tasks(dressed: Callable[..., Any]) -> None:
    """B215, for rules of two owners."""
    env = Permissions(dressed({"permissions": [SMALL]}), deny=(name for name in ("note",)))
    got = answers(env, {"tool": "note", "arguments": {"text": "x"}}, label(2, "x"), label(1, "x"))
    assert [answer["status"] for answer in got] == ["denied", "denied", "ok"]


@pytest.mark.parametrize(
    "arguments", [{}, {"item_id": None, "text": "x"}, {"item_id": "1", "text": "x"}, {"item_id": [1]}]
)
def test_what_a_rule_cannot_confirm_is_denied(dressed: Callable[..., Any], arguments: dict[str, Any]) -> None:
    env = dressed({"permissions": [SMALL]})
    assert answers(env, {"tool": "label", "arguments": arguments})[0]["status"] == "denied"


def test_a_rule_without_conditions_denies_always(dressed: Callable[..., Any]) -> None:
    env = dressed({"permissions": [{"tools": ["note"], "reason": "no notes"}]})
    assert answers(env, {"tool": "note", "arguments": {"text": "x"}})[0] == {"status": "denied", "error": "no notes"}


def test_arguments_as_text_do_not_get_round_a_rule(dressed: Callable[..., Any]) -> None:
    """B213, in process: the rule sees what the tool would see."""
    env = dressed({"permissions": [SMALL, NO_SECRETS]})
    calls = [
        {"tool": "label", "arguments": '{"item_id": 2, "text": "x"}'},
        '{"tool": "label", "arguments": {"item_id": 2, "text": "x"}}',
        [label(2, "x")],
        {"tool": "note", "arguments": '{"text": "\\u0073ecret"}'},
    ]
    for call in calls:
        answer = answers(env, call)[0]
        assert answer["status"] == "denied"


def test_malformed_calls_stay_invalid(dressed: Callable[..., Any]) -> None:
    env = dressed({"permissions": [SMALL]})
    assert answers(env, {"tool": "label", "arguments": "{"})[0]["status"] == "invalid"


def test_unknown_tools_to_deny_are_an_error(tiny: Any) -> None:
    with pytest.raises(ValueError, match="no such tools"):
        Permissions(tiny.TinyEnv(), deny=["notes"])


def test_the_spec_keeps_the_rules() -> None:
    env = Permissions(gymnasium.make("agenteval/refund-v1"), deny=("issue_refund",))
    spec = env.spec
    assert spec is not None
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    again.reset(seed=1)
    assert answers(again, {"tool": "issue_refund", "arguments": {}})[0]["status"] == "denied"
    env.close()
    again.close()
