"""A worker: one process that plays jobs, one after the other, and keeps its environments and policies between them.

Started by `agent_envs.campaign.engines.local` as ``python -m agent_envs.campaign.engines.worker SOCKET MEMORY``.

The policy's code and the environment's never run at once: the main thread holds a lock except while it is in the
policy's code. When time is up in there, a second thread takes the lock, judges the state that was reached, reports it
and ends the process. If the policy doesn't even let that thread run, the engine kills the process from outside.
"""

import contextlib
import faulthandler
import math
import os
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium

from agent_envs.baselines.identity import system_spec
from agent_envs.baselines.policy import Policy, PolicyError
from agent_envs.baselines.process import policy_of
from agent_envs.baselines.rollout import record, rollout
from agent_envs.campaign.engines.base import Job
from agent_envs.campaign.engines.wire import MOST_JOB_BYTES, Lines, Phase, Slot, done_json, job_from, received, send
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.health import probe
from agent_envs.campaign.manifest import System
from agent_envs.contract import (
    AgentRun,
    EvidenceError,
    OutcomeClass,
    SpecError,
    TaskError,
    Terminal,
    canonical_json,
    write_evidence,
)

LOADING_SECONDS = 120.0
"""How long a policy or an environment may take to be made."""
_MOST_ENVIRONMENTS = 8
_TICK = 0.1
_TIMED_OUT = 75


class _Unusable(Exception):
    """A policy or environment can't be made."""


def environment_of(system: System, env_id: str) -> gymnasium.Env[Any, Any]:
    """The environment in which a system plays, in its standard dress and with the system's limits."""
    return make_env(env_id, {**system.env_arguments, **system.limits.given()})


@dataclass
class _Attempt:
    """The job that is being played."""

    number: int
    job: Job
    env: gymnasium.Env[Any, Any]
    policy: Policy
    started: float
    moment: float
    opened: bool = False
    """The episode has begun."""
    health: list[dict[str, Any]] = field(default_factory=list)


