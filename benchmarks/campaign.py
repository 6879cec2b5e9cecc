"""The campaign runner by itself: what an attempt costs beside its episode, and what a hundred thousand records cost."""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from agent_envs.baselines import load, rollout
from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.engines.base import Done, Job
from agent_envs.campaign.engines.worker import environment_of
from agent_envs.campaign.lock import Lock, make_lock, write_lock
from agent_envs.campaign.manifest import Manifest
from agent_envs.campaign.results import Results
from agent_envs.campaign.standing import standing
from agent_envs.campaign.store import CampaignStore, TryRecord
from agent_envs.contract import AgentRun
from benchmarks._timing import Result

ENV = "agenteval/refund-v1"
MANY = 100_000
TASKS = 50


def manifest(attempts: int) -> Manifest:
    """One system on fifty generated tasks."""
    return Manifest.model_validate(
        {
            "name": "benchmark",
            "decision": "What the runner costs.",
            "population": "Generated refund calls.",
            "systems": [{"name": "book", "policy": "rulebook"}],
            "suite": [{"env": ENV, "train": TASKS}],
            "attempts": attempts,
            "canaries": {
                "known_pass": {"policy": "reference", "task": "refund/train-1"},
                "known_fail": {"policy": "noop", "task": "refund/train-1"},
            },
        }
    )


class InstantEngine:
    """Gives back records that were made before, so that all the time is the runner's.

    Args:
        lock: The campaign.
    """

    def __init__(self, lock: Lock) -> None:
        """Play each task of the plan, and each canary, once."""
        self._lock = lock
        self._made: dict[tuple[str, str], AgentRun] = {}

    def record(self, job: Job) -> AgentRun:
        """The record of a job's task, made at the first time."""
        key = (job.task_id, job.system.policy)
        if key not in self._made:
            env = environment_of(job.system, job.env_id)
            self._made[key] = rollout(env, load(job.system.policy), seed=job.seed, task=job.task_id)
            env.close()
        return self._made[key]

    def run(self, jobs: Iterator[Job | None]) -> Iterator[Done]:
        """Play jobs without playing."""
        for job in jobs:
            if job is None:
                return
            run = self.record(job).model_copy(update={"seed": job.seed})
            yield Done(job, run, run.terminal, "", health=({"when": "before", "ok": True},), worker="instant-0")

    def stop(self, now: bool = False) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> Self:
        """The engine."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""


def run(smoke: bool) -> list[Result]:
    """Measure the runner."""
    with tempfile.TemporaryDirectory() as place:
        return [*_overhead(Path(place), 1 if smoke else 10), *_growth(Path(place), 1_000 if smoke else MANY)]


def _overhead(place: Path, attempts: int) -> list[Result]:
    lock = make_lock(manifest(attempts))
    write_lock(lock, place / "few")
    engine = InstantEngine(lock)
    for row in lock.planned:
        engine.record(Job(row.run_id, 0, lock.manifest.systems[0], ENV, row.task_id, 0, row.seed, str(place)))
    marks: list[float] = []
    run_campaign(place / "few", engine, lambda _: marks.append(time.perf_counter()))
    per_attempt = _median_gap(marks[2:])
    synced = _synced(place)
    note = f"of which one bare synced append takes {synced * 1e3:.2f} ms here"
    return [Result("campaign: runner, one attempt", per_attempt, budget=0.001 + 1.5 * synced, note=note)]


def _synced(place: Path) -> float:
    """Seconds of one appended and synced line."""
    descriptor = os.open(place / "probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    marks = []
    for _ in range(100):
        os.write(descriptor, b"x" * 4000)
        os.fdatasync(descriptor)
        marks.append(time.perf_counter())
    os.close(descriptor)
    return _median_gap(marks)


def _median_gap(marks: list[float]) -> float:
    """Of moments in a row: a disk that now and then is busy with something else doesn't move it."""
    return statistics.median(after - before for before, after in itertools.pairwise(marks))


def _growth(place: Path, many: int) -> list[Result]:
    """Records written in bulk, then read, resumed and asked for their standing."""
    lock = make_lock(manifest(many // TASKS))
    folder = place / "many"
    write_lock(lock, folder)
    store, engine = CampaignStore(folder), InstantEngine(lock)
    rest = 100
    _fill(store, lock, engine, many - rest)
    started = time.perf_counter()
    found = standing(folder)
    asked = time.perf_counter() - started
    before = _resident()
    progress = store.progress()
    grown = _resident() - before
    assert found.done == len(progress.settled) == many - rest
    del progress
    marks: list[float] = []
    run_campaign(folder, engine, lambda _: marks.append(time.perf_counter()))
    late = _median_gap(marks[10:])
    sample = place / "sample"
    sample.mkdir()
    with (folder / "runs.jsonl").open("rb") as whole, (sample / "runs.jsonl").open("wb") as part:
        part.writelines(line for _, line in zip(range(min(2_000, many)), whole, strict=False))
    started = time.perf_counter()
    read = Results(sample).read()
    reading = (time.perf_counter() - started) * 2_000 / len(read)
    return [
        Result(f"campaign: runner, one attempt after {many - rest} records", late, note="the same as at the start?"),
        Result(f"campaign: standing of {many} records", asked, note="also what a resume reads"),
        Result(f"campaign: memory for {many} settled attempts", grown / 2**20, "MiB", note="a set of ids"),
        Result("campaign: 2,000 records read and checked", reading, budget=0.3),
    ]


def _fill(store: CampaignStore, lock: Lock, engine: InstantEngine, number: int) -> None:
    """Write records as a campaign would have, a thousand at a time."""
    runs, tries = bytearray(), bytearray()
    system = lock.manifest.systems[0]
    lines: dict[str, tuple[bytes, bytes]] = {}
    for count, row in enumerate(lock.planned[:number], start=1):
        if row.task_id not in lines:
            job: Any = Job(row.run_id, 0, system, row.env_id, row.task_id, row.attempt, row.seed, str(store.folder))
            run = engine.record(job).model_copy(
                update={"run_id": "RUN-ID", "campaign": lock.digest, "system": system.name}
            )
            record = TryRecord(run=run, decision="counted", reason="counts", session=1, elapsed=1.0)
            lines[row.task_id] = run.canonical() + b"\n", record.canonical() + b"\n"
        one, two = (line.replace(b"RUN-ID", row.run_id.encode()) for line in lines[row.task_id])
        runs += one
        tries += two
        if count % 1000 == 0 or count == number:
            store.attempts.append_bytes(bytes(tries), sync=False)
            store.runs.append_bytes(bytes(runs), sync=False)
            runs.clear()
            tries.clear()


def _resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
