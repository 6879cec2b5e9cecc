"""The manifest: what a campaign is to decide, and everything that has to be said before its first attempt.

A manifest is one YAML file. Nothing in it is filled in later: what it doesn't say has the default written here, and the
lock keeps that too. Nonsense is refused with file, line and field.
"""

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, Strict, ValidationInfo, field_validator, model_validator

from agent_envs.campaign.rules import Override, Retry, overridden
from agent_envs.contract import Model, read_yaml, validate
from agent_envs.contract.outcomes import Table
from agent_envs.contract.secrets import unfit
from agent_envs.contract.system import explain

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$"
_RESERVED = frozenset("task split record recheck render_mode steps wall_seconds tokens cost".split())
Fault = Callable[[tuple[str | int, ...], str], Exception]
"""Makes the error of a place in a manifest."""
Name = Annotated[str, Field(pattern=_NAME)]
Text = Annotated[str, Field(pattern=r"\S")]
EnvId = Annotated[str, AfterValidator(lambda value: value.removeprefix("agent_envs:"))]
Whole = Annotated[int, Strict()]
"""A whole number: neither ``true`` nor ``"2"`` is one."""
Number = Annotated[float, Strict()]
Weight = Annotated[Number, Field(gt=0, le=1e9)]
Share = Annotated[Number, Field(ge=0.0, le=1.0)]


class SystemLimits(Model):
    """Budgets of a system's episodes, tighter than the tasks' own."""

    steps: Whole | None = Field(default=None, ge=1)
    wall_seconds: Number | None = Field(default=None, gt=0)
    tokens: Whole | None = Field(default=None, ge=1)
    cost: Number | None = Field(default=None, gt=0)
    """US dollars."""

    def given(self) -> dict[str, Any]:
        """The limits that are set, as keywords of the environment."""
        return {name: value for name, value in self.as_json().items() if value is not None}


