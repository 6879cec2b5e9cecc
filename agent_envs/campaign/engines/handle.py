"""A worker process seen from its engine: jobs go in, reports and output come out, and it can be ended at any time."""

import contextlib
import math
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from agent_envs.baselines.keeper import Kept
from agent_envs.baselines.process import package_path
from agent_envs.campaign.engines.base import EngineError, Job
from agent_envs.campaign.engines.wire import MOST_DONE_BYTES, MOST_JOB_BYTES, Lines, Phase, Slot, job_json, received
from agent_envs.contract import canonical_json

START_SECONDS = 120.0
"""How long a worker may take to come up."""
_TAIL = 8192


class WorkerProcess:
    """A worker process as its engine sees it.

    Args:
        name: Name of the worker in records.
        selector: Where its channel and its output are watched.
        on_message: Called with it when reports have arrived, or there won't be any more.
        on_output: Called with it when it has printed something.

    Raises:
        EngineError: It can't be started.
    """

    def __init__(
        self,
        name: str,
        selector: selectors.BaseSelector,
        on_message: "Callable[[WorkerProcess], None]",
        on_output: "Callable[[WorkerProcess], None]",
    ) -> None:
        """Start it."""
        self.name = name
        self.jobs: deque[tuple[int, Job]] = deque()
        """Jobs that were sent and not yet reported, with their numbers."""
        self.ready = False
        self.quick = False
        self.output = b""
        self._number = 0
        self._lines = Lines(MOST_DONE_BYTES)
        self._born = time.monotonic()
        self._phase, self.started = Phase.IDLE, 0.0
        self.slot = Slot()
        self.channel, theirs = socket.socketpair()
        self._output, writing = os.pipe()
        environment = {**os.environ, "PYTHONPATH": package_path(os.environ.get("PYTHONPATH", ""))}
        try:
            self.kept = Kept(
                [
                    sys.executable,
                    "-m",
                    "agent_envs.campaign.engines.worker",
                    str(theirs.fileno()),
                    str(self.slot.descriptor),
                ],
                environment,
                descriptors=(theirs.fileno(), self.slot.descriptor),
                stdout=writing,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise EngineError(f"worker {name} can't be started: {error}") from error
        finally:
            theirs.close()
            os.close(writing)
        self.channel.setblocking(False)
        os.set_blocking(self._output, False)
        selector.register(self.channel, selectors.EVENT_READ, lambda: on_message(self))
        selector.register(self._output, selectors.EVENT_READ, lambda: on_output(self))

    def give(self, job: Job) -> None:
        """Send a job.

        Raises:
            EngineError: It is too large, or names a folder that can't be.
        """
        job.place  # noqa: B018 (raises)
        self._number += 1
        line = canonical_json({"number": self._number, "job": job_json(job)}) + b"\n"
        if len(line) > MOST_JOB_BYTES:
            raise EngineError(f"{job.run_id}: the job takes {len(line)} bytes; at most {MOST_JOB_BYTES} can be sent")
        self.jobs.append((self._number, job))
        # A dead worker is noticed where its reports end.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.sendall(line)

    @property
    def running(self) -> Phase:
        """In whose code it is with its first job; idle when that hasn't been taken up."""
        if not self.jobs or self.slot.number != self.jobs[0][0]:
            return Phase.IDLE
        self.started = self.slot.started
        return self.slot.phase

    def overdue(self, now: float, grace: float) -> bool:
        """Whether its time is up and it did nothing about it."""
        if not self.ready:
            return now > self._born + START_SECONDS
        return self.running is not Phase.IDLE and self.slot.moment < math.inf and now > self.slot.moment + grace

    def receive(self) -> list[dict[str, Any]] | None:
        """The reports that have arrived; None when there won't be any more."""
        messages: list[dict[str, Any]] = []
        try:
            while data := self.channel.recv(2**20):
                messages += [received(line) for line in self._lines.feed(data)]
        except (BlockingIOError, InterruptedError):
            return messages
        except (ConnectionResetError, ValueError):  # broken off, or no report of ours: as good as dead
            pass
        return messages or None

    def read_output(self, selector: selectors.BaseSelector) -> bool:
        """Take some of what it printed; False when nothing is there."""
        if self._output < 0:
            return False
        try:
            data = os.read(self._output, 65536)
        except BlockingIOError:
            return False
        if not data:
            selector.unregister(self._output)
            os.close(self._output)
            self._output = -1
            return False
        self.output = (self.output + data)[-_TAIL:]
        return True

    def tail(self, selector: selectors.BaseSelector) -> str:
        """The end of what it has printed so far."""
        for _ in range(32):  # a flood doesn't hold up the engine
            if not self.read_output(selector):
                break
        return self.output.decode("utf-8", "replace")

    def end(self, selector: selectors.BaseSelector) -> int:
        """Kill it with all its descendants, and let everything go."""
        status = self.kept.end()
        self.tail(selector)
        selector.unregister(self.channel)
        self.channel.close()
        if self._output >= 0:
            selector.unregister(self._output)
            os.close(self._output)
            self._output = -1
        self.slot.close()
        return status
