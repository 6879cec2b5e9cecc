"""What a change means for records that exist: reuse them, judge their evidence again, or run the attempts again.

A record says what a system did and how that was judged. When what acts has changed (policy, tools, environment, the
task's start), it says nothing of the present system. When only what judges has changed, the evidence still does.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from agent_envs.campaign.expansion import PlannedAttempt
from agent_envs.campaign.health import play_digest
from agent_envs.campaign.items import Tasks
from agent_envs.campaign.lock import Lock, make_lock, read_lock
from agent_envs.campaign.spec import Difference, describe, diff
from agent_envs.campaign.store import CampaignStore
from agent_envs.contract import SECTIONS, SystemSpec

JUDGING = frozenset(("grader",))
"""Sections of a system's spec that move verdicts only."""


class Fate(StrEnum):
    """What becomes of a planned attempt's record."""

    REUSE = "reuse"
    REGRADE = "regrade"
    RERUN = "rerun"


class Choice(NamedTuple):
    """One planned attempt under the present code."""

    before: PlannedAttempt
    now: PlannedAttempt
    fate: Fate
    why: str


class Plan(NamedTuple):
    """What the present code means for a campaign."""

    locked: Lock
    present: Lock
    choices: tuple[Choice, ...]

    @property
    def changed(self) -> bool:
        """Some record can't simply be reused."""
        return any(choice.fate is not Fate.REUSE for choice in self.choices)

    def lines(self) -> list[str]:
        """For people: how many attempts meet which fate, and why."""
        counted = Counter((choice.fate, choice.why) for choice in self.choices)
        return [
            f"{fate.value:8}{number:6}  {why or 'nothing that matters has changed'}"
            for (fate, why), number in sorted(counted.items())
        ]


def make_plan(folder: Path) -> Plan:
    """Compare a campaign's lock with the present policies, tasks and code.

    Raises:
        AgentEvalError: The lock is damaged, or a policy, environment or task is gone.
    """
    locked = read_lock(folder)
    present = make_lock(locked.manifest)
    played = {
        record.subject: record.data.get("play_digest")
        for record in CampaignStore(folder).health
        if record.kind == "reset" and record.ok
    }
    return plan(locked, present, played)


def plan(locked: Lock, present: Lock, played: dict[str, str | None]) -> Plan:
    """Decide for each attempt of the plan.

    Args:
        locked: The campaign as it was started.
        present: The same manifest, locked anew.
        played: Task id to the digest of all that an episode of it depended on when the campaign was checked.
    """
    tasks = Tasks()
    sections: dict[tuple[str, str], tuple[frozenset[str], str]] = {}
    verdicts: dict[str, tuple[Fate, str]] = {}
    now = {_slot(row): row for row in present.planned}
    table = "" if locked.outcome_table == present.outcome_table else "the outcome table has changed"
    choices = []
    for row in locked.planned:
        key = (row.system, row.env_id)
        if key not in sections:
            sections[key] = _changed(locked.spec(*key), present.spec(*key))
        after = now[_slot(row)]
        if row.task_id not in verdicts:
            verdicts[row.task_id] = _of_task(row, after, played, tasks)
        choices.append(Choice(row, after, *_fate(row.system, *sections[key], verdicts[row.task_id], table)))
    tasks.close()
    return Plan(locked, present, tuple(choices))


def _slot(row: PlannedAttempt) -> tuple[str, str, str, int]:
    return row.system, row.env_id, row.task_id, row.attempt


def _changed(before: SystemSpec, now: SystemSpec) -> tuple[frozenset[str], str]:
    found: Sequence[Difference] = diff(before, now)
    sections = frozenset(item.path.partition(".")[0] for item in found)
    assert sections <= set(SECTIONS)
    return sections, "; ".join(describe(found)[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _of_task(row: PlannedAttempt, now: PlannedAttempt, played: dict[str, str | None], tasks: Tasks) -> tuple[Fate, str]:
    if row.task_digest == now.task_digest:
        return Fate.REUSE, ""
    if played.get(row.task_id) == play_digest(tasks.task(row.env_id, row.task_id)):
        return Fate.REGRADE, f"the checks of {row.task_id} have changed"
    return Fate.RERUN, f"{row.task_id} has changed in more than its checks"


def _fate(system: str, sections: frozenset[str], what: str, task: tuple[Fate, str], table: str) -> tuple[Fate, str]:
    reasons = [f"{system}: {what}"] if sections else []
    reasons += [why for why in (task[1], table) if why]
    if sections - JUDGING or task[0] is Fate.RERUN:
        return Fate.RERUN, "; ".join(reasons)
    return (Fate.REGRADE if reasons else Fate.REUSE), "; ".join(reasons)


def fates(choices: Iterable[Choice]) -> dict[str, Choice]:
    """Choices by the run id of the locked plan."""
    return {choice.before.run_id: choice for choice in choices}
