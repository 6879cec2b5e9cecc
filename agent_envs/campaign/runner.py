"""Run a policy on tasks, some attempts each, into a results folder; what is already there is not run again."""

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import gymnasium

from agent_envs.baselines.identity import system_spec
from agent_envs.baselines.policy import Policy
from agent_envs.baselines.rollout import rollout
from agent_envs.campaign.results import Results
from agent_envs.contract import AgentRun, TaskError, consequences, digest, write_evidence
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.suite import Suite


class Attempt(NamedTuple):
    """One planned attempt."""

    run_id: str
    """Readable name and a digest of all that identifies the attempt: a changed task, policy, tool, limit or seed is
    another one."""
    task_id: str
    attempt: int
    seed: int


def attempt_seed(base: int, task_id: str, attempt: int) -> int:
    """Seed of an attempt: 63 bits of SHA-256 over base seed, task and attempt, so adding some moves none."""
    text = f"{base}:{task_id}:{attempt}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def choose_tasks(suite: Suite, patterns: Sequence[str], train: int = 0) -> list[str]:
    """Task ids by name or shell pattern; with none, all of the split ``eval``.

    Args:
        suite: Where the tasks come from.
        patterns: Ids, their last parts, or patterns such as ``*-for-*``.
        train: Add this many generated tasks.

    Raises:
        TaskError: A pattern matches nothing.
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        found = [
            task_id
            for task_id in suite.eval_ids
            if fnmatch.fnmatchcase(task_id, pattern) or fnmatch.fnmatchcase(task_id.partition("/")[2], pattern)
        ]
        if not found:
            suite.task(pattern)  # a generated task, or an error that says what there is
            found = [pattern]
        chosen |= dict.fromkeys(found)
    if not patterns and not train:
        chosen |= dict.fromkeys(suite.eval_ids)
    return list(chosen | dict.fromkeys(f"{suite.family}/train-{seed}" for seed in range(train)))


def plan(
    env: gymnasium.Env[Any, Any], policy: Policy, tasks: Sequence[str], attempts: int, seed: int
) -> Iterator[Attempt]:
    """Every attempt of a policy, attempt by attempt over all tasks."""
    core = cast(AgentEnv, env.unwrapped)
    system = system_spec(env, policy).digest
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", policy.name)[:40]  # part of a folder's name, whatever the policy is called
    for attempt in range(attempts):
        for task_id in tasks:
            chosen = attempt_seed(seed, task_id, attempt)
            identity = digest([core.suite.task(task_id).digest, system, chosen, attempt])[:12]
            yield Attempt(f"{task_id.partition('/')[2]}.{name}.{attempt}.{identity}", task_id, attempt, chosen)


def run_attempts(
    env: gymnasium.Env[Any, Any],
    policy: Policy,
    planned: Sequence[Attempt],
    folder: Path,
    progress: Callable[[AgentRun], None] = lambda run: None,
) -> list[AgentRun]:
    """Run the planned attempts that have no record yet, and again those whose record may be retried.

    Evidence is written before the record that points to it, so a record always has its evidence.

    Returns:
        The records of all planned attempts, in the plan's order.

    Raises:
        ResultsError: The folder can't be read or written.
        EvidenceError: Evidence can't be written.
    """
    if not planned:
        raise TaskError("there is nothing to run: no tasks or no attempts")
    results = Results(folder)
    have = {run.run_id: run for run in results.read()}
    for item in planned:
        place = f"evidence/{item.run_id}"
        if (earlier := have.get(item.run_id)) is not None:
            if not consequences(earlier.terminal).retry:
                continue
            place = f"{earlier.evidence}.again"  # the failed attempt keeps its own
        run = rollout(env, policy, seed=item.seed, task=item.task_id, attempt=item.attempt)
        write_evidence(env.get_wrapper_attr("freeze")(), folder / place)
        run = run.model_copy(update={"run_id": item.run_id, "evidence": place})
        results.append(run)
        have[item.run_id] = run
        progress(run)
    return [have[item.run_id] for item in planned]
