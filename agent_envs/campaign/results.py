"""The results folder: one record a line, appended durably, readable after a kill at any instant.

``runs.jsonl`` holds one `AgentRun` a line. A line is appended under a file lock and synced before ``append`` returns, so
parallel writers don't mix lines and a finished attempt is never lost. A kill in the middle of a write can only leave a
torn last line, which the next reader drops with a warning and the next writer cuts off; damage elsewhere is an error with
its line number.

Of several records with one ``run_id`` the first counts, unless its way of ending may be retried (`OUTCOME_TABLE`): then
the next one does.
"""

import fcntl
import os
import warnings
from pathlib import Path

from pydantic import ValidationError

from agent_envs.contract import AgentEvalError, AgentRun, Evidence, EvidenceError, consequences, read_evidence
from agent_envs.contract.archive import sync_folder

RUNS_NAME = "runs.jsonl"


class ResultsError(AgentEvalError):
    """A results folder can't be read or written; the message names the file and line."""


class Results:
    """A results folder.

    Args:
        folder: Where it stands; made when the first record is appended.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is read or made yet."""
        self.folder = folder
        self.path = folder / RUNS_NAME

    def append(self, run: AgentRun) -> None:
        """Add a record; it is on the disk when this returns.

        Raises:
            ResultsError: The folder can't be written; what stood there is unharmed.
        """
        line = run.canonical() + b"\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _drop_torn_tail(descriptor)
                start = os.fstat(descriptor).st_size
                try:
                    written = os.write(descriptor, line)
                    while written < len(line):
                        written += os.write(descriptor, line[written:])
                    os.fsync(descriptor)
                    if start == 0:
                        sync_folder(self.folder)
                except OSError:
                    os.ftruncate(descriptor, start)  # a full disk must not leave half a record
                    raise
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ResultsError(f"{self.path}: the record can't be written: {error}") from None

    def read(self) -> list[AgentRun]:
        """The record of each run, in the order in which the runs were first written.

        Raises:
            ResultsError: The file can't be read, or a line in the middle is damaged.
        """
        lines = self._bytes().split(b"\n")
        if lines.pop():
            warnings.warn(f"{self.path}: the last line is torn and was dropped; its attempt is run again", stacklevel=2)
        runs: dict[str, AgentRun] = {}
        for number, line in enumerate(lines, start=1):
            try:
                run = AgentRun.parse(line)
            except ValueError as error:
                raise ResultsError(f"{self.path}, line {number}, {_first_fault(error)}") from None
            known = runs.get(run.run_id)
            if known is None or consequences(known.terminal).retry:
                runs[run.run_id] = run
            else:
                where = f"{self.path}, line {number}"
                warnings.warn(f"{where}: {run.run_id} is recorded a second time; the first counts", stacklevel=2)
        return list(runs.values())

    def evidence_folder(self, run: AgentRun) -> Path:
        """Where a run's evidence is kept.

        Raises:
            EvidenceError: It isn't kept, or the record points out of the results folder.
        """
        place = Path(run.evidence)
        if not run.evidence or place.is_absolute() or ".." in place.parts:
            raise EvidenceError(
                f"{run.run_id}: the record names no folder of evidence in {self.folder}: {run.evidence!r}"
            )
        return self.folder / place

    def evidence(self, run: AgentRun) -> Evidence:
        """A run's evidence, proven to be this run's.

        Raises:
            EvidenceError: It is missing or damaged, or isn't what the run left.
        """
        folder = self.evidence_folder(run)
        evidence = read_evidence(folder)
        if evidence.digest != run.evidence_digest:
            raise EvidenceError(
                f"{folder}: the evidence has the digest {evidence.digest[:12]}, the record of {run.run_id} says "
                f"{run.evidence_digest[:12]}: it was changed, or is another run's"
            )
        return evidence

    def _bytes(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)  # a line that is just being written isn't torn
                return file.read()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise ResultsError(f"{self.path}: the records can't be read: {error}") from None


def _first_fault(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"the record: {error}"[:300]
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"]) or "the record"
    return f"{field}: {first['msg']}"


def _drop_torn_tail(descriptor: int) -> None:
    """Cut off what a killed writer left after the last line end, so that the next record starts a line of its own."""
    size = os.fstat(descriptor).st_size
    position, keep = size, 0
    while position > 0:
        start = max(0, position - 65536)
        block = os.pread(descriptor, position - start, start)
        if (found := block.rfind(b"\n")) >= 0:
            keep = start + found + 1
            break
        position = start
    if keep < size:
        os.ftruncate(descriptor, keep)
