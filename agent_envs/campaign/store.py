"""The campaign folder: what is planned, every try of it, and the one record of each planned attempt.

::

    campaign.lock.json   the plan, frozen
    attempts.jsonl       every try: invalid ones, smoke and canary runs too, with the reason for what became of it
    runs.jsonl           the one record of each planned attempt that is settled
    health.jsonl         sessions, checks, the probes around each try, stops
    evidence/<run>/      what each try left
    report/              made from the above
    history/<n>/         the same files as they were before the n-th accepted change

A try is written to ``attempts.jsonl`` first, then, when it settles its attempt, to ``runs.jsonl``. A kill between the
two loses nothing: the next runner copies what is missing. So attempts are settled once, and resuming is a set
difference.
"""

import contextlib
import fcntl
import os
import shutil
import socket
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field

from agent_envs.campaign.health import HealthRecord
from agent_envs.campaign.lines import Lines, ResultsError
from agent_envs.campaign.results import RUNS_NAME
from agent_envs.contract import AgentRun, Model, Terminal, parse_json

LOCK_NAME = "campaign.lock.json"
ATTEMPTS_NAME = "attempts.jsonl"
HEALTH_NAME = "health.jsonl"
EVIDENCE_NAME = "evidence"
HISTORY_NAME = "history"
_RUNNER_NAME = ".runner"


Decision = Literal["counted", "invalid", "retry", "check", "reused", "regraded"]
SETTLED = frozenset(("counted", "invalid", "reused", "regraded"))
"""Decisions after which the try's record is the one of its planned attempt."""


class TryRecord(Model):
    """One line of ``attempts.jsonl``: a try, and what became of it."""

    run: AgentRun
    """The record; where the worker left none, one that says so."""
    purpose: Literal["attempt", "smoke", "canary"] = "attempt"
    decision: Decision
    """``counted``: the first valid try, in the denominator. ``invalid``: settled without one. ``retry``: tried again.
    ``check``: a smoke or canary run. ``reused``, ``regraded``: taken over after an accepted change."""
    reason: str
    """Why, for people."""
    session: int = Field(ge=1)
    """Which start of the runner."""
    elapsed: float = Field(ge=0)
    """Seconds from the session's start to this try's end."""
    reclassified_from: Terminal | None = None
    """How the try ended by itself, where a failed health probe says otherwise."""
    tail: str = ""
    """End of what the worker printed, where the try is invalid."""
    taken_from: str = ""
    """Run id of the record a reused or regraded one was made of."""


@dataclass
class Progress:
    """What the records say is done. Of settled attempts only the id is kept."""

    settled: set[str] = field(default_factory=set)
    """Ids of planned attempts that have their record."""
    pending: dict[str, list[AgentRun]] = field(default_factory=dict)
    """Tries of attempts that have no record yet, and of smoke and canary runs."""
    classes: Counter[str] = field(default_factory=Counter)
    """Settled attempts by outcome class."""
    invalid: int = 0
    """Settled attempts that don't count."""
    unclassified: int = 0
    tries: int = 0
    """Tries, those of smoke and canary runs too."""
    ever: int = 0
    """Tries that were ever made, those before an accepted change too."""
    invalid_tries: int = 0
    """Tries that don't count."""
    cost: float = 0.0
    """US dollars that are known to be spent, over all tries."""
    cost_unknown: int = 0
    """Tries that reported no cost."""
    seconds: float = 0.0
    """Seconds that runners were at work, over all sessions."""
    session: int = 0
    """The last session's number."""
    last: HealthRecord | None = None
    """The last start or stop of a runner."""
    checked: bool = False
    """All checks before the first attempt have passed."""
    passed: set[str] = field(default_factory=set)
    """Ids of the smoke and canary runs that did."""
    busy: float = 0.0
    """Wall time of all tries, added up."""

    def settle(self, run: Mapping[str, Any]) -> None:
        """Count the record of a planned attempt."""
        self.settled.add(run["run_id"])
        self.classes[run["outcome_class"]] += 1
        self.invalid += not run["counts"]
        self.unclassified += run["outcome_class"] == "unclassified"

    def spend(self, run: Mapping[str, Any]) -> None:
        """Count what a try has used."""
        self.tries += 1
        self.invalid_tries += not run["counts"]
        self.pay(run)

    def pay(self, run: Mapping[str, Any]) -> None:
        """Count time and cost of a try."""
        self.ever += 1
        self.busy += run["seconds"]
        cost = run["usage"]["cost"]
        self.cost += cost or 0.0
        self.cost_unknown += cost is None


