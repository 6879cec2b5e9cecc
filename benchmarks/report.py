"""What a report costs: reading the records of a campaign, and every number from them.

The records are real ones, of a good and of an idle run of each task, dealt out at random over systems, attempts and
workers; only names and places differ, so a hundred thousand are written in seconds.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from agent_envs.baselines import load as load_policy
from agent_envs.baselines import rollout
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.lock import Lock, make_lock, write_lock
from agent_envs.campaign.manifest import Manifest
from agent_envs.campaign.store import CampaignStore, TryRecord
from agent_envs.report.analysis import analysis_of
from agent_envs.report.records import load
from benchmarks._timing import Result

ENV = "agenteval/refund-v1"
SYSTEMS = ("first", "second")
ORDER = 987_654_321
"""Stands in the templates for the order of start."""


def manifest(tasks: int, attempts: int) -> Manifest:
    """Two systems on generated tasks."""
    return Manifest.model_validate(
        {
            "name": "benchmark",
            "decision": "What a report costs.",
            "population": "Generated refund calls.",
            "systems": [{"name": name, "policy": "rulebook"} for name in SYSTEMS],
            "suite": [{"env": ENV, "train": tasks}],
            "attempts": attempts,
            "canaries": {
                "known_pass": {"policy": "reference", "task": "refund/train-1"},
                "known_fail": {"policy": "noop", "task": "refund/train-1"},
            },
        }
    )


def fill(folder: Path, lock: Lock) -> int:
    """Write the records of a whole campaign; gives back how many.

    The files are the ones a runner leaves, except that all records of a task and an outcome are copies.
    """
    draw, store = random.Random(1), CampaignStore(folder)
    write_lock(lock, folder)
    env, policies = make_env(ENV), {True: load_policy("reference"), False: load_policy("noop")}
    seeds = {row.task_id: row.seed for row in lock.planned}
    chances = {task: draw.betavariate(1.0, 1.0) for task in seeds}
    made = {
        (task, good): rollout(env, policy, seed=seed, task=task)
        for task, seed in seeds.items()
        for good, policy in policies.items()
    }
    env.close()
    lines: dict[tuple[str, str, bool], tuple[bytes, bytes]] = {}
    for system in SYSTEMS:
        for (task, good), run in made.items():
            update = {"run_id": "RUN-ID", "worker": "WORKER", "order": ORDER, "oracle": False}
            own = run.model_copy(update={**update, "system": system, "policy": "rulebook", "campaign": lock.digest})
            tried = TryRecord(run=own, decision="counted", reason="counts", session=1, elapsed=1.0)
            lines[system, task, good] = own.canonical() + b"\n", tried.canonical() + b"\n"
    orders = list(range(len(lock.planned)))
    draw.shuffle(orders)
    pieces: tuple[list[bytes], list[bytes]] = [], []
    for order, row in zip(orders, lock.planned, strict=True):
        pair = lines[row.system, row.task_id, draw.random() < chances[row.task_id]]
        names = row.run_id.encode(), f"w{draw.randrange(8)}".encode(), str(order).encode()
        for line, place in zip(pair, pieces, strict=True):
            for mark, name in zip((b"RUN-ID", b"WORKER", str(ORDER).encode()), names, strict=True):
                line = line.replace(mark, name)
            place.append(line)
    store.runs.append_bytes(b"".join(pieces[0]), sync=False)
    store.attempts.append_bytes(b"".join(pieces[1]), sync=False)
    return len(orders)


def measured(folder: Path, tasks: int, attempts: int, rounds: int, budgets: tuple[float, float]) -> list[Result]:
    """Best time of reading the records, and of every number from them."""
    number = fill(folder, make_lock(manifest(tasks, attempts)))
    reads, analyses = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        records = load(folder)
        read = time.perf_counter()
        found = analysis_of(records)
        analyses.append(time.perf_counter() - read)
        reads.append(read - begun)
        assert found.recorded == number
    return [
        Result(f"report: {number} records read", min(reads), budget=budgets[0]),
        Result(f"report: every number from them, {number} records", min(analyses), budget=budgets[1]),
    ]


def run(smoke: bool) -> list[Result]:
    """Measure a small and a large campaign."""
    with tempfile.TemporaryDirectory() as place:
        small = measured(Path(place) / "small", 100, 10, 2 if smoke else 10, (0.3, 0.5))
        return small if smoke else [*small, *measured(Path(place) / "large", 500, 100, 2, (15.0, 10.0))]
