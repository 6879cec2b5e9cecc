"""Sealed suites: tasks that are fixed in public before anybody sees them, and opened a counted number of times.

A suite is a list of task ids with digests. For generated tasks an id holds the seed, so a suite of secret seeds is one
of valid tasks that nobody has seen. ``lock_suite`` encrypts the list and publishes a commitment to it; ``open_suite``
locks a campaign on these tasks, writes the opening into the ledger, and only then lets the tasks out, in the campaign's
own lock. The campaign's folder keeps the salt and the ledger of that moment, so anybody can check that its tasks are
the committed ones, and how often they had been looked at by then.

What this can't show: who holds the passphrase can decrypt without this program, and who restores old copies of the file
and its ledger together can hide an opening from them, though not from the campaign that it was for. Publish the
commitment and the ledger's head.
"""

import base64
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.known import play_known
from agent_envs.campaign.ledger import Entry, Head, chain_faults, ledger_of, read_entries
from agent_envs.campaign.lock import LOCK_NAME, Lock, make_lock, write_lock
from agent_envs.campaign.manifest import Manifest, SuitePart
from agent_envs.campaign.sealed import (
    OPENING_NAME,
    Header,
    Opening,
    SealedFile,
    SealedTask,
    Secret,
    alone,
    file_faults,
    read_opening,
    read_sealed,
    refuse,
    write,
)
from agent_envs.campaign.sealing import Kdf, Keys, SuiteError, decrypt, derive, encrypt
from agent_envs.episode.env import AgentEnv

_MOST_TASKS = 100_000


class SuiteStatus(NamedTuple):
    """What is known of a sealed suite without its passphrase."""

    header: Header
    openings: int
    campaigns: tuple[str, ...]
    """Name and beginning of the lock's digest, one an opening."""
    head: str
    """Digest of the ledger's last line; publish it beside the commitment."""
    faults: tuple[str, ...]
    """Signs of tampering; empty when there are none."""


# Locking -------------------------------------------------------------------------------------------------------


def draw_tasks(env_id: str, number: int) -> list[str]:
    """Ids of generated tasks with secret seeds, from the system's random numbers.

    Args:
        env_id: The environment.
        number: How many.

    Raises:
        SuiteError: The number is out of range.
        TaskError: There is no such environment, or it generates no tasks.
    """
    if not 1 <= number <= _MOST_TASKS:
        raise SuiteError(f"{number} tasks can't be drawn; 1 to {_MOST_TASKS} can")
    family = _suite(env_id).family
    seeds: dict[int, None] = {}
    while len(seeds) < number:
        seeds[secrets.randbelow(2**63)] = None
    ids = [f"{family}/train-{seed}" for seed in seeds]
    _suite(env_id).task(ids[0])  # says so when the family has no generator
    return ids


def lock_suite(
    path: Path, env_id: str, tasks: Sequence[str], passphrase: bytes, created_by: str = "", date: str = ""
) -> SuiteStatus:
    """Seal a suite. Every task's reference solution is played first: what can't be solved isn't sealed.

    Args:
        path: The file to make; its ledger is made beside it.
        env_id: The environment of all tasks.
        tasks: Their ids.
        passphrase: Who has it can open the suite.
        created_by: Name for the header.
        date: Date for the header.

    Raises:
        SuiteError: Tasks are missing or named twice, a reference doesn't pass, the file exists or can't be written.
        TaskError: A task doesn't exist or is bad.
    """
    ids = list(tasks)
    if not ids:
        raise SuiteError("a sealed suite needs tasks: name them, or have some drawn")
    if double := sorted({task_id for task_id in ids if ids.count(task_id) > 1})[:5] if len(set(ids)) < len(ids) else []:
        raise SuiteError(f"{', '.join(double)}: named more than once; each task stands in a suite once")
    secret = Secret(salt=secrets.token_hex(32), tasks=tuple(_proven(env_id, ids)))
    kdf = Kdf(salt=secrets.token_hex(16))
    keys = derive(passphrase, kdf)
    commitment = secret.commitment(env_id)
    header = Header(env_id=env_id, tasks=len(ids), commitment=commitment, created_by=created_by, date=date, kdf=kdf)
    nonce, ciphertext = encrypt(keys, secret.canonical(), header.canonical())
    file = SealedFile(
        header=header,
        nonce=base64.b64encode(nonce).decode(),
        ciphertext=base64.b64encode(ciphertext).decode(),
        ledger=Head(entries=1, last=""),
    )
    entry = Entry(number=0, kind="locked", previous="", commitment=commitment, file=file.core, date=date).signed(keys)
    with alone(path):
        ledger = ledger_of(path)
        if path.exists() or ledger.path.exists():
            raise SuiteError(f"{path}: a sealed suite or its ledger stands here already; take another name")
        ledger.append(entry)
        write(path, file.model_copy(update={"ledger": Head.of([entry], keys)}))
    return status(path)


