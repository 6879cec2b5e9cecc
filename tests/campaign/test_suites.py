"""Sealed suites: committed in public, opened a counted number of times, and every tampering seen."""

import builtins
import errno
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.lock import LOCK_NAME, LockError, read_lock
from agent_envs.campaign.sealed import OPENING_NAME, read_opening, read_sealed
from agent_envs.campaign.sealing import KEY_VARIABLE, SuiteError, read_passphrase
from agent_envs.campaign.suites import draw_tasks, lock_suite, open_suite, opening_faults, openings, status
from agent_envs.contract import TaskError
from agent_envs.envs.refund.env import SUITE
from tests.campaign.serial import ENV, SerialEngine, manifest

KEY = b"correct horse battery"


@pytest.fixture(scope="module")
def drawn() -> list[str]:
    return draw_tasks(ENV, 3)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, drawn: list[str]) -> Path:
    """A sealed suite in ``new/``; the same, opened for the campaigns ``one`` and ``two``, in ``opened/``."""
    folder = tmp_path_factory.mktemp("suites")
    path = folder / "new" / "suite" / "confirm.sealed"
    lock_suite(path, ENV, drawn, KEY, created_by="the referees", date="2026-03-01")
    shutil.copytree(folder / "new", folder / "opened")
    path = folder / "opened" / "suite" / "confirm.sealed"
    open_suite(path, manifest(name="first"), folder / "opened" / "one", KEY, date="2026-03-02")
    open_suite(path, manifest(name="second"), folder / "opened" / "two", KEY)
    return folder


@pytest.fixture
def sealed(originals: Path, tmp_path: Path) -> Path:
    shutil.copytree(originals / "new", tmp_path, dirs_exist_ok=True)
    return tmp_path / "suite" / "confirm.sealed"


@pytest.fixture
def opened(originals: Path, tmp_path: Path) -> Path:
    shutil.copytree(originals / "opened", tmp_path, dirs_exist_ok=True)
    return tmp_path / "suite" / "confirm.sealed"


def ledger(path: Path) -> Path:
    return path.with_name(path.name + ".ledger.jsonl")


def test_the_file_shows_the_commitment_and_no_task(sealed, drawn):
    text = sealed.read_text() + ledger(sealed).read_text()
    assert not any(task_id.partition("-")[2] in text for task_id in drawn)
    found = status(sealed)
    assert (found.header.tasks, found.header.env_id, found.openings, found.faults) == (3, ENV, 0, ())
    assert found.header.created_by == "the referees"
    assert found.header.commitment in text


def test_equal_tasks_have_another_commitment_each_time(tmp_path, drawn):
    found = {lock_suite(tmp_path / f"{n}.sealed", ENV, drawn, KEY).header.commitment for n in range(2)}
    assert len(found) == 2, "without a salt anybody could try out candidates"


def test_drawn_seeds_are_many_and_valid():
    ids = draw_tasks(ENV, 50)
    assert len(set(ids)) == 50
    assert len({int(task_id.rpartition("-")[2]) >> 48 for task_id in ids}) > 40, "they must not be guessable"
    with pytest.raises(SuiteError, match="can't be drawn"):
        draw_tasks(ENV, 0)


def test_opening_locks_a_campaign_on_the_sealed_tasks_that_runs(sealed, drawn, tmp_path):
    folder = tmp_path / "campaign"
    lock = open_suite(sealed, manifest(attempts=1, smoke=["refund/train-0"]), folder, KEY)
    assert [task.task_id for task in lock.tasks] == drawn
    assert list(lock.manifest.smoke) == drawn[:1]
    assert read_lock(folder).digest == lock.digest
    result = run_campaign(folder, SerialEngine())
    assert (result.state, result.done) == ("finished", 6)
    opening = read_opening(folder)
    assert opening is not None
    assert opening_faults(opening, lock) == []
    assert opening_faults(opening, lock, sealed=sealed) == []


def test_each_opening_is_counted_with_its_campaign(opened, tmp_path):
    found = status(opened)
    assert found.faults == ()
    assert [name.partition(" ")[0] for name in found.campaigns] == ["first", "second"]
    assert read_lock(tmp_path / "one").digest.startswith(found.campaigns[0].partition(" ")[2])
    assert openings(opened) == 2
    assert [openings(tmp_path / name) for name in ("one", "two")] == [1, 2]


