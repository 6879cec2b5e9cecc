"""Policies in processes of their own, and the keeper that ends such processes with all that they started."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import pytest

from agent_envs.baselines import rollout
from agent_envs.baselines.keeper import Kept
from agent_envs.baselines.policy import GaveUp, Policy, PolicyCrash, PolicyError
from agent_envs.baselines.process import MOST_BYTES, Peer, ProcessPolicy, policy_of
from agent_envs.campaign.engines import LocalEngine
from agent_envs.contract import AgentRun
from tests.campaign.engine_cases import hard, kinds, make_job, processes

pytestmark = pytest.mark.timeout(60)


def shell(script: str, **environment: str) -> Peer:
    return Peer(["/bin/sh", "-c", script], {"PATH": os.environ["PATH"], **environment}, "the program")


def sleeping() -> str:
    """An argument for ``sleep`` that is this process's own."""
    return str(800_000 + os.getpid())


def test_an_answer_is_one_json_object_a_line() -> None:
    peer = shell("""read line; echo '{"action": 1}'; read line; printf '{"act'; sleep 0.1; printf 'ion": 2}\\n'""")
    assert peer.ask({"observation": {}}) == {"action": 1}
    assert peer.ask({"observation": {"text": "\ud800 " + "x" * 300_000}}) == {"action": 2}
    peer.end()


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        ("read line; echo hello >&2; sleep 0.1; exit 3", PolicyCrash, r"exit status 3\).*hello"),
        ("exit 0", PolicyCrash, r"exit status 0"),
        ("kill -9 $$", PolicyCrash, r"exit status -9"),
        ("read line; echo nonsense; sleep 60", PolicyError, "answered b'nonsense'"),
        ("read line; echo '[1]'; sleep 60", PolicyError, "an object is needed"),
        ("read line; echo '{\"action\": NaN}'; sleep 60", PolicyError, "answered"),
        ("read line; printf '\\377\\376\\n'; sleep 60", PolicyError, "answered"),
        ("yes '' | tr -d '\\n' & yes x | tr -d '\\n'", PolicyError, f"more than {MOST_BYTES} bytes"),
        ("yes x >&2", PolicyError, "no answer within 1 s"),
        ("sleep 60", PolicyError, "no answer within 1 s"),
        ("exec /no/such/program", PolicyCrash, "exit status 127"),
    ],
)
def test_what_is_no_answer(script: str, error: type[Exception], message: str) -> None:
    """B179, B122: garbage, floods, silence and early ends are the policy's own failures, with its last words."""
    peer = shell(script)
    try:
        with pytest.raises(error, match=f"(?s){message}"):
            peer.ask({"observation": {}}, 1.0)
    finally:
        peer.end()


def test_an_isolated_policy_plays_as_well(tmp_path: Path) -> None:
    policy = policy_of("rulebook", "process")
    run = play(policy, "refund/train-3", 3)
    plain = play(policy_of("rulebook"), "refund/train-3", 3)
    assert run.outcome_class == "success" and run.log_digest == plain.log_digest
    assert (run.policy, run.oracle) == ("rulebook", False)
    assert run.system_spec_hash != plain.system_spec_hash, "isolation is part of what is under test"
    assert processes("agent_envs.baselines.host\0rulebook") == []


