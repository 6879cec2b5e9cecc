"""The campaign: checks first, then every planned attempt in the locked order, each settled once.

The runner holds no results: of a finished attempt it knows the id. So it can be killed at any instant, and starting it
again goes on with what the records don't have.
"""

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from agent_envs.campaign.change import finish
from agent_envs.campaign.decide import Rules, decide
from agent_envs.campaign.engines.base import Done, Engine, EngineError, Job
from agent_envs.campaign.health import HealthRecord, check_reset
from agent_envs.campaign.items import Item, Tasks, checks, fault_of, lost_run, planned, spec_of
from agent_envs.campaign.lock import Lock, read_lock
from agent_envs.campaign.standing import Standing, State, stand, void
from agent_envs.campaign.store import CampaignStore, Decision, TryRecord
from agent_envs.contract import AgentEvalError, AgentRun, canonical_json

DIRTY_CHECKS = 20
"""Tasks of each environment that are also reset from a dirty state, at most."""


class CampaignError(AgentEvalError):
    """A campaign can't go on; the message says what to do."""


def run_campaign(
    folder: Path, engine: Engine, progress: Callable[[Standing], None] = lambda standing: None
) -> Standing:
    """Run what a campaign's records don't have yet.

    The first SIGINT (Ctrl-C) or SIGTERM lets running attempts finish and starts no others, the second ends them.

    Args:
        folder: The campaign's folder, with its lock.
        engine: Plays the attempts; closed at the end.
        progress: Called after each try.

    Returns:
        How the campaign stands now.

    Raises:
        ResultsError: The folder can't be read or written, or another runner is at work in it.
        EngineError: The engine can't go on.
        CampaignError: The systems under test have changed under the campaign's hands.
    """
    read_lock(folder)  # a folder that isn't a campaign gets no runner's lock either
    store = CampaignStore(folder.absolute())
    with store.runner(), engine:
        finish(store.folder)
        return _Runner(read_lock(folder), store, engine, progress).run()


