"""The refund environment against raw SQLite: steps, reset, verdict, whole episodes, growth with data, memory."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium

import agent_envs  # noqa: F401 (registers the environment)
from agent_envs.baselines.reference import Scripted, references
from agent_envs.contract import AgentTask, Evidence
from agent_envs.envs.refund.env import SUITE, RefundEnv
from agent_envs.envs.refund.fixture import fixture
from agent_envs.envs.refund.world import Office
from agent_envs.episode.suite import Suite
from agent_envs.evaluator import evaluate
from agent_envs.state.rows import element
from agent_envs.wrappers import compose
from benchmarks._timing import Result, compare, seconds

ENV = "agenteval/refund-v1"
ORDER = "W1001"
STEPS = 16
TAU_BENCH_EPISODE = 0.356
"""Seconds of tau-bench's graded retail reference episode, as published with the budgets; not measured here."""


class _LargerSuite(Suite):
    """The family's tasks, started from a fixture with more rows and so without their pins."""

    def __init__(self, scale: int) -> None:
        super().__init__("refund", SUITE.folder)
        self._scale = scale
        self._made: dict[str, AgentTask] = {}

    def task(self, task_id: str) -> AgentTask:
        if task_id not in self._made:
            task = SUITE.task(task_id)
            start = task.initial_state.model_copy(update={"fixture": fixture(self._scale).name, "fixture_digest": ""})
            self._made[task_id] = task.model_copy(update={"initial_state": start, "reset_check": {}})
        return self._made[task_id]


class _LargerEnv(RefundEnv):
    """The same office with more customers and orders that no task is about."""

    def __init__(self, scale: int) -> None:
        self.suite = _LargerSuite(scale)  # type: ignore[misc]
        self._scale = scale
        super().__init__()

    def make_world(self) -> Office:
        return Office(fixture(self._scale))


class Bench:
    """One environment with the calls of a reference episode of its first curated task."""

    def __init__(self, scale: int = 1, database: str = "sqlite://") -> None:
        """Make the environment, play the reference once, and keep its calls and evidence."""
        self.env = gymnasium.make(ENV, database=database) if scale == 1 else compose(_LargerEnv(scale))
        core: Any = self.env.unwrapped
        self.core = core
        self.task_id = core.suite.eval_ids[0]
        self.options = {"task": self.task_id}
        policy = Scripted(references(self.task_id).references[0].calls)
        observation, info = self.env.reset(seed=1, options=self.options)
        self.calls: list[Any] = []
        done = False
        reward: SupportsFloat = 0.0
        while not done:
            self.calls.append(policy.act(observation, info))
            observation, reward, terminated, truncated, info = self.env.step(self.calls[-1])
            done = terminated or truncated
        if reward != 1.0:
            raise RuntimeError(f"the reference of {self.task_id} earned {reward}; there is nothing to measure")
        self.evidence: Evidence = self.env.get_wrapper_attr("freeze")()
        self.task = core.episode.task

    def episode(self) -> None:
        """A whole graded reference episode."""
        self.env.reset(seed=1, options=self.options)
        for call in self.calls:
            self.env.step(call)

    def dirty_reset(self, number: int) -> float:
        """Seconds of one reset after an episode that wrote."""
        total = 0.0
        self.env.reset(seed=1, options=self.options)
        for _ in range(number):
            for call in self.calls:
                self.env.step(call)
            total += seconds(lambda: self.env.reset(seed=1, options=self.options))
        return total / number

    def steps(self, call: dict[str, Any]) -> float:
        """Seconds of one step, over the first steps of a fresh episode."""
        self.env.reset(seed=1, options=self.options)
        return seconds(lambda: self.env.step(call), STEPS)


def run(smoke: bool) -> list[Result]:
    """Measure everything; smoke mode leaves out the largest data."""
    rounds = 3 if smoke else 25
    bench = Bench()
    results = [*_steps(bench, rounds), *_parts(bench, rounds)]
    results += _growth([1, 10] if smoke else [1, 10, 100], rounds)
    results += _memory(8 if smoke else 64)
    if url := os.environ.get("AGENTEVAL_POSTGRESQL_URL"):
        results += _postgresql(url, rounds)
    return results


