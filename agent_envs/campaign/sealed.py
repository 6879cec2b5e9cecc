"""Sealed suites as files: what everybody may see, what is encrypted, and what an opened campaign keeps."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from agent_envs.campaign.ledger import Entry, Head, chain_faults, head_faults
from agent_envs.campaign.sealing import Kdf, SuiteError
from agent_envs.contract import Model, canonical_json, digest, parse_json
from agent_envs.contract.archive import sync_folder

OPENING_NAME = "sealed.json"
_MOST_BYTES = 64 * 2**20


class SealedTask(Model):
    """A task of a sealed suite."""

    task_id: str
    task_digest: str
    """Digest of the whole task when the suite was locked."""


class Header(Model):
    """What everybody may know of a sealed suite."""

    format: int = Field(default=1, ge=1, le=1)
    env_id: str
    tasks: int = Field(ge=1)
    commitment: str
    """SHA-256 of the canonical JSON ``{"env_id", "salt", "tasks": [{"task_digest", "task_id"}, ...]}``."""
    created_by: str = ""
    date: str = ""
    """As given; nothing here reads a clock."""
    kdf: Kdf


class SealedFile(Model):
    """A sealed suite on disk. All but ``ledger`` never changes."""

    header: Header
    nonce: str
    """Base64."""
    ciphertext: str
    """Base64 of the encrypted salt and tasks; the header is authenticated with it."""
    ledger: Head

    @property
    def core(self) -> str:
        """Digest of what never changes."""
        return digest({"header": self.header.as_json(), "nonce": self.nonce, "ciphertext": self.ciphertext})


class Secret(Model):
    """What is encrypted."""

    salt: str
    tasks: tuple[SealedTask, ...] = Field(min_length=1)

    def commitment(self, env_id: str) -> str:
        """The public digest of it."""
        return digest({"env_id": env_id, **self.as_json()})


class Opening(Model):
    """What a campaign's folder keeps of the sealed suite it runs (``sealed.json``)."""

    env_id: str
    commitment: str
    salt: str
    """With the lock's tasks it gives the commitment."""
    campaign: str
    """Digest of the lock it was opened for."""
    number: int = Field(ge=1)
    """This was the number-th opening of the suite."""
    entries: tuple[Entry, ...]
    """The ledger up to this opening."""


def read_opening(folder: Path) -> Opening | None:
    """What a campaign's folder keeps of its sealed suite; None when its suite isn't sealed.

    Raises:
        SuiteError: The file is damaged.
    """
    path = folder / OPENING_NAME
    if not path.exists():
        return None
    try:
        return Opening.parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path}: can't be read: {_first(error)}") from None


def file_faults(file: SealedFile, entries: Sequence[Entry]) -> list[str]:
    """What is wrong with a sealed file's ledger, and between the two; empty when nothing is."""
    faults = chain_faults(entries) + head_faults(entries, file.ledger)
    if entries[0].file != file.core:
        faults.append("the sealed file isn't the one that the ledger begins with: one of them was changed")
    if entries[0].commitment != file.header.commitment:
        faults.append("the commitment isn't the one that the ledger begins with")
    return faults


def refuse(path: Path, faults: Sequence[str]) -> None:
    """Go on only without faults.

    Raises:
        SuiteError: There are some.
    """
    if faults:
        raise SuiteError(f"{path}: tampered with: {'; '.join(faults[:5])}")


def read_sealed(path: Path) -> SealedFile:
    """Read a sealed suite.

    Raises:
        SuiteError: There is none, or it is damaged.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SuiteError(f"{path}: larger than {_MOST_BYTES} bytes; this is no sealed suite")
        return SealedFile.model_validate(parse_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path}: not a sealed suite: {_first(error)}") from None


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
    return str(error)[:300]


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the file's folder, so that two openings can't have one number."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SuiteError(f"{path}: the folder can't be used: {error}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write(path: Path, value: Model) -> None:
    """Write a value as canonical JSON, whole or not at all.

    Raises:
        SuiteError: It can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(canonical_json(value.as_json()) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise SuiteError(f"{path}: can't be written: {error}") from None
