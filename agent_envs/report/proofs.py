"""The promises of a release that only trying shows: tasks are solvable, resets exact, graders right, states decisive.

Everything is tried now, with the present code, on the campaign's own tasks; a task that isn't any more what the
campaign locked proves nothing of it, and says so.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from agent_envs.campaign.health import check_reset
from agent_envs.campaign.items import Tasks
from agent_envs.campaign.known import KnownRun, play_known
from agent_envs.campaign.results import Results
from agent_envs.campaign.store import CampaignStore
from agent_envs.contract import AgentEvalError, AgentRun, AgentTask, OutcomeClass, Status
from agent_envs.evaluator import evaluate
from agent_envs.report.promises import Findings, Promise
from agent_envs.report.records import Records

CERTIFICATE_NAME = "certificate.json"
"""The audit's certificate of the first environment, in the campaign's ``report/``; it may be missing."""
MOST_JUDGED = 500
"""Records whose outcome is judged again without their log, at most; spread evenly over the campaign."""


def solvable_and_graded(records: Records) -> tuple[Promise, Promise]:
    """3 and 5: every task is solvable and its reset proven; its grader is right on passes, failures and near misses."""
    solvable, graded = Findings(), Findings()
    faults: dict[str, list[str]] = {
        name: [] for name in ("changed", "reset", "unsolved", "refused", "no near miss", "no known failure")
    }
    proven = _proven(records)
    counted: Counter[str] = Counter()
    tasks = Tasks()
    try:
        for (env_id, task_id), locked in zip(records.tasks, records.digests, strict=True):
            try:
                task, env = tasks.task(env_id, task_id), tasks.env(env_id)
                if task.digest != locked:
                    faults["changed"].append(task_id)
                    continue
                faults["reset"] += _reset(env, task_id, records, proven)
                known = list(play_known(env, task_id, records.lock.manifest.seed))
            except AgentEvalError as error:
                faults["changed"].append(f"{task_id}: {error}"[:200])
                continue
            _sort(task_id, known, faults, counted)
        _certificate(records, tasks, graded)
    finally:
        tasks.close()
    total = len(records.tasks)
    again = "Check with the code of the campaign, or run it again."
    for found in (solvable, graded):
        found.faults("tasks that aren't what was locked", faults["changed"], again)
    solvable.faults("resets", faults["reset"], "Mend the environment's reset, then run the campaign again.")
    solvable.faults("references that don't pass", faults["unsolved"], "Mend the task or its reference.")
    if not solvable.missing:
        solvable.evidence.append(f"{counted['right']} references pass now, at least one at each of {total} tasks")
        solvable.evidence.append(f"all {total} tasks start at one state, also after a dirty episode, then and now")
    graded.faults("known passes that fail", faults["unsolved"], "Mend the grader or the reference.")
    graded.faults("known failures that aren't caught", faults["refused"], "Mend the grader.")
    graded.faults("tasks without a known failure", faults["no known failure"], "Add wrong runs to their references.")
    graded.faults("tasks without a near miss", faults["no near miss"], "Add wrong runs that do something.")
    if not graded.missing:
        graded.evidence.insert(
            0,
            f"{counted['right']} known passes pass; {counted['wrong']} known failures fail by the check they name, "
            f"{counted['near']} of them near misses",
        )
    return solvable.promise(3), graded.promise(5)


def _certificate(records: Records, tasks: Tasks, graded: Findings) -> None:
    """Weigh the audit's certificate, where the campaign has one; one that no longer holds must not look like proof."""
    path = records.folder / "report" / CERTIFICATE_NAME
    if not path.exists():
        graded.evidence.append(f"no report/{CERTIFICATE_NAME}: 'agenteval audit ENV --out FILE' makes a certificate")
        return
    from agent_envs.audit.certificate import valid_certificate

    env_id = records.tasks[0][0]
    faults = valid_certificate(path, tasks.env(env_id))
    graded.faults(f"report/{CERTIFICATE_NAME}", faults, "Audit the present family again, or take the file away.")
    if not faults:
        graded.evidence.append(f"report/{CERTIFICATE_NAME}: the audit of {env_id} holds for all that is there now")


