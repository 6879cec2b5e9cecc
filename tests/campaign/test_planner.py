"""Reuse, regrade or rerun: what a change means for records that exist."""

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_envs.campaign import change, planner
from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.change import accept, finish
from agent_envs.campaign.expansion import choose
from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.lock import Lock, assemble, read_lock
from agent_envs.campaign.planner import Fate, make_plan
from agent_envs.campaign.results import Results
from agent_envs.campaign.standing import standing
from agent_envs.campaign.store import CampaignStore
from agent_envs.contract import AgentTask, OutcomeClass
from agent_envs.envs.refund.env import RefundEnv
from tests.campaign.serial import ENV, SerialEngine, locked, same

POLICY = """
from agent_envs.baselines import Noop

class Mine(Noop):
    name = "mine"
"""


def changed_section(monkeypatch: pytest.MonkeyPatch, system: str, section: str) -> None:
    """From now on a section of a system's spec is another one."""

    def present(manifest: Any) -> Lock:
        lock = read_lock(FOLDER[0])
        specs = dict(lock.systems)
        data = specs[system].as_json()
        data[section] = {**data[section], "source": "0" * 64}
        specs[system] = type(specs[system]).model_validate(data)
        return assemble(manifest, {ENV: specs}, choose(manifest))

    monkeypatch.setattr(planner, "make_lock", present)


FOLDER: list[Path] = []


@pytest.fixture
def finished(tmp_path):
    """A finished campaign."""
    folder = tmp_path / "c"
    locked(folder)
    run_campaign(folder, SerialEngine())
    FOLDER[:] = [folder]
    return folder


def fates(folder: Path) -> Counter[tuple[str, str]]:
    return Counter((choice.before.system, choice.fate.value) for choice in make_plan(folder).choices)


def rewrite_tasks(monkeypatch: pytest.MonkeyPatch, name: str, **update: Any) -> None:
    """From now on a generated task is another one."""
    made = RefundEnv.suite._generate
    assert made is not None

    def generate(seed: int) -> AgentTask:
        task = made(seed)
        if task.task_id != name:
            return task
        return AgentTask.model_validate(task.as_json() | update)

    monkeypatch.setattr(RefundEnv.suite, "_generate", generate)


IMPOSSIBLE = [{"check": "changes", "expect": [{"table": "refunds", "key": {}, "count": 99}]}]


def test_nothing_changed_means_reuse(finished):
    plan = make_plan(finished)
    assert not plan.changed
    assert {choice.fate for choice in plan.choices} == {Fate.REUSE}
    assert plan.lines() == ["reuse        8  nothing that matters has changed"]


@pytest.mark.parametrize("section", ["policy", "tools", "environment", "user"])
def test_what_acts_has_changed_means_rerun(finished, monkeypatch, section):
    """B138."""
    changed_section(monkeypatch, "book", section)
    assert fates(finished) == {("book", "rerun"): 4, ("idle", "reuse"): 4}
    why = {choice.why for choice in make_plan(finished).choices if choice.fate is Fate.RERUN}
    assert len(why) == 1 and f"{section}.source" in why.pop()


def test_only_the_grader_has_changed_means_regrade(finished, monkeypatch):
    changed_section(monkeypatch, "book", "grader")
    assert fates(finished) == {("book", "regrade"): 4, ("idle", "reuse"): 4}


