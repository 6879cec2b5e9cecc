"""The Ray engine: the local engine's workers on the nodes of a Ray cluster.

Each worker is an actor that has a `LocalEngine` of its own with one process, so deadlines and crashes are handled by
the same code on every node, and records are the same. What an attempt leaves travels back with its report and is
written here: nodes need no common file system. A node or actor that is lost costs the attempt it was playing
(`worker_lost`); one that never came up costs none.
"""

import contextlib
import fcntl
import math
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agent_envs.baselines.process import package_path
from agent_envs.campaign.engines.base import Done, EngineError, Job
from agent_envs.campaign.engines.local import GRACE, LocalEngine
from agent_envs.campaign.engines.wire import done_from, done_json, job_from, job_json
from agent_envs.contract import Terminal
from agent_envs.contract.archive import sync_folder

_TICK = 0.25
_CLOSE_SECONDS = 5.0
_STORE_BYTES = 100 * 2**20
_MOST_FAILED_STARTS = 5
_SUSPECT_SECONDS = 60.0
_FOLDERS = "agenteval-ray-"
_CLUSTERS = "agenteval-rc-"


class RayWorker:
    """One worker on a node: plays a job in a process of its own, there.

    Args:
        name: Name of the worker in records.
        grace: As for `LocalEngine`.
    """

    def __init__(self, name: str, grace: float) -> None:
        """Make the node's part of the engine; its process starts with the first job."""
        self._folder, self._owned = _own_folder(_FOLDERS)
        self._engine = LocalEngine(1, grace=grace, name=name)

    def ready(self) -> bool:
        """The worker has come up."""
        return True

    def play(self, data: dict[str, Any]) -> dict[str, Any]:
        """Play a job.

        Args:
            data: The job as JSON; its folder is of another machine and isn't used.

        Returns:
            The report as JSON, with the files of the evidence.

        Raises:
            EngineError: As `LocalEngine.run`.
        """
        job = job_from({**data, "folder": self._folder})
        (done,) = self._engine.run(iter([job]))
        files = {}
        if done.evidence:
            folder = Path(self._folder) / done.evidence
            files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
            shutil.rmtree(folder)
        report = done_json(done.run, done.terminal, done.evidence, list(done.health), done.seconds)
        return {"report": report, "tail": done.tail, "name": done.worker, "files": files}

    def close(self) -> None:
        """End the process and remove what is left on the disk."""
        self._engine.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _own_folder(prefix: str) -> tuple[str, int]:
    """A temporary folder that is this process's as long as it lives, and the descriptor that holds it."""
    _remove_leftovers(Path(tempfile.gettempdir()), prefix)
    while True:
        folder = tempfile.mkdtemp(prefix=prefix)
        with contextlib.suppress(FileNotFoundError):  # another one took it for a leftover before it was held
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, descriptor
            os.close(descriptor)


def _remove_leftovers(place: Path, prefix: str) -> None:
    """Remove the folders of processes that were killed: nobody holds them any more."""
    for folder in sorted(place.glob(prefix + "*")):
        with contextlib.suppress(OSError):  # in use, or another user's
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


