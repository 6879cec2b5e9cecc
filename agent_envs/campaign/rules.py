"""What a campaign may say about ways of ending: which are tried again, and what a row of the table means here."""

from collections.abc import Sequence
from typing import Self

from pydantic import Field, model_validator

from agent_envs.contract import OUTCOME_TABLE, Model, OutcomeClass
from agent_envs.contract.outcomes import Table


class Retry(Model):
    """Which invalid attempts are tried again, and how often.

    Only what says nothing of the agent may be repeated: to repeat a failure until it passes would inflate every rate.
    """

    classes: tuple[OutcomeClass, ...] = (OutcomeClass.ENVIRONMENT_FAILURE,)
    max_tries: int = Field(default=3, ge=1, le=20, strict=True)
    """Tries of one planned attempt, the first one too."""

    def check(self, table: Table) -> None:
        """Refuse classes that can't be retried.

        Raises:
            ValueError: No row of the class may be retried.
        """
        for name in self.classes:
            if name in (OutcomeClass.SUCCESS, OutcomeClass.AGENT_FAILURE):
                raise ValueError(f"classes: {name.value!r} is a result, and a result is never tried again")
            if not any(row.retry and row.outcome_class is name for row in table.values()):
                can = sorted({row.outcome_class.value for row in table.values() if row.retry})
                raise ValueError(f"classes: no way of ending as {name.value!r} may be tried again; those are {can}")


class Override(Model):
    """A row of the outcome table, changed for this campaign."""

    phase: str
    origin: str
    kind: str
    outcome_class: OutcomeClass | None = None
    retry: bool | None = Field(default=None, strict=True)
    counts: bool | None = Field(default=None, strict=True)

    @model_validator(mode="after")
    def _allowed(self) -> Self:
        row = OUTCOME_TABLE.get((self.phase, self.origin, self.kind))
        if row is None:
            near = [", ".join(key) for key in OUTCOME_TABLE if key[2] == self.kind]
            hint = (
                f"; there is ({near[0]})"
                if near
                else f"; kinds are {', '.join(sorted({key[2] for key in OUTCOME_TABLE}))}"
            )
            raise ValueError(f"the outcome table has no row ({self.phase}, {self.origin}, {self.kind}){hint}")
        if (self.outcome_class, self.retry, self.counts) == (None, None, None):
            raise ValueError(f"{self.kind}: nothing is overridden; give outcome_class, retry or counts")
        if row.judged:
            raise ValueError(f"{self.kind}: the verdict decides what it is, so nothing of it can be overridden")
        if self.outcome_class in (OutcomeClass.SUCCESS, OutcomeClass.UNCLASSIFIED):
            raise ValueError(f"{self.kind}: can't be declared {self.outcome_class.value!r}")
        retry = row.retry if self.retry is None else self.retry
        counts = row.counts if self.counts is None else self.counts
        if retry and (counts or self.origin == "agent"):
            raise ValueError(f"{self.kind}: what counts, or is the agent's own doing, is never tried again")
        if (self.outcome_class or row.outcome_class) is OutcomeClass.AGENT_FAILURE and not counts:
            raise ValueError(f"{self.kind}: an agent failure counts; another class is needed for one that doesn't")
        return self


def overridden(overrides: Sequence[Override]) -> Table:
    """The outcome table with a campaign's changes.

    Raises:
        ValueError: Two overrides are about one row.
    """
    table = dict(OUTCOME_TABLE)
    seen: set[tuple[str, str, str]] = set()
    for item in overrides:
        key = (item.phase, item.origin, item.kind)
        if key in seen:
            raise ValueError(f"{', '.join(key)} stands here more than once")
        seen.add(key)
        row = table[key]
        table[key] = row._replace(
            outcome_class=row.outcome_class if item.outcome_class is None else item.outcome_class,
            retry=row.retry if item.retry is None else item.retry,
            counts=row.counts if item.counts is None else item.counts,
        )
    return table
