"""Transcripts: every byte a policy is shown in a fixed set of episodes, made here or in a process of its own.

Two transcripts of one script are equal, wherever and after whatever they were made, or state has leaked, a clock was
read, or order has crept in. Run as a module it reads a request from standard input and writes the transcript to
standard output, both as JSON.
"""

import ctypes
import datetime as dt
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium

from agent_envs.audit.playing import Played, Sight, Witness, books_differ, play, play_script
from agent_envs.audit.subject import AuditError, core_of, make, suite_of
from agent_envs.baselines.cheap import RandomCalls
from agent_envs.contract import canonical_json, digest, jsonable, state_hash

_SECONDS = 300
"""Longest that a probe may take."""
KILL_AFTER = 12
"""Steps after which a probe that is to be killed stands still."""


class Job(NamedTuple):
    """One episode pair of a transcript: random calls, then the reference, on one task with one seed."""

    task_id: str
    seed: int

    @property
    def name(self) -> str:
        """Key of the job in a transcript."""
        return f"{self.task_id} seed {self.seed}"


Transcript = dict[str, list[Any]]
"""Job to what was shown at each moment, and at its end each channel's digest."""


def transcript(env_id: str, jobs: Iterable[Job], env: gymnasium.Env[Any, Any] | None = None) -> Transcript:
    """Play the jobs in their order and note all that can be seen from outside.

    Args:
        env_id: The environment.
        jobs: What to play.
        env: An environment that has been used before; None: a new one.
    """
    suite = suite_of(env_id)
    witness = Witness(make(env_id) if env is None else env)
    result: Transcript = {}
    for job in jobs:
        reference = suite.references(job.task_id).references[0]
        plays: tuple[Callable[[], Played], ...] = (
            lambda job=job: play(witness, RandomCalls(), job.task_id, job.seed),  # type: ignore[misc]
            lambda job=job, run=reference: play_script(witness, run, job.task_id, job.seed),  # type: ignore[misc]
        )
        seen: list[Any] = []
        for player in plays:
            played = player()
            seen += [_plain(sight) for sight in played.sights]
            core = core_of(witness)
            seen.append({"chain": played.run.log_digest, "evidence": played.evidence.digest})
            if played.broken:
                seen.append({"broken": played.broken})
                continue
            channels = {name: channel.digest() for name, channel in core.world.channels.items()}
            seen.append({"channels": channels, "state": state_hash(channels), "books": books_differ(core)})
        result[job.name] = seen
    if env is None:
        witness.close()
    return result


def _plain(sight: Sight) -> Any:
    """A sight as JSON; what isn't JSON is named by its type, so that it differs from what is."""
    return jsonable(sight)


def difference(expected: Transcript, found: Transcript) -> str:
    """Where two transcripts part first, or empty."""
    for name, seen in expected.items():
        other = found.get(name)
        if other is None:
            return f"{name}: not played"
        for moment, (one, two) in enumerate(zip(seen, other, strict=False)):
            if canonical_json(one) != canonical_json(two):
                return f"{name}, moment {moment}: {_parted(one, two)}"
        if len(seen) != len(other):
            return f"{name}: {len(seen)} moments against {len(other)}"
    return ""


