"""What an engine and its worker processes share: messages as lines of JSON, and a few bytes of common memory.

The memory says what a worker is doing without a message for it: which job, since when, until when, and in whose code.
It outlives the worker, so when a worker is dead or hangs it still tells whose fault that is.
"""

import mmap
import struct
import tempfile
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

from agent_envs.campaign.engines.base import Done, Job
from agent_envs.contract import AgentRun, Terminal, canonical_json, parse_json

MOST_JOB_BYTES = 60_000
"""Longest job as JSON: two of them fit into a socket's buffer, so sending one never blocks."""
MOST_DONE_BYTES = 2**28
_SIZE = 64
_PHASE, _HALT = 8, 9
_STARTED, _MOMENT = 16, 24


class Phase(IntEnum):
    """In whose code a worker is."""

    IDLE = 0
    LOADING = 1
    """A policy or environment is being made: not yet an attempt."""
    ENVIRONMENT = 2
    POLICY = 3
    RECORDING = 4
    """The episode is over; its evidence is being written."""


class Slot:
    """The common memory of an engine and one worker.

    Args:
        descriptor: File descriptor of the memory; negative makes new memory.
    """

    def __init__(self, descriptor: int = -1) -> None:
        """Map the memory."""
        self._file = None
        if descriptor < 0:
            self._file = tempfile.TemporaryFile(buffering=0)
            self._file.truncate(_SIZE)
            descriptor = self._file.fileno()
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)

    def begin(self, number: int, phase: Phase, started: float, moment: float) -> None:
        """A job has been taken up (worker)."""
        self._memory[_PHASE] = Phase.IDLE
        struct.pack_into("<dd", self._memory, _STARTED, started, moment)
        struct.pack_into("<Q", self._memory, 0, number)
        self._memory[_PHASE] = phase

    @property
    def number(self) -> int:
        """Number of the job taken up last; 0 before the first."""
        found: int = struct.unpack_from("<Q", self._memory, 0)[0]
        return found

    @property
    def phase(self) -> Phase:
        """In whose code the worker is."""
        return Phase(self._memory[_PHASE])

    @phase.setter
    def phase(self, phase: Phase) -> None:
        self._memory[_PHASE] = phase

    @property
    def started(self) -> float:
        """When the job was taken up, in seconds of `time.monotonic`."""
        found: float = struct.unpack_from("<d", self._memory, _STARTED)[0]
        return found

    @property
    def moment(self) -> float:
        """When the job must be over; infinity for no bound."""
        found: float = struct.unpack_from("<d", self._memory, _MOMENT)[0]
        return found

    @moment.setter
    def moment(self, moment: float) -> None:
        struct.pack_into("<d", self._memory, _MOMENT, moment)

    @property
    def halted(self) -> bool:
        """Whether no further job may be taken up."""
        return bool(self._memory[_HALT])

    def halt(self) -> None:
        """Let no further job be taken up (engine)."""
        self._memory[_HALT] = 1

    def close(self) -> None:
        """Let the memory go."""
        self._memory.close()
        if self._file is not None:
            self._file.close()


class Lines:
    """Cuts what arrives on a stream into lines, bounded."""

    def __init__(self, most: int) -> None:
        """Refuse lines of more than ``most`` bytes."""
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that ``data`` completes.

        Raises:
            ValueError: A line is too long.
        """
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            line, self._parts, self._size = b"".join(self._parts), [], 0
            yield line
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most:
            raise ValueError(f"a line of more than {self._most} bytes")
        if piece:
            self._parts.append(piece)


def job_json(job: Job) -> dict[str, Any]:
    """A job as plain JSON."""
    fields = {name: getattr(job, name) for name in Job.__dataclass_fields__ if name != "system"}
    return fields | {"system": job.system.as_json()}


def job_from(data: dict[str, Any]) -> Job:
    """A job back from plain JSON."""
    from agent_envs.campaign.manifest import System

    return Job(**data | {"system": System.model_validate(data["system"])})


def done_json(
    run: AgentRun | None,
    terminal: Terminal,
    evidence: str,
    health: list[dict[str, Any]],
    seconds: float,
) -> dict[str, Any]:
    """How a job ended, as plain JSON."""
    return {
        "run": None if run is None else run.as_json(),
        "terminal": terminal.as_json(),
        "evidence": evidence,
        "health": health,
        "seconds": seconds,
    }


def done_from(job: Job, data: dict[str, Any], worker: str, tail: str) -> Done:
    """How a job ended, back from plain JSON."""
    run = None if data["run"] is None else AgentRun.model_validate(data["run"])
    if run is not None:
        run = run.model_copy(update={"worker": worker})
    return Done(
        job=job,
        run=run,
        terminal=Terminal.model_validate(data["terminal"]),
        evidence=data["evidence"],
        tail=tail,
        health=tuple(data["health"]),
        seconds=data["seconds"],
        worker=worker,
    )


def send(write: Callable[[bytes], Any], message: dict[str, Any]) -> None:
    """Send a message as one line."""
    write(canonical_json(message) + b"\n")


def received(line: bytes) -> dict[str, Any]:
    """A message from its line."""
    message: dict[str, Any] = parse_json(line)
    return message
