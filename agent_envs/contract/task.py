"""AgentTask: the contract of one task, and the part of it a policy may see."""

import hashlib
from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from agent_envs.contract.change import RowPatch
from agent_envs.contract.expected import Expected
from agent_envs.contract.model import Model
from agent_envs.contract.outcome import Assertion, Constraint
from agent_envs.contract.user import ScriptedUserSpec

TASK_ID = r"^[a-z0-9][a-z0-9_.-]*/[a-z0-9][a-z0-9_.-]*$"


def state_hash(channels: Mapping[str, str]) -> str:
    """The state hash: SHA-256 of the canonical JSON object that maps each channel's name to its digest."""
    # Names are plain identifiers and digests hexadecimal, so the canonical form needs no encoder.
    text = ",".join(f'"{name}":"{channels[name]}"' for name in sorted(channels))
    return hashlib.sha256(b"{%b}" % text.encode("ascii")).hexdigest()


class InitialState(Model):
    """Where every episode of the task starts."""

    fixture: str
    """Name of the family's fixture."""
    fixture_digest: str = ""
    """Digest of the fixture's content; empty only in generated tasks."""
    clock: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
    """Virtual time at the start, UTC."""
    patch: tuple[RowPatch, ...] = ()
    """Rows the task adds to the fixture, in order."""


class Permission(Model):
    """A rule that denies calls. All rules hold together: one denial is enough."""

    tools: tuple[str, ...] = Field(min_length=1)
    """Tools the rule is about."""
    when: dict[str, Expected] = {}
    """Denied when all these arguments match; with neither ``when`` nor ``unless``, always denied."""
    unless: dict[str, Expected] = {}
    """Denied unless all these arguments match."""
    reason: str
    """What the agent is told."""


class Limits(Model):
    """Budgets of one episode. Running out is the agent's failure, and the state reached is still judged."""

    steps: int = Field(default=50, ge=1)
    """Environment steps."""
    calls: int = Field(default=200, ge=1)
    """Tool calls, over all steps (one step may carry several)."""
    wall_seconds: float | None = Field(default=None, gt=0)
    """Seconds from reset, enforced from outside a tool that blocks."""
    tokens: int | None = Field(default=None, ge=1)
    """Model tokens, as reported by the policy."""
    cost: float | None = Field(default=None, gt=0)
    """US dollars, as reported by the policy."""
    invalid_calls: int = Field(default=10, ge=1)
    """Consecutive malformed or unknown calls: then the harness doesn't fit the environment."""
    errors: int = Field(default=20, ge=1)
    """Consecutive refused, denied or invalid calls."""
    observation_characters: int = Field(default=16_384, ge=256)
    """Longest observation text; more is cut in the middle, saying so."""


class RubricItem(Model):
    """A weighted check in the partial score. Diagnosis only: success never depends on it."""

    check: str
    """Name of an outcome assertion or constraint."""
    weight: float = Field(gt=0)
    """Relative weight."""


class PublicTask(Model):
    """All a policy ever sees of a task."""

    task_id: str
    task_revision: int
    user_request: str
    available_tools: tuple[str, ...]
    limits: Limits


class AgentTask(Model):
    """The contract of one task: start, request, means, limits and what success is.

    Its digest covers everything that can change a verdict. Reference solutions are kept elsewhere.
    """

    task_id: str = Field(pattern=TASK_ID)
    """``family/name``, lower case, unique also when case is ignored."""
    task_revision: int = Field(default=1, ge=1)
    """Raised by any change that can move a score."""
    source: str
    """Who made the task: ``curated``, ``generated`` or a public benchmark's name."""
    slice_labels: dict[str, str] = {}
    """Label to value, for results by slice, such as kind, difficulty and length."""

    initial_state: InitialState
    reset_check: dict[str, str] = {}
    """Digest of each channel at the start, for the channels that don't depend on the seed; empty in generated tasks."""

    user_request: str
    """The instruction the agent gets first."""
    user: ScriptedUserSpec | None = None
    """The simulated user, if there is one."""
    available_tools: tuple[str, ...] = Field(min_length=1)
    """Tools the agent may call."""
    permissions: tuple[Permission, ...] = ()

    constraints: tuple[Constraint, ...] = ()
    terminal_conditions: tuple[str, ...] = ("finish",)
    """Tools whose successful call ends the episode."""
    limits: Limits = Limits()

    outcome: tuple[Assertion, ...] = Field(min_length=1)
    """What must hold at the end; all of them."""
    rubric: tuple[RubricItem, ...] = ()
    """Weights of the partial score."""

    grader_revision: int = Field(default=1, ge=1)
    """Raised by any change of the checks."""
    grader_manifest: tuple[str, ...] = ()
    """Tests this task's grader has passed."""

    def public(self) -> PublicTask:
        """The part a policy may see."""
        return PublicTask(
            task_id=self.task_id,
            task_revision=self.task_revision,
            user_request=self.user_request,
            available_tools=self.available_tools,
            limits=self.limits,
        )

    @property
    def check_names(self) -> tuple[str, ...]:
        """Names of all assertions and constraints, in order."""
        return tuple(item.name for item in (*self.outcome, *self.constraints))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = self.check_names
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"outcome and constraints use the name(s) {duplicates} more than once; give each its own")
        if not any(item.check in ("changes", "python") for item in self.outcome) and not any(
            item.check == "answer" for item in self.outcome
        ):
            raise ValueError("outcome needs a 'changes', 'answer' or 'python' assertion: a total alone has no frame")
        if any(item.check == "total" for item in self.outcome) and not any(
            item.check == "changes" for item in self.outcome
        ):
            raise ValueError("outcome has a 'total' without a 'changes' assertion: nothing states what may change")
        if unknown := [item.check for item in self.rubric if item.check not in names]:
            raise ValueError(f"rubric weighs {unknown}, which no assertion or constraint is named; there are {names}")
        tools = set(self.available_tools)
        used = {tool for rule in self.permissions for tool in rule.tools}
        used.update(tool for constraint in self.constraints for tool in constraint.tools)
        used.update(self.terminal_conditions)
        if missing := sorted(used - tools):
            raise ValueError(
                f"permissions, constraints or terminal_conditions name {missing}, not among available_tools"
            )
        return self