def test_a_campaign_is_never_opened_over_another(sealed, tmp_path):
    open_suite(sealed, manifest(), tmp_path / "one", KEY)
    with pytest.raises(SuiteError, match="new folder"):
        open_suite(sealed, manifest(), tmp_path / "one", KEY)
    assert openings(sealed) == 1


def test_a_wrong_passphrase_opens_and_counts_nothing(sealed, tmp_path):
    with pytest.raises(SuiteError, match="doesn't open"):
        open_suite(sealed, manifest(), tmp_path / "one", b"incorrect horse battery")
    assert openings(sealed) == 0
    assert not (tmp_path / "one" / LOCK_NAME).exists()


def test_an_opening_is_in_the_ledger_before_any_task_is_out(sealed, tmp_path, monkeypatch):
    """The lock can't be written: nothing was revealed, and the opening counts all the same."""

    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(LockError, match="No space left"):
        open_suite(sealed, manifest(), tmp_path / "one", KEY)
    assert openings(sealed) == 1


def test_a_kill_between_ledger_and_head_is_no_tampering(sealed, tmp_path):
    before = sealed.read_bytes()
    open_suite(sealed, manifest(), tmp_path / "one", KEY)
    sealed.write_bytes(before)
    assert openings(sealed) == 1
    open_suite(sealed, manifest(), tmp_path / "two", KEY)
    assert openings(sealed) == 2


def drop_first(lines):
    return lines[1:]


def drop_middle(lines):
    return [lines[0], *lines[2:]]


def drop_last(lines):
    return lines[:-1]


def swap(lines):
    return [lines[0], lines[2], lines[1]]


def double(lines):
    return [*lines, lines[-1]]


def edit(lines):
    return [lines[0], lines[1].replace('"first"', '"other"'), lines[2]]


def edit_last(lines):
    return [*lines[:-1], lines[-1].replace('"second"', '"other"')]


def garble(lines):
    return [lines[0], "{}", lines[2]]


def nothing(lines):
    return []


@pytest.mark.parametrize("change", [drop_first, drop_middle, drop_last, swap, double, edit, edit_last, garble, nothing])
def test_a_ledger_that_was_touched_is_refused(opened, tmp_path, change):
    path = ledger(opened)
    path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))
    with pytest.raises(SuiteError, match=r"tampered|missing"):
        openings(opened)
    with pytest.raises(SuiteError, match=r"tampered|missing"):
        open_suite(opened, manifest(), tmp_path / "three", KEY)
    assert not (tmp_path / "three" / LOCK_NAME).exists()


def test_a_cut_ledger_with_a_head_forged_to_fit_is_seen_by_who_opens_it(opened, tmp_path):
    path = ledger(opened)
    lines = path.read_text().splitlines()[:-1]
    path.write_text("".join(f"{line}\n" for line in lines))
    data = json.loads(opened.read_text())
    data["ledger"] |= {"entries": 2, "last": last_digest(path)}
    opened.write_text(json.dumps(data))
    assert openings(opened) == 1, "without the passphrase the forgery can't be seen"
    with pytest.raises(SuiteError, match="head has no right signature"):
        open_suite(opened, manifest(), tmp_path / "three", KEY)
    opening = read_opening(tmp_path / "two")
    assert opening is not None
    faults = opening_faults(opening, read_lock(tmp_path / "two"), sealed=opened)
    assert any("doesn't hold the opening" in fault for fault in faults), "the campaign's own copy shows it too"


def last_digest(path: Path) -> str:
    from agent_envs.campaign.ledger import Entry

    return Entry.parse(path.read_text().splitlines()[-1]).digest


@pytest.mark.parametrize("field", ["commitment", "env_id", "tasks", "created_by", "date"])
def test_a_changed_header_is_seen(sealed, tmp_path, field):
    data = json.loads(sealed.read_text())
    data["header"][field] = 7 if field == "tasks" else "0" * 64
    sealed.write_text(json.dumps(data))
    assert status(sealed).faults
    with pytest.raises(SuiteError, match="tampered"):
        open_suite(sealed, manifest(), tmp_path / "one", KEY)


def test_a_changed_ciphertext_is_seen(sealed):
    file = read_sealed(sealed)
    other = "A" if file.ciphertext[10] != "A" else "B"
    changed = file.ciphertext[:10] + other + file.ciphertext[11:]
    sealed.write_bytes(file.model_copy(update={"ciphertext": changed}).canonical())
    assert status(sealed).faults


