"""What a campaign does with its attempts: order, classes, retries, budgets, stops."""

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from agent_envs.campaign.campaign import CampaignError, run_campaign
from agent_envs.campaign.engines.base import Done, EngineError
from agent_envs.campaign.health import HealthRecord
from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.results import Results
from agent_envs.campaign.standing import standing
from agent_envs.campaign.store import CampaignStore
from agent_envs.contract import AgentEvalError, OutcomeClass, Terminal, Usage
from tests.campaign.serial import SerialEngine, locked, same

BROKEN = Terminal(phase="act", origin="environment", kind="tool_fault", detail="the shop is closed")


def ended(done: Done, terminal: Terminal, **usage: float) -> Done:
    """The same attempt with another ending."""
    assert done.run is not None
    used = done.run.usage.model_copy(update=usage)
    run = done.run.model_copy(update={"terminal": terminal, "verdict": None, "usage": used})
    return dataclasses.replace(done, run=run, terminal=terminal)


def is_attempt(done: Done) -> bool:
    return not done.job.run_id.startswith(("smoke.", "canary."))


def health(folder: Path) -> list[HealthRecord]:
    return list(CampaignStore(folder).health)


def test_every_planned_attempt_gets_one_record_in_the_locked_order(tmp_path):
    lock = locked(tmp_path, smoke=["refund/train-0"])
    reported = []
    result = run_campaign(tmp_path, SerialEngine(), reported.append)
    runs = Results(tmp_path).read()
    assert [run.run_id for run in runs] == [row.run_id for row in lock.planned]
    assert {run.campaign for run in runs} == {lock.digest}
    assert all(run.system_spec_hash == lock.systems[run.system].digest for run in runs)
    assert [run.order for run in runs] == sorted(run.order for run in runs)
    assert Counter((run.system, run.outcome_class.value) for run in runs) == {
        ("book", "success"): 4,
        ("idle", "agent_failure"): 4,
    }
    assert (result.state, result.done, result.exit_status) == ("finished", 8, 0)
    assert standing(tmp_path) == dataclasses.replace(result, seconds=standing(tmp_path).seconds, eta=0.0)
    assert [item.done for item in reported[-8:]] == list(range(1, 9))
    for run in runs:
        assert Results(tmp_path).evidence(run).digest == run.evidence_digest


def test_checks_come_before_the_first_attempt(tmp_path):
    locked(tmp_path, smoke=["refund/train-0"])
    engine = SerialEngine()
    run_campaign(tmp_path, engine)
    names = [job.run_id.partition(".")[0] for job in engine.jobs]
    assert names[:4] == ["smoke", "smoke", "canary", "canary"]
    assert "canary" not in names[4:]
    records = health(tmp_path)
    assert [record.subject for record in records if record.kind == "reset"] == ["refund/train-0", "refund/train-1"]
    assert all(record.ok and record.data["dirty"] for record in records if record.kind == "reset")
    assert [record.kind for record in records if record.kind != "try"][-2:] == ["checked", "stop"]


def test_a_second_start_does_nothing_and_ends_well(tmp_path):
    """B134."""
    locked(tmp_path)
    run_campaign(tmp_path, SerialEngine())
    before = (tmp_path / "runs.jsonl").read_bytes()
    engine = SerialEngine()
    assert run_campaign(tmp_path, engine).exit_status == 0
    assert engine.jobs == []
    assert (tmp_path / "runs.jsonl").read_bytes() == before


def test_a_canary_that_must_fail_but_passes_stops_the_campaign(tmp_path):
    known = {"policy": "reference", "task": "refund/train-1"}
    locked(tmp_path, canaries={"known_pass": known, "known_fail": known | {"task": "refund/train-0"}})
    engine = SerialEngine()
    result = run_campaign(tmp_path, engine)
    assert result.state == "stopped"
    assert result.exit_status == 1
    assert "known-fail" in result.reason and "must be agent_failure, was success" in result.reason
    assert "evidence: evidence/canary.known-fail" in result.reason
    assert result.done == 0
    assert not any(is_attempt(Done(job, None, BROKEN)) for job in engine.jobs)


