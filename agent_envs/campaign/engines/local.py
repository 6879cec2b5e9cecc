"""The local engine: worker processes on this machine, each with a keeper that lets nothing of it survive.

One loop, no threads: it hands out jobs, reads reports and output, and looks at each worker's shared memory for whether
its time is up. A worker that dies or has to be killed costs the one attempt it was playing; a job that was waiting
behind it is given out again.
"""

import contextlib
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from agent_envs.campaign.engines.base import Done, EngineError, Job
from agent_envs.campaign.engines.handle import WorkerProcess
from agent_envs.campaign.engines.wire import Phase, done_from
from agent_envs.contract import Terminal

GRACE = 2.0
"""Seconds that a worker has to report by itself after its time is up; then it is killed."""
_TICK = 0.25
_QUICK = 0.5
"""Attempts below this many seconds get the next job before they are over, so that no worker waits for its engine."""
_MOST_FAILED_STARTS = 3


class LocalEngine:
    """Plays jobs in worker processes on this machine.

    Args:
        workers: How many attempts are played at once.
        grace: Seconds between an attempt's deadline and the killing of a worker that doesn't end it by itself.
        name: First part of the workers' names.

    Raises:
        EngineError: ``workers`` isn't positive.
    """

    def __init__(self, workers: int = 1, *, grace: float = GRACE, name: str = "local") -> None:
        """Start nothing yet: workers start with the first jobs."""
        if workers < 1:
            raise EngineError(f"workers={workers!r}: at least one is needed")
        self._names = [f"{name}-{number}" for number in range(workers)]
        self._grace = grace
        self._workers: dict[str, WorkerProcess] = {}
        self._waiting: deque[Job] = deque()
        self._finished: deque[Done] = deque()
        self._selector = selectors.DefaultSelector()
        self._woken, self._waking = socket.socketpair()
        for end in (self._woken, self._waking):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, lambda: self._woken.recv(4096))
        self._stopping = self._now = self._closed = False
        self._failed_starts = 0

    def run(self, jobs: Iterator[Job | None]) -> Iterator[Done]:
        """Play jobs and yield each as it finishes; see `Engine`.

        Raises:
            EngineError: The engine can't go on, or was closed.
        """
        if self._closed:
            raise EngineError("the engine was closed; make another one")
        try:
            while not self._now:
                self._hand_out(jobs)
                if self._finished:
                    yield self._finished.popleft()
                elif any(worker.jobs for worker in self._workers.values()):
                    self._wait()
                else:  # every worker is free, and there was nothing for them
                    return
        finally:
            self._waiting.clear()
            self._finished.clear()
            for worker in list(self._workers.values()):
                if worker.jobs:  # broken off: what it does now would be nobody's
                    self._drop(worker)

    def stop(self, now: bool = False) -> None:
        """Hand out no more jobs, for good; with ``now`` kill those that run. May be called from a signal handler."""
        self._stopping = True
        self._now = self._now or now
        for worker in list(self._workers.values()):
            with contextlib.suppress(ValueError):  # just closed
                worker.slot.halt()
        with contextlib.suppress(OSError):
            self._waking.send(b"!")

    def close(self) -> None:
        """End every worker with all its descendants; bounded, and safe to call twice."""
        if self._closed:
            return
        self._closed = self._stopping = self._now = True
        for worker in self._workers.values():
            worker.kept.let_go()
        for worker in list(self._workers.values()):
            self._drop(worker)
        self._selector.close()
        self._woken.close()
        self._waking.close()

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    # How it works ---------------------------------------------------------------------------------------------

    def _hand_out(self, jobs: Iterator[Job | None]) -> None:
        """Give each free worker a job, as long as there are any."""
        while not self._stopping and (name := self._free()) is not None:
            job = self._waiting.popleft() if self._waiting else next(jobs, None)
            if job is None:
                return
            if name not in self._workers:
                self._workers[name] = WorkerProcess(name, self._selector, self._read, self._read_output)
            self._workers[name].give(job)
            if self._stopping:  # told so by a signal, after the worker was looked up
                self._workers[name].slot.halt()

    def _free(self) -> str | None:
        """A worker that has nothing to do; else one whose present attempt will soon be over."""
        for name in self._names:
            if name not in self._workers or not self._workers[name].jobs:
                return name
        for name in self._names:
            if self._workers[name].quick and len(self._workers[name].jobs) == 1:
                return name
        return None

    def _wait(self) -> None:
        for key, _ in self._selector.select(_TICK):
            key.data()
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if worker.overdue(now, self._grace):
                self._lost(worker, timed_out=True)

    def _read(self, worker: "WorkerProcess") -> None:
        """Read a worker's reports; at their end, find out what has become of it."""
        data = worker.receive()
        for message in data or ():
            self._reported(worker, message)
        if data is None and self._workers.get(worker.name) is worker:
            self._lost(worker, timed_out=False)

    def _read_output(self, worker: "WorkerProcess") -> None:
        worker.read_output(self._selector)

    def _reported(self, worker: "WorkerProcess", message: dict[str, Any]) -> None:
        if "ready" in message:
            worker.ready, self._failed_starts = True, 0
            return
        _, job = worker.jobs.popleft()
        if "skipped" in message:
            return
        if "broken" in message:
            raise EngineError(_with_tail(message["broken"], worker.tail(self._selector)))
        done = done_from(job, message, worker.name, worker.tail(self._selector))
        worker.output = b""
        worker.quick = done.seconds < _QUICK
        self._finished.append(done)
        if message.get("last"):
            self._give_back(worker)
            self._drop(worker)

    def _lost(self, worker: "WorkerProcess", timed_out: bool) -> None:
        """A worker is dead, or is killed now because its time is up; decide what that means for its jobs."""
        if timed_out and (messages := worker.receive()):  # it has reported in the meantime after all
            for message in messages:
                self._reported(worker, message)
            return
        phase = worker.running
        worker.tail(self._selector)
        status = self._drop(worker)
        tail = worker.output.decode("utf-8", "replace")
        if phase is Phase.LOADING:
            what = "took too long" if timed_out else f"ended the process ({_status(status)})"
            job = worker.jobs[0][1]
            raise EngineError(_with_tail(f"system {job.system.name!r}: making its policy or environment {what}", tail))
        if not worker.ready:
            self._failed_starts += 1
            if timed_out or self._failed_starts >= _MOST_FAILED_STARTS:
                what = "did not come up in time" if timed_out else f"ended at its start ({_status(status)})"
                raise EngineError(_with_tail(f"worker {worker.name} {what}", tail))
        elif phase is not Phase.IDLE:
            _, job = worker.jobs.popleft()
            seconds = time.monotonic() - worker.started
            terminal = _ending(phase, timed_out, status)
            self._finished.append(
                Done(job=job, run=None, terminal=terminal, tail=tail, seconds=seconds, worker=worker.name)
            )
        self._give_back(worker)

    def _give_back(self, worker: "WorkerProcess") -> None:
        if not self._stopping:
            self._waiting.extend(job for _, job in worker.jobs)
        worker.jobs.clear()

    def _drop(self, worker: "WorkerProcess") -> int:
        """End a worker and everything it has started."""
        self._workers.pop(worker.name, None)
        return worker.end(self._selector)


def _ending(phase: Phase, timed_out: bool, status: int) -> Terminal:
    """The way of ending that the loss of a process stands for."""
    if timed_out and phase is Phase.POLICY:
        detail = (
            "time was up, and the policy let nothing else run: its process was killed with the state it had reached"
        )
        return Terminal(phase="act", origin="agent", kind="policy_hung", detail=detail)
    if timed_out and phase is Phase.ENVIRONMENT:
        detail = "the environment did not come back when time was up; its process was killed"
        return Terminal(phase="act", origin="environment", kind="tool_fault", detail=detail)
    if phase is Phase.POLICY:
        detail = f"the policy's process ended in the policy's code ({_status(status)})"
        return Terminal(phase="act", origin="agent", kind="policy_crash", detail=detail)
    detail = f"the worker was lost outside the policy's code ({'time was up' if timed_out else _status(status)})"
    return Terminal(phase="act", origin="environment", kind="worker_lost", detail=detail)


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _with_tail(message: str, tail: str) -> str:
    return f"{message}; it last wrote: {tail[-1500:].strip()}" if tail.strip() else message
