"""Evidence: all an episode leaves behind. Verdicts are made from this and nothing else."""

import functools
from typing import Any, Literal

from pydantic import Field

from agent_envs.contract.canonical import digest
from agent_envs.contract.change import Change
from agent_envs.contract.model import Model

Phase = Literal["reset", "act", "grade", "record"]
Origin = Literal["agent", "environment", "grader", "harness"]


class Terminal(Model):
    """Why an episode ended: the key into the outcome table."""

    phase: Phase
    origin: Origin
    """The boundary the cause crossed first."""
    kind: str
    """Such as ``finished``, ``step_limit`` or ``tool_fault``."""
    detail: str = ""
    """For people; never decides anything."""


class Usage(Model):
    """What the episode used. Times are kept apart from evidence, in the run."""

    steps: int = Field(ge=0)
    calls: int = Field(ge=0)
    tokens: int | None = None
    """Null when the policy reported none: unknown isn't zero."""
    cost: float | None = None
    """US dollars; null when unknown."""


class Evidence(Model):
    """What an episode leaves: hashes, exact changes, the chained event log, the declared answer, faults and gaps."""

    task_id: str
    task_revision: int
    task_digest: str
    seed: int
    """Episode seed; with task and log it replays the episode."""
    initial_state_hash: str
    final_state_hash: str
    changes: tuple[Change, ...]
    """Net changes of every channel that has rows."""
    events: tuple[dict[str, Any], ...]
    """The event log, one entry a tool call; entry 0 is the reset."""
    log_digest: str
    """Head of the log's hash chain."""
    answer: dict[str, Any] | None
    """Arguments given to ``finish``; null when it was never called."""
    terminal: Terminal
    usage: Usage
    gaps: tuple[str, ...] = ()
    """What could not be captured; any gap makes the outcome undetermined."""

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 over every field; the events are covered by ``log_digest``."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "events"}
        fields["changes"] = [change.as_json() for change in self.changes]
        fields["terminal"], fields["usage"] = self.terminal.as_json(), self.usage.as_json()
        return digest(fields)
