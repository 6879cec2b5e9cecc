"""The tiny family of the episode's tests, here for the wrappers'."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_envs.wrappers import compose


@pytest.fixture(scope="session")
def tiny() -> Any:
    if "tiny_family" not in sys.modules:
        place = Path(__file__).parents[1] / "episode" / "tiny.py"
        spec = importlib.util.spec_from_file_location("tiny_family", place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["tiny_family"] = module
        spec.loader.exec_module(module)
    return sys.modules["tiny_family"]


@pytest.fixture
def dressed(tiny: Any) -> Iterator[Callable[..., Any]]:
    """Makes a reset environment in full dress; ``task`` holds changes to the task, the rest goes to `compose`."""
    made = []

    def make(task: dict[str, Any] | None = None, seed: int = 1, **dress: Any) -> Any:
        env = compose(tiny.TinyEnv(task=tiny.make_task(**(task or {})).task_id), **{"recheck": 1.0, **dress})
        env.reset(seed=seed)
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()
