"""Once more: replay a run's calls, or judge its kept evidence anew."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import gymnasium

from agent_envs.campaign.results import Results, ResultsError
from agent_envs.contract import AgentEvalError, AgentRun, AgentTask, Evidence, EvidenceError, Status, Verdict, chain
from agent_envs.episode.calls import Call, Calls
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.faults import boundary
from agent_envs.evaluator import evaluate


class Replay(NamedTuple):
    """Result of a replay."""

    same: bool
    step: int
    """First entry of the log that differs (0 is the reset); -1 when none does."""
    recorded: dict[str, Any] | None
    """That entry as recorded; None when the replay has more entries."""
    replayed: dict[str, Any] | None
    """That entry now; None when the replay ended earlier."""


def find_run(results: Results, name: str) -> AgentRun:
    """A run by id or a unique beginning of it.

    Raises:
        ResultsError: There is none, or several.
    """
    runs = results.read()
    found = [run for run in runs if run.run_id == name] or [run for run in runs if run.run_id.startswith(name)]
    if len(found) != 1:
        what = "no run is" if not found else f"{len(found)} runs are"
        some = ", ".join(run.run_id for run in (found or runs)[:5])
        raise ResultsError(f"{results.path}: {what} named {name!r}; there are, for example: {some or 'no runs at all'}")
    return found[0]


def replay(env: gymnasium.Env[Any, Any], evidence: Evidence) -> Replay:
    """Play the recorded calls again from the recorded seed and compare the chains entry by entry.

    Args:
        env: The environment the run was made in; its task must be the one recorded.
        evidence: What the run left.

    Raises:
        EvidenceError: The task has changed since.
    """
    task = cast(AgentEnv, env.unwrapped).suite.task(evidence.task_id)
    if task.digest != evidence.task_digest:
        raise EvidenceError(
            f"the evidence was made with another version of {evidence.task_id} ({evidence.task_digest[:12]}; it is now "
            f"{task.digest[:12]}): it can't be replayed"
        )
    env.reset(seed=evidence.seed, options={"task": evidence.task_id})
    core = cast(AgentEnv, env.unwrapped)
    steps: dict[int, list[dict[str, Any]]] = {}
    for entry in evidence.events[1:]:
        steps.setdefault(entry["step"], []).append(entry)
    for entries in steps.values():
        if core.episode.terminal is not None:
            break
        env.step(Calls(_as_call(entry) for entry in entries))
    return _compare(list(evidence.events), core.episode.log.entries)


def _as_call(entry: dict[str, Any]) -> Call:
    problem = entry.get("error", "") if entry["status"] == "invalid" else ""
    denied = entry.get("error", "") if entry["status"] == "denied" else ""
    return Call(entry["tool"], entry["arguments"], entry["id"], problem, denied)


def _compare(recorded: list[dict[str, Any]], replayed: list[dict[str, Any]]) -> Replay:
    heads = (b"", b"")
    for number in range(max(len(recorded), len(replayed))):
        one = recorded[number] if number < len(recorded) else None
        two = replayed[number] if number < len(replayed) else None
        if one is None or two is None:
            return Replay(False, number, one, two)
        heads = chain(heads[0], one), chain(heads[1], two)
        if heads[0] != heads[1]:
            return Replay(False, number, one, two)
    return Replay(True, -1, None, None)


class Regrade(NamedTuple):
    """A run judged again."""

    run: AgentRun
    verdict: Verdict | None
    """None when it couldn't be judged."""
    problem: str
    """Why not; empty when it could."""

    @property
    def changed(self) -> bool:
        """The new judgement differs from the recorded one."""
        before = None if self.run.verdict is None else self.run.verdict.Y
        after = None if self.verdict is None else self.verdict.Y
        return before != after


def regrade(folder: Path, task_of: Callable[[AgentRun], AgentTask]) -> list[Regrade]:
    """Judge every run of a results folder again from its kept evidence.

    Args:
        folder: The results folder.
        task_of: Gives the present `AgentTask` of a run.

    Returns:
        One row a run. Evidence that is damaged or of another version of the task, a task that is gone and a grader that
        breaks give a problem, not a verdict.
    """
    results = Results(folder)
    return [_judged_again(results, run, task_of) for run in results.read()]


def _judged_again(results: Results, run: AgentRun, task_of: Callable[[AgentRun], AgentTask]) -> Regrade:
    try:
        task, evidence = task_of(run), results.evidence(run)
        with boundary("grade", "grader", "grader_fault"):
            verdict = evaluate(task, evidence)
    except AgentEvalError as error:
        return Regrade(run, None, str(error))
    # A void episode has no verdict in its record, and an undetermined one here: the same judgement.
    return Regrade(run, verdict if run.verdict is not None or verdict.Y is not Status.UNDETERMINED else None, "")
