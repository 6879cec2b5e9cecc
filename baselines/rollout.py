"""One attempt: a policy plays one episode, and the record says how it went."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium

from agent_envs.baselines.policy import GaveUp, Policy, begin, policy_spec
from agent_envs.contract import AgentRun, Terminal, digest, jsonable
from agent_envs.episode.faults import Fault, boundary


def rollout(
    env: gymnasium.Env[Any, Any], policy: Policy, *, seed: int | None = None, task: str = "", attempt: int = 0
) -> AgentRun:
    """Play one episode to its end.

    A policy that raises anything, or exits, ends the episode as ``policy_error``: an agent failure with a record.
    `GaveUp` ends it as ``stopped``, which is judged. An exception out of the environment's ``step`` is a way of ending
    that nobody recognises: the record is unclassified. Only KeyboardInterrupt passes through.

    Args:
        env: An agenteval environment in its standard dress, as ``gymnasium.make`` gives it.
        policy: Who plays.
        seed: Seed of the episode; None continues the environment's own stream.
        task: Task of the episode; empty: the environment's choice.
        attempt: Number of the attempt, for the record.
    """
    options = {"task": task} if task else None
    observation, info = env.reset(seed=seed, options=options)
    core: Any = env.unwrapped
    charge = env.get_wrapper_attr("charge")
    done = False
    try:
        _ask(lambda: begin(policy, core.task, core.action_space.schemas(), core.episode.seed))
        while not done:
            action = _ask(lambda: _act(policy, charge, observation, info))  # noqa: B023 (called at once)
            with boundary("act", "harness", "step_error"):
                observation, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
    except Fault as fault:
        terminal = fault.terminal
        env.get_wrapper_attr("stop")(kind=terminal.kind, detail=terminal.detail, origin=terminal.origin)
    run: AgentRun = env.get_wrapper_attr("run")
    system = system_spec(env, policy)
    return run.model_copy(
        update={
            "policy": policy.name,
            "oracle": system["policy"]["oracle"],
            "attempt": attempt,
            "system_spec_hash": digest(system),
            "seconds": time.monotonic() - core.episode.started,
        }
    )


def system_spec(env: gymnasium.Env[Any, Any], policy: Policy) -> dict[str, Any]:
    """All that is under test, as JSON: policy, environment with its settings, tools, wrappers and versions."""
    spec = env.spec
    settings = {} if spec is None else {name: spec.kwargs[name] for name in spec.kwargs if name not in _NO_MATTER}
    return {
        **env.get_wrapper_attr("system")(),
        "environment": "" if spec is None else spec.id,
        "settings": jsonable(settings),
        "policy": policy_spec(policy),
    }


_NO_MATTER = {"record", "render_mode", "task", "split"}
"""Settings that move no attempt, or that the attempt's own task stands for."""


def _act(policy: Policy, charge: Callable[..., None], observation: dict[str, Any], info: dict[str, Any]) -> Any:
    action = policy.act(observation, info)
    if callable(usage := getattr(policy, "usage", None)):
        tokens, cost = usage()
        charge(tokens=tokens, cost=cost)
    return action


def _ask(function: Callable[[], Any]) -> Any:
    """Run the policy's code. Whatever it raises is its own doing, our own exceptions too."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        detail = jsonable(error)
        detail = detail[:2000] if isinstance(detail, str) else f"an exception that can't be shown: {detail}"
        kind = "stopped" if isinstance(error, GaveUp) else "policy_error"
        raise Fault(detail, Terminal(phase="act", origin="agent", kind=kind, detail=detail)) from error