class RayEngine:
    """Plays jobs on a Ray cluster.

    Args:
        workers: How many attempts are played at once.
        address: Of a running cluster, as `ray.init` takes it; empty: the present connection if there is one, else a
            cluster on this machine alone, which `close` ends.
        grace: As for `LocalEngine`.

    Raises:
        EngineError: Ray isn't installed, the cluster can't be reached, or ``workers`` isn't positive.
    """

    def __init__(self, workers: int = 1, *, address: str = "", grace: float = GRACE) -> None:
        """Connect to the cluster."""
        if workers < 1:
            raise EngineError(f"workers={workers!r}: at least one is needed")
        self._ray = _ray()
        self._grace = grace
        self._names = [f"ray-{number}" for number in range(workers)]
        self._actors: dict[str, Any] = {}
        self._nodes: dict[str, str] = {}
        """By worker: the node it was started on."""
        self._suspect: dict[str, float] = {}
        """By node: when a worker was lost there last. The cluster takes a while to notice that a node is dead."""
        self._playing: dict[Any, tuple[str, Job, float]] = {}
        """By the reference of the report to come: worker, job, and when it was handed out."""
        self._starting: dict[Any, str] = {}
        """By the reference of the sign of life to come: worker."""
        self._failed_starts = 0
        self._waiting: deque[Job] = deque()
        self._finished: deque[Done] = deque()
        self._stopping = self._now = self._closed = False
        self._environment = {"PYTHONPATH": package_path(os.environ.get("PYTHONPATH", ""))}
        self._scratch = ""
        self._own = not self._ray.is_initialized()
        if self._own:
            self._connect(address, workers)

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
                elif self._playing or (self._waiting and not self._stopping):
                    pending = [*self._playing, *self._starting]
                    ready, _ = self._ray.wait(pending, num_returns=1, timeout=_TICK)
                    for reference in ready:
                        if reference in self._starting:
                            self._started(reference)
                        else:
                            self._finished.append(self._report(reference))
                else:
                    return
        finally:
            self._finished.clear()
            self._waiting.clear()
            for name, _, _ in list(self._playing.values()):
                self._kill(name)
            self._playing.clear()

    def stop(self, now: bool = False) -> None:
        """Hand out no more jobs, for good; with ``now`` kill those that run. May be called from a signal handler."""
        self._stopping = True
        self._now = self._now or now

    def close(self) -> None:
        """End every worker, and the cluster if it was started here; bounded, and safe to call twice."""
        if self._closed:
            return
        self._closed = self._stopping = self._now = True
        busy = {name for name, _, _ in self._playing.values()} | set(self._starting.values())
        goodbyes = [actor.close.remote() for name, actor in self._actors.items() if name not in busy]
        with contextlib.suppress(Exception):
            self._ray.wait(goodbyes, num_returns=len(goodbyes), timeout=_CLOSE_SECONDS) if goodbyes else None
        for name in list(self._actors):
            self._kill(name)
        if self._own:
            self._ray.shutdown()
        self._let_scratch_go()

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    # How it works ---------------------------------------------------------------------------------------------

    def _connect(self, address: str, workers: int) -> None:
        quiet = {"log_to_driver": False, "configure_logging": False}
        try:
            if address:
                self._ray.init(address=address, **quiet)
                return
            # Short, because sockets lie in it; ours, so that it can be removed as a whole.
            self._scratch, self._owned = _own_folder(_CLUSTERS)
            self._environment["TMPDIR"] = self._scratch
            self._ray.init(
                address="local",  # otherwise it would join whatever cluster runs on this machine
                num_cpus=workers,
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                _node_ip_address="127.0.0.1",
                _temp_dir=self._scratch,
                **quiet,
            )
        except Exception as error:
            self._let_scratch_go()
            raise EngineError(f"the Ray cluster {address or 'on this machine'!r} can't be used: {error}") from error

    def _let_scratch_go(self) -> None:
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
            os.close(self._owned)
            self._scratch = ""

    def _hand_out(self, jobs: Iterator[Job | None]) -> None:
        """Give each free worker a job, and start workers for the jobs that none is there for."""
        busy = {name for name, _, _ in self._playing.values()} | set(self._starting.values())
        for name in self._names:
            if self._stopping:
                return
            if name in busy:
                continue
            if len(self._waiting) <= (0 if name in self._actors else len(self._starting)):
                job = next(jobs, None)
                if job is None:
                    return
                job.place  # noqa: B018 (raises)
                self._waiting.append(job)
            if name in self._actors:
                job = self._waiting.popleft()
                reference = self._actors[name].play.remote(job_json(job))
                self._playing[reference] = (name, job, time.monotonic())
            else:
                self._actors[name] = self._start(name)
                self._starting[self._actors[name].ready.remote()] = name

    def _started(self, reference: Any) -> None:
        """A worker has come up, or is lost before it was given anything."""
        name = self._starting.pop(reference)
        try:
            self._ray.get(reference)
            self._failed_starts = 0
        except self._ray.exceptions.RayError as error:
            self._kill(name)
            self._suspect[self._nodes.get(name, "")] = time.monotonic()
            self._failed_starts += 1
            if self._failed_starts >= _MOST_FAILED_STARTS:
                raise EngineError(f"worker {name} can't be started on the cluster: {str(error)[-1500:]}") from error

    def _place(self, name: str) -> Any:
        """A node with as few of our workers as any, none of those where one was just lost; anywhere if it is full."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = sorted(node["NodeID"] for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU"))
        recently = time.monotonic() - _SUSPECT_SECONDS
        good = [node for node in alive if self._suspect.get(node, -math.inf) < recently] or alive
        if not good:
            return "DEFAULT"
        at_work = [self._nodes.get(other, "") for other in self._actors if other != name]
        node = self._nodes[name] = min(good, key=at_work.count)
        return NodeAffinitySchedulingStrategy(node, soft=True)

    def _start(self, name: str) -> Any:
        made = self._ray.remote(RayWorker).options(
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=self._place(name),
            runtime_env={"env_vars": self._environment},
        )
        return made.remote(name, self._grace)

    def _report(self, reference: Any) -> Done:
        name, job, since = self._playing.pop(reference)
        try:
            answer = self._ray.get(reference)
        except EngineError as error:
            raise EngineError(str(error.args[0] if error.args else error)) from None
        except self._ray.exceptions.RayError as error:
            self._kill(name)
            self._suspect[self._nodes.get(name, "")] = time.monotonic()
            detail = f"worker {name} was lost with its actor or node: {type(error).__name__}"
            terminal = Terminal(phase="act", origin="environment", kind="worker_lost", detail=detail)
            return Done(job=job, run=None, terminal=terminal, seconds=time.monotonic() - since, worker=name)
        if answer["files"]:
            _keep(Path(job.folder) / job.place, answer["files"])
        return done_from(job, answer["report"], name, answer["tail"])

    def _kill(self, name: str) -> None:
        actor = self._actors.pop(name, None)
        if actor is not None:
            with contextlib.suppress(Exception):  # it may be gone already
                self._ray.kill(actor)


def _ray() -> Any:
    """Ray itself, told to send nothing anywhere.

    Raises:
        EngineError: It isn't installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise EngineError("the engine 'ray' needs Ray: pip install 'agent-envs[ray]'") from error
    return ray


def _keep(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files of an attempt's evidence durably; the folder is there whole or not at all.

    Raises:
        EngineError: They can't be written.
    """
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, data in files.items():
            with (temporary / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        sync_folder(temporary)
        if folder.exists():  # left by an attempt that was broken off
            shutil.rmtree(folder)
        temporary.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise EngineError(f"{folder}: the evidence can't be written: {error}") from error
