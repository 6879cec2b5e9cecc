"""The live episode: everything that is true between a reset and its end, kept by the environment alone.

Wrappers keep no state of their own: they read it from here. So a snapshot of the episode is a snapshot of all.
"""

import copy
import dataclasses
import time
from typing import Any

from agent_envs.contract import AgentTask, Change, Evidence, Terminal, Usage, net_changes
from agent_envs.episode.log import EventLog

ENDS_NATURALLY = {"finished", "user_stop", "forbidden_action"}
"""Kinds of ending that belong to the task (``terminated``); all others cut it off (``truncated``)."""


@dataclasses.dataclass(slots=True)
class Episode:
    """One episode in progress or just ended."""

    task: AgentTask
    seed: int
    initial_hash: str = ""
    state_hash: str = ""
    log: EventLog = dataclasses.field(default_factory=EventLog)
    changes: list[Change] = dataclasses.field(default_factory=list)
    step: int = 0
    calls: int = 0
    invalid_in_a_row: int = 0
    errors_in_a_row: int = 0
    tokens: int | None = None
    cost: float | None = None
    answer: dict[str, Any] | None = None
    terminal: Terminal | None = None
    gaps: list[str] = dataclasses.field(default_factory=list)
    started: float = dataclasses.field(default_factory=time.monotonic)
    environment_seconds: float = 0.0

    def end(self, terminal: Terminal) -> None:
        """Note why the episode ends; the first reason stands, however it's left afterwards."""
        if self.terminal is None:
            self.terminal = terminal

    def copy(self) -> "Episode":
        """An episode that goes on independently."""
        return dataclasses.replace(
            self,
            log=self.log.copy(),
            changes=list(self.changes),
            answer=copy.deepcopy(self.answer),
            gaps=list(self.gaps),
        )

    @property
    def terminated(self) -> bool:
        """The task itself came to an end."""
        return self.terminal is not None and self.terminal.kind in ENDS_NATURALLY

    @property
    def truncated(self) -> bool:
        """The episode was cut off by a limit or a fault."""
        return self.terminal is not None and self.terminal.kind not in ENDS_NATURALLY

    @property
    def spoiled(self) -> bool:
        """The world may be left in any condition: something in it broke, or a call was broken off within it."""
        terminal = self.terminal
        return terminal is not None and (terminal.origin == "environment" or terminal.kind == "wall_time_limit")

    def evidence(self) -> Evidence:
        """Freeze what has happened.

        Raises:
            RuntimeError: The episode hasn't ended.
        """
        if self.terminal is None:
            raise RuntimeError("the episode goes on; evidence is what it leaves when it has ended")
        return Evidence(
            task_id=self.task.task_id,
            task_revision=self.task.task_revision,
            task_digest=self.task.digest,
            seed=self.seed,
            initial_state_hash=self.initial_hash,
            final_state_hash=self.state_hash,
            changes=tuple(net_changes(self.changes)),
            events=tuple(self.log.entries),
            log_digest=self.log.digest,
            answer=self.answer,
            terminal=self.terminal,
            usage=Usage(steps=self.step, calls=self.calls, tokens=self.tokens, cost=self.cost),
            gaps=tuple(self.gaps),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """A point of an episode: enough to go on from there in this or another environment. Plain data throughout."""

    episode: Episode
    channels: dict[str, Any]
    """Each channel's frozen state, relative to the task's start."""
    state_hash: str
    elapsed: float
    """Seconds since the reset; time between the snapshot and its restoring doesn't count."""
