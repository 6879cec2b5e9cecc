"""What an engine is: it plays jobs somewhere and says how each ended. Both engines give the same records.

An engine never judges on its own and never writes the campaign's records: it hands back one `Done` a job, and whatever
evidence the attempt left is on the disk before that.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from agent_envs.contract import AgentEvalError, AgentRun, Terminal

if TYPE_CHECKING:
    from agent_envs.campaign.manifest import System

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,239}")


class EngineError(AgentEvalError):
    """The engine can't go on: a policy or environment can't be made, or evidence can't be written."""


@dataclass(frozen=True)
class Job:
    """One attempt to play."""

    run_id: str
    """Names the folder of the evidence too, so plain characters only."""
    try_number: int
    """0 for the first try; each further one keeps its own evidence."""
    system: "System"
    """Who plays, under which limits, in which environment arguments."""
    env_id: str
    task_id: str
    attempt: int
    seed: int
    folder: str
    """The campaign's folder, absolute; evidence goes to `place` in it."""
    deadline: float | None = None
    """Seconds for the whole attempt, reset included; None for no bound but the wall-time limit of system and task."""

    @property
    def place(self) -> str:
        """Folder of this try's evidence, relative to the campaign's folder.

        Raises:
            EngineError: The run's id isn't fit to be a folder's name.
        """
        if not _PLAIN.fullmatch(self.run_id):
            raise EngineError(
                f"run_id={self.run_id!r}: use letters, digits and ._- (at most 240), letter or digit first"
            )
        return f"evidence/{self.run_id}" + (f".try{self.try_number}" if self.try_number else "")


@dataclass(frozen=True)
class Done:
    """How a job ended."""

    job: Job
    run: AgentRun | None
    """The record; None where the process that held the episode was lost."""
    terminal: Terminal
    """The record's terminal, or how the process was lost."""
    evidence: str = ""
    """Folder of the evidence relative to the job's folder; empty when there is none."""
    tail: str = ""
    """End of what the worker printed during the attempt."""
    health: tuple[dict[str, Any], ...] = field(default=())
    """Probes of the state channels, as `agent_envs.campaign.health.probe` gives them.

    ``before``: right after the reset; ``after``: after an attempt that was no success. A lost process can't be probed,
    nor one whose policy hangs.
    """
    seconds: float = 0.0
    """Wall time of the attempt, evidence written included."""
    worker: str = ""
    """Which worker played it, such as ``local-0``."""


class Engine(Protocol):
    """Plays jobs."""

    def run(self, jobs: Iterator[Job | None]) -> Iterator[Done]:
        """Play jobs and yield each as it finishes, in any order.

        Jobs are pulled as workers get free (at most one ahead a worker). None means "nothing at the moment": it is
        asked again after the next job has finished, and taken for the end when no job is running.

        Raises:
            EngineError: The engine can't go on; jobs without a `Done` were not counted as played.
        """
        ...

    def stop(self, now: bool = False) -> None:
        """Pull no more jobs, and let the running ones finish; with ``now`` end them at once without a `Done`.

        May be called from a signal handler.
        """
        ...

    def close(self) -> None:
        """End every process and remove every temporary file; bounded, and safe to call twice."""
        ...

    def __enter__(self) -> Self:
        """The engine itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        ...
