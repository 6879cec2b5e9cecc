"""Reviews: what people who read a task say of it, how far they agree, and the slice of tasks that they let stand.

One YAML file a task, ``<name>.yaml``::

    task_id: refund/kettle-for-nina
    reviews:
      - reviewer: r1
        task_digest: 4f0c...     # of the task that was read
        clarity: 0               # 0 clear ... 3 impossible to know what is asked
        too_narrow: 1            # 0 every right solution passes ... 3 most right solutions fail
        too_wide: 0              # 0 every wrong solution fails ... 3 most wrong solutions pass
        difficulty: 2            # 0 minutes ... 3 more than half a day
        other: false             # any other serious flaw
        note: ...

A record of an earlier version of a task is stale: it is shown as such and counts for nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from agent_envs.audit.agreement import ordinal_alpha
from agent_envs.audit.subject import AuditError
from agent_envs.contract import Model, read_yaml, validate

LABELS = ("clarity", "too_narrow", "too_wide", "difficulty")
_GATES = ("clarity", "too_narrow", "too_wide")
REVIEWERS = 2
"""How many reviewers a task of the verified slice needs."""
Severity = Annotated[int, Field(ge=0, le=3, strict=True)]


class Review(Model):
    """What one reviewer says of one version of a task: 0 is no problem, 3 a severe one."""

    reviewer: str = Field(min_length=1)
    """A pseudonym will do."""
    task_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Digest of the task that was read."""
    clarity: Severity
    too_narrow: Severity
    too_wide: Severity
    difficulty: Severity
    other: bool = False
    """Another serious flaw, told in ``note``."""
    note: str = ""


class TaskReviews(Model):
    """A task's file."""

    task_id: str
    reviews: tuple[Review, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        seen = [(review.reviewer, review.task_digest) for review in self.reviews]
        if len(set(seen)) < len(seen):
            raise ValueError("a reviewer reviews the same version of a task twice; keep the later one")
        return self


class Label(Model):
    """The worst that any reviewer says of a task as it is now."""

    reviewers: int
    """Of the task as it is now."""
    stale: int
    """Reviews of earlier versions, which count for nothing."""
    clarity: int | None
    """As every label: null where all reviews are stale."""
    too_narrow: int | None
    too_wide: int | None
    difficulty: int | None
    other: bool

    @property
    def acceptable(self) -> bool:
        """Enough reviewers, and nobody sees more than a slight problem."""
        labels = [getattr(self, name) for name in _GATES]
        return (
            self.reviewers >= REVIEWERS and not self.other and all(value is not None and value <= 1 for value in labels)
        )


def load_reviews(folder: Path) -> dict[str, tuple[Review, ...]]:
    """Read a folder of reviews; one that isn't there has none.

    Raises:
        TaskError: A file is bad.
        AuditError: Two files are of one task.
    """
    found: dict[str, tuple[Review, ...]] = {}
    for path in sorted(folder.glob("*.yaml")):
        data = validate(read_yaml(path), TaskReviews)
        if data.task_id in found:
            raise AuditError(f"{path}: there is another file with reviews of {data.task_id}; keep them in one")
        found[data.task_id] = data.reviews
    return found


def label(reviews: Sequence[Review], task_digest: str) -> Label | None:
    """The worst label of a task as it is now; None when nobody has ever reviewed it."""
    if not reviews:
        return None
    current = [review for review in reviews if review.task_digest == task_digest]
    worst = {name: max((getattr(review, name) for review in current), default=None) for name in LABELS}
    return Label(
        reviewers=len(current),
        stale=len(reviews) - len(current),
        other=any(review.other for review in current),
        **worst,
    )


def agreement(reviews: Mapping[str, Iterable[Review]], digests: Mapping[str, str]) -> dict[str, float | None]:
    """Krippendorff's alpha by label over the tasks as they are now.

    Args:
        reviews: Task id to its reviews.
        digests: Task id to its present digest.
    """
    result: dict[str, float | None] = {}
    for name in LABELS:
        units = [
            [getattr(review, name) for review in records if review.task_digest == digests.get(task_id)]
            for task_id, records in sorted(reviews.items())
        ]
        result[name] = ordinal_alpha(units)
    return result
