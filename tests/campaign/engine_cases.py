"""What the tests of all engines share: jobs, and what is left of processes."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_envs.campaign.engines import Done, Job
from agent_envs.campaign.manifest import System

HERE = Path(__file__).parent


def hard(name: str) -> str:
    return f"{HERE / 'hard_policies.py'}:{name}"


def make_job(folder: Path, seed: int, policy: str = "rulebook", **more: object) -> Job:
    """A job on one of ten training tasks."""
    limits = more.pop("limits", {})
    isolation = more.pop("isolation", "none")
    system = System.model_validate({"name": "s", "policy": policy, "isolation": isolation, "limits": limits})
    values: dict[str, object] = {
        "run_id": f"run-{seed}",
        "try_number": 0,
        "system": system,
        "env_id": "agenteval/refund-v1",
        "task_id": f"refund/train-{seed % 10}",
        "attempt": 0,
        "seed": seed,
        "folder": str(folder),
        "deadline": None,
    }
    return Job(**values | more)  # type: ignore[arg-type]


def kinds(done: Iterable[Done]) -> dict[str, tuple[str, str]]:
    """Run id to origin and kind of the ending; no id may come twice."""
    found: dict[str, tuple[str, str]] = {}
    for item in done:
        assert item.job.run_id not in found, f"{item.job.run_id} was reported twice"
        found[item.job.run_id] = (item.terminal.origin, item.terminal.kind)
    return found


def processes(word: str) -> list[int]:
    """Ids of running processes with ``word`` in their command line or environment, this one left out."""
    return [pid for pid, text in _texts() if word.encode() in text and pid != os.getpid()]


def _texts() -> Iterator[tuple[int, bytes]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                place = Path(entry.path)
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    yield int(entry.name), (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
            except OSError:  # it has just ended
                continue
