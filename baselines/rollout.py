"""One attempt: a policy plays one episode, and the record says how it went."""

import contextlib
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from agent_envs.baselines.identity import system_spec
from agent_envs.baselines.policy import GaveUp, Policy, PolicyCrash, begin
from agent_envs.contract import AgentRun, SystemSpec, Terminal, jsonable
from agent_envs.episode.deadline import DeadlineExceeded, run_until
from agent_envs.episode.faults import Fault, boundary

_UNGUARDED = contextlib.nullcontext()


def rollout(
    env: gymnasium.Env[Any, Any],
    policy: Policy,
    *,
    seed: int | None = None,
    task: str = "",
    attempt: int = 0,
    guard: contextlib.AbstractContextManager[None] = _UNGUARDED,
) -> AgentRun:
    """Play one episode to its end.

    A policy that raises anything, or exits, ends the episode as ``policy_error``: an agent failure with a record.
    `GaveUp` ends it as ``stopped``, which is judged. A policy that is still thinking when the episode's wall time is up
    is broken off in the main thread, as far as Python can; a campaign's runner bounds all others. An exception out of
    the environment's ``step`` is a way of ending that nobody recognises: the record is unclassified. Only
    KeyboardInterrupt passes through.

    Args:
        env: An agenteval environment in its standard dress, as ``gymnasium.make`` gives it.
        policy: Who plays.
        seed: Seed of the episode; None continues the environment's own stream.
        task: Task of the episode; empty: the environment's choice.
        attempt: Number of the attempt, for the record.
        guard: Entered around each call into the policy's code, and around nothing else; it then bounds the policy.

    Raises:
        SpecError: The policy's words of itself hold a secret or a path of this machine.
        PolicyError: The policy's ``spec()`` fails or is no JSON.
    """
    system = system_spec(env, policy)
    options = {"task": task} if task else None
    observation, info = env.reset(seed=seed, options=options)
    core: Any = env.unwrapped
    charge = env.get_wrapper_attr("charge")
    done = False
    try:
        deadline = math.inf
        limit = env.get_wrapper_attr("limits").wall_seconds
        # Elsewhere it would have to think in a thread of its own, and what it holds may belong to this one.
        if limit is not None and guard is _UNGUARDED and threading.current_thread() is threading.main_thread():
            deadline = core.episode.started + limit
        _ask(guard, deadline, lambda: begin(policy, core.task, core.action_space.schemas(), core.episode.seed))
        while not done:
            action, used = _ask(guard, deadline, lambda: _act(policy, observation, info))  # noqa: B023 (called at once)
            _ask(_UNGUARDED, math.inf, lambda: charge(tokens=used[0], cost=used[1]))  # noqa: B023
            with boundary("act", "harness", "step_error"):
                observation, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
    except Fault as fault:
        terminal = fault.terminal
        env.get_wrapper_attr("stop")(kind=terminal.kind, detail=terminal.detail, origin=terminal.origin)
    finally:
        if callable(end := getattr(policy, "end", None)):
            with guard, contextlib.suppress(Exception, SystemExit):  # the episode is over, whatever it says
                end()
    return record(env, policy, system, attempt)


def record(env: gymnasium.Env[Any, Any], policy: Policy, system: SystemSpec, attempt: int) -> AgentRun:
    """The record of the episode that has just ended, with what the environment doesn't know of it."""
    core: Any = env.unwrapped
    run: AgentRun = env.get_wrapper_attr("run")
    return run.model_copy(
        update={
            "policy": policy.name,
            "oracle": system.policy["oracle"],
            "attempt": attempt,
            "system_spec_hash": system.digest,
            "seconds": time.monotonic() - core.episode.started,
        }
    )


def _act(policy: Policy, observation: dict[str, Any], info: dict[str, Any]) -> tuple[Any, tuple[Any, Any]]:
    """The policy's next action, and what it used for it."""
    action = policy.act(observation, info)
    usage = getattr(policy, "usage", None)
    tokens, cost = usage() if callable(usage) else (None, None)
    return action, (tokens, cost)


def _ask(guard: contextlib.AbstractContextManager[None], deadline: float, function: Callable[[], Any]) -> Any:
    """Run the policy's code. Whatever it raises is its own doing, our own exceptions too."""
    try:
        with guard:
            return run_until(deadline, function)
    except DeadlineExceeded:
        detail = "the policy was still thinking"
        raise Fault(detail, Terminal(phase="act", origin="agent", kind="wall_time_limit", detail=detail)) from None
    except (Exception, SystemExit) as error:
        detail = jsonable(error)
        detail = detail[:2000] if isinstance(detail, str) else f"an exception that can't be shown: {detail}"
        kinds = {GaveUp: "stopped", PolicyCrash: "policy_crash"}
        kind = next((kind for cause, kind in kinds.items() if isinstance(error, cause)), "policy_error")
        raise Fault(detail, Terminal(phase="act", origin="agent", kind=kind, detail=detail)) from error
