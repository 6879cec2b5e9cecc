"""The promises of a release that a campaign's own records can show: what was declared, and what was counted.

Each function says what it found and what is missing; nothing missing means that the promise is met.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agent_envs.campaign.items import Tasks
from agent_envs.campaign.lock import LOCK_NAME, read_lock
from agent_envs.campaign.regression import check_cases
from agent_envs.campaign.sealed import read_opening
from agent_envs.campaign.store import ATTEMPTS_NAME, HISTORY_NAME, CampaignStore
from agent_envs.campaign.suites import opening_faults
from agent_envs.contract import OUTCOME_TABLE_VERSION, AgentEvalError, Model
from agent_envs.report.analysis import analysis_of
from agent_envs.report.content import SystemNumbers
from agent_envs.report.records import Records
from agent_envs.report.verify import verify

TITLES = {
    1: "The decision and the population are stated",
    2: "Everything under test is one versioned spec",
    3: "Every task is solvable and its reset proven",
    4: "Completion is verified from state",
    5: "Graders tested on passes, failures and near misses",
    6: "Endings, invalid runs, retries and credit were declared first",
    7: "Repeated attempts with denominators and uncertainty",
    8: "Every aggregate is rebuilt from what was kept",
    9: "A locked confirmation suite and regression cases",
}
"""The nine promises."""
_LEAST_WORDS = 4
_FEW = 5


class Promise(Model):
    """One promise of a release, and whether it is kept."""

    number: int
    title: str
    met: bool
    evidence: tuple[str, ...]
    """What was found."""
    missing: tuple[str, ...]
    """What keeps it from being met, and what to do; empty when it is met."""


class Findings:
    """Evidence and gaps, as they are found."""

    def __init__(self) -> None:
        """Nothing was found yet."""
        self.evidence: list[str] = []
        self.missing: list[str] = []

    def need(self, holds: bool, found: str, lacking: str) -> bool:
        """Note ``found`` when something holds, else ``lacking``."""
        (self.evidence if holds else self.missing).append(found if holds else lacking)
        return holds

    def faults(self, what: str, faults: Sequence[str], todo: str) -> None:
        """Note the first faults of a kind with their number, and what to do."""
        if faults:
            more = f"; and {len(faults) - _FEW} more" if len(faults) > _FEW else ""
            self.missing.append(f"{what}: {'; '.join(faults[:_FEW])}{more}. {todo}")

    def promise(self, number: int) -> Promise:
        """The promise: met when there is evidence and nothing is missing."""
        missing = self.missing or ([] if self.evidence else ["nothing was found that shows it"])
        return Promise(
            number=number,
            title=TITLES[number],
            met=not missing,
            evidence=tuple(self.evidence),
            missing=tuple(missing),
        )


def decision_stated(records: Records) -> Promise:
    """1: the decision and the population, in words, locked before the records."""
    found, manifest = Findings(), records.lock.manifest
    for name in ("decision", "population"):
        text = getattr(manifest, name)
        found.need(
            len(text.split()) >= _LEAST_WORDS,
            f"{name}: {text}",
            f"{name}: {text!r} says too little to hold a result against; write what the result decides, and for whom",
        )
    return found.promise(1)


def one_spec(records: Records) -> Promise:
    """2: model, harness, tools, permissions, environment, budgets, user and grader are one versioned spec."""
    found, lock = Findings(), records.lock
    tokens = _uses_model(records)
    for env_id in dict.fromkeys(task.env_id for task in lock.tasks):
        for name in records.systems:
            spec = lock.spec(name, env_id)
            absent = [
                f"{section}.{key}"
                for section, keys in _SPEC_KEYS.items()
                for key in keys
                if not _has(getattr(spec, section), key)
            ]
            if name in tokens and not (spec.model and spec.harness):
                absent.append("model and harness (it reports tokens or cost, so it uses a model)")
            found.need(
                not absent,
                f"{name} in {env_id}: {spec.digest[:16]}" + ("" if spec.model else " (states no model)"),
                f"{name}: its spec lacks {', '.join(absent)}; give the policy a spec() method, or capture it again",
            )
    others = tally(records).other_specs
    found.need(
        not others,
        "every record carries the digest of its system's spec",
        f"{others} records carry another spec than the locked one; run the campaign again with the locked systems",
    )
    return found.promise(2)


_SPEC_KEYS: dict[str, tuple[str, ...]] = {
    "policy": ("name", "source"),
    "tools": ("tools", "source", "denied"),
    "environment": ("id", "source", "fixtures", "packages", "python"),
    "user": ("kind",),
    "budgets": ("limits",),
    "grader": ("source",),
}
_MAY_BE_EMPTY = frozenset(("denied", "fixtures", "limits"))


def _has(section: dict[str, Any], key: str) -> bool:
    return key in section and (key in _MAY_BE_EMPTY or bool(section[key]))


def _uses_model(records: Records) -> set[str]:
    table = records.columns
    used = (np.nan_to_num(table.tokens) > 0) | (np.nan_to_num(table.spent) > 0)
    return {records.systems[place] for place in np.unique(table.system[used]).tolist()}


def declared_before(records: Records) -> Promise:
    """6: terminal reasons, invalid runs, retries and partial credit were declared before the first attempt."""
    found, lock, manifest = Findings(), records.lock, records.lock.manifest
    table = lock.outcome_table
    found.need(
        table.version == OUTCOME_TABLE_VERSION,
        f"outcome table version {table.version}, rows {table.rows[:12]}, {len(manifest.outcome_overrides)} own rows",
        f"the outcome table was version {table.version}, this program's is {OUTCOME_TABLE_VERSION}; check the release "
        "with the campaign's own version",
    )
    rules = manifest.invalid_runs
    found.evidence.append(f"invalid runs: {rules.treatment}, at most {rules.maximum_share:g} of all tries")
    classes = ", ".join(name.value for name in manifest.retry.classes) or "nothing"
    found.evidence.append(f"tried again: {classes}, at most {manifest.retry.max_tries} tries")
    counted = tally(records)
    found.need(
        counted.tries > 0 and not counted.strangers,
        f"all {counted.tries} tries carry the lock's digest {lock.digest[:12]}, so it was there before them",
        f"{counted.strangers} of {counted.tries} tries carry another lock's digest; run the campaign in its own folder"
        if counted.tries
        else f"there is no try in {ATTEMPTS_NAME}; run the campaign",
    )
    found.need(
        not counted.unruled,
        f"{counted.retries} further tries, all under the rule",
        f"{counted.unruled} tries were made beyond the retry rule; run the campaign again under the rule",
    )
    _credit(records, found)
    unknown = sorted({name for name in records.endings if tuple(name.split("/")) not in lock.rows})
    found.faults("endings that the table doesn't know", unknown, "Mend their cause, or add a row to the table.")
    changes = len(list((records.folder / HISTORY_NAME).glob(f"*/{LOCK_NAME}")))
    found.need(
        not changes,
        "the lock was never changed",
        f"the campaign was changed {changes} times after its start (see {HISTORY_NAME}/); confirm it by a new campaign",
    )
    return found.promise(6)


def _credit(records: Records, found: Findings) -> None:
    tasks = Tasks()
    try:
        weighed = sum(bool(tasks.task(*place).rubric) for place in records.tasks)
    except AgentEvalError as error:
        found.missing.append(f"partial credit can't be told: {error}")
        return
    finally:
        tasks.close()
    found.evidence.append(f"partial credit by rubric in {weighed} of {len(records.tasks)} tasks, part of their digests")


class Tally(NamedTuple):
    """What the tries of a campaign say of their origin."""

    tries: int
    strangers: int
    """Tries that don't carry the lock's digest."""
    other_specs: int
    """Records that carry another spec than the locked one of their system."""
    retries: int
    unruled: int
    """Tries beyond what the retry rule allows."""


def tally(records: Records) -> Tally:
    """Go through every try once."""
    lock, store = records.lock, CampaignStore(records.folder)
    rule, planned = lock.manifest.retry, set(records.run_ids)
    tries = strangers = other = retries = unruled = 0
    tried: dict[str, int] = {}
    for record in store.attempts:
        run = record.run
        tries += 1
        strangers += run.campaign != lock.digest
        if record.purpose != "attempt" or run.run_id not in planned:
            continue
        other += run.system_spec_hash != lock.spec(run.system, run.env_id).digest
        before = tried[run.run_id] = tried.get(run.run_id, 0) + 1
        retries += before > 1
        unruled += before > rule.max_tries
        unruled += record.decision == "retry" and run.outcome_class not in rule.classes
    return Tally(tries, strangers, other, retries, unruled)


def repeated(records: Records) -> Promise:
    """7: repeated attempts, with capability, reliability, denominators and uncertainty."""
    found = Findings()
    analysis = analysis_of(records)
    found.need(
        analysis.status == "complete",
        f"all {analysis.planned} planned attempts are on record",
        f"the campaign is {analysis.status}: {analysis.status_note}. Resume it, or mend what was lost",
    )
    found.need(
        analysis.attempts > 1,
        f"{analysis.attempts} attempts at each of {analysis.tasks} tasks",
        "attempts: 1 shows no reliability; plan at least 2 (better 4) in a new campaign",
    )
    for system in analysis.systems:
        if system.role == "oracle":
            continue
        lacking = _lacking(system, analysis.attempts)
        head = system.headline.estimate
        last = system.pass_hat[-1] if system.pass_hat else None
        curve = "" if last is None or last.estimate.value is None else f", pass^{last.k} {last.estimate.value:.3f}"
        found.need(
            not lacking,
            f"{system.name}: {system.valid} of {system.planned} valid, {_number(head.value)} "
            f"[{_number(head.low)}, {_number(head.high)}]{curve}",
            f"{system.name}: {'; '.join(lacking)}",
        )
    return found.promise(7)


def _lacking(system: SystemNumbers, attempts: int) -> list[str]:
    lacking = []
    head = system.headline
    if head.withheld:
        lacking.append(f"no headline: {head.withheld}")
    elif head.estimate.value is None or head.estimate.low is None:
        lacking.append(f"no interval: {head.estimate.note or 'undefined'}; more tasks are needed")
    for name, curve in (("pass@k", system.pass_at), ("pass^k", system.pass_hat)):
        known = [point.k for point in curve if point.estimate.value is not None]
        if attempts > 1 and not any(k > 1 for k in known):
            lacking.append(f"no {name} for k above 1: too few valid attempts a task; resume the campaign")
    return lacking


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def rebuilt(records: Records) -> Promise:
    """8: every aggregate is rebuilt from the records, and every verdict from its evidence."""
    found = Findings()
    result = verify(records.folder)
    found.faults("the report or a record differs", result.problems, "'agenteval campaign report' writes it anew.")
    if not result.problems:
        found.need(
            result.files > 0,
            f"{result.files} files of the report are byte for byte what the records give",
            "there is no report; 'agenteval campaign report' writes it",
        )
        found.need(
            result.judged > 0,
            f"{result.judged} records judged again from their evidence, all alike",
            "no record could be judged again from its evidence; keep the evidence with the campaign",
        )
    gone = [remark for remark in result.remarks if "there is no verdict" not in remark]
    found.faults("records without proof", gone, "Keep evidence and tasks as they were.")
    return found.promise(8)


def confirmed(records: Records, cases: Path | None, sealed: Path | None) -> Promise:
    """9: a locked confirmation suite, and confirmed failures as regression cases."""
    found = Findings()
    earlier = [read_lock(path).digest for path in sorted((records.folder / HISTORY_NAME).glob(f"*/{LOCK_NAME}"))]
    try:
        opening = read_opening(records.folder)
        if opening is None:
            found.missing.append(
                "the suite isn't a sealed one; make one with 'agenteval suite lock', and run the confirmation on it by "
                "'agenteval suite open'"
            )
        elif faults := opening_faults(opening, records.lock, earlier, sealed):
            found.faults("the sealed suite", faults, "Open it again for a new campaign.")
        else:
            times = "the first opening" if opening.number == 1 else f"opening number {opening.number}"
            shown = "checked against its ledger" if sealed else "compare with the published commitment"
            found.evidence.append(f"sealed suite {opening.commitment[:16]}, {times}; {shown}")
    except AgentEvalError as error:
        found.missing.append(f"the sealed suite: {error}")
    if cases is None:
        found.missing.append(
            "no regression cases: keep confirmed failures with 'agenteval regression add RUN --out DIR', and name DIR"
        )
    else:
        try:
            results = check_cases(cases)
            failed = [f"{case.name}: {case.detail}" for case in results if not case.ok]
            found.faults("regression cases", failed, "Mend what they show.")
            if not failed:
                found.evidence.append(
                    f"{len(results)} of {len(results)} confirmed regression cases are as they must be"
                )
        except AgentEvalError as error:
            found.missing.append(str(error))
    return found.promise(9)
