"""Verdict: what the evaluator says of an episode, in three values."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from agent_envs.contract.model import Model


class Status(StrEnum):
    """A check passes, fails, or could not be judged. The third is never folded into the others."""

    PASS = "pass"
    FAIL = "fail"
    UNDETERMINED = "undetermined"

    @staticmethod
    def all_of(statuses: Iterable["Status"]) -> "Status":
        """Kleene's strong conjunction: a failure decides, otherwise anything undetermined keeps it open."""
        seen = set(statuses)
        if Status.FAIL in seen:
            return Status.FAIL
        return Status.UNDETERMINED if Status.UNDETERMINED in seen else Status.PASS


class CheckResult(Model):
    """One assertion's or constraint's result with its evidence."""

    name: str
    status: Status
    expected: Any
    """What the task asked for, as JSON."""
    actual: Any
    """What the evidence shows, as JSON."""
    explanation: str
    """A sentence for people; names the row, field or step."""


class Verdict(Model):
    """The judgement of one episode: ``Y = G * product of C_j``."""

    task_id: str
    task_revision: int
    task_digest: str
    grader_revision: int
    evidence_digest: str
    assertions: tuple[CheckResult, ...] = Field(min_length=1)
    constraints: tuple[CheckResult, ...]
    G: Status
    """All outcome assertions together."""
    C: Status
    """All constraints together; pass when there are none."""
    Y: Status
    """Success: G and C."""
    partial_score: float | None = Field(ge=0.0, le=1.0)
    """Weighted share of passed rubric checks in [0, 1]; null without a rubric or when one is undetermined."""

    @model_validator(mode="after")
    def _follows_from_the_checks(self) -> Self:
        good = Status.all_of(result.status for result in self.assertions)
        kept = Status.all_of(result.status for result in self.constraints)
        if (self.G, self.C, self.Y) != (good, kept, Status.all_of((good, kept))):
            raise ValueError(f"G={self.G}, C={self.C}, Y={self.Y} don't follow from the checks (G={good}, C={kept})")
        return self

    @property
    def reward(self) -> float:
        """1.0 for a success, else 0.0."""
        return float(self.Y is Status.PASS)

    @property
    def broke_rule(self) -> bool:
        """The outcome is right, but a constraint was breached."""
        return self.G is Status.PASS and self.C is Status.FAIL
