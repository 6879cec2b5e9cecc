"""A campaign folder's records as columns: one row a planned attempt, whatever became of it.

The records are read as a stream and only numbers are kept, so a hundred thousand attempts fit. The text of the few
attempts that a report shows is fetched afterwards from its place in the file.
"""

import dataclasses
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agent_envs.campaign.lock import Lock, read_lock
from agent_envs.campaign.results import RUNS_NAME
from agent_envs.campaign.standing import void
from agent_envs.campaign.store import ATTEMPTS_NAME, SETTLED, CampaignStore, Progress, TryRecord
from agent_envs.contract import AgentEvalError, AgentRun, OutcomeClass, Status
from agent_envs.report.reading import RunPart, TriedPart, read_run, read_try, read_whole

CLASSES = tuple(OutcomeClass)
MISSING = -1
"""Outcome of a planned attempt without a record."""
_PLACES = {kind: place for place, kind in enumerate(CLASSES)}

MOST_SHOWN = 200
"""Failures and invalid tries that a report shows in full."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


_TAKEN_OVER = frozenset(("reused", "regraded"))
"""Decisions after which nothing was run: the try was counted where it was made."""


class ReportError(AgentEvalError):
    """A report can't be made; the message names the file and what is wrong with it."""


@dataclasses.dataclass(frozen=True)
class Columns:
    """One entry a planned attempt, in the lock's order. Unknown numbers are NaN."""

    system: Ints
    """Index into the systems."""
    task: Ints
    """Index into the tasks."""
    attempt: Ints
    outcome: Ints
    """Index into ``CLASSES``, or ``MISSING``."""
    ending: Ints
    """Index into the endings; -1 without a record."""
    valid: Flags
    """On record and in the denominator."""
    success: Flags
    broke_rule: Flags
    false_claim: Flags
    cost: Floats
    """US dollars of the attempt that counts."""
    spent: Floats
    """US dollars over all its tries."""
    tokens: Floats
    seconds: Floats
    environment_seconds: Floats
    steps: Floats
    order: Ints
    """Start order within the campaign."""
    worker: Ints
    """Index into the workers."""
    tries: Ints
    """Tries on record."""
    place: Ints
    """Where the record's line begins in ``runs.jsonl``; -1 without a record."""


@dataclasses.dataclass(frozen=True)
class Records:
    """What a campaign folder holds."""

    folder: Path
    lock: Lock
    systems: tuple[str, ...]
    tasks: tuple[tuple[str, str], ...]
    """Environment and task id."""
    digests: tuple[str, ...]
    """Each task's digest."""
    weights: Floats
    """Each task's weight."""
    labels: tuple[Mapping[str, str], ...]
    """Each task's labels."""
    workers: tuple[str, ...]
    run_ids: tuple[str, ...]
    columns: Columns
    policies: Mapping[str, str]
    """Each system's policy, by system name."""
    oracles: frozenset[str]
    endings: tuple[str, ...]
    """Terminal reasons as ``phase/origin/kind``."""
    invalid: tuple[TryRecord, ...]
    """The first tries that don't count."""
    invalid_total: int
    void: str
    """Why the campaign is invalid; empty when it isn't."""
    stopped: str
    """What the last runner that stopped gave as its reason."""
    notes: tuple[str, ...]

    def run(self, index: int) -> AgentRun:
        """The whole record of a planned attempt.

        Raises:
            ReportError: It has none, or the file has changed.
        """
        place = int(self.columns.place[index])
        path = self.folder / RUNS_NAME
        if place < 0:
            raise ReportError(f"{path}: {self.run_ids[index]} has no record")
        try:
            with path.open("rb") as file:
                file.seek(place)
                return AgentRun.parse(file.readline())
        except (OSError, ValueError) as error:
            raise ReportError(f"{path}: the record of {self.run_ids[index]} can't be read again: {error}") from None


class _Row(NamedTuple):
    """An attempt's record, in the order of the columns it fills."""

    outcome: int
    ending: int
    valid: bool
    success: bool
    broke_rule: bool
    false_claim: bool
    cost: float
    tokens: float
    seconds: float
    environment_seconds: float
    steps: float
    order: int
    worker: int
    place: int


