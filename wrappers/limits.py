"""Limits: steps, calls, wall time, tokens and cost. Running out ends the episode; the state reached is still judged."""

import dataclasses
import numbers
import time
from typing import Any, cast

import gymnasium

from agent_envs.contract import Limits, Terminal
from agent_envs.episode.calls import Call, Calls, parse_action
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.record import Episode

_COUNTED = ("too_many_errors", "too_many_invalid_calls")
_MOST = 2**53


class EpisodeLimits(gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    """Enforces the task's limits, or tighter ones.

    Wall time counts from the reset and is enforced from outside a tool that blocks: the call is broken off, has no
    effect, and the state before it is judged. Tokens and cost are what the policy reports through ``charge``; a call
    made after they ran out is not run.

    Args:
        env: The environment to limit.
        steps: At most this many steps (the task's own limit holds too).
        wall_seconds: Seconds from reset.
        tokens: Model tokens.
        cost: US dollars.

    Raises:
        pydantic.ValidationError: A limit isn't positive.
        ValueError: ``env`` is judged already: an episode that ends outside of that would have no verdict.
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
        gymnasium.utils.RecordConstructorArgs.__init__(self, **given)  # type: ignore[arg-type]
        gymnasium.Wrapper.__init__(self, env)
        layer: gymnasium.Env[Any, Any] = env
        while isinstance(layer, gymnasium.Wrapper):
            if hasattr(layer, "verdict"):
                raise ValueError("limits belong inside the evaluation: give them to gymnasium.make or to compose")
            layer = layer.env
        self._core = cast(AgentEnv, env.unwrapped)
        self.given = {name: value for name, value in given.items() if value is not None}
        Limits.model_validate(self.given)

    @property
    def limits(self) -> Limits:
        """The effective budget of the current episode: the tighter of the task's and the wrapper's."""
        limits = self._core.episode.task.limits
        if not self.given:
            return limits
        own = {name: getattr(limits, name) for name in self.given}
        tighter = {name: value if own[name] is None else min(value, own[name]) for name, value in self.given.items()}
        return limits.model_copy(update=tighter)

    def charge(self, tokens: int | None = None, cost: float | None = None) -> None:
        """Report what the policy used for its next action. Unknown (None) stays unknown, it is not zero.

        Raises:
            ValueError: A figure is negative, not finite or no number, or tokens aren't whole.
        """
        episode = self._core.episode
        for name, value in (("tokens", tokens), ("cost", cost)):
            if value is None:
                continue
            kind = numbers.Integral if name == "tokens" else numbers.Real
            if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value <= _MOST:
                what = "whole number" if name == "tokens" else "finite number"
                raise ValueError(f"charge({name}={value!r}): a {what} that isn't negative is needed, up to {_MOST}")
            plain = int(value) if name == "tokens" else float(value)
            setattr(episode, name, (getattr(episode, name) or 0) + plain)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Run what the budget allows."""
        core = self._core
        episode, limits = core.episode, self.limits
        calls = parse_action(action)
        over = "" if episode.terminal is not None else _spent(episode, limits)
        room = 0 if over else limits.calls - episode.calls
        if room < len(calls):
            over = over or "call_limit"
            calls = Calls((*calls[:room], *(_not_run(call, over) for call in calls[room:])))
        outer = core.deadline
        if limits.wall_seconds is not None:
            core.deadline = min(outer, episode.started + limits.wall_seconds)
        try:
            observation, reward, _, _, info = self.env.step(calls)
        finally:
            core.deadline = outer
        if over and episode.terminal is not None and episode.terminal.kind in _COUNTED:
            episode.terminal = None  # calls that weren't run are no errors of the agent
        if episode.terminal is None:
            kind = over or ("call_limit" if episode.calls >= limits.calls else "")
            kind = kind or ("step_limit" if episode.step >= limits.steps else "") or _spent(episode, limits)
            if kind:
                episode.end(Terminal(phase="act", origin="agent", kind=kind))
                info["terminal_reason"] = kind
        return observation, reward, episode.terminated, episode.truncated, info


def _not_run(call: Call, limit: str) -> Call:
    return dataclasses.replace(call, denied=f"not run: {limit.replace('_', ' ')} reached")


def _spent(episode: Episode, limits: Limits) -> str:
    if limits.tokens is not None and (episode.tokens or 0) > limits.tokens:
        return "token_limit"
    if limits.cost is not None and (episode.cost or 0.0) > limits.cost:
        return "cost_limit"
    if limits.wall_seconds is not None and time.monotonic() - episode.started > limits.wall_seconds:
        return "wall_time_limit"
    return ""
