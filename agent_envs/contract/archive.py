"""Evidence on disk: the event log and the rest, written once, read back whole or not at all.

A folder holds ``log.jsonl.zst`` (Zstandard; one canonical JSON entry a line) and ``evidence.json`` (canonical JSON of
everything else, with the log's chain head). The log's chain: ``h_0 = SHA-256(canonical(entry_0))``,
``h_i = SHA-256(h_{i-1} || canonical(entry_i))`` with the digests as 32 raw bytes, so a changed, dropped or reordered
entry is seen.
"""

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from agent_envs.contract.canonical import canonical_json, parse_json
from agent_envs.contract.errors import EvidenceError
from agent_envs.contract.evidence import Evidence

LOG_NAME = "log.jsonl.zst"
EVIDENCE_NAME = "evidence.json"
_MOST_LOG_BYTES = 2**30
_PIECE = 4096  # of compressed bytes: they can't grow to more than about 128 MB at once


def chain(head: bytes, entry: dict[str, Any]) -> bytes:
    """The chain's next value; ``head`` is empty before the first entry."""
    return hashlib.sha256(head + canonical_json(entry)).digest()


def write_evidence(evidence: Evidence, folder: Path) -> None:
    """Write evidence into a folder that this call makes (files left by a broken-off attempt are replaced).

    Both files are complete and on the disk before this returns; ``evidence.json`` comes last, by rename.

    Raises:
        EvidenceError: It can't be written; what stood there before is still whole or gone, never half.
    """
    import zstandard

    lines = b"".join(canonical_json(entry) + b"\n" for entry in evidence.events)
    log = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(lines)
    rest = canonical_json(evidence.model_dump(mode="json", exclude={"events"})) + b"\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Without its other half, old evidence is incomplete, never a mixture with the new.
        (folder / EVIDENCE_NAME).unlink(missing_ok=True)
        _write(folder / LOG_NAME, log)
        _write(folder / EVIDENCE_NAME, rest)
        sync_folder(folder)
    except OSError as error:
        raise EvidenceError(f"{folder}: the evidence can't be written: {error}") from None


def read_evidence(folder: Path) -> Evidence:
    """Read evidence back and check its chain.

    Whether it is the evidence of a certain run is the caller's to check, by its digest.

    Raises:
        EvidenceError: A file is missing, damaged, no regular file, or doesn't belong to the other.
    """
    try:
        events = [parse_json(line) for line in _unpacked(_read(folder / LOG_NAME)).splitlines()]
        evidence = Evidence.model_validate({**parse_json(_read(folder / EVIDENCE_NAME)), "events": events})
        head = b""
        for entry in evidence.events:
            head = chain(head, entry)
    except (OSError, ValueError, TypeError) as error:
        raise EvidenceError(f"{folder}: the evidence can't be read: {error}"[:500]) from None
    if not events:
        raise EvidenceError(f"{folder}: the log is empty; every episode's log begins with its reset")
    if head.hex() != evidence.log_digest:
        raise EvidenceError(
            f"{folder}: the log's chain ends in {head.hex()[:12]}, the record says {evidence.log_digest[:12]}: "
            "an entry was changed, dropped or added after the episode"
        )
    return evidence


def sync_folder(folder: Path) -> None:
    """Make names that were created in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unpacked(data: bytes) -> bytes:
    """Decompress one whole frame, bounded: the size that a frame states is not believed."""
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    parts, size = [], 0
    try:
        for start in range(0, len(data), _PIECE):
            if frame.eof:
                break
            parts.append(frame.decompress(data[start : start + _PIECE]))
            size += len(parts[-1])
            if size > _MOST_LOG_BYTES:
                raise ValueError(f"the log holds more than {_MOST_LOG_BYTES} bytes")
    except zstandard.ZstdError as error:
        raise ValueError(f"the log is damaged: {error}") from None
    if not frame.eof or frame.unused_data or start + _PIECE < len(data):
        raise ValueError("the log is cut short, or something was added to it")
    return b"".join(parts)


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
