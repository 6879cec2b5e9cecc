"""Health: what decides between an agent's failure and the environment's.

Channels are probed before each attempt and after each failed one. An attempt that ended as the agent's failure while
the probe right after it fails is the environment's failure: nobody reads the text of an exception for that. The same
file keeps what was proven before the first attempt: that resets lead to the start state, also from a dirty one.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import gymnasium

from agent_envs.contract import AgentTask, Model, Terminal, digest
from agent_envs.episode.deadline import DeadlineExceeded, run_until
from agent_envs.episode.env import AgentEnv

PROBE_SECONDS = 10.0
RESET_SECONDS = 60.0
_DIRTY_STEPS = 8


class HealthRecord(Model):
    """One line of ``health.jsonl``."""

    kind: Literal["session", "reset", "smoke", "canary", "checked", "try", "stop"]
    """``session``: a runner began. ``reset``, ``smoke``, ``canary``: a check before the first attempt. ``checked``: all
    of them passed. ``try``: probes around a try. ``stop``: a runner ended, and why."""
    session: int
    """Which start of the runner, from 1."""
    ok: bool = True
    """The check passed."""
    subject: str = ""
    """Task or run it is about."""
    detail: str = ""
    """What was found, for people."""
    data: dict[str, Any] = {}  # noqa: RUF012 (pydantic copies it)
    """Figures and digests."""


def probe(env: gymnasium.Env[Any, Any], when: Literal["before", "after"]) -> dict[str, Any]:
    """Ask every channel of an environment's world whether it works.

    Returns:
        ``{"when": ..., "ok": bool, "channel": name of the first that doesn't, "detail": why}``. A world that isn't
        there (not yet made, or thrown away after a fault) has nothing that could be broken.
    """
    found: dict[str, Any] = {"when": when, "ok": True, "channel": "", "detail": ""}
    world = cast(AgentEnv, env.unwrapped)._world
    if world is None:
        return found
    for name, channel in world.channels.items():
        try:
            run_until(time.monotonic() + PROBE_SECONDS, channel.probe)
        except (Exception, DeadlineExceeded) as error:
            return found | {"ok": False, "channel": name, "detail": f"{type(error).__name__}: {error}"[:500]}
    return found


def failed_after(probes: Iterable[Mapping[str, Any]]) -> Terminal | None:
    """The ending that a failed probe right after an attempt stands for; None when none failed.

    Args:
        probes: What `probe` returned before and after it.
    """
    for found in probes:
        if found.get("when") == "after" and found.get("ok") is False:
            detail = f"right after the attempt channel {found.get('channel')!r} was broken: {found.get('detail')}"
            return Terminal(phase="act", origin="environment", kind="channel_fault", detail=detail[:2000])
    return None


def check_reset(env: gymnasium.Env[Any, Any], task_id: str, seed: int, dirty: bool) -> HealthRecord:
    """Prove that a task starts where it should.

    Args:
        env: Any environment of the task's family.
        task_id: The task.
        seed: Seed of the episode.
        dirty: Also play some random calls, reset, and compare with the first start.

    Returns:
        A record of kind ``reset`` (session 0, the caller's to fill in), with the task's digests in ``data``.
    """
    core = cast(AgentEnv, env.unwrapped)
    task = core.suite.task(task_id)
    data = {"task_digest": task.digest, "play_digest": play_digest(task), "dirty": dirty}

    def record(detail: str = "") -> HealthRecord:
        return HealthRecord(kind="reset", session=0, ok=not detail, subject=task_id, detail=detail, data=data)

    until = time.monotonic() + RESET_SECONDS
    try:
        text = run_until(until, lambda: env.reset(seed=seed, options={"task": task_id}))[0]["text"]
        if core.episode.terminal is not None:
            return record(core.episode.terminal.detail or core.episode.terminal.kind)
        data["state_hash"] = start = core.episode.state_hash
        if dirty:
            run_until(until, lambda: _make_dirty(env, seed))
            again = run_until(until, lambda: env.reset(seed=seed, options={"task": task_id}))[0]["text"]
            if core.episode.state_hash != start:
                now = core.episode.state_hash[:16]
                return record(f"after a dirty episode the start state is {now}, at first it was {start[:16]}")
            if again != text:
                return record("after a dirty episode the first observation differs")
    except DeadlineExceeded:
        return record(f"the reset took longer than {RESET_SECONDS:g} s")
    except Exception as error:
        return record(f"{type(error).__name__}: {error}"[:500])
    return record()


def _make_dirty(env: gymnasium.Env[Any, Any], seed: int) -> None:
    env.action_space.seed(seed % 2**31)
    for _ in range(_DIRTY_STEPS):
        if any(env.step(env.action_space.sample())[2:4]):
            return


_NOT_PLAYED = frozenset(
    ("task_revision source slice_labels outcome constraints rubric reset_check grader_revision grader_manifest").split()
)


def play_digest(task: AgentTask) -> str:
    """Digest of all that an episode of the task depends on: while it stays, kept evidence can be judged anew.

    Checks don't move an episode, but for constraints that end it at once. What ``reset_check`` pins is the start state,
    which the rest of the task determines and every record states.
    """
    whole = task.as_json()
    ending = [constraint for constraint in whole["constraints"] if constraint.get("on_breach") == "terminate"]
    return digest({name: value for name, value in whole.items() if name not in _NOT_PLAYED} | {"ending": ending})