def test_an_isolated_policy_sees_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an environment it has the written rules in memory, which baselines play by, but no code and no tasks."""
    monkeypatch.setenv("SOME_SECRET_TOKEN", "hunter2")
    run = play(ProcessPolicy(hard("Reports")), "refund/train-3", 3)
    assert (run.terminal.origin, run.terminal.kind) == ("agent", "policy_error")
    assert "PATH" in run.terminal.detail and "SECRET" not in run.terminal.detail
    loaded = run.terminal.detail.rpartition("[")[2]
    assert loaded == "'agent_envs.envs', 'agent_envs.envs.refund', 'agent_envs.envs.refund.rules']"


def test_isolated_policies_that_crash_or_hang_in_a_worker(tmp_path: Path) -> None:
    with LocalEngine(2) as engine:
        jobs = [
            make_job(tmp_path, 1, hard("Exits"), isolation="process"),
            make_job(tmp_path, 2, hard("Exits"), isolation="process"),
            make_job(tmp_path, 3, hard("BlocksHolding"), isolation="process", limits={"wall_seconds": 8}),
        ]
        done = {item.job.seed: item for item in engine.run(iter(jobs))}
    assert kinds(done.values()) == {
        "run-1": ("agent", "policy_crash"),
        "run-2": ("agent", "finished"),
        "run-3": ("agent", "wall_time_limit"),
    }
    assert "these are my last words" in done[1].terminal.detail
    hung = done[3].run
    assert hung is not None and hung.verdict is not None, "its own process leaves the state to judge"
    assert processes("agent_envs.baselines.host\0" + hard("")) == []


def test_giving_up_and_errors_cross_the_pipe(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    module.write_text(
        "from agent_envs.baselines.policy import GaveUp\n"
        "def gives_up(observation, info):\n    print('noise'); raise GaveUp('enough')\n"
        "def fails(observation, info):\n    raise ValueError('\\ud800 odd')\n"
    )
    run = play(ProcessPolicy(f"{module}:gives_up"), "refund/train-1", 1)
    assert (run.terminal.kind, run.terminal.detail, run.policy) == ("stopped", "GaveUp: enough", "gives_up")
    run = play(ProcessPolicy(f"{module}:fails"), "refund/train-1", 1)
    assert run.terminal.kind == "policy_error" and "ValueError" in run.terminal.detail


def test_a_policy_that_is_not_there_is_known_before_any_episode() -> None:
    with pytest.raises(PolicyError, match="there is no policy 'nosuch'"):
        ProcessPolicy("nosuch")
    with pytest.raises(PolicyError, match="there are none and process"):
        policy_of("noop", "container")
    with pytest.raises(PolicyError, match="call begin"):
        ProcessPolicy("noop").act({}, {})


def test_stop_and_error_answers() -> None:
    policy = ProcessPolicy("noop")
    for answer, error in (({"stop": "why"}, GaveUp), ({"error": "what"}, PolicyError), ({"other": 1}, PolicyError)):
        policy._peer = shell(f"read line; echo '{json.dumps(answer)}'; sleep 60")
        with pytest.raises(error):
            policy.act({"text": ""}, {})
        policy.end()


def test_the_keeper_ends_daemons_and_programs_that_ignore_signals() -> None:
    """B123: no descendant is alive afterwards, whatever session it moved to."""
    word = sleeping()
    script = f"trap '' TERM INT HUP; setsid sh -c 'setsid sleep {word} & sleep {word}' & echo up; sleep {word}; exit 0"
    kept = Kept(["/bin/sh", "-c", script], os.environ, stdout=subprocess.PIPE)
    assert kept.process.stdout is not None and kept.process.stdout.readline() == b"up\n"
    _until(lambda: len(processes(f"sleep\0{word}")) == 3)
    kept.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    assert kept.process.poll() is None, "a keeper ends with its program or its owner only"
    started = time.monotonic()
    assert kept.end() == -signal.SIGKILL
    assert time.monotonic() - started < 3 and processes(f"sleep\0{word}") == []


def test_the_keeper_ends_as_its_program_does() -> None:
    for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", -15), (f"sleep {sleeping()} & exit 5", 5)):
        kept = Kept(["/bin/sh", "-c", script], os.environ)
        assert kept.process.wait(10) == status
        assert kept.end() == status
    assert processes(f"sleep\0{sleeping()}") == []


def test_a_killed_keeper_takes_its_program_along() -> None:
    word = sleeping()
    kept = Kept(["sleep", word], os.environ)
    _until(lambda: len(processes(f"sleep\0{word}")) >= 2)
    kept.process.kill()
    _until(lambda: processes(f"sleep\0{word}") == [])
    assert kept.end() == -signal.SIGKILL


def test_the_keeper_notices_that_its_owner_is_gone() -> None:
    word = sleeping()
    script = f"import os, time; from agent_envs.baselines.keeper import Kept; Kept(['sleep', '{word}'], os.environ); "
    owner = subprocess.Popen(
        [sys.executable, "-c", script + "print('up', flush=True); time.sleep(600)"],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert owner.stdout is not None and owner.stdout.readline() == b"up\n"
    _until(lambda: len(processes(f"sleep\0{word}")) >= 2)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    _until(lambda: processes(f"sleep\0{word}") == [])


def play(policy: Policy, task: str, seed: int) -> AgentRun:
    env = gymnasium.make("agenteval/refund-v1")
    try:
        return rollout(env, policy, seed=seed, task=task)
    finally:
        env.close()


def _until(holds: object) -> None:
    limit = time.monotonic() + 10
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < limit, "it did not come about in time"
        time.sleep(0.02)
