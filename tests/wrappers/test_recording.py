"""Evidence is frozen at the end, once, belongs to its own episode, and is kept whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_envs.contract import EvidenceError, read_evidence


def test_the_evidence_is_there_after_the_end_and_only_then(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.step(tiny.DONE)
    assert env.get_wrapper_attr("evidence") is None
    with pytest.raises(RuntimeError, match="goes on"):
        env.get_wrapper_attr("freeze")()
    env.step(tiny.FINISH)
    evidence = env.get_wrapper_attr("evidence")
    assert evidence is env.get_wrapper_attr("freeze")()
    assert env.get_wrapper_attr("location") is None
    env.reset(seed=2)
    assert env.get_wrapper_attr("evidence") is None


def test_kept_evidence_is_read_back_equal(dressed: Callable[..., Any], tiny: Any, tmp_path: Path) -> None:
    env = dressed(record=str(tmp_path / "kept"))
    env.step(tiny.DONE)
    env.step(tiny.FINISH)
    evidence, location = env.get_wrapper_attr("evidence"), env.get_wrapper_attr("location")
    assert location.parent == tmp_path / "kept" and location.name == evidence.digest[:32]
    assert read_evidence(location) == evidence
    assert {path.name for path in location.iterdir()} == {"evidence.json", "log.jsonl.zst"}


def test_two_episodes_back_to_back_each_begin_with_their_own_reset(
    dressed: Callable[..., Any], tiny: Any, tmp_path: Path
) -> None:
    """B210."""
    env = dressed(record=str(tmp_path))
    places = []
    for seed in (11, 12):
        info = env.reset(seed=seed)[1]
        env.step(tiny.DONE if seed == 11 else {"tool": "say", "arguments": {"text": "x"}})
        env.step(tiny.FINISH)
        places.append(env.get_wrapper_attr("location"))
        first = read_evidence(places[-1]).events[0]
        assert (first["seed"], first["state"], first["step"]) == (seed, info["state_hash"], 0)
        assert sum(event["step"] == 0 for event in read_evidence(places[-1]).events) == 1
    assert places[0] != places[1]
    assert read_evidence(places[0]).events[1]["tool"] == "label"


def test_evidence_that_cannot_be_kept_is_an_error_and_not_half_kept(
    dressed: Callable[..., Any], tiny: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    env = dressed(record=str(tmp_path / "file"))
    with pytest.raises(EvidenceError, match="can't be written"):
        env.step(tiny.FINISH)
    assert env.get_wrapper_attr("evidence") is None and env.get_wrapper_attr("location") is None
    with pytest.raises(EvidenceError):
        _ = env.get_wrapper_attr("run")
    env.reset(seed=1)
    assert env.step(tiny.DONE)[4]["terminal_reason"] == ""


def test_equal_episodes_leave_equal_evidence(dressed: Callable[..., Any], tiny: Any) -> None:
    """Nothing in it depends on when or where the episode ran."""
    digests = set()
    env = dressed()
    for _ in range(3):
        env.reset(seed=5)
        env.step([tiny.DONE, {"tool": "look", "arguments": {"item_id": 2}}])
        env.step(tiny.FINISH)
        digests.add(env.get_wrapper_attr("evidence").digest)
    assert len(digests) == 1


def test_the_evidence_holds_every_call_and_the_answer(dressed: Callable[..., Any], tiny: Any) -> None:
    env = dressed()
    env.get_wrapper_attr("charge")(tokens=5)
    env.step([tiny.DONE, "nonsense"])
    env.step({"tool": "finish", "arguments": {"outcome": "completed"}})
    evidence = env.get_wrapper_attr("evidence")
    assert [event["status"] for event in evidence.events[1:]] == ["ok", "invalid", "ok"]
    assert evidence.answer == {"outcome": "completed"}
    assert (evidence.usage.steps, evidence.usage.calls, evidence.usage.tokens) == (2, 3, 5)
    assert [change.label for change in evidence.changes] == ["items/1"]