def test_a_policys_file_that_changed_is_seen(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    locked(tmp_path / "c", systems=[{"name": "mine", "policy": f"{path}:Mine"}, {"name": "idle", "policy": "noop"}])
    run_campaign(tmp_path / "c", SerialEngine())
    path.write_text(POLICY + "    # another one\n")
    assert fates(tmp_path / "c") == {("mine", "rerun"): 4, ("idle", "reuse"): 4}


def test_a_task_whose_checks_changed_means_regrade(finished, monkeypatch):
    rewrite_tasks(monkeypatch, "refund/train-0", outcome=IMPOSSIBLE, rubric=[])
    plan = make_plan(finished)
    found = Counter((choice.before.task_id, choice.fate.value) for choice in plan.choices)
    assert found == {("refund/train-0", "regrade"): 4, ("refund/train-1", "reuse"): 4}
    assert "the checks of refund/train-0 have changed" in plan.lines()[0]


def test_a_task_whose_request_changed_means_rerun(finished, monkeypatch):
    rewrite_tasks(monkeypatch, "refund/train-0", user_request="Something else.")
    found = Counter((choice.before.task_id, choice.fate.value) for choice in make_plan(finished).choices)
    assert found == {("refund/train-0", "rerun"): 4, ("refund/train-1", "reuse"): 4}


def test_a_check_that_ends_the_episode_is_part_of_how_it_plays(finished, monkeypatch):
    ends = {"constraint": "never", "name": "no", "event": {"tool": "finish"}, "on_breach": "terminate"}
    rewrite_tasks(monkeypatch, "refund/train-0", constraints=[ends], rubric=[])
    assert Fate.RERUN in {choice.fate for choice in make_plan(finished).choices}


def test_accepting_keeps_what_still_says_something_and_runs_the_rest(finished, monkeypatch):
    before = {run.run_id: run for run in Results(finished).read()}
    changed_section(monkeypatch, "book", "policy")
    plan = make_plan(finished)
    assert accept(finished, plan) == {Fate.REUSE: 4, Fate.REGRADE: 0, Fate.RERUN: 4}
    assert read_lock(finished) == plan.present
    found = standing(finished)
    assert (found.done, found.remaining) == (4, 4)
    kept = Results(finished).read()
    assert {run.system for run in kept} == {"idle"}
    assert {run.campaign for run in kept} == {plan.present.digest}
    for run in kept:
        old = before[run.run_id]  # an unchanged system's attempts have the same identity
        assert (run.verdict, run.evidence, run.seed) == (old.verdict, old.evidence, old.seed)
    history = finished / "history" / "1"
    assert {run.run_id for run in Results(history).read()} == set(before)
    assert read_lock(history) == plan.locked


def test_regrading_judges_kept_evidence_by_the_present_checks(finished, monkeypatch):
    before = {(run.system, run.task_id, run.attempt): run for run in Results(finished).read()}
    rewrite_tasks(monkeypatch, "refund/train-0", outcome=IMPOSSIBLE, rubric=[])
    plan = make_plan(finished)
    assert accept(finished, plan) == {Fate.REUSE: 4, Fate.REGRADE: 4, Fate.RERUN: 0}
    for run in Results(finished).read():
        old = before[run.system, run.task_id, run.attempt]
        assert run.evidence_digest == old.evidence_digest
        assert Results(finished).evidence(run).digest == run.evidence_digest
        if run.task_id == "refund/train-0":
            assert run.outcome_class is OutcomeClass.AGENT_FAILURE
            assert run.verdict is not None and run.verdict.task_digest == run.task_digest != old.task_digest
            assert run.verdict.evidence_digest == run.evidence_digest
        else:
            assert run.outcome_class is old.outcome_class
    tries = list(CampaignStore(finished).attempts)
    assert Counter(item.decision for item in tries) == {"regraded": 4, "reused": 4}
    assert {item.taken_from for item in tries} == {run.run_id for run in before.values()}


def test_damaged_evidence_cannot_be_judged_again_and_is_run_again(finished, monkeypatch):
    run = next(run for run in Results(finished).read() if run.task_id == "refund/train-0")
    shutil.rmtree(finished / run.evidence)
    rewrite_tasks(monkeypatch, "refund/train-0", outcome=IMPOSSIBLE, rubric=[])
    assert accept(finished, make_plan(finished)) == {Fate.REUSE: 4, Fate.REGRADE: 3, Fate.RERUN: 1}
    assert standing(finished).remaining == 1


def test_what_was_spent_stays_spent(finished, monkeypatch):
    """B218."""
    path = finished / "attempts.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"cost":null,"steps"', b'"cost":0.5,"steps"'))
    spent = standing(finished).cost
    assert spent > 0
    changed_section(monkeypatch, "book", "policy")
    accept(finished, make_plan(finished))
    assert standing(finished).cost == spent


def test_tries_before_a_change_are_still_counted_and_their_order_is_not_given_out_again(finished, monkeypatch):
    before = standing(finished)
    assert before.tries == before.cost_unknown == len(list(CampaignStore(finished).attempts))
    rewrite_tasks(monkeypatch, "refund/train-0", user_request="Something else.")
    accept(finished, make_plan(finished))
    result = run_campaign(finished, SerialEngine())
    assert result.tries == result.cost_unknown > before.tries
    orders = [run.order for run in Results(finished).read()]
    assert len(set(orders)) == len(orders)


def test_a_campaign_goes_on_after_an_accepted_change(finished, monkeypatch):
    whole = same(Results(finished).read())
    path_of = {run.run_id: run.evidence for run in Results(finished).read()}
    rewrite_tasks(monkeypatch, "refund/train-0", source="somebody else")  # another digest, the same play
    accept(finished, make_plan(finished))
    engine = SerialEngine()
    assert run_campaign(finished, engine).state == "finished"
    assert all(job.run_id.startswith("canary") for job in engine.jobs), "only the checks are made anew"
    assert all((finished / place).is_dir() for place in path_of.values())
    again = same(Results(finished).read())
    assert [run["outcome_class"] for run in again] == [run["outcome_class"] for run in whole]


@pytest.mark.parametrize("step", range(9))
def test_a_kill_in_the_middle_of_a_change_leaves_the_old_or_the_new(finished, monkeypatch, step):
    """B131: the renames can be repeated."""
    changed_section(monkeypatch, "book", "policy")
    plan = make_plan(finished)
    calls = [0]

    def dying(function: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if calls[0] == step:
                os._exit(3)
            calls[0] += 1
            return function(*arguments, **keywords)

        return call

    child = os.fork()
    if child == 0:
        change.os.link = dying(os.link)
        Path.replace = dying(Path.replace)  # type: ignore[method-assign]
        Path.rename = dying(Path.rename)  # type: ignore[method-assign]
        accept(finished, plan)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    store = CampaignStore(finished)
    with store.runner():
        finish(finished)
    campaigns = {run.campaign for run in store.runs}
    assert campaigns == {read_lock(finished).digest}
    if read_lock(finished) == plan.present:
        assert len(Results(finished / "history" / "1").read()) == 8
        assert standing(finished).done == 4
    else:
        assert standing(finished).done == 8
    assert not (finished / "next").exists()


def test_a_change_needs_the_folder_for_itself(finished, monkeypatch):
    changed_section(monkeypatch, "book", "policy")
    plan = make_plan(finished)
    with CampaignStore(finished).runner(), pytest.raises(ResultsError, match="another runner"):
        accept(finished, plan)
