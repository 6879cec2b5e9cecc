"""Campaign folders for tests: synthetic ones of any shape, and real ones that baselines played."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_envs.campaign.expansion import PlannedAttempt, PlannedTask
from agent_envs.campaign.lock import Lock, assemble, write_lock
from agent_envs.campaign.manifest import Manifest
from agent_envs.campaign.store import CampaignStore, TryRecord
from agent_envs.contract import (
    SECTIONS,
    AgentRun,
    CheckResult,
    Limits,
    Status,
    SystemSpec,
    Terminal,
    Usage,
    Verdict,
    classify,
    write_evidence,
)

ENV = "agenteval/refund-v1"
EMPTY: dict[str, Any] = {name: {} for name in SECTIONS}
CANARIES = {
    "known_pass": {"policy": "reference", "task": "made/t0"},
    "known_fail": {"policy": "noop", "task": "made/t0"},
}
FINISHED = Terminal(phase="act", origin="agent", kind="finished")
FAULT = Terminal(phase="act", origin="environment", kind="tool_fault", detail="the database went away")


@dataclasses.dataclass(frozen=True)
class Made:
    """What became of a synthetic attempt."""

    good: bool = False
    """The outcome checks pass."""
    kept: bool = True
    """The constraints hold."""
    claimed: bool = True
    terminal: Terminal = FINISHED
    cost: float | None = None
    seconds: float = 1.0
    steps: int = 5
    retried: int = 0
    """Environment failures before it."""
    worker: str = "w0"
    text: str = "the ledger isn't as the task asks"
    order: int | None = None


PASS, FAIL, LOST = Made(good=True), Made(), Made(terminal=FAULT)


def tasks(
    count: int, labels: Callable[[int], dict[str, str]] = lambda number: {}, weight: Sequence[float] = (1.0,)
) -> tuple[PlannedTask, ...]:
    return tuple(
        PlannedTask(
            env_id=ENV,
            task_id=f"made/t{number}",
            task_digest=f"{number:064x}",
            weight=weight[number % len(weight)],
            labels=labels(number),
        )
        for number in range(count)
    )


def lock(
    planned: Sequence[PlannedTask],
    systems: Mapping[str, Mapping[str, Any]] | Sequence[str],
    attempts: int = 1,
    policies: Mapping[str, str] | None = None,
    **manifest: Any,
) -> Lock:
    """A lock of made-up tasks and systems; ``systems`` maps names to parts of their specs."""
    parts = systems if isinstance(systems, Mapping) else {name: {} for name in systems}
    named = {
        name: SystemSpec.model_validate({**EMPTY, "policy": {"name": name}, **part}) for name, part in parts.items()
    }
    asked = Manifest.model_validate(
        {
            "name": "made",
            "decision": "Which system goes live",
            "population": "refund requests in shops",
            "systems": [{"name": name, "policy": (policies or {}).get(name, f"{name}:agent")} for name in parts],
            "suite": [{"env": ENV}],
            "attempts": attempts,
            "canaries": CANARIES,
            "invalid_runs": {"maximum_share": 1.0},
            "minimum_coverage": 0.0,
            **manifest,
        }
    )
    return assemble(asked, {ENV: named}, tuple(planned))


def record(locked: Lock, item: PlannedAttempt, made: Made, order: int = 0, try_number: int = 0) -> AgentRun:
    spec = locked.spec(item.system, item.env_id)
    verdict = None
    if made.terminal.origin == "agent":
        good, kept = (Status.PASS if flag else Status.FAIL for flag in (made.good, made.kept))
        verdict = Verdict(
            task_id=item.task_id,
            task_revision=1,
            task_digest=item.task_digest,
            grader_revision=1,
            evidence_digest="e" * 64,
            assertions=(CheckResult(name="ledger", status=good, expected=1, actual=0, explanation=made.text),),
            constraints=(CheckResult(name="ask first", status=kept, expected=1, actual=0, explanation="asked late"),),
            G=good,
            C=kept,
            Y=Status.all_of((good, kept)),
            partial_score=None,
        )
    outcome, row = classify(made.terminal, None if verdict is None else verdict.Y, locked.rows)
    return AgentRun(
        run_id=item.run_id,
        env_id=item.env_id,
        task_id=item.task_id,
        task_revision=1,
        task_digest=item.task_digest,
        policy=item.system,
        oracle=bool(spec.policy.get("oracle")),
        system_spec_hash=spec.digest,
        attempt=item.attempt,
        seed=item.seed,
        initial_state_hash="0" * 64,
        final_state_hash="1" * 64,
        log_digest="2" * 64,
        evidence_digest="e" * 64,
        terminal=made.terminal,
        outcome_class=outcome,
        counts=row.counts,
        verdict=verdict,
        declared_success=made.claimed,
        usage=Usage(steps=made.steps, calls=made.steps, cost=made.cost),
        limits=Limits(),
        seconds=made.seconds,
        environment_seconds=made.seconds / 2,
        infrastructure_status="ok" if verdict is not None else "faulted",
        campaign=locked.digest,
        system=item.system,
        try_number=try_number,
        order=order if made.order is None else made.order,
        worker=made.worker,
        weight=item.weight,
        labels=item.labels,
    )


def write(folder: Path, locked: Lock, outcome: Callable[[PlannedAttempt], Made | None]) -> Path:
    """Write a whole campaign folder; attempts of which ``outcome`` makes None get no record."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lock(locked, folder)
    store = CampaignStore(folder)
    runs, tries = [], []
    for order, item in enumerate(locked.planned):
        made = outcome(item)
        if made is None:
            continue
        for number in range(made.retried):
            lost = record(locked, item, dataclasses.replace(LOST, cost=made.cost), order, number)
            tries.append(TryRecord(run=lost, decision="retry", reason="tried again", session=1, elapsed=1.0))
        run = record(locked, item, made, order, made.retried)
        decision = "counted" if run.counts else "invalid"
        tries.append(TryRecord(run=run, decision=decision, reason="the first valid try", session=1, elapsed=1.0))
        runs.append(run)
    store.attempts.append_bytes(b"".join(item.canonical() + b"\n" for item in tries), sync=False)
    store.runs.append_bytes(b"".join(run.canonical() + b"\n" for run in runs), sync=False)
    return folder