_NAN = math.nan
_BLANK = _Row(MISSING, -1, False, False, False, False, _NAN, _NAN, _NAN, _NAN, _NAN, 0, 0, -1)
"""An attempt of which nothing is known yet."""


def load(folder: Path) -> Records:
    """Read a campaign folder.

    Every line is checked as far as it's used; `agent_envs.report.verify` checks the whole records.

    Raises:
        ResultsError: A file can't be read, or a line in the middle is damaged.
        ReportError: The records don't fit the plan.
    """
    return _Loader(folder, read_lock(folder)).load()


class _Loader:
    """Fills the columns while the records pass by once."""

    def __init__(self, folder: Path, lock: Lock) -> None:
        self.folder, self.lock, self.store = folder, lock, CampaignStore(folder)
        self.notes: list[str] = []
        planned = lock.planned
        self.index = {item.run_id: place for place, item in enumerate(planned)}
        self.systems = tuple(system.name for system in lock.manifest.systems)
        by_name = {name: place for place, name in enumerate(self.systems)}
        self.tasks = tuple((task.env_id, task.task_id) for task in lock.tasks)
        first = {key: place for place, key in enumerate(self.tasks)}
        self.system = [by_name[item.system] for item in planned]
        self.task = [first[item.env_id, item.task_id] for item in planned]
        self.attempt = [item.attempt for item in planned]
        self.rows: list[_Row] = [_BLANK] * len(planned)
        self.tries, self.spent = [0] * len(planned), [0.0] * len(planned)
        self.workers: dict[str, int] = {}
        self.policies: dict[str, str] = {system.name: system.policy for system in lock.manifest.systems}
        self.oracles: set[str] = set()
        self.endings: dict[str, int] = {}
        self.other_specs: dict[str, int] = {}
        self.hashes = {
            (name, env_id): lock.spec(name, env_id).digest for name in self.systems for env_id, _ in self.tasks
        }
        self.invalid: list[TryRecord] = []
        self.invalid_total = 0
        self.progress = Progress()

    def load(self) -> Records:
        # The readers warn with a file's full path; a report must be the same wherever the folder stands.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            strangers, doubles = self._settled()
            self._tries()
            why = void(self.lock.manifest, self.progress, len(self.lock.planned))
            stops = [record.detail for record in self.store.sessions() if record.kind == "stop"]
        if caught:
            self.notes.append("a last line is torn, by a runner that was killed or is still at work, and was left out")
        if strangers:
            self.notes.append(f"{strangers} records in {RUNS_NAME} belong to no planned attempt and were left out")
        if doubles:
            self.notes.append(f"{doubles} records in {RUNS_NAME} repeat an attempt; the first of each counts")
        for name, number in sorted(self.other_specs.items()):
            self.notes.append(f"{number} records of {name} come from another version of the system than the locked one")
        return Records(
            folder=self.folder,
            lock=self.lock,
            systems=self.systems,
            tasks=self.tasks,
            digests=tuple(task.task_digest for task in self.lock.tasks),
            weights=np.array([task.weight for task in self.lock.tasks], dtype=np.float64),
            labels=tuple(task.labels for task in self.lock.tasks),
            workers=tuple(self.workers),
            run_ids=tuple(self.index),
            columns=self._columns(),
            policies=self.policies,
            oracles=frozenset(self.oracles),
            endings=tuple(self.endings),
            invalid=tuple(self.invalid),
            invalid_total=self.invalid_total,
            void=why,
            stopped=stops[-1] if stops else "",
            notes=tuple(self.notes),
        )

    def _take(self, index: int, run: RunPart, place: int) -> None:
        system, ending, verdict = self.systems[self.system[index]], run.terminal, run.verdict
        env_id, task_id = self.tasks[self.task[index]]
        if (run.env_id, run.task_id) != (env_id, task_id):
            raise ReportError(f"{self.folder / RUNS_NAME}: {run.run_id} was planned on {task_id}, ran on {run.task_id}")
        named = f"{ending.phase}/{ending.origin}/{ending.kind}"
        good = None if verdict is None else verdict.G
        self.rows[index] = _Row(
            outcome=_PLACES[run.outcome_class],
            ending=self.endings.setdefault(named, len(self.endings)),
            valid=run.counts,
            success=run.counts and run.outcome_class is OutcomeClass.SUCCESS,
            broke_rule=verdict is not None and good is Status.PASS and verdict.C is Status.FAIL,
            false_claim=run.declared_success and good is Status.FAIL,
            cost=_known(run.usage.cost),
            tokens=_known(run.usage.tokens),
            seconds=run.seconds,
            environment_seconds=run.environment_seconds,
            steps=run.usage.steps,
            order=run.order,
            worker=self.workers.setdefault(run.worker, len(self.workers)),
            place=place,
        )
        if run.system_spec_hash != self.hashes[system, env_id]:
            self.other_specs[system] = self.other_specs.get(system, 0) + 1
        if run.oracle:
            self.oracles.add(system)

    def _settle(self, run: RunPart | TriedPart) -> None:
        """Count an attempt that has its record, as far as the campaign's standing depends on it."""
        if run.run_id not in self.progress.settled:
            self.progress.settled.add(run.run_id)
            self.progress.unclassified += run.outcome_class is OutcomeClass.UNCLASSIFIED

    def _settled(self) -> tuple[int, int]:
        """Take the record of each planned attempt; count the records of no plan, and the repeated ones."""
        strangers = doubles = place = 0
        path = self.store.runs.path
        for number, line in self.store.runs.raw():
            run = read_run(path, number, line)
            self._settle(run)
            index = self.index.get(run.run_id)
            if index is None:
                strangers += 1
            elif self.rows[index].place >= 0:
                doubles += 1
            else:
                self._take(index, run, place)
            place += len(line) + 1
        return strangers, doubles

    def _tries(self) -> None:
        """Count the tries of each planned attempt and what they cost, and keep the first that don't count."""
        unsettled, path = 0, self.store.attempts.path
        for number, line in self.store.attempts.raw():
            record = read_try(path, number, line)
            run, settles = record.run, record.decision in SETTLED
            if record.decision not in _TAKEN_OVER:
                self.progress.tries += 1
                self.progress.invalid_tries += not run.counts
            if settles:
                self._settle(run)
            index = self.index.get(run.run_id)
            if record.purpose != "attempt" or index is None:
                continue
            self.tries[index] += 1
            self.spent[index] += _known(run.usage.cost)
            unsettled += settles and self.rows[index].place < 0
            if not run.counts:
                self.invalid_total += 1
                if len(self.invalid) < MOST_SHOWN:
                    self.invalid.append(read_whole(TryRecord, path, number, line))
        if unsettled:
            self.notes.append(f"{unsettled} finished tries aren't in {RUNS_NAME} yet: resume the campaign first")
        untold = [index for index, row in enumerate(self.rows) if row.place >= 0 and not self.tries[index]]
        if untold:
            self.notes.append(f"{len(untold)} records have no try in {ATTEMPTS_NAME}")
        for index in untold:
            self.tries[index], self.spent[index] = 1, self.rows[index].cost

    def _columns(self) -> Columns:
        table = np.array(self.rows, dtype=np.float64).reshape(-1, len(_Row._fields))
        column = dict(zip(_Row._fields, table.T, strict=True))

        def whole(name: str) -> Ints:
            return column[name].astype(np.int64)

        def flag(name: str) -> Flags:
            return column[name].astype(np.bool_)

        def number(name: str) -> Floats:
            return column[name].copy()

        return Columns(
            system=np.array(self.system, dtype=np.int64),
            task=np.array(self.task, dtype=np.int64),
            attempt=np.array(self.attempt, dtype=np.int64),
            outcome=whole("outcome"),
            ending=whole("ending"),
            valid=flag("valid"),
            success=flag("success"),
            broke_rule=flag("broke_rule"),
            false_claim=flag("false_claim"),
            cost=number("cost"),
            spent=np.array(self.spent, dtype=np.float64),
            tokens=number("tokens"),
            seconds=number("seconds"),
            environment_seconds=number("environment_seconds"),
            steps=number("steps"),
            order=whole("order"),
            worker=whole("worker"),
            tries=np.array(self.tries, dtype=np.int64),
            place=whole("place"),
        )


def _known(value: float | None) -> float:
    """A number, NaN where it's unknown."""
    return math.nan if value is None else value
