"""``agenteval suite``: sealed suites, which nobody has seen before the confirmation."""

import argparse
from pathlib import Path

from agent_envs.cli.common import DEFAULT_ENV, Command, positive

NAME = "suite"
ABOUT = "Sealed suites: tasks locked away with a public commitment and a ledger of every opening."


def add(command: Command) -> None:
    """Add the commands."""
    made = command("lock", _lock, "Seal tasks into a file. Every one is solved by its reference first.")
    made.add_argument("tasks", nargs="*", metavar="TASK", help="task ids")
    made.add_argument("--draw", type=positive, metavar="N", help="add N generated tasks with secret seeds")
    made.add_argument("--env", default=DEFAULT_ENV, help=f"environment id (default {DEFAULT_ENV})")
    made.add_argument("--out", type=Path, required=True, metavar="FILE")
    made.add_argument("--by", default="", metavar="NAME", help="who seals it")
    _common(made)

    made = command("open", _open, "Lock a new campaign on a sealed suite; the ledger says so from then on.")
    made.add_argument("file", type=Path, metavar="FILE")
    made.add_argument("--manifest", type=Path, required=True, help="its suite and smoke tasks are replaced")
    made.add_argument("--campaign", type=Path, required=True, metavar="DIR", help="folder of the new campaign")
    _common(made)

    made = command("status", _status, "Print commitment and openings, and whether file and ledger are whole.")
    made.add_argument("file", type=Path, metavar="FILE")


def _common(made: argparse.ArgumentParser) -> None:
    made.add_argument("--key-file", type=Path, metavar="FILE", help="the passphrase (default: from the environment)")
    made.add_argument("--date", default="", help="date for the ledger")


def _lock(options: argparse.Namespace) -> int:
    from agent_envs.campaign.sealing import read_passphrase
    from agent_envs.campaign.suites import draw_tasks, lock_suite

    passphrase = read_passphrase(options.key_file)
    tasks = [*options.tasks, *(draw_tasks(options.env, options.draw) if options.draw else ())]
    found = lock_suite(options.out, options.env, tasks, passphrase, options.by, options.date)
    print(f"{found.header.tasks} tasks sealed in {options.out}")
    print(f"commitment: {found.header.commitment}\nledger: {found.head}")
    return 0


def _open(options: argparse.Namespace) -> int:
    from agent_envs.campaign.manifest import load_manifest
    from agent_envs.campaign.sealing import read_passphrase
    from agent_envs.campaign.suites import open_suite, openings

    passphrase = read_passphrase(options.key_file)
    lock = open_suite(options.file, load_manifest(options.manifest), options.campaign, passphrase, options.date)
    print(
        f"opening {openings(options.file)} of {options.file}: campaign {lock.digest[:16]}, {len(lock.planned)} attempts"
    )
    print(f"run it with: agenteval campaign resume {options.campaign}")
    return 0


def _status(options: argparse.Namespace) -> int:
    from agent_envs.campaign.suites import status
    from agent_envs.report.words import visible

    found = status(options.file)
    print(
        f"{found.header.tasks} tasks of {visible(found.header.env_id)}\ncommitment: {visible(found.header.commitment)}"
    )
    print(f"openings: {found.openings}\nledger: {found.head}")
    for campaign in found.campaigns:
        print(f"  opened for {visible(campaign)}")
    for fault in found.faults:
        print(f"tampered with: {visible(fault)}")
    return 1 if found.faults else 0
