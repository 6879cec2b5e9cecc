"""Evidence on disk: read back whole, or refused; never half, never another's."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract import (
    Change,
    Evidence,
    EvidenceError,
    Terminal,
    Usage,
    chain,
    read_evidence,
    write_evidence,
)
from agent_envs.contract.archive import EVIDENCE_NAME, LOG_NAME

EVENTS = (
    {"step": 0, "tool": "", "state": "aa", "opening": {}},
    {"step": 1, "tool": "say", "arguments": {"text": "\ud835 \U0001d504 \u00e9 [/red]\x1b"}, "status": "ok"},
    {"step": 2, "tool": "finish", "arguments": {"n": 1.0, "m": 2**70}, "status": "ok"},
)


def _evidence(events=EVENTS, **fields):
    head = b""
    for entry in events:
        head = chain(head, entry)
    data = {
        "task_id": "shop/one",
        "task_revision": 1,
        "task_digest": "0" * 64,
        "seed": 1,
        "initial_state_hash": "3" * 64,
        "final_state_hash": "4" * 64,
        "changes": (Change(channel="database", table="t", key={"id": 1}, before=None, after={"id": 1, "x": "\ud835"}),),
        "events": events,
        "log_digest": head.hex(),
        "answer": {"summary": "\ud835"},
        "terminal": Terminal(phase="act", origin="agent", kind="finished", detail="\udfff"),
        "usage": Usage(steps=2, calls=2),
    }
    return Evidence.model_validate(data | fields)


@pytest.fixture
def kept(tmp_path):
    folder = tmp_path / "evidence" / "run"
    write_evidence(_evidence(), folder)
    return folder


def test_evidence_is_read_back_equal(kept):
    """B121: text that UTF-8 can't hold is escaped, not lost."""
    assert read_evidence(kept) == _evidence()
    assert read_evidence(kept).digest == _evidence().digest
    assert sorted(path.name for path in kept.iterdir()) == [EVIDENCE_NAME, LOG_NAME]


keys = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(keys, values, max_size=4), min_size=1, max_size=4))
def test_any_log_is_read_back_equal(tmp_path_factory, events):
    folder = tmp_path_factory.mktemp("any")
    evidence = _evidence(tuple(events))
    write_evidence(evidence, folder)
    assert read_evidence(folder) == evidence
    shutil.rmtree(folder)


def test_writing_again_replaces(kept):
    other = _evidence(EVENTS[:1], seed=2)
    write_evidence(other, kept)
    assert read_evidence(kept) == other


def test_every_flipped_byte_of_the_log_is_noticed(kept):
    data = (kept / LOG_NAME).read_bytes()
    whole = _evidence()
    for position in range(len(data)):
        for bit in (0x01, 0x80):
            damaged = bytearray(data)
            damaged[position] ^= bit
            (kept / LOG_NAME).write_bytes(damaged)
            try:
                # A bit of the frame's head may say the same thing in another way; then the content is unharmed.
                assert read_evidence(kept) == whole
            except EvidenceError:
                continue
            assert position < 12


def test_every_cut_of_the_log_is_noticed(kept):
    data = (kept / LOG_NAME).read_bytes()
    for size in range(len(data)):
        (kept / LOG_NAME).write_bytes(data[:size])
        with pytest.raises(EvidenceError):
            read_evidence(kept)


def _pack(entries):
    lines = b"".join(entry if isinstance(entry, bytes) else json.dumps(entry).encode() + b"\n" for entry in entries)
    return zstandard.ZstdCompressor().compress(lines)


@pytest.mark.parametrize(
    "entries",
    [
        EVENTS[:2],
        EVENTS[1:],
        (EVENTS[0], EVENTS[2], EVENTS[1]),
        (*EVENTS, EVENTS[2]),
        (EVENTS[0], EVENTS[1], {**EVENTS[2], "status": "error"}),
        (EVENTS[0], {**EVENTS[1], "extra": 1}, EVENTS[2]),
        (),
        (*EVENTS[:2], b'{"step": NaN}\n'),
        (*EVENTS[:2], b"[" * 100_000 + b"\n"),
        (*EVENTS[:2], b"7\n"),
        (*EVENTS[:2], b'{"a":1,"a":2}\n'),
        (*EVENTS[:2], b"\xff\n"),
    ],
    ids=[
        "dropped-last",
        "dropped-first",
        "reordered",
        "doubled",
        "changed",
        "extended",
        "empty",
        "nan",
        "deep",
        "no-object",
        "duplicate-key",
        "no-text",
    ],
)
def test_another_log_is_noticed(kept, entries):
    (kept / LOG_NAME).write_bytes(_pack(entries))
    with pytest.raises(EvidenceError, match=str(kept)):
        read_evidence(kept)


def test_an_empty_log_is_no_evidence_even_when_the_rest_agrees(tmp_path):
    """Law 2."""
    write_evidence(_evidence((), log_digest=""), tmp_path)
    with pytest.raises(EvidenceError, match="log is empty"):
        read_evidence(tmp_path)


def test_what_is_added_after_the_log_is_noticed(kept):
    data = (kept / LOG_NAME).read_bytes()
    for extra in (b"\0", b"x" * 10_000, data, _pack([{"step": 9}])):
        (kept / LOG_NAME).write_bytes(data + extra)
        with pytest.raises(EvidenceError):
            read_evidence(kept)


def test_files_of_two_runs_do_not_go_together(kept, tmp_path):
    other = tmp_path / "other"
    write_evidence(_evidence((*EVENTS[:2], {**EVENTS[2], "status": "error"})), other)
    for name in (LOG_NAME, EVIDENCE_NAME):
        mixed = tmp_path / f"mixed-{name}"
        shutil.copytree(kept, mixed)
        shutil.copy(other / name, mixed / name)
        with pytest.raises(EvidenceError, match="changed, dropped or added"):
            read_evidence(mixed)