def _proven(env_id: str, ids: Sequence[str]) -> Iterator[SealedTask]:
    env = make_env(env_id)
    try:
        for task_id in ids:
            task = cast(AgentEnv, env.unwrapped).suite.task(task_id)
            for known in play_known(env, task_id, wrong=False):
                if known.problem:
                    raise SuiteError(f"{task_id}: its reference {known.name!r} doesn't pass ({known.problem})")
            yield SealedTask(task_id=task_id, task_digest=task.digest)
    finally:
        env.close()


# Opening -------------------------------------------------------------------------------------------------------


def open_suite(path: Path, manifest: Manifest, folder: Path, passphrase: bytes, date: str = "") -> Lock:
    """Lock a campaign on a sealed suite: the opening is in the ledger before any task is out.

    Everything of the manifest holds but its suite and smoke tasks, which the sealed suite takes the places of (weights
    of its first part for the same environment stay).

    Args:
        path: The sealed file.
        manifest: The campaign.
        folder: The campaign's folder, without a campaign yet; run it with ``agenteval campaign resume``.
        passphrase: The suite's.
        date: Date for the ledger.

    Returns:
        The campaign's lock.

    Raises:
        SuiteError: The passphrase is wrong, file or ledger were tampered with, a task isn't any more what was locked,
            or the folder holds a campaign.
        AgentEvalError: The campaign can't be locked.
    """
    if (folder / LOCK_NAME).exists():
        raise SuiteError(f"{folder}: a campaign is locked here already; a sealed suite is opened into a new folder")
    with alone(path):
        file = read_sealed(path)
        entries = read_entries(path)
        refuse(path, file_faults(file, entries))
        keys = derive(passphrase, file.header.kdf)
        secret = _secret(path, file, keys)
        unsigned = [f"line {entry.number + 1} has no right signature" for entry in entries if not entry.is_signed(keys)]
        refuse(path, unsigned + ([] if file.ledger.is_signed(keys) else ["the ledger's head has no right signature"]))
        _refuse_changed(path, file.header.env_id, secret)
        lock = make_lock(_on_sealed(manifest, file.header.env_id, secret))
        entry = Entry(
            number=len(entries),
            kind="opened",
            previous=entries[-1].digest,
            commitment=file.header.commitment,
            file=file.core,
            campaign=lock.digest,
            name=manifest.name,
            date=date,
        ).signed(keys)
        entries.append(entry)
        ledger_of(path).append(entry)
        write(path, file.model_copy(update={"ledger": Head.of(entries, keys)}))
    opening = Opening(
        env_id=file.header.env_id,
        commitment=file.header.commitment,
        salt=secret.salt,
        campaign=lock.digest,
        number=entry.number,
        entries=tuple(entries),
    )
    write(folder / OPENING_NAME, opening)
    write_lock(lock, folder)
    return lock


def _secret(path: Path, file: SealedFile, keys: Keys) -> Secret:
    try:
        nonce, ciphertext = (base64.b64decode(text, validate=True) for text in (file.nonce, file.ciphertext))
        plain = decrypt(keys, nonce, ciphertext, file.header.canonical())
        secret = Secret.parse(plain)
    except SuiteError as error:
        raise SuiteError(f"{path}: {error}") from None
    except ValueError as error:
        raise SuiteError(f"{path}: what is sealed can't be read: {error}"[:300]) from None
    if secret.commitment(file.header.env_id) != file.header.commitment or len(secret.tasks) != file.header.tasks:
        raise SuiteError(f"{path}: what is sealed isn't what the header commits to")
    return secret


