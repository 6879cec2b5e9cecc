"""Planned attempts: each run once, kept apart by all that identifies it, and gone on with after any end."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import pytest

import agent_envs
from agent_envs.baselines import Noop, as_policy
from agent_envs.baselines.policy import FunctionPolicy
from agent_envs.campaign.results import Results
from agent_envs.campaign.runner import Attempt, attempt_seed, choose_tasks, plan, run_attempts
from agent_envs.contract import EvidenceError, OutcomeClass, TaskError

ENV = "agenteval/refund-v1"
TASKS = [f"refund/train-{number}" for number in range(4)]
FINISH = {"tool": "finish", "arguments": {"outcome": "unable"}}


@pytest.fixture
def env():
    agent_envs.register_envs()
    with gymnasium.make(ENV, split="train") as made:
        yield made


def go(env, policy, folder, tasks=TASKS, attempts=1, seed=0):
    ran = []
    planned = list(plan(env, policy, tasks, attempts, seed))
    return run_attempts(env, policy, planned, folder, ran.append), ran


def test_every_planned_attempt_has_one_record_with_its_evidence(env, tmp_path):
    """B136, B138; law 9."""
    runs, ran = go(env, Noop(), tmp_path, attempts=2)
    assert len(runs) == len(ran) == 8
    assert [(run.task_id, run.attempt) for run in runs] == [(task, n) for n in range(2) for task in TASKS]
    kept = Results(tmp_path)
    assert kept.read() == runs
    for run in runs:
        evidence = kept.evidence(run)
        assert (evidence.task_id, evidence.seed) == (run.task_id, run.seed)
        assert run.policy == "noop"
        assert not run.oracle
        assert run.outcome_class is OutcomeClass.AGENT_FAILURE


def test_a_second_start_runs_nothing(env, tmp_path):
    """B134."""
    first, _ = go(env, Noop(), tmp_path)
    before = (tmp_path / "runs.jsonl").read_bytes()
    second, ran = go(env, Noop(), tmp_path)
    assert (second, ran) == (first, [])
    assert (tmp_path / "runs.jsonl").read_bytes() == before


def test_more_attempts_and_tasks_top_up(env, tmp_path):
    """B134: done ones stay as they are."""
    first, _ = go(env, Noop(), tmp_path, TASKS[:2])
    more, ran = go(env, Noop(), tmp_path, TASKS, attempts=4)
    assert len(more) == 16
    assert len(ran) == 14
    assert all(run in more for run in first)
    fewer, ran = go(env, Noop(), tmp_path, TASKS[:1])
    assert (fewer, ran) == (first[:1], [])


def test_a_lost_last_record_is_run_again_and_nothing_else(env, tmp_path):
    """B131, B132."""
    go(env, Noop(), tmp_path)
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.warns(UserWarning, match="torn"):
        runs, ran = go(env, Noop(), tmp_path)
    assert [run.task_id for run in ran] == TASKS[3:]
    assert len(runs) == 4


def test_other_settings_in_one_folder_are_kept_apart(env, tmp_path):
    """B138: another policy, seed, limit or task version is another run, and none is reported as the other."""

    def one(observation, info):
        return FINISH

    def two(observation, info):
        return {**FINISH, "arguments": {"outcome": "refused", "reason": "x"}}

    go(env, FunctionPolicy(one, "same"), tmp_path, TASKS[:1])
    _, ran = go(env, FunctionPolicy(two, "same"), tmp_path, TASKS[:1], seed=1)
    assert len(ran) == 1
    with gymnasium.make(ENV, split="train", steps=3) as limited:
        _, ran = go(limited, FunctionPolicy(one, "same"), tmp_path, TASKS[:1])
    assert len(ran) == 1
    assert len({run.run_id for run in Results(tmp_path).read()}) == 3
    assert len({run.system_spec_hash for run in Results(tmp_path).read()}) >= 2


def test_a_changed_task_is_another_run(env, tmp_path, monkeypatch):
    """B138: the task's content counts, not its name."""
    suite = env.unwrapped.suite
    before = list(plan(env, Noop(), TASKS[:1], 1, 0))
    original = type(suite).task

    def changed(self, task_id):
        return original(self, task_id).model_copy(update={"task_revision": 2})

    monkeypatch.setattr(type(suite), "task", changed)
    assert next(plan(env, Noop(), TASKS[:1], 1, 0)).run_id != before[0].run_id


