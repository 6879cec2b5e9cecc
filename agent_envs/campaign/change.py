"""Accepting a change: the campaign goes on under a new lock, with the records that still say something.

What stood before is kept whole in ``history/<n>/``. The new files are made beside the old ones and take their places by
renames that can be repeated, so a kill at any instant leaves the old campaign or the new one.
"""

import contextlib
import os
import shutil
from pathlib import Path

from agent_envs.campaign.health import HealthRecord
from agent_envs.campaign.items import Tasks
from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.lock import LOCK_NAME, Lock, write_lock
from agent_envs.campaign.planner import Choice, Fate, Plan, fates
from agent_envs.campaign.results import RUNS_NAME, Results
from agent_envs.campaign.store import ATTEMPTS_NAME, HEALTH_NAME, HISTORY_NAME, CampaignStore, TryRecord
from agent_envs.contract import (
    AgentEvalError,
    AgentRun,
    AgentTask,
    Evidence,
    Terminal,
    Verdict,
    classify,
    consequences,
)
from agent_envs.contract.archive import sync_folder
from agent_envs.episode.faults import Fault, boundary
from agent_envs.evaluator import evaluate

_NEXT = "next"
_FILES = (LOCK_NAME, RUNS_NAME, ATTEMPTS_NAME, HEALTH_NAME)


def accept(folder: Path, plan: Plan) -> dict[Fate, int]:
    """Put a plan into force. What is to be run again is simply planned; `run_campaign` runs it.

    Args:
        folder: The campaign's folder.
        plan: What `make_plan` says of it.

    Returns:
        How many records were reused, judged again, and left behind.

    Raises:
        ResultsError: Another runner is at work, or the folder can't be read or written.
    """
    store = CampaignStore(folder)
    with store.runner():
        finish(folder)
        progress = store.progress(repair=True)
        draft = CampaignStore(folder / f"{_NEXT}.draft")
        shutil.rmtree(draft.folder, ignore_errors=True)
        counted = dict.fromkeys(Fate, 0)
        try:
            write_lock(plan.present, draft.folder)
            session = HealthRecord(kind="session", session=progress.session + 1, data={"campaign": plan.present.digest})
            draft.note(session.model_copy(update={"detail": f"changes accepted: {'; '.join(plan.lines())}"[:4000]}))
            for name in (RUNS_NAME, ATTEMPTS_NAME):
                (draft.folder / name).touch()
            _carry_over(store, draft, plan, session.session, counted)
            number = sum(1 for _ in (folder / HISTORY_NAME).glob("*")) + 1
            (folder / HISTORY_NAME / str(number)).mkdir(parents=True, exist_ok=True)
            (draft.folder / "number").write_text(str(number), encoding="ascii")
            for name in (*_FILES, "number"):
                _sync(draft.folder / name)
            sync_folder(draft.folder)
            draft.folder.rename(folder / _NEXT)  # from here on the new campaign holds
            sync_folder(folder)
        except OSError as error:
            shutil.rmtree(draft.folder, ignore_errors=True)
            raise ResultsError(f"{folder}: the change can't be written: {error}") from None
        finish(folder)
    return counted


def finish(folder: Path) -> None:
    """Complete a change that a kill broke off; does nothing where there is none. Only the one runner may.

    Raises:
        ResultsError: The folder can't be written.
    """
    draft = folder / _NEXT
    if not draft.is_dir():
        return
    try:
        history = folder / HISTORY_NAME / (draft / "number").read_text(encoding="ascii")
        history.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            if (draft / name).exists():
                with contextlib.suppress(FileExistsError, FileNotFoundError):
                    os.link(folder / name, history / name)
                (draft / name).replace(folder / name)
        sync_folder(history)
        sync_folder(folder)
        shutil.rmtree(draft)
    except OSError as error:
        raise ResultsError(f"{folder}: an accepted change can't be completed: {error}") from None


def _carry_over(store: CampaignStore, draft: CampaignStore, plan: Plan, session: int, counted: dict[Fate, int]) -> None:
    choices, results, tasks = fates(plan.choices), Results(store.folder), Tasks()
    done: set[str] = set()
    for run in store.runs:
        choice = choices.get(run.run_id)
        if choice is None or run.run_id in done:
            continue
        done.add(run.run_id)
        fate, reason = choice.fate, choice.why or "nothing that matters has changed"
        kept: AgentRun | None = run
        if fate is Fate.REGRADE:
            task = tasks.task(choice.now.env_id, choice.now.task_id)
            kept, problem = judge_again(run, results, task, plan.present)
            reason = problem or reason
        if fate is Fate.RERUN or kept is None:
            counted[Fate.RERUN] += 1
            continue
        counted[fate] += 1
        again = fate is Fate.REGRADE
        draft.attempts.append(
            TryRecord(
                run=_stamped(kept, choice, plan.present),
                decision="regraded" if again else "reused",
                reason=reason,
                session=session,
                elapsed=0.0,
                taken_from=run.run_id,
            ),
            sync=False,
        )
        draft.runs.append(_stamped(kept, choice, plan.present), sync=False)
    tasks.close()


def judge_again(run: AgentRun, results: Results, task: AgentTask, lock: Lock) -> tuple[AgentRun | None, str]:
    """A record with the verdict that the present checks give its evidence.

    Args:
        run: The record.
        results: Folder of its evidence.
        task: The present task, which plays as the recorded one did.
        lock: The campaign's rules.

    Returns:
        The record, or None and why where the evidence is damaged. An ending that no verdict decides stays as it is.
    """
    terminal = run.terminal
    if run.verdict is None and terminal.phase != "grade" and not consequences(terminal, lock.rows).judged:
        return run, ""
    try:
        kept = results.evidence(run)
    except AgentEvalError as error:
        return None, f"can't be judged again: {error}"
    verdict, terminal = _verdict(task, kept)
    outcome, row = classify(terminal, None if verdict is None else verdict.Y, lock.rows)
    update = {"verdict": verdict, "terminal": terminal, "outcome_class": outcome, "counts": row.counts}
    return run.model_copy(update=update), ""


def _verdict(task: AgentTask, kept: Evidence) -> tuple[Verdict | None, Terminal]:
    evidence = kept.model_copy(update={"task_digest": task.digest, "task_revision": task.task_revision})
    try:
        with boundary("grade", "grader", "grader_fault"):
            verdict = evaluate(task, evidence)
    except Fault as fault:
        return None, fault.terminal
    # The verdict is about the evidence that is kept, which still names the task's version of its day.
    return verdict.model_copy(update={"evidence_digest": kept.digest}), kept.terminal


def _stamped(run: AgentRun, choice: Choice, lock: Lock) -> AgentRun:
    row = choice.now
    return run.model_copy(
        update={
            "run_id": row.run_id,
            "task_digest": row.task_digest,
            "system_spec_hash": lock.spec(row.system, row.env_id).digest,
            "campaign": lock.digest,
            "weight": row.weight,
            "labels": dict(row.labels),
        }
    )


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