class System(Model):
    """A system to measure."""

    name: Name
    """In records and reports; part of run ids."""
    policy: Text
    """Built-in name, ``module:attribute`` or ``file.py:attribute``. There is no default: who plays is always said."""
    isolation: Literal["none", "process"] = "none"
    """``process``: an untrusted policy runs in a process of its own."""
    limits: SystemLimits = SystemLimits()
    env_arguments: dict[str, Any] = Field(default_factory=dict)
    """Further keywords of the environments, as JSON."""

    @field_validator("env_arguments")
    @classmethod
    def _own(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(_RESERVED & value.keys()):
            raise ValueError(f"{taken} can't be set here: the campaign sets them (limits stand under 'limits')")
        return value


class SuitePart(Model):
    """Tasks of one environment."""

    env: EnvId
    """Environment id."""
    tasks: tuple[Text, ...] = ()
    """Ids or patterns; with none and without ``train``: all curated tasks."""
    labels: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Keep only tasks whose label has one of these values."""
    train: Whole = Field(default=0, ge=0, le=1_000_000)
    """Add this many generated tasks."""
    weight: Weight = 1.0
    """Weight of each task of this part."""
    weights: dict[str, dict[str, Weight]] = Field(default_factory=dict)
    """Label to value to factor: a task's weight is multiplied by the factor of each label value it has."""

    @field_validator("labels")
    @classmethod
    def _some(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        if empty := sorted(name for name, values in value.items() if not values):
            raise ValueError(f"{empty}: no values, so no task could match; leave the label out or give values")
        return value


class Headline(Model):
    """The one number that answers the question."""

    metric: Literal["success", "pass_at_k", "pass_hat_k"] = "success"
    """``pass_at_k``: one of k attempts succeeds; ``pass_hat_k``: all of k do."""
    k: Whole = Field(default=1, ge=1)
    average: Literal["macro", "weighted"] = "macro"
    """Over tasks: each alike, or by the suite's weights."""


class InvalidRuns(Model):
    """What happens to attempts that say nothing of the agent. They are never zeros, never dropped in silence."""

    treatment: Literal["exclude"] = "exclude"
    """Out of the rate, in the coverage, and in the bounds for the worst and the best case."""
    maximum_share: Share = 0.2
    """Above this share of invalid tries the campaign stops and is invalid."""
    after: Whole = Field(default=10, ge=1)
    """Tries before the share is judged."""


class Budgets(Model):
    """Budgets of the whole campaign; reached, it stops cleanly."""

    total_cost: Number | None = Field(default=None, gt=0)
    """US dollars, all tries together."""
    total_seconds: Number | None = Field(default=None, gt=0)
    """Wall time of all tries, added up."""


class Canary(Model):
    """An attempt whose result is known."""

    policy: Text
    task: Text
    """Task id."""
    env: EnvId = ""
    """Environment id; empty: that of the suite's first part."""


class Canaries(Model):
    """Two attempts that show that the instrument tells success from failure."""

    known_pass: Canary
    known_fail: Canary

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.known_pass == self.known_fail:
            raise ValueError("known_pass and known_fail are the same attempt, which can't both pass and fail")
        return self


class Engine(Model):
    """Where attempts run."""

    kind: Literal["local", "ray"] = "local"
    workers: Whole = Field(default=1, ge=1, le=4096)
    address: str = ""
    """Of a running Ray cluster; empty: one is started here."""


class Manifest(Model):
    """A campaign, declared in full before its first attempt."""

    name: Name
    decision: Text
    """What is decided by the result, and how."""
    population: Text
    """What the tasks stand for: the claim reaches no further."""
    systems: tuple[System, ...] = Field(min_length=1)
    suite: tuple[SuitePart, ...] = Field(min_length=1)
    slices: tuple[Text, ...] = ()
    """Labels by which results are told apart."""
    attempts: Whole = Field(ge=1, le=100_000)
    """Of each system at each task."""
    seed: Whole = Field(default=0, ge=0, lt=2**63)
    """Base seed: attempts of different systems at one task have equal seeds."""
    budgets: Budgets = Budgets()
    invalid_runs: InvalidRuns = InvalidRuns()
    outcome_overrides: tuple[Override, ...] = ()
    retry: Retry = Retry()
    unclassified_share: Share = 0.0
    """Above this share of attempts that ended in a way nobody knows the campaign stops and is invalid."""
    minimum_coverage: Share = 0.95
    """Below this share of valid attempts there is no headline."""
    smoke: tuple[Text, ...] = ()
    """Task ids of the suite that each system plays once, unrecorded, before anything else."""
    canaries: Canaries
    engine: Engine = Engine()
    headline: Headline = Headline()
    k: tuple[Annotated[Whole, Field(ge=1)], ...] = ()
    """Values of k of the curves; empty: 1 to ``attempts``."""

    @functools.cached_property
    def outcome_table(self) -> Table:
        """The outcome table with this campaign's overrides."""
        return overridden(self.outcome_overrides)

    @property
    def ks(self) -> tuple[int, ...]:
        """Values of k of the curves."""
        return self.k or tuple(range(1, self.attempts + 1))

    @field_validator("systems")
    @classmethod
    def _unique(cls, value: tuple[System, ...]) -> tuple[System, ...]:
        counted = Counter(system.name.casefold() for system in value)
        if double := sorted(name for name, count in counted.items() if count > 1):
            raise ValueError(f"the name(s) {double} stand here more than once (case makes no difference)")
        return value

    @field_validator("slices", "smoke", "k")
    @classmethod
    def _once(cls, value: tuple[str | int, ...]) -> tuple[str | int, ...]:
        if double := [item for item, count in Counter(value).items() if count > 1]:
            raise ValueError(f"{double} stand here more than once")
        return value

    @field_validator("k")
    @classmethod
    def _within(cls, value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        attempts = info.data.get("attempts")
        if attempts is not None and (wrong := [k for k in value if k > attempts]):
            raise ValueError(f"{wrong} can't be had from attempts: {attempts}; raise attempts or leave them out")
        return value

    @field_validator("outcome_overrides")
    @classmethod
    def _one_a_row(cls, value: tuple[Override, ...]) -> tuple[Override, ...]:
        overridden(value)
        return value

    @field_validator("retry")
    @classmethod
    def _retryable(cls, value: Retry, info: ValidationInfo) -> Retry:
        if (overrides := info.data.get("outcome_overrides")) is not None:
            value.check(overridden(overrides))
        return value

    @field_validator("headline")
    @classmethod
    def _reachable(cls, value: Headline, info: ValidationInfo) -> Headline:
        attempts = info.data.get("attempts")
        if attempts is not None and value.k > attempts:
            raise ValueError(f"k: {value.k} can't be had from attempts: {attempts}")
        if value.metric == "success" and value.k != 1:
            raise ValueError("the metric 'success' has no k; take 'pass_at_k' or 'pass_hat_k'")
        return value

    @model_validator(mode="after")
    def _without_secrets(self) -> Self:
        for found in unfit(self.as_json()):
            raise ValueError(explain(found))
        return self


def read_manifest(path: Path) -> tuple[Manifest, Fault]:
    """Read a manifest.

    Returns:
        The manifest, and what makes the error of a place in it, with file and line.

    Raises:
        TaskError: It can't be read or is wrong, or names tasks, labels or environments that don't exist; the message
            names file, line and field.
    """
    from agent_envs.campaign.expansion import choose

    document = read_yaml(path)
    manifest = validate(document, Manifest)
    choose(manifest, document.error)
    return manifest, document.error


def load_manifest(path: Path) -> Manifest:
    """The manifest alone, as `read_manifest` reads it."""
    return read_manifest(path)[0]