def test_a_failed_check_is_made_again_after_a_resume(tmp_path):
    locked(tmp_path)

    def closed(done: Done) -> Done:
        return ended(done, BROKEN) if "known-pass" in done.job.run_id else done

    assert run_campaign(tmp_path, SerialEngine(closed)).state == "stopped"
    first = [record.run for record in CampaignStore(tmp_path).attempts]
    engine = SerialEngine()
    assert run_campaign(tmp_path, engine).state == "finished"
    again = [job.place for job in engine.jobs if "canary" in job.run_id]
    assert not {run.evidence for run in first} & set(again), "the evidence of the failed check is kept"


def test_a_smoke_run_whose_policy_breaks_stops_the_campaign(tmp_path):
    policy = tmp_path / "mine.py"
    policy.write_text("def act(observation, info):\n    raise RuntimeError('no key')\n")
    systems = [{"name": "mine", "policy": f"{policy}:act"}]
    locked(tmp_path / "c", systems=systems, smoke=["refund/train-0"])
    result = run_campaign(tmp_path / "c", SerialEngine())
    assert result.state == "stopped"
    assert "no key" in result.reason


def test_a_reset_check_that_fails_stops_the_campaign(tmp_path, monkeypatch):
    from agent_envs.campaign import campaign

    def broken(env, task_id, seed, dirty):
        return HealthRecord(kind="reset", session=0, ok=False, subject=task_id, detail="starts as abc, pinned def")

    monkeypatch.setattr(campaign, "check_reset", broken)
    locked(tmp_path)
    engine = SerialEngine()
    result = run_campaign(tmp_path, engine)
    assert (result.state, engine.jobs) == ("stopped", [])
    assert "starts as abc" in result.reason


def test_an_environment_failure_is_tried_again_and_both_tries_are_kept(tmp_path):
    """B160, B114: the retry is on record, and the first valid try counts."""
    lock = locked(tmp_path)
    target = lock.planned[0].run_id

    def once(done: Done) -> Done:
        return ended(done, BROKEN) if (done.job.run_id, done.job.try_number) == (target, 0) else done

    result = run_campaign(tmp_path, SerialEngine(once))
    tries = [record for record in CampaignStore(tmp_path).attempts if record.run.run_id == target]
    assert [record.decision for record in tries] == ["retry", "counted"]
    assert [record.run.try_number for record in tries] == [0, 1]
    assert len({record.run.evidence for record in tries}) == 2
    assert all((tmp_path / record.run.evidence / "evidence.json").exists() for record in tries)
    assert (result.done, result.invalid, result.state) == (8, 0, "finished")


def test_an_attempt_that_stays_invalid_has_one_record_that_does_not_count(tmp_path):
    """B136, B152: nothing vanishes."""
    lock = locked(tmp_path, retry={"max_tries": 2})
    target = lock.planned[0].run_id
    result = run_campaign(
        tmp_path, SerialEngine(lambda done: ended(done, BROKEN) if done.job.run_id == target else done)
    )
    (run,) = [run for run in Results(tmp_path).read() if run.run_id == target]
    assert (run.outcome_class, run.counts, run.terminal) == (OutcomeClass.ENVIRONMENT_FAILURE, False, BROKEN)
    assert (result.done, result.invalid, result.tries) == (8, 1, 11)
    tries = [record for record in CampaignStore(tmp_path).attempts if record.run.run_id == target]
    assert [record.decision for record in tries] == ["retry", "invalid"]
    assert "all 2 tries are used" in tries[-1].reason