def test_policies_of_one_name_from_two_files_are_kept_apart(env, tmp_path):
    """B138."""
    from agent_envs.baselines import load

    ids = set()
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        path = tmp_path / str(number) / "mine.py"
        path.write_text(
            "class Mine:\n"
            "    name = 'mine'\n"
            "    def act(self, observation, info):\n"
            f"        return {{'tool': 'finish', 'arguments': {{'outcome': 'unable'}}}}  # {number}\n"
        )
    loaded = [load(f"{tmp_path / str(number) / 'mine.py'}:Mine") for number in (1, 2)]
    for policy in loaded:  # both are loaded before either is asked
        ids |= {item.run_id for item in plan(env, policy, TASKS[:1], 1, 0)}
    assert len(ids) == 2


@pytest.mark.parametrize("name", ["org/model-1", "../../x", "/etc/passwd", "\ud835", "a" * 500, "", ".", "[/red]\n"])
def test_a_policys_name_never_leaves_the_folder(env, tmp_path, name):
    runs, _ = go(env, FunctionPolicy(lambda observation, info: FINISH, name or "x"), tmp_path / "out", TASKS[:1])
    place = (tmp_path / "out" / runs[0].evidence).resolve()
    assert place.parent == (tmp_path / "out" / "evidence").resolve()
    assert place.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert Results(tmp_path / "out").read() == runs


def test_seeds_are_pinned_and_do_not_move():
    """Law 5: SHA-256 over base seed, task and attempt, wherever it is asked."""
    assert attempt_seed(0, "refund/train-0", 0) == SEED_ZERO
    seeds = {attempt_seed(base, task, attempt) for base in range(3) for task in TASKS for attempt in range(3)}
    assert len(seeds) == 36
    assert all(0 <= seed < 2**63 for seed in seeds)


SEED_ZERO = int("58136e2aad80bf0e", 16)


def test_the_same_plan_gives_the_same_states_elsewhere(env, tmp_path):
    first, _ = go(env, Noop(), tmp_path / "a")
    with gymnasium.make(ENV, split="train") as other:
        second, _ = go(other, Noop(), tmp_path / "b", TASKS[::-1])
    chains = [
        {run.task_id: (run.log_digest, run.evidence_digest, run.run_id) for run in runs} for runs in (first, second)
    ]
    assert chains[0] == chains[1]


def test_broken_environments_are_run_again_and_keep_their_evidence(env, tmp_path, monkeypatch):
    """B114, B134: no zero for a fault, and the next start repeats it; then nothing is left to do."""
    core = type(env.unwrapped)
    original = core.start_world

    def broken(self, task, seed):
        if task.task_id == TASKS[1]:
            raise RuntimeError("the disk is on fire")
        return original(self, task, seed)

    monkeypatch.setattr(core, "start_world", broken)
    first, _ = go(env, Noop(), tmp_path)
    assert [run.outcome_class is OutcomeClass.ENVIRONMENT_FAILURE for run in first] == [False, True, False, False]
    assert not first[1].counts
    assert first[1].verdict is None or first[1].verdict.Y == "undetermined"
    monkeypatch.undo()
    second, ran = go(env, Noop(), tmp_path)
    assert [run.task_id for run in ran] == [TASKS[1]]
    assert all(run.counts for run in second)
    third, ran = go(env, Noop(), tmp_path)
    assert (third, ran) == (second, [])
    kept = Results(tmp_path)
    assert kept.evidence(first[1]).digest != kept.evidence(second[1]).digest


@pytest.mark.parametrize("patterns", [["refund/nothing"], ["nothing*"], [""], ["refund/train-x"]])
def test_a_pattern_that_matches_nothing_is_an_error(env, patterns):
    """Law 2: no tasks is no campaign."""
    with pytest.raises(TaskError):
        choose_tasks(env.unwrapped.suite, patterns)


