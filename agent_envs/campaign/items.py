"""What the runner plays: an attempt of the plan or a check, with its earlier tries."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import gymnasium

from agent_envs.campaign.decide import limits_left, tighter
from agent_envs.campaign.engines.base import Done, Job
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.lock import Lock
from agent_envs.campaign.manifest import System, SystemLimits
from agent_envs.campaign.runner import attempt_seed
from agent_envs.contract import AgentRun, AgentTask, OutcomeClass, SystemSpec, Usage, canonical_json, consequences
from agent_envs.episode.env import AgentEnv

LONGEST_ATTEMPT = 3600.0
"""Seconds after which an attempt without any limit on wall time is ended all the same."""
Purpose = Literal["attempt", "smoke", "canary"]


@dataclass(frozen=True)
class Item:
    """An attempt to play."""

    run_id: str
    system: System
    env_id: str
    task_id: str
    attempt: int
    seed: int
    weight: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    purpose: Purpose = "attempt"
    expected: OutcomeClass | None = None
    """Of a canary: what it must be."""
    earlier: tuple[AgentRun, ...] = ()
    """Earlier tries of it, all invalid."""
    first_try: int = 0
    """Number of its first try: a check that is made once more doesn't take up its old tries."""

    @property
    def try_number(self) -> int:
        """Number of the next try."""
        return self.first_try + len(self.earlier)

    def numbered_from(self, first: int) -> "Item":
        """The item with its tries numbered from ``first``."""
        return dataclasses.replace(self, first_try=first)

    def again(self, run: AgentRun) -> "Item":
        """The item after one more invalid try."""
        return dataclasses.replace(self, earlier=(*self.earlier, run))

    def job(self, folder: Path, task: AgentTask) -> Job:
        """The next try, with what earlier ones have left of each limit."""
        left = limits_left(self.earlier)
        given = tighter_of(self.system.limits.given(), left)
        wall = tighter(task.limits, given).wall_seconds
        return Job(
            run_id=self.run_id,
            try_number=self.try_number,
            system=self.system.model_copy(update={"limits": SystemLimits(**given)}),
            env_id=self.env_id,
            task_id=self.task_id,
            attempt=self.attempt,
            seed=self.seed,
            folder=str(folder),
            deadline=LONGEST_ATTEMPT if wall is None else None,
        )


def tighter_of(given: Mapping[str, Any], left: Mapping[str, Any]) -> dict[str, Any]:
    """Limit by limit the smaller of two."""
    return {
        name: min(value for value in (given.get(name), left.get(name)) if value is not None)
        for name in dict.fromkeys((*given, *left))
    }


class Tasks:
    """The present tasks of a lock's environments, through one environment of each kind that is made when needed."""

    def __init__(self) -> None:
        """Nothing is made yet."""
        self._envs: dict[tuple[str, bytes], gymnasium.Env[Any, Any]] = {}

    def env(self, env_id: str, arguments: Mapping[str, Any] | None = None) -> gymnasium.Env[Any, Any]:
        """An environment in its standard dress."""
        key = (env_id, canonical_json(dict(arguments or {})))
        if key not in self._envs:
            self._envs[key] = make_env(env_id, arguments)
        return self._envs[key]

    def task(self, env_id: str, task_id: str) -> AgentTask:
        """A task.

        Raises:
            TaskError: There is no such task.
        """
        return cast(AgentEnv, self.env(env_id).unwrapped).suite.task(task_id)

    def close(self) -> None:
        """Close every environment."""
        for env in self._envs.values():
            env.close()


def planned(lock: Lock) -> Iterator[Item]:
    """The plan, in its order."""
    systems = {system.name: system for system in lock.manifest.systems}
    for row in lock.planned:
        yield Item(
            row.run_id, systems[row.system], row.env_id, row.task_id, row.attempt, row.seed, row.weight, row.labels
        )


def checks(lock: Lock) -> Iterator[Item]:
    """Smoke runs of each system, then the canaries."""
    manifest, mark = lock.manifest, lock.digest[:8]
    envs = {row.task_id: row.env_id for row in lock.planned}
    for task_id in manifest.smoke:
        seed = attempt_seed(manifest.seed, f"smoke:{task_id}", 0)
        for system in manifest.systems:
            run_id = f"smoke.{task_id.partition('/')[2]}.{system.name}.{mark}"
            yield Item(run_id, system, envs[task_id], task_id, 0, seed, purpose="smoke")
    for name, canary, expected in (
        ("known-pass", manifest.canaries.known_pass, OutcomeClass.SUCCESS),
        ("known-fail", manifest.canaries.known_fail, OutcomeClass.AGENT_FAILURE),
    ):
        yield Item(
            f"canary.{name}.{mark}",
            System(name=name, policy=canary.policy),
            canary.env or manifest.suite[0].env,
            canary.task,
            0,
            attempt_seed(manifest.seed, f"canary:{canary.task}", 0),
            purpose="canary",
            expected=expected,
        )


def spec_of(item: Item, lock: Lock) -> SystemSpec | None:
    """What the lock says that plays; None for a canary, which is no system of the campaign."""
    return None if item.purpose == "canary" else lock.spec(item.system.name, item.env_id)


def fault_of(item: Item, run: AgentRun) -> str:
    """What a check's run shows to be wrong; empty when it is as it must be.

    A smoke run may fail at its task, but it must be judged, and the system must have played: a policy that breaks or
    calls nothing rightly would do so in every attempt.
    """
    found = f"{run.outcome_class.value} ({run.terminal.kind})"
    detail = f": {run.terminal.detail}"[:300] if run.terminal.detail else ""
    where = f"; evidence: {run.evidence}" if run.evidence else ""
    if item.purpose == "canary":
        wanted = item.expected.value if item.expected else ""
        if run.outcome_class == wanted:
            return ""
        canary = f"the canary {item.run_id} ({item.system.policy} on {item.task_id})"
        return f"{canary} must be {wanted}, was {found}{detail}{where}"
    if run.counts and consequences(run.terminal).judged:
        return ""
    return f"the smoke run of {item.system.name} on {item.task_id} ended as {found}{detail}{where}"


def lost_run(item: Item, done: Done, lock: Lock, task: AgentTask) -> AgentRun:
    """The record of a try that left none, because the process that held the episode was lost."""
    spec = spec_of(item, lock)
    return AgentRun(
        run_id=item.run_id,
        env_id=item.env_id,
        task_id=item.task_id,
        task_revision=task.task_revision,
        task_digest=task.digest,
        policy=str(spec.policy.get("name", item.system.policy)) if spec else item.system.policy,
        oracle=bool(spec.policy.get("oracle", False)) if spec else False,
        system_spec_hash=spec.digest if spec else "",
        attempt=item.attempt,
        seed=item.seed,
        initial_state_hash="",
        final_state_hash="",
        log_digest="",
        evidence_digest="",
        terminal=done.terminal,
        outcome_class=consequences(done.terminal).outcome_class,
        counts=consequences(done.terminal).counts,
        verdict=None,
        declared_success=False,
        usage=Usage(steps=0, calls=0),
        limits=tighter(task.limits, done.job.system.limits.given()),
        seconds=done.seconds,
        environment_seconds=0.0,
        infrastructure_status="faulted" if done.terminal.origin == "environment" else "ok",
    )