def test_failures_of_agents_are_never_tried_again(tmp_path):
    """B160, B153."""
    locked(tmp_path, systems=[{"name": "idle", "policy": "noop"}])
    result = run_campaign(tmp_path, SerialEngine())
    assert (result.done, result.classes["agent_failure"], result.tries) == (4, 4, 6)


def test_a_retry_goes_on_with_the_budget_that_is_left(tmp_path):
    """B218: 600 of 1000 tokens are used, so 400 are left."""
    limits = {"tokens": 1000, "steps": 30}
    lock = locked(tmp_path, systems=[{"name": "idle", "policy": "noop", "limits": limits}])
    target = lock.planned[0].run_id
    seen = []

    def spend(done: Done) -> Done:
        if done.job.run_id != target:
            return done
        seen.append(done.job.system.limits)
        return ended(done, BROKEN, tokens=600 if done.job.try_number == 0 else 300, steps=10)

    run_campaign(tmp_path, SerialEngine(spend))
    assert [(item.tokens, item.steps) for item in seen] == [(1000, 30), (400, 20), (100, 10)]
    tries = [record.run for record in CampaignStore(tmp_path).attempts if record.run.run_id == target]
    assert len({run.system_spec_hash for run in tries}) == 1


def test_nothing_is_tried_again_without_budget(tmp_path):
    """B218."""
    lock = locked(tmp_path, systems=[{"name": "idle", "policy": "noop", "limits": {"tokens": 1000}}])
    target = lock.planned[0].run_id
    run_campaign(
        tmp_path,
        SerialEngine(lambda done: ended(done, BROKEN, tokens=1000) if done.job.run_id == target else done),
    )
    tries = [record for record in CampaignStore(tmp_path).attempts if record.run.run_id == target]
    assert [record.decision for record in tries] == ["invalid"]
    assert "nothing is left of its limit on tokens" in tries[0].reason


def test_a_broken_channel_right_after_a_failure_makes_it_the_environments(tmp_path):
    """B114: the probe decides, and both facts are recorded."""
    lock = locked(tmp_path, retry={"max_tries": 1})
    target = next(row.run_id for row in lock.planned if row.system == "idle")
    probes = ({"when": "after", "ok": False, "channel": "database", "detail": "gone"},)

    def sick(done: Done) -> Done:
        return dataclasses.replace(done, health=probes) if done.job.run_id == target else done

    run_campaign(tmp_path, SerialEngine(sick))
    (record,) = [record for record in CampaignStore(tmp_path).attempts if record.run.run_id == target]
    assert record.run.outcome_class is OutcomeClass.ENVIRONMENT_FAILURE
    assert record.run.terminal.kind == "channel_fault" and "'database'" in record.run.terminal.detail
    assert record.reclassified_from is not None and record.reclassified_from.origin == "agent"
    assert not record.run.counts
    (noted,) = [record for record in health(tmp_path) if record.kind == "try" and record.subject == target]
    assert noted.data["probes"] == list(probes) and not noted.ok


def test_a_broken_channel_does_not_undo_a_success(tmp_path):
    lock = locked(tmp_path)
    target = next(row.run_id for row in lock.planned if row.system == "book")
    probes = ({"when": "after", "ok": False, "channel": "database", "detail": "gone"},)
    engine = SerialEngine(lambda done: dataclasses.replace(done, health=probes) if done.job.run_id == target else done)
    run_campaign(tmp_path, engine)
    (run,) = [run for run in Results(tmp_path).read() if run.run_id == target]
    assert run.outcome_class is OutcomeClass.SUCCESS