def _steps(bench: Bench, rounds: int) -> list[Result]:
    bench.env.reset(seed=1, options=bench.options)
    connection: sqlite3.Connection = bench.core.world.database.driver
    ticket = next(call["arguments"]["ticket_id"] for call in bench.calls if "ticket_id" in call["arguments"])
    read = {"tool": "get_order", "arguments": {"order_id": ORDER}}
    write = {"tool": "add_note", "arguments": {"ticket_id": ticket, "text": "Called back, no answer."}}
    reads = [f"SELECT * FROM {table} WHERE order_id = ?" for table in ("orders", "order_lines", "shipments")]
    execute = connection.cursor().execute
    row = b"x" * 120

    def raw_reads() -> None:
        for statement in reads:
            execute(statement, (ORDER,)).fetchall()

    def raw_writes() -> None:
        execute("SELECT * FROM tickets WHERE ticket_id = ?", (ticket,)).fetchall()
        number = execute("SELECT max(note_id) FROM ticket_notes").fetchone()[0] + 1
        execute("INSERT INTO ticket_notes VALUES (?, ?, ?, ?)", (number, ticket, "x", "2026-03-01T00:00:00Z"))
        element(row)
        element(row)

    def measure(operation: Callable[[], object], number: int) -> float:
        if operation in (raw_reads, raw_writes):
            return seconds(operation, number)
        return float(operation())  # type: ignore[arg-type]

    return [
        compare(
            "refund: step, read tool (get_order)",
            lambda: bench.steps(read),
            raw_reads,
            budget=8,
            rounds=rounds,
            number=STEPS,
            measure=measure,
            note="floor: the same three selects by sqlite3",
        ),
        compare(
            "refund: step, write tool (add_note)",
            lambda: bench.steps(write),
            raw_writes,
            budget=12,
            rounds=rounds,
            number=STEPS,
            measure=measure,
            note="floor: the same statements and two row hashes",
        ),
    ]


def _parts(bench: Bench, rounds: int) -> list[Result]:
    resets = [bench.dirty_reset(3) for _ in range(rounds)]
    verdicts = [seconds(lambda: evaluate(bench.task, bench.evidence), 5) for _ in range(rounds)]
    episodes = [seconds(bench.episode, 3) for _ in range(rounds)]
    episode = statistics.median(episodes)
    size = len(bench.calls)
    bench.env.reset(seed=1, options=bench.options)
    hashing = [seconds(lambda: bench.core._state_hash(bench.core.world), 50) for _ in range(rounds)]
    return [
        Result("refund: reset with proof, after a dirty episode", statistics.median(resets), budget=0.2e-3),
        Result("refund: state hash", statistics.median(hashing)),
        Result("refund: verdict", statistics.median(verdicts), budget=1e-3),
        Result(
            f"refund: graded reference episode of {size} steps", episode, note=f"{1 / episode:.0f} episodes a second"
        ),
        Result(
            "refund: the same over tau-bench's published time",
            episode / TAU_BENCH_EPISODE,
            unit="x",
            budget=1 / 200,
            note="budget: 200 times its throughput; theirs is not measured in this run",
        ),
    ]


def _growth(scales: list[int], rounds: int) -> list[Result]:
    benches = {scale: Bench(scale) for scale in scales}
    figures: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for scale, bench in benches.items():
            bench.episode()
            figures.setdefault(("reset", scale), []).append(bench.dirty_reset(2))
            figures.setdefault(("verdict", scale), []).append(
                seconds(lambda bench=bench: evaluate(bench.task, bench.evidence), 5)  # type: ignore[misc]
            )
            figures.setdefault(("episode", scale), []).append(seconds(bench.episode, 2))
    results = []
    for what in ("reset", "verdict", "episode"):
        base = figures[what, scales[0]]
        for scale in scales[1:]:
            ratio = statistics.median(big / small for big, small in zip(figures[what, scale], base, strict=True))
            results.append(
                Result(
                    f"refund: {what}, data x{scale}",
                    statistics.median(figures[what, scale]),
                    floor=statistics.median(base),
                    ratio=ratio,
                    budget=1.2 if what != "episode" else None,
                    note="floor: the same at scale 1",
                )
            )
    return results


def _memory(environments: int) -> list[Result]:
    program = (
        "import json, resource, gymnasium, agent_envs\n"
        "def rss():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize() / 2**20\n"
        "bare = rss()\n"
        f"def make():\n    env = gymnasium.make({ENV!r}); env.reset(seed=1); return env\n"
        "envs = [make()]; one = rss()\n"
        f"envs += [make() for _ in range({environments - 1})]; many = rss()\n"
        "image = len(envs[0].unwrapped.world.database.fixture.content.image) / 2**20\n"
        "print(json.dumps([bare, one, many, image]))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    bare, one, many, image = json.loads(answer)
    return [
        Result(
            "refund: memory of the first environment, over its imports",
            one - bare,
            unit="MiB",
            note=f"imports {bare:.0f} MiB",
        ),
        Result(
            f"refund: memory of each further environment of {environments}",
            (many - one) / (environments - 1),
            unit="MiB",
            budget=image + 1,
            note=f"budget: the fixture ({image:.2f} MiB) and 1 MiB",
        ),
        Result(f"refund: memory of {environments} environments in one process", many, unit="MiB"),
    ]


def _postgresql(url: str, rounds: int) -> list[Result]:
    start = time.perf_counter()
    bench = Bench(database=url)
    opened = time.perf_counter() - start
    resets = statistics.median(bench.dirty_reset(2) for _ in range(rounds))
    episodes = statistics.median(seconds(bench.episode) for _ in range(rounds))
    bench.env.close()
    return [
        Result("refund on PostgreSQL: first episode, loading the fixture", opened),
        Result("refund on PostgreSQL: reset after a dirty episode, by rollback", resets),
        Result("refund on PostgreSQL: graded reference episode", episodes),
    ]
