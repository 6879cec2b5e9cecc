"""Determinism: the seed decides an episode, and nothing else does, neither hash order, clock, time zone nor process."""

import copy
from collections.abc import Iterator
from typing import Any

from agent_envs.audit.checks.reset import jobs_of
from agent_envs.audit.finding import Finding, finding
from agent_envs.audit.playing import Actions, Played, Witness, play, play_script
from agent_envs.audit.probe import difference, elsewhere, summary_digest
from agent_envs.audit.subject import Subject, core_of
from agent_envs.baselines.cheap import RandomCalls
from agent_envs.contract import Evidence
from agent_envs.evaluator import evaluate

NAME = "determinism"
_YEAR = str(400 * 86400)
_DRAWS = 20


def check_determinism(subject: Subject) -> Iterator[Finding]:
    """Play the same episodes in processes with other hash seeds, time zones and clocks; then see that seeds matter."""
    jobs = jobs_of(subject)
    conditions: tuple[dict[str, str], ...] = (
        {"PYTHONHASHSEED": "0", "TZ": "UTC"},
        {"PYTHONHASHSEED": "4242", "TZ": "Pacific/Kiritimati"},
        {"PYTHONHASHSEED": "7", "TZ": "America/St_Johns", "LC_ALL": "C", "AGENTEVAL_PROBE_SHIFT": _YEAR},
    )
    probes = [elsewhere(subject.env_id, jobs, **condition) for condition in conditions]
    first, *others = [probe.result() for probe in probes]
    faults = [
        f"the same seed gives another episode under {condition}: {where}"
        for condition, made in zip(conditions[1:], others, strict=True)
        if (where := difference(first, made))
    ]
    faults += _seeds_matter(subject)
    good = f"{len(jobs)} tasks are alike in {len(conditions)} processes, and other seeds give other episodes"
    yield finding(NAME, "", faults, good, conditions=conditions, transcript=summary_digest(first))


def _seeds_matter(subject: Subject) -> list[str]:
    faults = []
    with subject.make() as env:
        core = core_of(env)
        draws = []
        for seed in range(_DRAWS):
            env.reset(seed=seed)
            first = core.episode.task.task_id, core.episode.state_hash
            env.reset(seed=seed)
            if (core.episode.task.task_id, core.episode.state_hash) != first:
                faults.append(f"seed {seed} draws {first[0]} once and {core.episode.task.task_id} the next time")
            draws.append(first)
    if len(subject.suite.eval_ids) > 1 and len({task for task, _ in draws}) < 2:
        faults.append(f"{_DRAWS} seeds all draw the task {draws[0][0]}")
    if len(set(draws)) < 2:
        faults.append(f"{_DRAWS} seeds all start in one state")
    return faults


def check_replay(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Play logged actions again and compare the chains; judge kept evidence again and compare the verdicts."""
    faults = []
    with subject.make() as env, subject.make() as other:
        witness = Witness(env)
        reference = subject.references(task_id).references[0]
        episodes = [play_script(witness, reference, task_id, subject.seed)]
        scripts: list[list[Any]] = [copy.deepcopy(witness.actions)]
        for number in range(subject.repetitions):
            episodes.append(play(witness, RandomCalls(), task_id, subject.seed + number))
            scripts.append(copy.deepcopy(witness.actions))
        task = subject.task(task_id)
        for played, actions in zip(episodes, scripts, strict=True):
            again = play(other, Actions(actions, "replay"), task_id, played.run.seed)
            if again.run.log_digest != played.run.log_digest:
                faults.append(f"the log with seed {played.run.seed} plays again to another chain")
            if played.run.verdict != again.run.verdict:
                faults.append(f"the replay with seed {played.run.seed} gets another verdict")
            faults += _judged_alike(task, played)
    chains = [played.run.log_digest for played in episodes]
    yield finding("replay", task_id, faults, f"{len(chains)} logs give the same chain and verdict again", chains=chains)


def _judged_alike(task: Any, played: Played) -> Iterator[str]:
    kept = Evidence.parse(played.evidence.canonical())
    for what, evidence in (("a second time", played.evidence), ("from its file form", kept)):
        if played.run.verdict is not None and evaluate(task, evidence) != played.run.verdict:
            yield f"judged {what}, the evidence with seed {played.run.seed} gets another verdict"