class CampaignStore:
    """A campaign's folder and the files in it.

    Args:
        folder: Where it stands.
    """

    def __init__(self, folder: Path) -> None:
        """Name the files; nothing is read or made yet."""
        self.folder = folder
        self.runs = Lines(folder / RUNS_NAME, AgentRun, "its attempt is taken from the tries or run again")
        self.attempts = Lines(folder / ATTEMPTS_NAME, TryRecord, "its attempt is run again")
        self.health = Lines(folder / HEALTH_NAME, HealthRecord)

    @contextlib.contextmanager
    def runner(self) -> Iterator[None]:
        """Be the folder's one runner.

        Raises:
            ResultsError: Another one is at work, or the folder can't be written.
        """
        path = self.folder / _RUNNER_NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ResultsError(f"{self.folder}: the campaign can't be written: {error}") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                who = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "of unknown name"
                raise ResultsError(
                    f"{self.folder}: another runner ({who}) is at work here; wait until it has ended, or stop it"
                ) from None
            os.ftruncate(descriptor, 0)
            with contextlib.suppress(OSError):  # a full disk: the name is for people only
                os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def runner_at_work(self) -> str:
        """Process and host of the runner at work, empty when there is none."""
        try:
            with (self.folder / _RUNNER_NAME).open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return file.read(200).decode("utf-8", "replace").strip() or "unknown"
        except OSError:
            pass
        return ""

    def keep(self, record: TryRecord) -> None:
        """Write a try down and, when it settles its attempt, the attempt's record.

        The try is on the disk afterwards; the record, which `progress` makes of it anew if need be, is in the system's
        hands: one sync an attempt is enough.

        Raises:
            ResultsError: They can't be written; what stood there is unharmed.
        """
        self.attempts.append(record)
        if record.decision in SETTLED:
            self.runs.append(record.run, sync=False)

    def note(self, record: HealthRecord, sync: bool = True) -> None:
        """Add a line to ``health.jsonl``.

        Raises:
            ResultsError: It can't be written.
        """
        self.health.append(record, sync)

    def progress(self, repair: bool = False) -> Progress:
        """Read what is done, a line at a time.

        Args:
            repair: Copy records of settled tries that ``runs.jsonl`` lacks after a kill; only the one runner may.

        Raises:
            ResultsError: A file can't be read, or a line is damaged.
        """
        found = Progress()
        for number, run in _plain(self.runs):
            if run["run_id"] in found.settled:
                where = f"{self.runs.path}, line {number}"
                warnings.warn(f"{where}: {run['run_id']} is recorded a second time; the first counts", stacklevel=2)
            else:
                found.settle(run)
        for _, line in _plain(self.attempts):
            run = line["run"]
            if line["decision"] not in ("reused", "regraded"):
                found.spend(run)
            if run["run_id"] in found.settled:
                continue
            if line["decision"] in SETTLED:
                found.settle(run)
                found.pending.pop(run["run_id"], None)
                if repair:
                    self.runs.append(AgentRun.model_validate(run))
            else:
                found.pending.setdefault(run["run_id"], []).append(AgentRun.model_validate(run))
        for earlier in self._earlier():  # what was spent stays spent, whatever became of the records
            for _, line in _plain(earlier):
                if line["decision"] not in ("reused", "regraded"):
                    found.pay(line["run"])
        self._read_health(found)
        return found

    def _earlier(self) -> list[Lines[TryRecord]]:
        """The tries as they were before each accepted change."""
        return [Lines(path, TryRecord) for path in sorted((self.folder / HISTORY_NAME).glob(f"*/{ATTEMPTS_NAME}"))]

    def sessions(self) -> list[HealthRecord]:
        """The starts and stops of runners, in order."""
        return [record for record in self.health if record.kind in ("session", "stop")]

    def _read_health(self, found: Progress) -> None:
        sessions: dict[int, float] = {}
        for number, line in self.health.raw():
            try:
                record = HealthRecord.parse(line)
                elapsed = float(record.data.get("elapsed", 0.0))
            except (ValueError, TypeError) as error:
                raise ResultsError(f"{self.health.path}, line {number}, the record: {error}"[:500]) from None
            sessions[record.session] = max(sessions.get(record.session, 0.0), elapsed)
            if record.kind in ("session", "stop"):
                found.last = record
            elif record.kind == "checked":
                found.checked = True
            elif record.kind in ("smoke", "canary") and record.ok:
                found.passed.add(record.subject)
        found.session = max(sessions, default=0)
        found.seconds = sum(sessions.values())

    def drop_unnamed_evidence(self) -> None:
        """Remove evidence that no try names: an attempt that was broken off left it. Only the one runner may.

        Raises:
            ResultsError: The tries can't be read.
        """
        evidence = self.folder / EVIDENCE_NAME
        if evidence.is_dir():
            tries = (self.attempts, *self._earlier())
            named = {line["run"]["evidence"] for lines in tries for _, line in _plain(lines)}
            for name in sorted(entry.name for entry in os.scandir(evidence)):
                if f"{EVIDENCE_NAME}/{name}" not in named:
                    shutil.rmtree(evidence / name, ignore_errors=True)


_READ = {"run_id", "outcome_class", "counts", "usage", "seconds", "evidence"}


def _plain(lines: Lines[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines as plain JSON: checking every field of what this program wrote itself would take most of the time."""
    for number, line in lines.raw():
        try:
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:  # a lone surrogate, perhaps
                record = parse_json(line)
            if missing := _READ - record.get("run", record).keys():
                raise ValueError(f"{min(missing)} is missing")
        except (ValueError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"[:300]
            raise ResultsError(f"{lines.path}, line {number}, the record: {what}") from None
        yield number, record
