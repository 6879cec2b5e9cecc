"""Playing episodes for the audit: what the policy was shown is kept beside what the episode left."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gymnasium

from agent_envs.baselines.policy import Policy
from agent_envs.baselines.reference import scripted
from agent_envs.baselines.rollout import rollout
from agent_envs.contract import AgentRun, Evidence, PublicTask, ReferenceRun, Status, WrongRun
from agent_envs.episode.env import AgentEnv

Sight = dict[str, Any]
"""All a policy was shown at one moment: observation, reward, ending and info."""


class Witness(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps a copy of everything that goes out of an environment, and of the actions that come in.

    Attributes:
        sights: What was shown since the last reset, in order.
        actions: The actions of the steps, as they were handed over.
        look: Called with each sight before the policy gets it; None: nobody looks.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Watch ``env``."""
        super().__init__(env)
        self.sights: list[Sight] = []
        self.actions: list[Any] = []
        self.look: Callable[[Sight], None] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start to watch an episode."""
        self.sights, self.actions = [], []
        observation, info = self.env.reset(seed=seed, options=options)
        self._keep({"observation": observation, "info": info})
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Watch a step."""
        self.actions.append(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        ending = {"reward": reward, "terminated": terminated, "truncated": truncated}
        self._keep({"observation": observation, "info": info, **ending})
        return observation, reward, terminated, truncated, info

    def _keep(self, sight: Sight) -> None:
        kept = copy.deepcopy(sight)
        self.sights.append(kept)
        if self.look is not None:
            self.look(kept)


class Played(NamedTuple):
    """An episode that has been played."""

    run: AgentRun
    evidence: Evidence
    sights: list[Sight]

    @property
    def status(self) -> Status:
        """Success in three values; undetermined where nothing could be judged."""
        return self.run.verdict.Y if self.run.verdict is not None else Status.UNDETERMINED

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that failed."""
        return self._named(Status.FAIL)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Names of the checks that could not be judged."""
        return self._named(Status.UNDETERMINED)

    @property
    def broken(self) -> str:
        """What broke, where the episode ended by something else than the agent's own doing; else empty.

        Our scripted policies are trusted: an error of theirs is a script that didn't go as written.
        """
        terminal = self.run.terminal
        ours = terminal.origin == "agent" and terminal.kind not in ("policy_error", "policy_crash")
        return "" if ours or terminal.origin == "harness" else f"{terminal.kind}: {terminal.detail}"

    def _named(self, status: Status) -> tuple[str, ...]:
        verdict = self.run.verdict
        results = () if verdict is None else (*verdict.assertions, *verdict.constraints)
        return tuple(result.name for result in results if result.status is status)


def play(env: gymnasium.Env[Any, Any], policy: Policy, task_id: str, seed: int) -> Played:
    """Play one episode, watched."""
    witness = env if isinstance(env, Witness) else Witness(env)
    run = rollout(witness, policy, seed=seed, task=task_id)
    evidence: Evidence = witness.get_wrapper_attr("evidence")
    return Played(run, evidence, witness.sights)


def play_script(env: gymnasium.Env[Any, Any], run: ReferenceRun | WrongRun, task_id: str, seed: int) -> Played:
    """Play one scripted run."""
    return play(env, scripted(run), task_id, seed)


class Actions:
    """A policy that sends a fixed list of actions, whatever comes back, and then claims success."""

    def __init__(self, actions: Iterable[Any], name: str = "actions") -> None:
        """Send ``actions``."""
        self.name = name
        self._actions = list(actions)
        self._next = 0

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Start from the beginning."""
        self._next = 0

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """The next action."""
        if self._next < len(self._actions):
            self._next += 1
            return self._actions[self._next - 1]
        return {"tool": "finish", "arguments": {"outcome": "completed"}}


def books_differ(core: AgentEnv) -> str:
    """What a full recomputation of the state hash finds different from the incremental one, or empty."""
    if not core.episode.state_hash:
        return f"the episode could not be started: {core.episode.terminal!r}"
    database = core.world.database
    if database is None:
        return ""
    kept, counted = database.digest(), database.recompute()
    return "" if kept == counted else f"the incremental hash is {kept[:16]}, every stored row gives {counted[:16]}"