@pytest.mark.parametrize("name", [LOG_NAME, EVIDENCE_NAME])
def test_a_file_that_is_missing_or_no_file_is_noticed(kept, name):
    """B054: a link isn't followed, and a pipe isn't waited for."""
    path, away = kept / name, kept / "away"
    path.rename(away)
    with pytest.raises(EvidenceError, match="can't be read"):
        read_evidence(kept)
    path.symlink_to(away)
    with pytest.raises(EvidenceError, match="can't be read"):
        read_evidence(kept)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(EvidenceError, match="not a regular file"):
        read_evidence(kept)
    path.unlink()
    path.mkdir()
    with pytest.raises(EvidenceError, match="not a regular file"):
        read_evidence(kept)


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"seed": NaN}'],
    ids=["empty", "nothing", "list", "null", "cut", "no-text", "deep", "nan"],
)
def test_another_kind_of_record_is_noticed(kept, text):
    (kept / EVIDENCE_NAME).write_bytes(text)
    with pytest.raises(EvidenceError, match="can't be read"):
        read_evidence(kept)


def test_a_key_that_nobody_knows_is_noticed(kept):
    data = json.loads((kept / EVIDENCE_NAME).read_bytes())
    for change in ({"extra": 1}, {"gaps": None}, {"seed": "x"}, {"events": []}):
        (kept / EVIDENCE_NAME).write_text(json.dumps({**data, **change}))
        if "events" in change:
            assert read_evidence(kept) == _evidence()  # the log is the one source of events
        else:
            with pytest.raises(EvidenceError, match=next(iter(change))):
                read_evidence(kept)


_BOMB = """
import resource, sys, zstandard
from pathlib import Path
from agent_envs.contract import EvidenceError, read_evidence
folder = Path(sys.argv[1])
frame = zstandard.ZstdCompressor(level=1).compressobj()
with (folder / "log.jsonl.zst").open("wb") as file:
    block = bytes(2**24)
    for _ in range(150):
        file.write(frame.compress(block))
    file.write(frame.flush())
limit = 3 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    read_evidence(folder)
except EvidenceError as error:
    print(error)
"""


def test_a_log_that_swells_is_refused_in_bounded_memory(kept):
    done = subprocess.run([sys.executable, "-c", _BOMB, str(kept)], capture_output=True, text=True, timeout=100)
    assert "more than 1073741824 bytes" in done.stdout, done.stderr


def test_the_size_that_a_frame_states_is_not_believed(kept):
    frame = bytearray(zstandard.ZstdCompressor(write_content_size=True).compress(b"x" * 70_000))
    stated = frame.index((70_000 - 0).to_bytes(4, "little"))
    frame[stated : stated + 4] = (0xFFFFFFF0).to_bytes(4, "little")
    (kept / LOG_NAME).write_bytes(frame)
    with pytest.raises(EvidenceError):
        read_evidence(kept)


_FULL = """
import resource, sys
from pathlib import Path
import agent_envs.contract as contract
from agent_envs.contract.archive import EVIDENCE_NAME
folder = Path(sys.argv[1])
evidence = contract.read_evidence(folder)
bigger = evidence.model_copy(update={"answer": {"summary": "".join(chr(33 + n * n % 90) for n in range(50_000))}})
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    contract.write_evidence(bigger, folder)
except contract.EvidenceError as error:
    print(error)
"""


def test_a_full_disk_leaves_no_half_evidence(kept):
    """B131: what can't be written raises, and what is left can't be taken for evidence."""
    done = subprocess.run([sys.executable, "-c", _FULL, str(kept)], capture_output=True, text=True, timeout=60)
    assert "can't be written" in done.stdout, done.stderr
    assert [path.name for path in kept.iterdir()] == [LOG_NAME]
    with pytest.raises(EvidenceError):
        read_evidence(kept)


@pytest.mark.parametrize("stop_at", ["write", "fsync", "replace"])
@pytest.mark.parametrize("file", [0, 1])
def test_an_interrupted_write_leaves_no_half_evidence(kept, monkeypatch, stop_at, file):
    """B131: whatever the moment, the folder holds old evidence, none, or the new."""
    seen = []

    def interrupt(original):
        def stopper(*arguments, **keywords):
            seen.append(stop_at)
            if len(seen) == file + 1:
                raise KeyboardInterrupt
            return original(*arguments, **keywords)

        return stopper

    if stop_at == "replace":
        monkeypatch.setattr("pathlib.Path.replace", interrupt(type(kept).replace))
    elif stop_at == "fsync":
        monkeypatch.setattr("os.fsync", interrupt(os.fsync))
    else:
        monkeypatch.setattr("pathlib.Path.open", interrupt(type(kept).open))
    new = _evidence(EVENTS[:1], seed=2)
    with pytest.raises(KeyboardInterrupt):
        write_evidence(new, kept)
    monkeypatch.undo()
    with pytest.raises(EvidenceError):
        read_evidence(kept)
    assert not [path for path in kept.iterdir() if path.name.startswith(".")]
    write_evidence(new, kept)
    assert read_evidence(kept) == new


def test_a_folder_that_can_not_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(EvidenceError, match="can't be written"):
        write_evidence(_evidence(), tmp_path / "file" / "run")


def test_the_chain_is_as_documented():
    """Pinned: h_0 = SHA-256(entry_0), h_1 = SHA-256(h_0 || entry_1)."""
    head = chain(chain(b"", {"b": 1, "a": "x"}), {})
    assert head.hex() == "fb3c8d44f23eae8748ef1ea9fbd26b02dae51516ee7e8c7f544ef960670d8531"
