"""Limits: steps, calls, wall time, tokens and cost. Running out ends the episode; the state reached is still judged."""

import dataclasses
import math
import time
from typing import Any, cast

import gymnasium

from agent_envs.contract import Limits, Terminal
from agent_envs.episode.calls import Calls, parse_action
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.record import Episode


class EpisodeLimits(gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    """Enforces the task's limits, or tighter ones.

    Wall time counts from the reset and is enforced from outside a tool that blocks: the call is broken off, has no
    effect, and the state before it is judged. Tokens and cost are what the policy reports through ``charge``; a call made
    after they ran out is not run.

    Args:
        env: The environment to limit.
        steps: At most this many steps (the task's own limit holds too).
        wall_seconds: Seconds from reset.
        tokens: Model tokens.
        cost: US dollars.

    Raises:
        pydantic.ValidationError: A limit isn't positive.
    """

    def __init__(
        self,
        env: gymnasium.Env[Observation, Any],
        steps: int | None = None,
        wall_seconds: float | None = None,
        tokens: int | None = None,
        cost: float | None = None,
    ) -> None:
        """Limit ``env``."""
        given = {"steps": steps, "wall_seconds": wall_seconds, "tokens": tokens, "cost": cost}
        gymnasium.utils.RecordConstructorArgs.__init__(self, **given)
        gymnasium.Wrapper.__init__(self, env)
        self._core = cast(AgentEnv, env.unwrapped)
        self._given = {name: value for name, value in given.items() if value is not None}
        Limits.model_validate(self._given)

    @property
    def limits(self) -> Limits:
        """The effective budget of the current episode: the tighter of the task's and the wrapper's."""
        limits = self._core.episode.task.limits
        if not self._given:
            return limits
        own = {name: getattr(limits, name) for name in self._given}
        tighter = {name: value if own[name] is None else min(value, own[name]) for name, value in self._given.items()}
        return limits.model_copy(update=tighter)

    def charge(self, tokens: int | None = None, cost: float | None = None) -> None:
        """Report what the policy used for its next action. Unknown (None) stays unknown, it is not zero.

        Raises:
            ValueError: A figure is negative, not finite or no number.
        """
        episode = self._core.episode
        for name, value in (("tokens", tokens), ("cost", cost)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"charge({name}={value!r}): a finite number that isn't negative is needed")
            setattr(episode, name, (getattr(episode, name) or 0) + value)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Run what the budget allows."""
        core = self._core
        episode, limits = core.episode, self.limits
        calls = parse_action(action)
        spent = _spent(episode, limits)
        if spent:
            denied = f"not run: {spent.replace('_', ' ')} reached"
            calls = Calls(dataclasses.replace(call, denied=denied) for call in calls)
        elif (room := limits.calls - episode.calls) < len(calls):
            late = (dataclasses.replace(call, denied="not run: call limit reached") for call in calls[room:])
            calls = Calls((*calls[:room], *late))
        core.deadline = math.inf if limits.wall_seconds is None else episode.started + limits.wall_seconds
        observation, reward, _, _, info = self.env.step(calls)
        if episode.terminal is None:
            kind = spent or ("call_limit" if episode.calls >= limits.calls else "")
            kind = kind or ("step_limit" if episode.step >= limits.steps else "") or _spent(episode, limits)
            if kind:
                episode.end(Terminal(phase="act", origin="agent", kind=kind))
                info["terminal_reason"] = kind
        return observation, reward, episode.terminated, episode.truncated, info


def _spent(episode: Episode, limits: Limits) -> str:
    if limits.tokens is not None and (episode.tokens or 0) > limits.tokens:
        return "token_limit"
    if limits.cost is not None and (episode.cost or 0.0) > limits.cost:
        return "cost_limit"
    if limits.wall_seconds is not None and time.monotonic() - episode.started > limits.wall_seconds:
        return "wall_time_limit"
    return ""