class _Runner:
    """One session."""

    def __init__(self, lock: Lock, store: CampaignStore, engine: Engine, progress: Callable[[Standing], None]) -> None:
        self._lock, self._store, self._engine, self._report = lock, store, engine, progress
        self._rules = Rules.of(lock.manifest)
        self._campaign = lock.digest
        self._tasks = Tasks()
        self._started = time.monotonic()
        self._done = store.progress(repair=True)
        self._before = self._done.seconds
        self._session = self._done.session + 1
        self._queue: deque[Item] = deque()
        self._flying: dict[str, tuple[Item, int]] = {}
        self._order = self._done.ever
        self._state: State | None = None
        self._reason = ""
        self._presses = 0

    def run(self) -> Standing:
        """Run to the end, whatever the end is."""
        self._store.drop_unnamed_evidence()
        self._note(kind="session", data={"campaign": self._campaign, "settled": len(self._done.settled)})
        try:
            with self._signals():
                self._halt_when_void()
                if self._state is None and not self._done.checked:
                    self._check()
                self._fill()
                self._play()
        except BaseException as error:
            with contextlib.suppress(AgentEvalError):  # the folder may be what can't be written
                self._stop("stopped", f"{type(error).__name__}: {error}"[:500])
            raise
        finally:
            self._tasks.close()
        standing = self._standing(self._state or "finished")
        self._stop(standing.state, standing.reason)
        return standing

    # Before the first attempt ----------------------------------------------------------------------------------

    def _check(self) -> None:
        """Reset checks, smoke runs and canaries; the first fault stops the campaign with its evidence."""
        for arguments in self._environments():
            if not self._resets(arguments):
                return
        for item in checks(self._lock):
            if item.run_id not in self._done.passed:
                self._queue.append(item.numbered_from(len(self._done.pending.get(item.run_id, ()))))
        self._play()
        if self._state is None:
            self._note(kind="checked", data={"resets": len(self._lock.tasks)})

    def _environments(self) -> list[dict[str, Any]]:
        """The different environment arguments of the systems."""
        found = {canonical_json(system.env_arguments): system.env_arguments for system in self._lock.manifest.systems}
        return list(found.values())

    def _resets(self, arguments: dict[str, Any]) -> bool:
        tasks = self._lock.tasks
        each = max(1, len(tasks) // DIRTY_CHECKS)
        for number, task in enumerate(tasks):
            if self._state is not None:
                return False
            env = self._tasks.env(task.env_id, arguments)
            record = check_reset(env, task.task_id, self._lock.manifest.seed, dirty=number % each == 0)
            self._store.note(record.model_copy(update={"session": self._session}), sync=False)
            if not record.ok:
                self._halt("stopped", f"the reset check of {task.task_id} failed: {record.detail}")
                return False
        return True

    # Attempts --------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        done, pending = self._done.settled, self._done.pending
        for item in planned(self._lock):
            if item.run_id not in done:
                for run in pending.get(item.run_id, ()):
                    item = item.again(run)
                self._queue.append(item)

    def _play(self) -> None:
        while self._queue and self._state is None:
            for done in self._engine.run(self._jobs()):
                self._accept(done)
            if self._flying and self._state is None:
                raise EngineError(f"the engine gave no result for {next(iter(self._flying))}; run the campaign again")
            self._flying.clear()

    def _jobs(self) -> Iterator[Job | None]:
        while self._state is None:
            self._halt_when_spent()
            if self._state is not None:
                return
            if self._queue:
                item = self._queue.popleft()
                job = item.job(self._store.folder, self._tasks.task(item.env_id, item.task_id))
                self._flying[item.run_id] = item, self._order
                self._order += 1
                yield job
            elif self._flying:
                yield None  # a try in flight may have to be tried again
            else:
                return

    def _accept(self, done: Done) -> None:
        item, order = self._flying.pop(done.job.run_id)
        if done.terminal.phase == "record":
            raise EngineError(f"{item.run_id}: what the attempt left can't be kept: {done.terminal.detail}")
        run = done.run or lost_run(item, done, self._lock, self._tasks.task(item.env_id, item.task_id))
        self._same_system(item, run.system_spec_hash)
        spec = spec_of(item, self._lock)
        run = run.model_copy(
            update={
                "run_id": item.run_id,
                "system_spec_hash": spec.digest if spec is not None else run.system_spec_hash,
                "attempt": item.attempt,
                "evidence": done.evidence,
                "campaign": self._campaign,
                "system": item.system.name,
                "try_number": item.try_number,
                "order": order,
                "worker": done.worker,
                "weight": item.weight,
                "labels": dict(item.labels),
            }
        )
        ruling = decide(run, done.health, item.earlier, self._rules)
        attempt = item.purpose == "attempt"
        self._done.seconds = self._before + self._elapsed
        decision: Decision = "check" if not attempt else "counted" if ruling.run.counts else "invalid"
        self._store.keep(
            TryRecord(
                run=ruling.run,
                purpose=item.purpose,
                decision=decision if ruling.settles else "retry",
                reason=ruling.reason,
                session=self._session,
                elapsed=self._elapsed,
                reclassified_from=ruling.reclassified_from,
                tail="" if ruling.run.counts else done.tail[-4000:],
            )
        )
        self._done.spend(_counted(ruling.run))
        ok = all(probe.get("ok", True) for probe in done.health)
        self._note(
            kind="try",
            ok=ok,
            subject=item.run_id,
            data={"try": item.try_number, "probes": list(done.health)},
            sync=False,
        )
        if not ruling.settles:
            self._queue.append(item.again(ruling.run))
        elif attempt:
            self._done.settle(_counted(ruling.run))
        else:
            fault = fault_of(item, ruling.run)
            self._note(kind=item.purpose, ok=not fault, subject=item.run_id, detail=fault)
            if fault:
                self._halt("stopped", fault)
        self._halt_when_void()
        self._report(self._standing("running"))

    def _same_system(self, item: Item, found: str) -> None:
        """What played must be what the lock says, or records would carry a wrong name (retries have less budget)."""
        spec = spec_of(item, self._lock)
        if spec is not None and not item.earlier and found != spec.digest:
            raise CampaignError(
                f"{item.run_id}: the system {item.system.name!r} that played ({found[:12]}) isn't the locked one "
                f"({spec.digest[:12]}): something of it changed after the start; 'agenteval campaign resume' shows what"
            )

    # Stopping --------------------------------------------------------------------------------------------------

    def _halt(self, state: State, reason: str) -> None:
        """Start nothing more; the first reason stands."""
        if self._state is None:
            self._state, self._reason = state, reason
            self._engine.stop()

    def _halt_when_spent(self) -> None:
        budgets, done = self._lock.manifest.budgets, self._done
        if budgets.total_cost is not None and done.cost >= budgets.total_cost:
            self._halt("stopped", f"budget: {done.cost:.2f} of {budgets.total_cost:g} US dollars are spent")
        if budgets.total_seconds is not None and done.busy >= budgets.total_seconds:
            self._halt("stopped", f"budget: {done.busy:.1f} of {budgets.total_seconds:g} seconds are used")

    def _halt_when_void(self) -> None:
        if why := void(self._lock.manifest, self._done, len(self._lock.planned)):
            self._halt("invalid", why)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def press(signum: int, frame: FrameType | None) -> None:
            self._presses += 1
            if self._state is None:
                self._state, self._reason = "interrupted", f"by {signal.Signals(signum).name}"
            self._engine.stop(now=self._presses > 1)

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, press) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # Notes -----------------------------------------------------------------------------------------------------

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _standing(self, state: State) -> Standing:
        return stand(self._lock, self._done, state, self._reason)

    def _note(self, sync: bool = True, **fields: Any) -> None:
        data = {**fields.pop("data", {}), "elapsed": self._elapsed}
        self._store.note(HealthRecord(session=self._session, data=data, **fields), sync)

    def _stop(self, state: State, reason: str) -> None:
        self._store.runs.sync()
        self._note(kind="stop", ok=state == "finished", detail=reason, data={"state": state})


def _counted(run: AgentRun) -> dict[str, Any]:
    """What `Progress` reads of a record."""
    return {
        "run_id": run.run_id,
        "outcome_class": run.outcome_class.value,
        "counts": run.counts,
        "seconds": run.seconds,
        "usage": {"cost": run.usage.cost},
    }