def test_swapped_suites_are_seen(sealed, tmp_path, drawn):
    other = tmp_path / "other.sealed"
    lock_suite(other, ENV, drawn[:1], KEY)
    sealed.write_bytes(other.read_bytes())
    assert status(sealed).faults


def test_a_campaign_on_other_tasks_is_not_the_committed_one(sealed, tmp_path):
    open_suite(sealed, manifest(), tmp_path / "one", KEY)
    opening = read_opening(tmp_path / "one")
    lock = read_lock(tmp_path / "one")
    assert opening is not None
    fewer = lock.model_copy(update={"tasks": lock.tasks[1:]})
    assert any("commitment" in fault for fault in opening_faults(opening, fewer))
    moved = opening.model_copy(update={"campaign": "0" * 64})
    assert any("another campaign" in fault for fault in opening_faults(moved, lock))
    (tmp_path / "one" / OPENING_NAME).write_text("{}")
    with pytest.raises(SuiteError, match="can't be read"):
        openings(tmp_path / "one")


def test_tasks_that_are_made_differently_now_are_not_opened(sealed, tmp_path, monkeypatch):
    real = SUITE.task
    monkeypatch.setattr(SUITE, "task", lambda task_id: real(task_id).model_copy(update={"task_revision": 9}))
    with pytest.raises(SuiteError, match="3 of 3 tasks"):
        open_suite(sealed, manifest(), tmp_path / "one", KEY)
    monkeypatch.undo()
    assert openings(sealed) == 0


def test_what_cannot_be_solved_is_not_sealed(tmp_path, monkeypatch):
    """B232, B234."""
    real = SUITE.references

    def broken(task_id):
        known = real(task_id)
        reference = known.references[0]
        return known.model_copy(update={"references": (reference.model_copy(update={"calls": reference.calls[:3]}),)})

    monkeypatch.setattr(SUITE, "references", broken)
    with pytest.raises(SuiteError, match="doesn't pass"):
        lock_suite(tmp_path / "x.sealed", ENV, ["refund/train-5"], KEY)
    assert not (tmp_path / "x.sealed").exists()


@pytest.mark.parametrize(
    ("tasks", "fault"),
    [([], "needs tasks"), (["refund/train-1"] * 2, "more than once"), (["refund/no-such"], "no task")],
)
def test_a_bad_list_is_refused(tmp_path, tasks, fault):
    with pytest.raises((SuiteError, TaskError), match=fault):
        lock_suite(tmp_path / "x.sealed", ENV, tasks, KEY)


def test_a_suite_is_never_written_over(sealed, drawn):
    before = sealed.read_bytes()
    with pytest.raises(SuiteError, match="already"):
        lock_suite(sealed, ENV, drawn, KEY)
    assert sealed.read_bytes() == before


def test_the_passphrase_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(SuiteError, match=KEY_VARIABLE):
        read_passphrase()
    monkeypatch.setenv(KEY_VARIABLE, KEY.decode())
    assert read_passphrase() == KEY
    (tmp_path / "key").write_bytes(KEY + b"\n")
    assert read_passphrase(tmp_path / "key") == KEY
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(SuiteError, match="5 bytes"):
        read_passphrase(tmp_path / "key")
    with pytest.raises(SuiteError, match="can't be read"):
        read_passphrase(tmp_path / "missing")


def test_without_the_package_the_extra_is_named(tmp_path, drawn, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def refusing(name, *rest, **keywords):
        if name.partition(".")[0] == "cryptography":
            raise ImportError(name)
        return real(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(SuiteError, match=r"agent-envs\[sealed\]"):
        lock_suite(tmp_path / "x.sealed", ENV, drawn[:1], KEY)
    assert not (tmp_path / "x.sealed").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff\xfe", b'{"header": 1}'])
def test_a_file_that_is_no_suite_is_refused(tmp_path, content):
    (tmp_path / "x.sealed").write_bytes(content)
    with pytest.raises(SuiteError, match="not a sealed suite"):
        status(tmp_path / "x.sealed")


def test_a_folder_without_a_sealed_suite_has_no_openings(tmp_path):
    with pytest.raises(SuiteError, match="no sealed suite"):
        openings(tmp_path)


def test_a_forged_file_cannot_ask_for_all_memory(sealed):
    data = json.loads(sealed.read_text())
    data["header"]["kdf"]["n"] = 2**30
    sealed.write_text(json.dumps(data))
    with pytest.raises(SuiteError, match=r"header\.kdf\.n"):
        status(sealed)