def play(folder: Path, policies: Sequence[str], names: Sequence[str], attempts: int = 2, **manifest: Any) -> Path:
    """Let baselines play real refund tasks into a campaign folder, evidence and all."""
    from agent_envs.baselines import load, rollout
    from agent_envs.campaign.expansion import make_env
    from agent_envs.campaign.lock import make_lock

    asked = Manifest.model_validate(
        {
            "name": "baselines",
            "decision": "Whether the suite tells agents apart",
            "population": "refund requests like these",
            "systems": [{"name": name, "policy": name} for name in policies],
            "suite": [{"env": ENV, "tasks": names}],
            "attempts": attempts,
            "canaries": {
                "known_pass": {"policy": "reference", "task": "refund/books-for-the-ferry"},
                "known_fail": {"policy": "noop", "task": "refund/books-for-the-ferry"},
            },
            **manifest,
        }
    )
    locked = make_lock(asked)
    folder.mkdir(parents=True, exist_ok=True)
    write_lock(locked, folder)
    store = CampaignStore(folder)
    env = make_env(ENV)
    loaded = {name: load(name) for name in policies}
    for order, item in enumerate(locked.planned):
        run = rollout(env, loaded[item.system], seed=item.seed, task=item.task_id, attempt=item.attempt)
        place = f"evidence/{item.run_id}"
        write_evidence(env.get_wrapper_attr("freeze")(), folder / place)
        update = {
            "run_id": item.run_id,
            "evidence": place,
            "campaign": locked.digest,
            "system": item.system,
            "order": order,
            "worker": "w0",
            "weight": item.weight,
            "labels": item.labels,
        }
        run = run.model_copy(update=update)
        store.attempts.append(
            TryRecord(run=run, decision="counted", reason="the first valid try", session=1, elapsed=1.0), sync=False
        )
        store.runs.append(run, sync=False)
    env.close()
    return folder
