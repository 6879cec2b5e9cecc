"""What a mutation test found, as data: counts by task, proofs of equivalence, disagreements with their diffs."""

import functools
from collections.abc import Callable, Iterable
from typing import Literal

from pydantic import Field, JsonValue

from agent_envs.contract import Model

Direction = Literal["false_accept", "false_reject"]
Kind = Literal["mutant", "state", "variation"]


class Disagreement(Model):
    """A run on which the grader and the second opinion differ: a fault of the task, the grader, or that opinion."""

    task_id: str
    direction: Direction
    """``false_accept``: graded as a success, though wrong. ``false_reject``: right, and not graded as a success."""
    kind: Kind
    operator: str
    what: str
    """What was changed."""
    verdict: str
    failed: tuple[str, ...]
    """Checks that did not pass, with their explanations."""
    proof: JsonValue
    """What the second opinion says: rows missing and extra, and rules broken."""
    script: tuple[str, ...]
    """The lines that differ from the reference: calls of a script, changes of a state."""


class Equivalent(Model):
    """A mutant that turned out to be right."""

    operator: str
    what: str
    proof: JsonValue
    """The reference it equals and the digest of the common outcome."""


class TaskMutation(Model):
    """One task's mutation test."""

    task_id: str
    mutants: int = 0
    """Scripts and states that were made to be wrong."""
    killed: int = 0
    """Of them: wrong, and not graded as a success."""
    equivalent: int = 0
    """Of them: right after all, and graded so."""
    variations: int = 0
    """Scripts that were made to be right."""
    passed: int = 0
    """Of them: right, and graded so."""
    withdrawn: int = 0
    """Of them: not right in this task after all, and graded so (leaving out a look-up that tells who is calling)."""
    by_operator: dict[str, int] = Field(default={})
    """How many of each operator were made."""
    equivalents: tuple[Equivalent, ...] = ()
    """The mutants that are right, with the proofs."""
    disagreements: tuple[Disagreement, ...] = ()
    problem: str = ""
    """Why nothing could be tried: a reference that fails, or a family that says nothing of its tools."""

    @property
    def false_accepts(self) -> tuple[Disagreement, ...]:
        """Wrong runs that were graded as a success."""
        return tuple(item for item in self.disagreements if item.direction == "false_accept")

    @property
    def false_rejects(self) -> tuple[Disagreement, ...]:
        """Right runs that were not."""
        return tuple(item for item in self.disagreements if item.direction == "false_reject")


class MutationResult(Model):
    """The mutation test of a family."""

    env_id: str
    seed: int
    sample: int | None
    """How many mutants, variations and states of each task were tried; null: all."""
    tasks: tuple[TaskMutation, ...]

    @functools.cached_property
    def by_task(self) -> dict[str, TaskMutation]:
        """Task id to its test."""
        return {task.task_id: task for task in self.tasks}

    def total(self, count: Callable[[TaskMutation], int]) -> int:
        """A count over all tasks, such as ``lambda task: task.killed``."""
        return sum(count(task) for task in self.tasks)

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """All false accepts and false rejects, by task."""
        return tuple(item for task in self.tasks for item in task.disagreements)

    @property
    def false_accepts(self) -> int:
        """How many wrong runs were graded as a success."""
        return self.total(lambda task: len(task.false_accepts))

    @property
    def false_rejects(self) -> int:
        """How many right runs were not."""
        return self.total(lambda task: len(task.false_rejects))

    @property
    def ok(self) -> bool:
        """Whether something was tried in every task, and nothing disagreed. No mutants are no proof."""
        return bool(self.tasks) and all(
            task.killed > 0 and task.passed > 0 and not task.disagreements for task in self.tasks
        )


def counted(operators: Iterable[str]) -> dict[str, int]:
    """How often each name stands there, by name."""
    counts: dict[str, int] = {}
    for name in operators:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))
