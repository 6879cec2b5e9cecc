"""Plays scripts in an environment in its standard dress: a call that fails is the script's business, not an error."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import gymnasium

from agent_envs.audit.mutation.mutant import Calls, Mutant
from agent_envs.contract import AgentTask, Call, Evidence, Terminal, Verdict
from agent_envs.contract.outcome import lookup
from agent_envs.episode.calls import MAX_CALLS
from agent_envs.evaluator import evaluate


@dataclasses.dataclass(frozen=True, slots=True)
class Played:
    """What a script left behind."""

    evidence: Evidence
    verdict: Verdict
    saved: dict[str, Any]
    """Results that its calls saved, by name."""


def play(env: gymnasium.Env[Any, Any], task: AgentTask, mutant: Mutant) -> Played:
    """Play a script to its end, or to the end that the environment makes of it.

    A script that ends without ``finish`` ends as ``stopped``: the state it reached is judged.
    """
    env.reset(seed=mutant.seed, options={"task": task.task_id})
    episode = env.unwrapped.episode  # type: ignore[attr-defined]
    saved: dict[str, Any] = {}
    for batch in _batches(mutant.calls, mutant.batched):
        seen = len(episode.log.entries)
        action = [{"tool": call.tool, "arguments": filled(call.arguments, saved)} for call in batch]
        _, _, terminated, truncated, _ = env.step(action if len(action) > 1 else action[0])
        for call, entry in zip(batch, episode.log.entries[seen:], strict=False):
            for name, path in call.save.items():
                found, value = lookup(entry.get("result") or {}, path)
                if found:
                    saved[name] = value
        if terminated or truncated:
            break
    if episode.terminal is None:
        episode.end(Terminal(phase="act", origin="agent", kind="stopped", detail="the script ended"))
        evidence = episode.evidence()
        return Played(evidence, evaluate(task, evidence), saved)
    verdict: Verdict | None = env.get_wrapper_attr("verdict")
    evidence = episode.evidence()
    return Played(evidence, verdict if verdict is not None else evaluate(task, evidence), saved)


def filled(value: Any, saved: dict[str, Any]) -> Any:
    """A call's arguments with each ``$name`` replaced by what was saved under the name."""
    if isinstance(value, str):
        return saved.get(value[1:], value) if value.startswith("$") else value
    if isinstance(value, dict):
        return {key: filled(item, saved) for key, item in value.items()}
    return [filled(item, saved) for item in value] if isinstance(value, list) else value


def concrete(calls: Calls, saved: dict[str, Any]) -> Calls:
    """A script with every saved result written out, so that its calls can be moved and dropped one by one."""
    return tuple(Call(tool=call.tool, arguments=filled(call.arguments, saved)) for call in calls)


def _batches(calls: Calls, batched: bool) -> Iterator[list[Call]]:
    """Lists of calls; one that saves a result ends its list, since a later call may use it."""
    batch: list[Call] = []
    for call in calls:
        batch.append(call)
        if not batched or call.save or len(batch) == MAX_CALLS:
            yield batch
            batch = []
    if batch:
        yield batch