def _refuse_changed(path: Path, env_id: str, secret: Secret) -> None:
    suite = _suite(env_id)
    changed = sum(suite.task(task.task_id).digest != task.task_digest for task in secret.tasks)
    if changed:
        raise SuiteError(
            f"{path}: {changed} of {len(secret.tasks)} tasks aren't what was locked: the code that makes them has "
            "changed; go back to the code of the locking, or lock a new suite (nothing was opened)"
        )


def _on_sealed(manifest: Manifest, env_id: str, secret: Secret) -> Manifest:
    part = next((part for part in manifest.suite if part.env == env_id), SuitePart(env=env_id))
    ids = tuple(task.task_id for task in secret.tasks)
    sealed = SuitePart(env=env_id, tasks=ids, weight=part.weight, weights=part.weights)
    smoke = ids[:1] if manifest.smoke else ()
    data = {**manifest.as_json(), "suite": [sealed.as_json()], "smoke": list(smoke)}
    for canary in data["canaries"].values():
        canary["env"] = canary["env"] or manifest.suite[0].env  # the first part is another one now
    return Manifest.model_validate(data)


# Looking -------------------------------------------------------------------------------------------------------


def status(path: Path) -> SuiteStatus:
    """What is known of a sealed suite without its passphrase, and whether file and ledger fit together.

    Raises:
        SuiteError: The file or its ledger can't be read.
    """
    file = read_sealed(path)
    entries = read_entries(path)
    opened = [entry for entry in entries if entry.kind == "opened"]
    campaigns = tuple(f"{entry.name} {entry.campaign[:12]}" for entry in opened)
    return SuiteStatus(file.header, len(opened), campaigns, entries[-1].digest, tuple(file_faults(file, entries)))


def openings(path: Path) -> int:
    """How often a sealed suite was opened.

    Args:
        path: The sealed file, by its ledger; or a campaign's folder, by what it kept when its suite was opened.

    Raises:
        SuiteError: It can't be read, or was tampered with.
    """
    if path.is_dir():
        opening = read_opening(path)
        if opening is None:
            raise SuiteError(f"{path}: the campaign runs no sealed suite ({OPENING_NAME} is missing)")
        refuse(path / OPENING_NAME, chain_faults(opening.entries))
        return opening.number
    found = status(path)
    refuse(path, found.faults)
    return found.openings


def opening_faults(opening: Opening, lock: Lock, earlier: Sequence[str] = (), sealed: Path | None = None) -> list[str]:
    """What speaks against a campaign having run the committed tasks; empty when nothing does.

    Args:
        opening: From the campaign's folder.
        lock: The campaign's.
        earlier: Digests of the locks it had before accepted changes.
        sealed: The sealed file, if at hand: then its ledger must name the campaign too.

    Raises:
        SuiteError: The sealed file or its ledger can't be read.
    """
    faults = [f"{OPENING_NAME}: {fault}" for fault in chain_faults(opening.entries)]
    tasks = tuple(SealedTask(task_id=task.task_id, task_digest=task.task_digest) for task in lock.tasks)
    if Secret(salt=opening.salt, tasks=tasks).commitment(opening.env_id) != opening.commitment:
        faults.append("the campaign's tasks aren't the ones of the commitment")
    if opening.campaign not in (lock.digest, *earlier):
        faults.append("the suite was opened for another campaign")
    last = opening.entries[-1] if opening.entries else None
    stated = (opening.number, opening.campaign, opening.commitment)
    if last is None or (last.number, last.campaign, last.commitment) != stated:
        faults.append(f"{OPENING_NAME}: its ledger doesn't end with the opening for this campaign")
    if sealed is not None and not faults:
        found = status(sealed)
        faults += found.faults
        if tuple(read_entries(sealed)[: len(opening.entries)]) != opening.entries:
            faults.append(f"{sealed.name}: its ledger doesn't hold the opening for this campaign")
    return faults


def _suite(env_id: str) -> Any:
    env = make_env(env_id)
    try:
        return cast(AgentEnv, env.unwrapped).suite
    finally:
        env.close()