def test_a_lost_process_leaves_a_record_that_says_so(tmp_path):
    """B136, B115."""
    lock = locked(tmp_path)
    target = next(row for row in lock.planned if row.system == "book")
    crash = Terminal(phase="act", origin="agent", kind="policy_crash", detail="signal 9")

    def lost(done: Done) -> Done:
        if done.job.run_id != target.run_id:
            return done
        return Done(done.job, None, crash, "", "Killed\n", (), 1.5, "w")

    run_campaign(tmp_path, SerialEngine(lost))
    (run,) = [run for run in Results(tmp_path).read() if run.run_id == target.run_id]
    assert (run.outcome_class, run.counts, run.verdict) == (OutcomeClass.AGENT_FAILURE, True, None)
    assert (run.policy, run.system_spec_hash) == ("rulebook", lock.systems["book"].digest)
    assert (run.usage, run.seconds, run.worker) == (Usage(steps=0, calls=0), 1.5, "w")


def test_the_invalid_share_stops_the_campaign_without_zeros(tmp_path):
    """B119, B142."""
    locked(tmp_path, attempts=20, invalid_runs={"maximum_share": 0.2, "after": 10}, retry={"max_tries": 1})

    def mostly(done: Done) -> Done:
        return ended(done, BROKEN) if is_attempt(done) else done

    result = run_campaign(tmp_path, SerialEngine(mostly))
    assert result.state == "invalid"
    assert result.exit_status != 0
    assert "tries are invalid, more than the declared share of 0.2" in result.reason
    assert result.done < 15
    assert not any(run.counts for run in Results(tmp_path).read())
    assert standing(tmp_path).state == "invalid"
    engine = SerialEngine()
    assert run_campaign(tmp_path, engine).state == "invalid"
    assert engine.jobs == []


def test_ways_of_ending_that_nobody_knows_are_quarantined_and_stop_the_campaign(tmp_path):
    """B119: never a zero and never a pass."""
    odd = Terminal(phase="act", origin="harness", kind="gremlin")
    locked(tmp_path, unclassified_share=0.1, invalid_runs={"maximum_share": 1.0, "after": 4})
    result = run_campaign(tmp_path, SerialEngine(lambda done: ended(done, odd) if is_attempt(done) else done))
    assert result.state == "invalid"
    assert "in a way that nobody knows" in result.reason
    assert {run.outcome_class for run in Results(tmp_path).read()} == {OutcomeClass.UNCLASSIFIED}


def test_the_manifests_own_rows_of_the_outcome_table_hold(tmp_path):
    rows = [{"phase": "act", "origin": "environment", "kind": "tool_fault", "retry": False}]
    lock = locked(tmp_path, outcome_overrides=rows)
    target = lock.planned[0].run_id
    run_campaign(tmp_path, SerialEngine(lambda done: ended(done, BROKEN) if done.job.run_id == target else done))
    (record,) = [record for record in CampaignStore(tmp_path).attempts if record.run.run_id == target]
    assert (record.decision, record.reason) == ("invalid", "invalid, and tool_fault is not tried again")


def test_the_total_cost_stops_the_campaign_cleanly(tmp_path):
    locked(tmp_path, budgets={"total_cost": 1.0}, attempts=4)

    def paid(done: Done) -> Done:
        assert done.run is not None
        usage = done.run.usage.model_copy(update={"cost": 0.3})
        return dataclasses.replace(done, run=done.run.model_copy(update={"usage": usage}))

    result = run_campaign(tmp_path, SerialEngine(paid))
    assert result.state == "stopped"
    assert result.reason.startswith("budget: 1.20 of 1 US dollars")
    assert (result.tries, result.done) == (4, 2)  # the two canaries cost something as well
    engine = SerialEngine(paid)
    assert run_campaign(tmp_path, engine).state == "stopped"
    assert engine.jobs == [], "what is spent stays spent"


def test_the_total_time_stops_the_campaign_cleanly(tmp_path):
    """B219."""
    locked(tmp_path, budgets={"total_seconds": 10.0}, attempts=4)

    def slow(done: Done) -> Done:
        assert done.run is not None
        return dataclasses.replace(done, run=done.run.model_copy(update={"seconds": 3.0}))

    result = run_campaign(tmp_path, SerialEngine(slow))
    assert (result.state, result.reason) == ("stopped", "budget: 12.0 of 10 seconds are used")
    assert (result.tries, result.done) == (4, 2)
    engine = SerialEngine(slow)
    assert run_campaign(tmp_path, engine).state == "stopped"
    assert engine.jobs == [], "what is used stays used"