class Worker:
    """Plays jobs.

    Args:
        channel: Where jobs come from and reports go.
        slot: Memory shared with the engine.
    """

    def __init__(self, channel: socket.socket, slot: Slot) -> None:
        """Start the thread that watches the time; the calling thread is the one that must play."""
        self._channel, self._slot = channel, slot
        self._environments: dict[bytes, gymnasium.Env[Any, Any]] = {}
        self._policies: dict[tuple[str, str], Policy] = {}
        self._attempt: _Attempt | None = None
        self._lock = threading.Lock()
        self._lock.acquire()
        threading.Thread(target=self._watch, daemon=True, name="agenteval watchdog").start()

    def serve(self) -> None:
        """Play jobs until the engine closes the channel."""
        lines = Lines(MOST_JOB_BYTES + 1000)
        while data := self._channel.recv(65536):
            for line in lines.feed(data):
                message = received(line)
                number = message["number"]
                if self._slot.halted:
                    self._report(number, {"skipped": True})
                    continue
                try:
                    self._play(number, job_from(message["job"]))
                except (_Unusable, EvidenceError) as error:
                    self._report(number, {"broken": str(error)})

    # The guard around the policy's code, entered by the main thread -------------------------------------------

    def __enter__(self) -> None:
        """The policy's code begins."""
        attempt = self._attempt
        if attempt is not None and not attempt.opened:
            self._open(attempt)
        self._slot.phase = Phase.POLICY
        self._lock.release()

    def __exit__(self, *error: object) -> None:
        """The policy's code is over. Where time was up, this waits for the end of the process."""
        self._lock.acquire()
        self._slot.phase = Phase.ENVIRONMENT

    # How it works ---------------------------------------------------------------------------------------------

    def _play(self, number: int, job: Job) -> None:
        started = time.monotonic()
        self._slot.begin(number, Phase.LOADING, started, started + LOADING_SECONDS)
        env, policy = self._environment(job), self._policy(job)
        started = time.monotonic()
        moment = math.inf if job.deadline is None else started + job.deadline
        self._slot.begin(number, Phase.ENVIRONMENT, started, moment)
        attempt = self._attempt = _Attempt(number, job, env, policy, started, moment)
        try:
            run = rollout(env, policy, seed=job.seed, task=job.task_id, attempt=job.attempt, guard=self)
        except (SpecError, PolicyError, TaskError) as error:
            raise _Unusable(f"system {job.system.name!r}, task {job.task_id}: {error}") from error
        except Exception as error:
            # Nobody's known fault: quarantined, with all that is known of it, and the environment isn't used again.
            traceback.print_exc()
            self._attempt = None
            self._forget(job)
            what = f"{type(error).__name__}: {error}"[:2000]
            terminal = Terminal(phase="act", origin="harness", kind="engine_error", detail=what)
            seconds = time.monotonic() - started
            self._report(number, done_json(None, terminal, "", attempt.health, seconds))
            return
        self._slot.phase = Phase.RECORDING
        if run.outcome_class is not OutcomeClass.SUCCESS:
            attempt.health.append(probe(env, "after"))
        self._attempt = None
        self._finish(attempt, run)

    def _open(self, attempt: _Attempt) -> None:
        """The episode has begun: its time is known now, and its channels are there to be probed."""
        core: Any = attempt.env.unwrapped
        seconds = attempt.env.get_wrapper_attr("limits").wall_seconds
        if seconds is not None:
            attempt.moment = min(attempt.moment, core.episode.started + seconds)
            self._slot.moment = attempt.moment
        attempt.health.append(probe(attempt.env, "before"))
        attempt.opened = True

    def _finish(self, attempt: _Attempt, run: AgentRun, **more: Any) -> None:
        """Keep the evidence, then report: a record always has its evidence."""
        job = attempt.job
        write_evidence(attempt.env.get_wrapper_attr("freeze")(), Path(job.folder) / job.place)
        update = {
            "run_id": job.run_id,
            "evidence": job.place,
            "system": job.system.name,
            "try_number": job.try_number,
        }
        run = run.model_copy(update=update)
        seconds = time.monotonic() - attempt.started
        self._report(attempt.number, done_json(run, run.terminal, job.place, attempt.health, seconds) | more)

    def _report(self, number: int, message: dict[str, Any]) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a policy may have closed or replaced it
                stream.flush()
        send(self._channel.sendall, {"number": number, **message})

    def _watch(self) -> None:
        while True:
            time.sleep(_TICK)
            attempt = self._attempt
            if attempt is None or not attempt.opened or time.monotonic() < attempt.moment:
                continue
            with self._lock:
                # The policy may have answered meanwhile; then the environment's own limits end the episode.
                if self._attempt is attempt and self._slot.phase is Phase.POLICY:
                    self._time_is_up(attempt)

    def _time_is_up(self, attempt: _Attempt) -> None:
        """Judge the state that was reached and end the process; the policy's code goes nowhere any more."""
        try:
            env, job = attempt.env, attempt.job
            env.get_wrapper_attr("stop")(kind="wall_time_limit", detail="the policy did not answer in time")
            system = system_spec(env, attempt.policy)
            self._finish(attempt, record(env, attempt.policy, system, job.attempt), last=True)
        except EvidenceError as error:
            self._report(attempt.number, {"broken": str(error)})
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(_TIMED_OUT)

    def _environment(self, job: Job) -> gymnasium.Env[Any, Any]:
        key = self._key(job)
        if key not in self._environments:
            while len(self._environments) >= _MOST_ENVIRONMENTS:  # a retry's limits are what its first try left
                self._environments.pop(next(iter(self._environments))).close()
            try:
                self._environments[key] = environment_of(job.system, job.env_id)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise _Unusable(f"system {job.system.name!r}: {job.env_id} can't be made: {what}") from error
        return self._environments[key]

    def _policy(self, job: Job) -> Policy:
        key = (job.system.policy, job.system.isolation)
        if key not in self._policies:
            try:
                self._policies[key] = policy_of(*key)
            except (Exception, SystemExit) as error:
                raise _Unusable(f"system {job.system.name!r}: {type(error).__name__}: {error}") from error
        return self._policies[key]

    def _forget(self, job: Job) -> None:
        env = self._environments.pop(self._key(job), None)
        if env is not None:
            with contextlib.suppress(Exception):
                env.close()

    def _key(self, job: Job) -> bytes:
        system = job.system.as_json()
        return canonical_json([job.env_id, system["env_arguments"], system["limits"]])


def main() -> None:
    """Serve the engine that started this process."""
    faulthandler.enable()
    inherited = [int(word) for word in sys.argv[1:]]
    sys.argv[1:] = []
    for descriptor in inherited:  # for this process alone, not for those that policies start
        os.set_inheritable(descriptor, False)
    channel, slot = socket.socket(fileno=inherited[0]), Slot(inherited[1])
    worker = Worker(channel, slot)
    send(channel.sendall, {"ready": True})
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the engine is gone
        worker.serve()
    # Threads and exit handlers that policies have left must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
