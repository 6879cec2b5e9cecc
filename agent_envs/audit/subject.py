"""What an audit looks at: one family's environment, its tasks and its gold, made anew wherever it is needed.

A subject is names and numbers only, so that it travels to worker processes; whatever is live is made from it there.
"""

import dataclasses
import functools
from typing import Any, cast

import gymnasium

from agent_envs.contract import AgentEvalError, AgentTask, TaskReferences, digest
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.suite import Suite

REPETITIONS = 3
"""How often checks that draw at random repeat themselves in a whole audit."""


class AuditError(AgentEvalError):
    """The audit can't be made: no such environment, task or folder."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A family under audit.

    Attributes:
        env_id: Registered id; ``module:id`` imports the module first, which may register it.
        task_ids: Tasks to audit, in order.
        seed: Seed of everything the audit draws.
        repetitions: How often checks that draw at random repeat themselves.
    """

    env_id: str
    task_ids: tuple[str, ...]
    seed: int = 0
    repetitions: int = REPETITIONS

    def make(self, **arguments: Any) -> gymnasium.Env[Any, Any]:
        """A new environment in its standard dress; the caller closes it."""
        return make(self.env_id, **arguments)

    @property
    def suite(self) -> Suite:
        """The family's tasks."""
        return suite_of(self.env_id)

    @property
    def partial(self) -> bool:
        """Whether curated tasks are left out, or drawn from less often than a whole audit does."""
        return not set(self.suite.eval_ids) <= set(self.task_ids) or self.repetitions < REPETITIONS

    def task(self, task_id: str) -> AgentTask:
        """A task's whole contract."""
        return self.suite.task(task_id)

    def references(self, task_id: str) -> TaskReferences:
        """A task's scripted runs: gold."""
        return self.suite.references(task_id)


def make(env_id: str, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """Make an environment by id, without Gymnasium's passive checker.

    Raises:
        AuditError: There is no such id, or it isn't an environment of this kind.
    """
    import agent_envs

    agent_envs.register_envs()
    try:
        env = gymnasium.make(env_id, disable_env_checker=True, **arguments)
    except (gymnasium.error.UnregisteredEnv, ModuleNotFoundError) as error:
        raise AuditError(f"there is no environment {env_id!r} ({error}); see 'agenteval list'") from None
    if not isinstance(env.unwrapped, AgentEnv):
        raise AuditError(f"{env_id!r} is a {type(env.unwrapped).__name__}, not an AgentEnv; only those can be audited")
    return env


def core_of(env: gymnasium.Env[Any, Any]) -> AgentEnv:
    """The environment inside all wrappers."""
    return cast(AgentEnv, env.unwrapped)


@functools.cache
def suite_of(env_id: str) -> Suite:
    """The suite of an environment."""
    env = make(env_id)
    suite = core_of(env).suite
    env.close()
    return suite


def subject(
    env_id: str,
    tasks: tuple[str, ...] = (),
    *,
    sample: int | None = None,
    seed: int = 0,
) -> Subject:
    """Describe what to audit.

    Args:
        env_id: Registered environment.
        tasks: Ids of tasks; empty: all curated ones.
        sample: Audit only so many of them, drawn by ``seed``; None: all.
        seed: Seed of the audit.

    Raises:
        AuditError: There is no such environment, or ``sample`` is below 1.
        TaskError: There is no such task.
    """
    suite = suite_of(env_id)
    for task_id in tasks:
        suite.task(task_id)
    chosen = tuple(dict.fromkeys(tasks)) or suite.eval_ids
    if sample is not None:
        if sample < 1:
            raise AuditError(f"sample={sample!r}: at least one task is needed")
        # Drawn by hash, like the suite's own draws: the same tasks whatever Python's generator does.
        chosen = tuple(sorted(sorted(chosen, key=lambda task_id: digest([seed, task_id]))[:sample]))
    return Subject(env_id, chosen, seed, repetitions=1 if sample is not None else REPETITIONS)