def test_unknown_cost_is_unknown(tmp_path):
    locked(tmp_path)
    result = run_campaign(tmp_path, SerialEngine())
    assert (result.cost, result.cost_unknown) == (0.0, result.tries)


def test_a_system_that_changed_under_the_campaigns_hands_is_refused(tmp_path):
    """B138."""
    locked(tmp_path)

    def other(done: Done) -> Done:
        assert done.run is not None
        return dataclasses.replace(done, run=done.run.model_copy(update={"system_spec_hash": "0" * 64}))

    with pytest.raises(CampaignError, match="isn't the locked one"):
        run_campaign(tmp_path, SerialEngine(lambda done: other(done) if is_attempt(done) else done))
    assert Results(tmp_path).read() == []
    assert standing(tmp_path).state == "stopped"


def test_evidence_that_cannot_be_kept_is_nobodys_failure(tmp_path):
    locked(tmp_path)
    full = Terminal(phase="record", origin="harness", kind="evidence", detail="no space left")
    with pytest.raises(EngineError, match="no space left"):
        run_campaign(tmp_path, SerialEngine(lambda done: ended(done, full) if is_attempt(done) else done))
    assert Results(tmp_path).read() == []


def test_an_engine_that_forgets_a_job_is_an_error(tmp_path):
    class Forgetful(SerialEngine):
        def run(self, jobs):
            for job in jobs:
                if job is not None and not job.run_id.startswith("canary"):
                    return
                yield self._play(job)

    locked(tmp_path)
    with pytest.raises(EngineError, match="no result"):
        run_campaign(tmp_path, Forgetful())


def test_two_runs_of_one_lock_give_the_same_records(tmp_path):
    for name in ("a", "b"):
        locked(tmp_path / name)
        run_campaign(tmp_path / name, SerialEngine())
    a, b = (Results(tmp_path / name).read() for name in ("a", "b"))
    assert same(a) == same(b)


def test_a_folder_without_a_lock_is_no_campaign(tmp_path):
    with pytest.raises(AgentEvalError, match="no campaign is locked here"):
        run_campaign(tmp_path, SerialEngine())
    assert list(tmp_path.iterdir()) == []


def test_the_standing_of_a_campaign_that_has_not_begun(tmp_path):
    locked(tmp_path)
    found = standing(tmp_path)
    assert (found.state, found.planned, found.done, found.remaining, found.eta) == ("planned", 8, 0, 8, None)


def test_damage_in_the_middle_of_the_tries_is_an_error_with_its_line(tmp_path):
    """B132."""
    locked(tmp_path)
    run_campaign(tmp_path, SerialEngine())
    path = tmp_path / "attempts.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[2] = lines[2][:50]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ResultsError, match=r"attempts\.jsonl, line 3"):
        run_campaign(tmp_path, SerialEngine())


def test_a_record_that_stands_twice_is_counted_once_and_reported(tmp_path):
    """B133."""
    locked(tmp_path)
    run_campaign(tmp_path, SerialEngine())
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().split(b"\n")[0] + b"\n")
    with pytest.warns(UserWarning, match=r"line 9: .* recorded a second time"):
        found = standing(tmp_path)
    assert (found.done, sum(found.classes.values())) == (8, 8)


def test_every_file_is_strict_json(tmp_path):
    """B140."""
    locked(tmp_path)
    run_campaign(tmp_path, SerialEngine())

    def refuse(text: str) -> None:
        raise AssertionError(text)

    for name in ("runs.jsonl", "attempts.jsonl", "health.jsonl", "campaign.lock.json"):
        for line in (tmp_path / name).read_text().splitlines():
            json.loads(line, parse_constant=refuse)