def _parted(one: Any, two: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(one.keys() | two.keys()):
            if one.get(key) != two.get(key):
                return _parted(one.get(key), two.get(key), f"{path}.{key}" if path else key)
    left, right = str(one), str(two)
    start = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = max(0, start - 30)
    return f"{path or 'value'}: ...{left[start : start + 80]!r} against ...{right[start : start + 80]!r}"


def elsewhere(env_id: str, jobs: Sequence[Job], **conditions: str) -> "Elsewhere":
    """Start to make a transcript in a new process.

    Args:
        env_id: The environment.
        jobs: What to play, in this order.
        **conditions: Environment variables of the process, such as ``PYTHONHASHSEED``.
    """
    return Elsewhere({"env_id": env_id, "jobs": [list(job) for job in jobs]}, conditions)


def killed(env_id: str, job: Job) -> None:
    """Start an episode in a new process and kill it with SIGKILL in the middle.

    Raises:
        AuditError: The process didn't get that far.
    """
    process = Elsewhere({"env_id": env_id, "jobs": [list(job)], "stand": True}, {})
    process.kill_in_mid_episode()


class Elsewhere:
    """A probe in a process of its own, at work since it was made."""

    def __init__(self, request: Mapping[str, Any], conditions: Mapping[str, str]) -> None:
        """Start the process."""
        paths = [path for path in sys.path if path] + [os.getcwd()]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **conditions}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agent_envs.audit.probe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def result(self) -> Transcript:
        """Wait for the transcript.

        Raises:
            AuditError: The process failed or took too long.
        """
        try:
            out, errors = self._process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise AuditError(f"a probe process was not done after {_SECONDS} seconds") from None
        if self._process.returncode:
            tail = errors.decode("utf-8", "replace").strip()[-600:]
            raise AuditError(f"a probe process ended with status {self._process.returncode}: {tail}")
        made: Transcript = json.loads(out)
        return made

    def kill_in_mid_episode(self) -> None:
        """Wait until the process says that it stands in the middle of an episode, then kill it.

        Raises:
            AuditError: It never got there.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._process.kill()
        _, errors = self._process.communicate()
        if line.strip() != b'"standing"':
            tail = errors.decode("utf-8", "replace").strip()[-600:]
            raise AuditError(f"the process to be killed didn't get into an episode: {tail}")


def _stand(env_id: str, job: Job) -> None:
    """Play half of an episode, say so, and wait to be killed."""
    env = make(env_id)
    policy = RandomCalls()
    core = core_of(env)
    observation, info = env.reset(seed=job.seed, options={"task": job.task_id})
    policy.begin(core.task, core.action_space.schemas(), job.seed)  # type: ignore[attr-defined]
    for _ in range(KILL_AFTER):
        action = policy.act(observation, info)
        if action["tool"] in core.episode.task.terminal_conditions:
            continue
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    print(json.dumps("standing"), flush=True)
    time.sleep(_SECONDS)


def shift_clock(seconds: float) -> None:
    """Move this process's idea of the present, for probes that must not notice it.

    Every way to the wall clock in `time` and `datetime` is moved; CPython's ``datetime`` reads the system's clock by
    itself, so it is changed in place, where a family that imported the class by name finds it too. Only for a process
    of its own: nothing puts the clock back.
    """
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 10**9)
    for name in ("gmtime", "localtime", "ctime"):
        setattr(time, name, _from_now(getattr(time, name)))
    text = time.strftime
    time.strftime = lambda form, moment=None: text(form, time.localtime() if moment is None else moment)

    now, utcnow, later = dt.datetime.now, dt.datetime.utcnow, dt.timedelta(seconds=seconds)
    attributes = gc.get_referents(vars(dt.datetime))[0]  # what the read-only view of the class stands for
    attributes["now"] = staticmethod(lambda tz=None: now(tz) + later)
    attributes["utcnow"] = staticmethod(lambda: utcnow() + later)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))


def _from_now(read: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `time` that takes the moved present where it is given no moment."""
    return lambda moment=None: read(time.time() if moment is None else moment)


def summary_digest(made: Transcript) -> str:
    """One digest of a whole transcript, whatever the order of its jobs."""
    return digest(made)


def main() -> None:
    """Read a request, play, and write what was seen."""
    request = json.loads(sys.stdin.readline())
    jobs = [Job(*job) for job in request["jobs"]]
    if shift := os.environ.get("AGENTEVAL_PROBE_SHIFT"):
        shift_clock(float(shift))
    if request.get("stand"):
        _stand(request["env_id"], jobs[0])
        return
    made = transcript(request["env_id"], jobs)
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    main()
