"""Small campaigns for tests, and an engine that plays in this very process, so that a kill may hit anything."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from agent_envs.baselines import load, rollout
from agent_envs.campaign.engines.base import Done, Job
from agent_envs.campaign.engines.worker import environment_of
from agent_envs.campaign.health import probe
from agent_envs.campaign.lock import Lock, make_lock, write_lock
from agent_envs.campaign.manifest import Manifest
from agent_envs.contract import AgentRun, OutcomeClass, write_evidence

ENV = "agenteval/refund-v1"


def manifest(**changes: Any) -> Manifest:
    """A manifest of two cheap systems on two generated tasks."""
    data: dict[str, Any] = {
        "name": "tiny",
        "decision": "Whether the rules are kept.",
        "population": "Generated refund calls.",
        "systems": [{"name": "book", "policy": "rulebook"}, {"name": "idle", "policy": "noop"}],
        "suite": [{"env": ENV, "train": 2}],
        "attempts": 2,
        "canaries": {
            "known_pass": {"policy": "reference", "task": "refund/train-1"},
            "known_fail": {"policy": "noop", "task": "refund/train-1"},
        },
        "invalid_runs": {"maximum_share": 1.0},
        "unclassified_share": 1.0,
    }
    return Manifest.model_validate(data | changes)


def locked(folder: Path, **changes: Any) -> Lock:
    """Lock a campaign in a folder."""
    lock = make_lock(manifest(**changes))
    write_lock(lock, folder)
    return lock


class SerialEngine:
    """Plays one job after the other, here.

    Args:
        outcome: Changes what comes of a job; gets the `Done` and may return another one.
    """

    def __init__(self, outcome: Callable[[Done], Done] = lambda done: done) -> None:
        self.jobs: list[Job] = []
        self._outcome = outcome
        self._stopped = False
        self._envs: dict[str, Any] = {}

    def run(self, jobs: Iterator[Job | None]) -> Iterator[Done]:
        for job in jobs:
            if job is None:
                return
            self.jobs.append(job)
            yield self._outcome(self._play(job))
            if self._stopped:
                return

    def _play(self, job: Job) -> Done:
        key = f"{job.env_id} {job.system.limits} {job.system.env_arguments}"
        if key not in self._envs:
            self._envs[key] = environment_of(job.system, job.env_id)
        env = self._envs[key]
        run = rollout(env, load(job.system.policy), seed=job.seed, task=job.task_id, attempt=job.attempt)
        health = () if run.outcome_class is OutcomeClass.SUCCESS else (probe(env, "after"),)
        write_evidence(env.get_wrapper_attr("freeze")(), Path(job.folder) / job.place)
        return Done(job, run, run.terminal, job.place, health=health, seconds=run.seconds, worker="serial-0")

    def stop(self, now: bool = False) -> None:
        self._stopped = True

    def close(self) -> None:
        for env in self._envs.values():
            env.close()
        self._envs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def same(runs: Sequence[AgentRun]) -> list[dict[str, Any]]:
    """Records without what may differ from one campaign to the other: times and the order of tries."""
    varies = {"seconds", "environment_seconds", "order", "worker", "try_number", "evidence"}
    return sorted((run.model_dump(mode="json", exclude=varies) for run in runs), key=lambda run: str(run["run_id"]))
