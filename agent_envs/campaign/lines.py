"""Records, one a line: appended durably, readable after a kill at any instant.

A line is appended under a file lock and synced before ``append`` returns, so parallel writers don't mix lines and
nothing finished is lost. A kill in the middle of a write can only leave a torn last line, which the next reader drops
with a warning and the next writer cuts off; damage elsewhere is an error with its line number.
"""

import contextlib
import fcntl
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import orjson
from pydantic import ValidationError

from agent_envs.contract import AgentEvalError, Model
from agent_envs.contract.archive import sync_folder

M = TypeVar("M", bound=Model)


class ResultsError(AgentEvalError):
    """A results folder can't be read or written; the message names the file and line."""


class Lines(Generic[M]):
    """A file of records.

    Args:
        path: The file; it and its folder are made when the first record is appended.
        model: What each line holds.
        after: What follows for a torn last line, for the warning.
    """

    def __init__(self, path: Path, model: type[M], after: str = "") -> None:
        """Name the file; nothing is read or made yet."""
        self.path = path
        self._model = model
        self._after = after

    def append(self, record: M, sync: bool = True) -> None:
        """Add a record; it is on the disk when this returns (without ``sync``: in the system's hands).

        Raises:
            ResultsError: The file can't be written; what stood there is unharmed.
        """
        self.append_bytes(record.canonical() + b"\n", sync)

    def append_bytes(self, lines: bytes, sync: bool = True) -> None:
        """Add whole lines, all or none of them.

        Raises:
            ResultsError: The file can't be written; what stood there is unharmed.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _drop_torn_tail(descriptor)
                start = os.fstat(descriptor).st_size
                try:
                    written = os.write(descriptor, lines)
                    while written < len(lines):
                        written += os.write(descriptor, lines[written:])
                    if sync:
                        os.fdatasync(descriptor)
                        if start == 0:
                            sync_folder(self.path.parent)
                except OSError:
                    os.ftruncate(descriptor, start)  # a full disk must not leave half a record
                    raise
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ResultsError(f"{self.path}: the record can't be written: {error}") from None

    def raw(self) -> Iterator[tuple[int, bytes]]:
        """Number (from 1) and bytes of each whole line, read piece by piece.

        A torn last line is dropped with a warning. Lines that are appended while this reads aren't seen.

        Raises:
            ResultsError: The file can't be read.
        """
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)  # a line that is just being written isn't torn
                left = os.fstat(file.fileno()).st_size
                fcntl.flock(file, fcntl.LOCK_UN)
                for number, line in enumerate(file, start=1):
                    left -= len(line)
                    if left < 0 or not line.endswith(b"\n"):
                        if left >= 0:
                            after = f"; {self._after}" if self._after else ""
                            message = f"{self.path}: the last line is torn and was dropped{after}"
                            warnings.warn(message, stacklevel=2)
                        return
                    yield number, line[:-1]
        except FileNotFoundError:
            return
        except OSError as error:
            raise ResultsError(f"{self.path}: the records can't be read: {error}") from None

    def numbered(self) -> Iterator[tuple[int, M]]:
        """Line number and record of each whole line.

        Raises:
            ResultsError: The file can't be read, or a line is damaged.
        """
        for number, line in self.raw():
            try:
                record = self._parse(line)
            except ValueError as error:
                raise ResultsError(f"{self.path}, line {number}, {_first_fault(error)}") from None
            yield number, record

    def _parse(self, line: bytes) -> M:
        with contextlib.suppress(ValueError, TypeError):
            value = orjson.loads(line)
            # A line that comes out as it went in holds no key twice; the strict reader takes several times as long.
            if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == line:
                return self._model.model_validate(value)
        return self._model.parse(line)

    def sync(self) -> None:
        """Have what was appended without ``sync`` on the disk.

        Raises:
            ResultsError: It can't be written.
        """
        try:
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
        except FileNotFoundError:
            return
        except OSError as error:
            raise ResultsError(f"{self.path}: the records can't be written: {error}") from None

    def __iter__(self) -> Iterator[M]:
        """The records, in the order in which they were written, one at a time."""
        for _, record in self.numbered():
            yield record


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
