"""Runs whose result is known: a task's reference solutions, which must pass, and its wrong runs, which must not.

They show that a task can be solved and that its grader tells right from wrong, now and with the present code.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import gymnasium

from agent_envs.baselines import rollout
from agent_envs.baselines.reference import scripted
from agent_envs.contract import AgentRun, ReferenceRun, Status, WrongRun
from agent_envs.episode.env import AgentEnv


class KnownRun(NamedTuple):
    """A scripted run that was played, and whether it ended as it must."""

    name: str
    right: bool
    """It is a reference, which must pass."""
    near_miss: bool
    """It is wrong, and not by doing nothing."""
    run: AgentRun
    problem: str
    """Why it didn't end as it must; empty when it did."""


def play(env: gymnasium.Env[Any, Any], task_id: str, script: ReferenceRun | WrongRun, seed: int = 0) -> KnownRun:
    """Play one scripted run and compare its verdict with what is known of it.

    Args:
        env: An environment of the task's family in its standard dress.
        task_id: The task.
        script: What to play.
        seed: Seed of the episode.
    """
    run = rollout(env, scripted(script), seed=seed, task=task_id)
    if isinstance(script, ReferenceRun):
        return KnownRun(script.name, True, False, run, _not_passed(run))
    return KnownRun(script.name, False, bool(script.calls), run, _not_refused(run, script.fails))


def play_known(env: gymnasium.Env[Any, Any], task_id: str, seed: int = 0, wrong: bool = True) -> Iterator[KnownRun]:
    """Play every reference of a task and, unless told otherwise, every wrong run.

    Raises:
        TaskError: The task has no references, or their file is bad.
    """
    known = cast(AgentEnv, env.unwrapped).suite.references(task_id)
    for reference in known.references:
        yield play(env, task_id, reference, seed)
    for script in known.wrong if wrong else ():
        yield play(env, task_id, script, seed)


def _not_passed(run: AgentRun) -> str:
    if run.verdict is None:
        return f"not judged: {run.terminal.kind} {run.terminal.detail}"[:300]
    if run.verdict.Y is Status.PASS:
        return ""
    bad = [item for item in (*run.verdict.assertions, *run.verdict.constraints) if item.status is not Status.PASS]
    return f"{bad[0].name} is {bad[0].status.value}: {bad[0].explanation}"[:300]


def _not_refused(run: AgentRun, fails: str) -> str:
    if run.verdict is None:
        return f"not judged: {run.terminal.kind} {run.terminal.detail}"[:300]
    if run.verdict.Y is Status.PASS:
        return "passes, although it is wrong"
    results = {item.name: item for item in (*run.verdict.assertions, *run.verdict.constraints)}
    if fails not in results:
        return f"was to fail by {fails!r}, which the task has no check of"
    if results[fails].status is not Status.FAIL:
        found = results[fails]
        return f"was to fail by {fails!r}, which is {found.status.value}: {found.explanation}"[:300]
    return ""
