"""Mutation testing of graders: wrong runs must fail, right ones must pass, whoever plays them.

Every reference is changed in hundreds of ways, and its final state row by row. Each changed run is judged twice: by the
grader, and by a second opinion that shares no code with it (`equivalence`). Where they differ, a wrong run is accepted
or a right one rejected; the target is none of either.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import gymnasium

from agent_envs.audit.mutation.mutant import Family, Mutant, MutationError, family_of
from agent_envs.audit.mutation.result import Disagreement, Equivalent, MutationResult, TaskMutation
from agent_envs.audit.mutation.trial import Trial
from agent_envs.audit.spread import LOST, spread

__all__ = [
    "Disagreement",
    "Equivalent",
    "Family",
    "Mutant",
    "MutationError",
    "MutationResult",
    "TaskMutation",
    "Trial",
    "check",
    "family_of",
]


class Audited(Protocol):
    """What is needed of an audit's subject; it must survive pickling when there are several workers."""

    @property
    def env_id(self) -> str:
        """Registered id."""

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Tasks to test."""

    def make(self) -> gymnasium.Env[Any, Any]:
        """A new environment in its standard dress."""


def check(
    subject: Audited,
    *,
    sample: int | None = None,
    workers: int = 1,
    seed: int = 0,
    progress: Callable[[TaskMutation], None] | None = None,
) -> MutationResult:
    """Test the graders of a subject's tasks.

    Args:
        subject: The family and its tasks.
        sample: How many mutants, variations and states of each task to try, drawn by ``seed``; None: all.
        workers: Processes; 1 tests in this one.
        seed: Seed of the episodes and the sample.
        progress: Called with each task's result as it comes, in the order of the tasks.

    Raises:
        MutationError: ``sample`` or ``workers`` is below 1. (A task that can't be tested has a ``problem`` instead.)
    """
    if workers < 1:
        raise MutationError(f"workers={workers!r}: at least one is needed")
    if sample is not None and sample < 1:
        raise MutationError(f"sample={sample!r}: at least one mutant a task is needed, or None for all")
    jobs = [(subject, task_id, sample, seed) for task_id in subject.task_ids]
    if workers == 1:
        with subject.make() as env:
            return _gathered(subject, sample, seed, (_test(env, job) for job in jobs), progress)
    results = spread(_test_in_worker, jobs, workers, lambda job: TaskMutation(task_id=job[1], problem=LOST))
    return _gathered(subject, sample, seed, results, progress)


Job = tuple[Audited, str, int | None, int]
_worker_env: dict[str, gymnasium.Env[Any, Any]] = {}
"""A worker's environment by id, made at its first task and kept to its end."""


def _test_in_worker(job: Job) -> TaskMutation:
    subject = job[0]
    if subject.env_id not in _worker_env:
        _worker_env[subject.env_id] = subject.make()
    return _test(_worker_env[subject.env_id], job)


def _test(env: gymnasium.Env[Any, Any], job: Job) -> TaskMutation:
    _, task_id, sample, seed = job
    try:
        return Trial(env, task_id, seed).run(sample)
    except MutationError as error:
        return TaskMutation(task_id=task_id, problem=str(error))


def _gathered(
    subject: Audited,
    sample: int | None,
    seed: int,
    results: Iterable[TaskMutation],
    progress: Callable[[TaskMutation], None] | None,
) -> MutationResult:
    tasks = []
    for result in results:
        tasks.append(result)
        if progress is not None:
            progress(result)
    return MutationResult(env_id=subject.env_id, seed=seed, sample=sample, tasks=tuple(tasks))
