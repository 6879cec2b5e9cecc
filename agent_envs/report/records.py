"""A campaign folder's records as columns: one row a planned attempt, whatever became of it.

The records are read as a stream and only numbers are kept, so a hundred thousand attempts fit. The text of the few
attempts that a report shows is fetched afterwards from its place in the file.
"""

import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.lock import Lock, read_lock
from agent_envs.campaign.results import RUNS_NAME
from agent_envs.campaign.standing import void
from agent_envs.campaign.store import ATTEMPTS_NAME, SETTLED, CampaignStore, TryRecord
from agent_envs.contract import AgentEvalError, AgentRun, Model, OutcomeClass

CLASSES = tuple(OutcomeClass)
MISSING = -1
"""Outcome of a planned attempt without a record."""
MOST_SHOWN = 200
"""Failures and invalid tries that a report shows in full."""

M = TypeVar("M", bound=Model)
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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


def load(folder: Path) -> Records:
    """Read a campaign folder.

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
        self.columns = _blank(
            np.array([by_name[item.system] for item in planned], dtype=np.int64),
            np.array([first[item.env_id, item.task_id] for item in planned], dtype=np.int64),
            np.array([item.attempt for item in planned], dtype=np.int64),
        )
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

    def load(self) -> Records:
        # The readers warn with a file's full path; a report must be the same wherever the folder stands.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            strangers, doubles = self._settled()
            self._tries()
            why = void(self.lock.manifest, self.store.progress(), len(self.lock.planned))
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
            columns=self.columns,
            policies=self.policies,
            oracles=frozenset(self.oracles),
            endings=tuple(self.endings),
            invalid=tuple(self.invalid),
            invalid_total=self.invalid_total,
            void=why,
            stopped=stops[-1] if stops else "",
            notes=tuple(self.notes),
        )

    def _take(self, index: int, run: AgentRun, place: int) -> None:
        table, system = self.columns, self.systems[self.columns.system[index]]
        env_id, task_id = self.tasks[table.task[index]]
        if (run.env_id, run.task_id) != (env_id, task_id):
            raise ReportError(f"{self.folder / RUNS_NAME}: {run.run_id} was planned on {task_id}, ran on {run.task_id}")
        table.outcome[index] = CLASSES.index(run.outcome_class)
        table.valid[index] = run.counts
        table.success[index] = run.counts and run.outcome_class is OutcomeClass.SUCCESS
        table.broke_rule[index], table.false_claim[index] = run.broke_rule, run.false_claim
        table.seconds[index], table.environment_seconds[index] = run.seconds, run.environment_seconds
        table.steps[index], table.order[index] = run.usage.steps, run.order
        table.cost[index] = np.nan if run.usage.cost is None else run.usage.cost
        table.tokens[index] = np.nan if run.usage.tokens is None else run.usage.tokens
        table.worker[index] = self.workers.setdefault(run.worker, len(self.workers))
        table.place[index] = place
        ending = f"{run.terminal.phase}/{run.terminal.origin}/{run.terminal.kind}"
        table.ending[index] = self.endings.setdefault(ending, len(self.endings))
        if run.system_spec_hash != self.hashes[system, env_id]:
            self.other_specs[system] = self.other_specs.get(system, 0) + 1
        if run.oracle:
            self.oracles.add(system)

    def _settled(self) -> tuple[int, int]:
        """Take the record of each planned attempt; count the records of no plan, and the repeated ones."""
        strangers = doubles = place = 0
        for number, line in self.store.runs.raw():
            run = _parsed(AgentRun, self.store.runs.path, number, line)
            index = self.index.get(run.run_id)
            if index is None:
                strangers += 1
            elif self.columns.place[index] >= 0:
                doubles += 1
            else:
                self._take(index, run, place)
            place += len(line) + 1
        return strangers, doubles

    def _tries(self) -> None:
        """Count the tries of each planned attempt and what they cost, and keep the first that don't count."""
        unsettled = 0
        for number, line in self.store.attempts.raw():
            record = _parsed(TryRecord, self.store.attempts.path, number, line)
            index = self.index.get(record.run.run_id)
            if record.purpose != "attempt" or index is None:
                continue
            cost = record.run.usage.cost
            self.columns.tries[index] += 1
            self.columns.spent[index] += np.nan if cost is None else cost
            unsettled += record.decision in SETTLED and self.columns.place[index] < 0
            if not record.run.counts:
                self.invalid_total += 1
                if len(self.invalid) < MOST_SHOWN:
                    self.invalid.append(record)
        if unsettled:
            self.notes.append(f"{unsettled} finished tries aren't in {RUNS_NAME} yet: resume the campaign first")
        untold = (self.columns.place >= 0) & (self.columns.tries == 0)
        if untold.any():
            self.notes.append(f"{int(untold.sum())} records have no try in {ATTEMPTS_NAME}")
            self.columns.tries[untold] = 1
            self.columns.spent[untold] = self.columns.cost[untold]


def _blank(system: Ints, task: Ints, attempt: Ints) -> Columns:
    """Columns of attempts of which nothing is known yet."""

    def whole(value: int) -> Ints:
        return np.full(system.size, value, dtype=np.int64)

    def flag() -> Flags:
        return np.zeros(system.size, dtype=np.bool_)

    def number(value: float = np.nan) -> Floats:
        return np.full(system.size, value, dtype=np.float64)

    return Columns(
        system=system,
        task=task,
        attempt=attempt,
        outcome=whole(MISSING),
        ending=whole(-1),
        valid=flag(),
        success=flag(),
        broke_rule=flag(),
        false_claim=flag(),
        cost=number(),
        spent=number(0.0),
        tokens=number(),
        seconds=number(),
        environment_seconds=number(),
        steps=number(),
        order=whole(0),
        worker=whole(0),
        tries=whole(0),
        place=whole(-1),
    )


def _parsed(model: type[M], path: Path, number: int, line: bytes) -> M:
    try:
        try:
            return model.model_validate_json(line)
        except ValidationError:
            return model.parse(line)  # pydantic's own parser refuses lone surrogates
    except ValueError as error:
        raise ResultsError(f"{path}, line {number}: damaged: {'; '.join(str(error).splitlines()[:3])}"[:500]) from None