def _proven(records: Records) -> dict[str, dict[str, Any]]:
    """What the campaign proved of each task's reset before its first attempt."""
    health = CampaignStore(records.folder).health
    return {record.subject: record.data for record in health if record.kind == "reset" and record.ok}


def _reset(env: Any, task_id: str, records: Records, proven: dict[str, dict[str, Any]]) -> Iterator[str]:
    before = proven.get(task_id)
    if before is None:
        yield f"{task_id}: the campaign has no record of its reset check"
        return
    now = check_reset(env, task_id, records.lock.manifest.seed, dirty=True)
    if not now.ok:
        yield f"{task_id}: {now.detail}"
    elif before.get("state_hash") != now.data["state_hash"]:
        then = str(before.get("state_hash"))[:12]
        yield f"{task_id}: it starts at {now.data['state_hash'][:12]}, in the campaign at {then}"


def _sort(task_id: str, known: list[KnownRun], faults: dict[str, list[str]], counted: Counter[str]) -> None:
    for item in known:
        counted["right" if item.right else "wrong"] += 1
        counted["near"] += item.near_miss
        if item.problem:
            faults["unsolved" if item.right else "refused"].append(f"{task_id}, {item.name}: {item.problem}")
    if all(item.right for item in known):
        faults["no known failure"].append(task_id)
    elif not any(item.near_miss for item in known):
        faults["no near miss"].append(task_id)


def state_decides(records: Records) -> Promise:
    """4: completion follows from state; the trajectory counts only where a constraint was declared.

    Shown by judging again with the log taken away: no outcome may change. Constraints in a verdict must be the task's.
    """
    found = Findings()
    places = np.flatnonzero(records.columns.place >= 0)
    if len(places) > MOST_JUDGED:
        places = places[np.linspace(0, len(places) - 1, MOST_JUDGED).astype(np.int64)]
    tasks, results = Tasks(), Results(records.folder)
    faults: list[str] = []
    judged = 0
    kinds: Counter[str] = Counter()
    try:
        for place in places.tolist():
            run = records.run(place)
            if run.verdict is None:
                if run.outcome_class is OutcomeClass.SUCCESS:
                    faults.append(f"{run.run_id}: a success without a verdict")
                continue
            try:
                task = tasks.task(run.env_id, run.task_id)
                faults += _without_log(run, task, results)
                judged += 1
            except AgentEvalError as error:
                faults.append(f"{run.run_id}: {error}"[:200])
        for env_id, task_id in records.tasks:
            kinds.update({assertion.check for assertion in tasks.task(env_id, task_id).outcome})
    except AgentEvalError as error:
        faults.append(str(error))
    finally:
        tasks.close()
    found.faults("outcomes", faults, "Make the outcome an assertion on state, and what the way must hold a constraint.")
    if judged and not faults:
        found.evidence.append(
            f"{judged} outcomes judged again without the log, all alike; constraints are the tasks' own"
        )
        found.evidence.append(
            "tasks by kind of outcome: " + ", ".join(f"{name} {kinds[name]}" for name in sorted(kinds))
        )
    elif not faults:
        found.missing.append("no record has a verdict; run the campaign")
    return found.promise(4)


def _without_log(run: AgentRun, task: AgentTask, results: Results) -> Iterator[str]:
    assert run.verdict is not None
    names = tuple(item.name for item in run.verdict.constraints)
    if names != tuple(item.name for item in task.constraints):
        yield f"{run.run_id}: its constraints {names} aren't the task's"
    changed: dict[str, Any] = {"events": ()}
    if run.task_digest == task.digest:  # a regraded record's evidence names the task's version of its day
        changed |= {"task_digest": task.digest, "task_revision": task.task_revision}
    blind = evaluate(task, results.evidence(run).model_copy(update=changed))
    if blind.G is not run.verdict.G:
        yield f"{run.run_id}: the outcome is {run.verdict.G.value}, without the log it is {blind.G.value}"
    if run.outcome_class is OutcomeClass.SUCCESS and run.verdict.G is not Status.PASS:
        yield f"{run.run_id}: a success whose outcome is {run.verdict.G.value}"
