"""Pins: the start digests that a reset is proven against, made once and committed with the tasks."""

import json
from typing import Any

from agent_envs.contract import TaskError
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.suite import Suite


def compute_pins(core: AgentEnv) -> dict[str, dict[str, Any]]:
    """Start each curated task twice, with different seeds, and pin the channels that start alike.

    Returns:
        For each task the fixture's digest and each seed-independent channel's digest.

    Raises:
        TaskError: The database of a task doesn't start alike under both seeds.
    """
    pins: dict[str, dict[str, Any]] = {}
    for task_id in core.suite.eval_ids:
        task = core.suite.task(task_id)
        starts = []
        for seed in (1, 2):
            world = core.start_world(task, seed)
            starts.append({name: channel.digest() for name, channel in world.channels.items()})
        pinned = {name: value for name, value in starts[0].items() if starts[1][name] == value}
        if world.database is not None and world.database.name not in pinned:
            raise TaskError(f"{task_id}: the database starts differently under different seeds")
        fixture = world.database.fixture.digest if world.database is not None else ""
        pins[task_id] = {"fixture_digest": fixture, "channels": dict(sorted(pinned.items()))}
    return pins


def write_pins(suite: Suite, pins: dict[str, dict[str, Any]]) -> None:
    """Write the pins beside the tasks."""
    path = suite.folder / "tasks" / "pins.json"
    path.write_text(json.dumps(pins, indent=1, sort_keys=True) + "\n", encoding="utf-8")
