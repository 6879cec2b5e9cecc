"""Where tasks come from: names, ids, pins and references are checked when they are first asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_envs.contract import TaskError
from agent_envs.episode.pins import compute_pins, write_pins
from agent_envs.episode.suite import Suite


@pytest.fixture
def folder(tmp_path: Path, tiny: Any) -> Path:
    for name in ("one", "two"):
        for kind, data in (
            ("tasks", tiny.BASE.as_json() | {"task_id": f"tiny/{name}"}),
            ("references", {"task_id": f"tiny/{name}", "references": [{"calls": [tiny.FINISH]}]}),
        ):
            (tmp_path / kind).mkdir(exist_ok=True)
            (tmp_path / kind / f"{name}.yaml").write_text(yaml.safe_dump(data))
    return tmp_path


def test_tasks_are_named_as_their_files(folder: Path) -> None:
    suite = Suite("tiny", folder)
    assert suite.eval_ids == ("tiny/one", "tiny/two")
    assert suite.task("tiny/two").task_id == "tiny/two" and suite.task("tiny/two") is suite.task("tiny/two")
    (folder / "tasks" / "two.yaml").rename(folder / "tasks" / "three.yaml")
    with pytest.raises(TaskError, match="as the file is named"):
        Suite("tiny", folder).task("tiny/three")


def test_an_empty_suite_is_an_error(tmp_path: Path) -> None:
    """Law 2, B010."""
    with pytest.raises(TaskError, match="no task files"):
        _ = Suite("tiny", tmp_path).eval_ids


def test_names_that_differ_only_by_case_are_refused(folder: Path) -> None:
    """B239."""
    (folder / "tasks" / "One.yaml").write_text("x")
    with pytest.raises(TaskError, match="differ only by case"):
        _ = Suite("tiny", folder).eval_ids


@pytest.mark.parametrize(
    "task_id", ["tiny/three", "tiny/", "", "other/one", "tiny/../tasks/one", "tiny/train-5", "one"]
)
def test_unknown_tasks_are_a_clear_error(folder: Path, task_id: str) -> None:
    with pytest.raises(TaskError, match="there is no task"):
        Suite("tiny", folder).task(task_id)


def test_an_unknown_key_in_a_task_is_an_error(folder: Path) -> None:
    """B012."""
    path = folder / "tasks" / "one.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"outcom": []}))
    with pytest.raises(TaskError, match="outcom"):
        Suite("tiny", folder).task("tiny/one")


def test_references_of_another_task_are_refused(folder: Path) -> None:
    """B231."""
    (folder / "references" / "one.yaml").write_text((folder / "references" / "two.yaml").read_text())
    with pytest.raises(TaskError, match="as the file is named"):
        Suite("tiny", folder).references("tiny/one")
    (folder / "references" / "one.yaml").unlink()
    with pytest.raises(TaskError):
        Suite("tiny", folder).references("tiny/one")


def test_every_task_is_drawn_and_neighbouring_seeds_do_not_walk_the_list(folder: Path) -> None:
    suite = Suite("tiny", folder)
    drawn = [suite.draw("eval", seed).task_id for seed in range(40)]
    assert set(drawn) == set(suite.eval_ids) and drawn[:8] != ["tiny/one", "tiny/two"] * 4
    with pytest.raises(TaskError, match="no training tasks"):
        suite.draw("train", 1)


def test_pins_are_proven_at_reset_and_notice_a_changed_task(
    folder: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 4."""
    suite = Suite("tiny", folder)
    monkeypatch.setattr(tiny.TinyEnv, "suite", suite)
    core = tiny.TinyEnv()
    pins = compute_pins(core)
    core.close()
    assert set(pins["tiny/one"]["channels"]) == {"clock", "database", "rate_limits"}  # the generator follows the seed
    write_pins(suite, pins)
    assert json.loads((folder / "tasks" / "pins.json").read_text()) == pins
    path = folder / "tasks" / "two.yaml"
    data = yaml.safe_load(path.read_text())
    data["initial_state"]["clock"] = "2026-03-02T09:30:00Z"
    path.write_text(yaml.safe_dump(data))
    monkeypatch.setattr(tiny.TinyEnv, "suite", Suite("tiny", folder))
    core = tiny.TinyEnv()
    assert core.reset(seed=1, options={"task": "tiny/one"})[1]["terminal_reason"] == ""
    assert core.reset(seed=1, options={"task": "tiny/two"})[1]["terminal_reason"] == "start_state_mismatch"
    core.close()