def test_nothing_planned_is_an_error(env, tmp_path):
    with pytest.raises(TaskError, match="nothing to run"):
        run_attempts(env, Noop(), [], tmp_path)


def test_a_task_named_twice_is_run_once(env, tmp_path):
    """B133: n per task equals the plan."""
    suite = env.unwrapped.suite
    assert choose_tasks(suite, ["refund/train-0", "refund/train-0"], train=2) == TASKS[:2]
    every = choose_tasks(suite, [])
    assert every == sorted(set(every)) == list(suite.eval_ids)
    assert choose_tasks(suite, ["*"]) == every


def test_a_place_where_evidence_can_not_be_kept_leaves_no_record(env, tmp_path):
    """A record always has its evidence."""
    (tmp_path / "evidence").write_text("in the way")
    with pytest.raises(EvidenceError, match="can't be written"):
        go(env, Noop(), tmp_path)
    assert Results(tmp_path).read() == []


def test_an_exception_out_of_step_is_recorded_as_nobodys(env, tmp_path, monkeypatch):
    """Law 8: what nobody recognises is quarantined, and the other attempts go on."""
    core = type(env.unwrapped)
    original = core.step

    def step(self, action):
        if self.episode.task.task_id == TASKS[0]:
            raise LookupError("a bug of ours")
        return original(self, action)

    monkeypatch.setattr(core, "step", step)
    runs, _ = go(env, Noop(), tmp_path)
    assert [run.outcome_class for run in runs] == [OutcomeClass.UNCLASSIFIED, *[OutcomeClass.AGENT_FAILURE] * 3]
    assert not runs[0].counts
    assert "a bug of ours" in runs[0].terminal.detail


_CAMPAIGN = """
import sys, time
from pathlib import Path
import gymnasium, agent_envs
from agent_envs.baselines import as_policy
from agent_envs.campaign.runner import plan, run_attempts
sys.path.insert(0, sys.argv[1])
import mine
out = Path(sys.argv[1]) / "out"
with gymnasium.make("agenteval/refund-v1", split="train") as env:
    policy = as_policy(mine.act, "mine")
    planned = list(plan(env, policy, [f"refund/train-{number}" for number in range(50)], 1, 0))
    done = run_attempts(env, policy, planned, out, lambda run: print(run.run_id, flush=True))
print("all", len(done), flush=True)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_campaign_goes_on_where_it_was_killed(tmp_path, end):
    """B131: 50 episodes, killed in the middle; every finished one is on the disk, the rest and only the rest is run."""
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "def act(observation, info):\n"
        "    time.sleep(0.01)\n"
        "    return {'tool': 'finish', 'arguments': {'outcome': 'unable'}}\n"
    )
    command = [sys.executable, "-c", _CAMPAIGN, str(tmp_path)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    told = [first.stdout.readline().strip() for _ in range(17)]
    os.kill(first.pid, end)
    told += [line.strip() for line in first.stdout]
    first.wait()
    first.stdout.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = [run.run_id for run in Results(tmp_path / "out").read()]
    assert set(told) <= set(kept)
    assert len(kept) <= len(told) + 1
    second = subprocess.run(command, capture_output=True, text=True, timeout=100)
    lines = second.stdout.split("\n")
    assert lines[-2] == "all 50"
    assert len(lines) - 2 == 50 - len(kept)
    assert not set(lines[:-2]) & set(kept)
    third = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert third.stdout == "all 50\n"
    results = Results(tmp_path / "out")
    assert all(results.evidence(run) for run in results.read())
    assert len({json.loads(line)["run_id"] for line in results.path.read_bytes().splitlines()}) == 50


def test_an_attempt_is_as_planned(env, tmp_path):
    planned = Attempt("name", TASKS[2], 3, 77)
    run = run_attempts(env, as_policy(Noop), [planned], Path(tmp_path))[0]
    assert (run.run_id, run.task_id, run.attempt, run.seed) == ("name", TASKS[2], 3, 77)
    assert run.seconds >= 0
