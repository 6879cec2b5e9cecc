"""The local engine against policies and environments that crash, hang and leave things behind, in real processes."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from agent_envs.baselines import load, rollout
from agent_envs.campaign.engines import Done, EngineError, Job, LocalEngine, make_engine
from agent_envs.contract import OutcomeClass, classify, consequences, read_evidence
from tests.campaign.engine_cases import hard, kinds, make_job, processes

pytestmark = pytest.mark.timeout(90)
LIMIT = 1.0
MARK = f"AGENTEVAL_TEST_{os.getpid()}"


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every process that a test's engine started carries a mark; none may be there after the test (B128, B123)."""
    monkeypatch.setenv(MARK, "1")
    monkeypatch.setenv("HARD_POLICIES_SLEEP", str(700_000 + os.getpid()))
    threads = threading.active_count()
    yield
    monkeypatch.delenv(MARK)
    assert processes(MARK) == []
    assert threading.active_count() == threads


def play(jobs: list[Job], workers: int = 1) -> list[Done]:
    with LocalEngine(workers) as engine:
        return list(engine.run(iter(jobs)))


def test_records_are_those_of_a_plain_loop_and_evidence_is_kept(tmp_path: Path) -> None:
    done = {item.job.seed: item for item in play([make_job(tmp_path, seed) for seed in range(12)], workers=2)}
    env, policy = gymnasium.make("agenteval/refund-v1"), load("rulebook")
    assert sorted(done) == list(range(12))
    for seed, item in done.items():
        plain = rollout(env, policy, seed=seed, task=item.job.task_id)
        assert item.run is not None
        differs = {
            name
            for name, value in item.run.as_json().items()
            if value != plain.as_json()[name] and name not in ("seconds", "environment_seconds")
        }
        assert differs == {"run_id", "evidence", "worker", "system"}
        assert item.run.run_id == f"run-{seed}" and item.worker in ("local-0", "local-1")
        assert read_evidence(tmp_path / item.evidence).digest == item.run.evidence_digest == plain.evidence_digest
        assert item.health[0] == {"when": "before", "ok": True, "channel": "", "detail": ""}
    env.close()


def test_a_later_try_keeps_the_evidence_of_the_first(tmp_path: Path) -> None:
    done = play([make_job(tmp_path, 1), make_job(tmp_path, 1, try_number=2)])
    assert [item.evidence for item in done] == ["evidence/run-1", "evidence/run-1.try2"]
    assert all(read_evidence(tmp_path / item.evidence) for item in done)


@pytest.mark.parametrize("name", ["Exits", "KillsItself", "KillsItsGroup", "Segfaults"])
def test_a_policy_that_ends_its_process_costs_its_attempt_alone(name: str, tmp_path: Path) -> None:
    """B136: each job has exactly one report, the crashed ones too."""
    seeds = (2, 4, 1, 6)  # the last one waits behind the crash and is given out again
    done = play([make_job(tmp_path, seed, hard(name)) for seed in seeds])
    wanted = {f"run-{seed}": ("agent", "policy_crash" if seed % 2 else "finished") for seed in seeds}
    assert kinds(done) == wanted
    for item in done:
        if item.job.seed % 2:
            assert item.run is None and item.evidence == ""
            assert classify(item.terminal, None)[0] is OutcomeClass.AGENT_FAILURE
            assert consequences(item.terminal).counts and not consequences(item.terminal).retry
        if name == "Exits" and item.job.seed % 2:
            assert "these are my last words" in item.tail and "exit status 3" in item.terminal.detail


@pytest.mark.parametrize("name", ["Spins", "SpinsInHandlers", "BlocksReleasing"])
def test_a_policy_that_hangs_is_ended_and_what_it_did_is_judged(name: str, tmp_path: Path) -> None:
    started = time.monotonic()
    done = play([make_job(tmp_path, 1, hard(name), limits={"wall_seconds": LIMIT}), make_job(tmp_path, 2, hard(name))])
    assert kinds(done) == {"run-1": ("agent", "wall_time_limit"), "run-2": ("agent", "finished")}
    run = done[0].run
    assert run is not None and run.outcome_class is OutcomeClass.AGENT_FAILURE and run.verdict is not None
    assert run.usage.steps == 1 and run.limits.wall_seconds == LIMIT
    assert read_evidence(tmp_path / done[0].evidence).digest == run.evidence_digest
    assert done[0].seconds < LIMIT + 5 and time.monotonic() - started < 40


@pytest.mark.parametrize("name", ["BlocksHolding", "Backtracks", "Stops"])
def test_a_policy_that_lets_nothing_run_is_killed_and_counted(name: str, tmp_path: Path) -> None:
    done = play([make_job(tmp_path, 1, hard(name), deadline=LIMIT), make_job(tmp_path, 2, hard(name))])
    assert kinds(done) == {"run-1": ("agent", "policy_hung"), "run-2": ("agent", "finished")}
    assert classify(done[0].terminal, None)[0] is OutcomeClass.AGENT_FAILURE
    assert consequences(done[0].terminal).counts
    assert LIMIT <= done[0].seconds < LIMIT + 5


def test_a_goal_reached_before_the_time_was_up_counts(tmp_path: Path) -> None:
    """B117: the wall-time limit ends the episode; the state that was reached is judged."""
    job = make_job(tmp_path, 1, hard("ReachesGoalAndHangs"), deadline=3.0)
    (done,) = play([job])
    assert done.run is not None
    assert (done.terminal.origin, done.terminal.kind) == ("agent", "wall_time_limit")
    assert done.run.outcome_class is OutcomeClass.SUCCESS and done.run.counts


def test_a_tool_that_never_returns_is_the_environments_fault(tmp_path: Path) -> None:
    jobs = [make_job(tmp_path, 1, hard("BreaksTool"), deadline=LIMIT), make_job(tmp_path, 2, hard("BreaksTool"))]
    done = play(jobs)
    assert kinds(done) == {"run-1": ("environment", "tool_fault"), "run-2": ("agent", "finished")}
    assert done[0].seconds < LIMIT + 5 and consequences(done[0].terminal).retry


def test_a_worker_lost_in_the_environments_code_may_be_tried_again(tmp_path: Path) -> None:
    """B114: not the agent's failure."""
    done = play([make_job(tmp_path, 1, hard("KillsInTool")), make_job(tmp_path, 2, hard("KillsInTool"))])
    assert kinds(done) == {"run-1": ("environment", "worker_lost"), "run-2": ("agent", "finished")}
    row = consequences(done[0].terminal)
    assert row.retry and not row.counts


def test_workers_killed_at_random_cost_one_attempt_each(tmp_path: Path) -> None:
    lost = 0
    with LocalEngine(2) as engine:
        done = []
        for item in engine.run(make_job(tmp_path, seed) for seed in range(40)):
            done.append(item)
            if len(done) % 12 == 5:
                os.kill(_workers()[0], signal.SIGKILL)
                lost += 1
    found = kinds(done)
    assert sorted(found) == sorted(f"run-{seed}" for seed in range(40))
    gone = [ending for ending in found.values() if ending != ("agent", "finished")]
    assert len(gone) <= lost > 1 and set(gone) <= {("agent", "policy_crash"), ("environment", "worker_lost")}


def test_output_is_bounded_and_never_taken_for_a_report(tmp_path: Path) -> None:
    """B122: a policy that prints megabytes, in the form of reports too."""
    done = play([make_job(tmp_path, seed, hard("Floods")) for seed in range(2)])
    assert kinds(done) == {"run-0": ("agent", "finished"), "run-1": ("agent", "finished")}
    assert all(len(item.tail) <= 8192 for item in done) and "the very end" in done[0].tail


def test_descendants_end_with_the_engine(tmp_path: Path) -> None:
    """B123: daemons in sessions of their own included, also when the attempt is killed."""
    word = os.environ["HARD_POLICIES_SLEEP"]
    with LocalEngine(1) as engine:
        jobs = [make_job(tmp_path, seed, hard("LeavesDaemons"), deadline=LIMIT) for seed in (2, 1)]
        for item in engine.run(iter(jobs)):
            if item.job.seed == 2:
                assert len(processes(f"sleep\0{word}")) == 3
        assert [item for item in processes(f"sleep\0{word}")] == []


def test_nothing_outlives_a_runner_that_was_killed(tmp_path: Path) -> None:
    """B127: SIGKILL of the runner, with a policy that holds the interpreter and daemons beside it."""
    script = f"""
        import sys
        sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
        from pathlib import Path
        from tests.campaign.engine_cases import hard, make_job
        from agent_envs.campaign.engines import LocalEngine
        jobs = [make_job(Path({str(tmp_path)!r}), 2, hard("LeavesDaemons")),
                make_job(Path({str(tmp_path)!r}), 1, hard("BlocksHolding")),
                make_job(Path({str(tmp_path)!r}), 3, hard("LeavesDaemons"))]
        with LocalEngine(2) as engine:
            for done in engine.run(iter(jobs)):
                print(done.job.run_id, flush=True)
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None and runner.stdout.readline() == b"run-2\n"
        _until(lambda: len(processes(f"sleep\0{os.environ['HARD_POLICIES_SLEEP']}")) >= 5, 20)
        runner.kill()
    _until(lambda: processes(MARK) == [], 5)


def test_draining_finishes_what_runs_and_starts_nothing(tmp_path: Path) -> None:
    pulled = []

    def jobs() -> Iterator[Job]:
        for seed in range(50):
            pulled.append(seed)
            yield make_job(tmp_path, seed, hard("Slow"))

    with LocalEngine(2) as engine:
        done = []
        for item in engine.run(jobs()):
            done.append(item)
            engine.stop()
        assert list(engine.run(jobs())) == []
    assert 1 <= len(done) <= 3 and len(pulled) <= 4
    assert all(item.run is not None for item in done)


def test_stopping_now_is_at_once_and_leaves_no_report(tmp_path: Path) -> None:
    with LocalEngine(2) as engine:
        started = 0.0
        for item in engine.run(make_job(tmp_path, seed, hard("SpinsInHandlers")) for seed in (2, 1, 3, 5)):
            assert item.job.seed == 2
            time.sleep(0.5)
            started = time.monotonic()
            engine.stop(now=True)
        assert time.monotonic() - started < 5 and not _workers()


def test_a_signal_handler_may_stop_the_engine(tmp_path: Path) -> None:
    with LocalEngine(1) as engine:
        previous = signal.signal(signal.SIGUSR1, lambda number, frame: engine.stop(now=True))
        threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        try:
            assert list(engine.run(iter([make_job(tmp_path, 1, hard("Spins"))]))) == []
        finally:
            signal.signal(signal.SIGUSR1, previous)


def test_no_job_at_the_moment_is_not_the_end(tmp_path: Path) -> None:
    first: list[Done] = []

    def jobs() -> Iterator[Job | None]:
        yield make_job(tmp_path, 1)
        while not first:
            yield None
        yield make_job(tmp_path, 2)
        yield None

    with LocalEngine(2) as engine:
        for item in engine.run(jobs()):
            first.append(item)
    assert [item.job.seed for item in first] == [1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "nosuch"}, "there is no policy 'nosuch'"),
        ({"policy": "nosuch.module:Policy"}, "No module named 'nosuch'"),
        ({"env_id": "agenteval/nosuch-v1"}, "there is no environment 'agenteval/nosuch-v1'"),
        ({"task_id": "refund/nosuch"}, "there is no task 'refund/nosuch'"),
        ({"run_id": "../up"}, "run_id='../up'"),
    ],
)
def test_what_cannot_be_made_stops_the_engine_and_is_no_attempt(
    change: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(EngineError, match=message.replace("(", r"\(")):
        play([make_job(tmp_path, 1, **{"policy": "rulebook", **change})])


def test_a_policy_that_ends_the_process_while_it_is_loaded_stops_the_engine(tmp_path: Path) -> None:
    module = tmp_path / "gone.py"
    module.write_text("import os, sys\nprint('so long', file=sys.stderr, flush=True)\nos._exit(4)\n")
    with pytest.raises(EngineError, match=r"exit status 4.*so long"):
        play([make_job(tmp_path, 1, f"{module}:Policy")])


def test_evidence_that_cannot_be_written_stops_the_engine(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text("in the way")
    with pytest.raises(EngineError, match="evidence can't be written"):
        play([make_job(tmp_path, 1)])


def test_engines_leave_no_descriptors(tmp_path: Path) -> None:
    """B128: open and close, a third of the times by an exception."""
    before = len(os.listdir("/proc/self/fd"))
    for cycle in range(3):
        with LocalEngine(1) as engine:
            for item in engine.run(make_job(tmp_path, seed) for seed in range(3)):
                assert item.run is not None
                if cycle == 0:
                    break
        engine.close()
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(EngineError, match="closed"):
        next(engine.run(iter([])))


def test_engines_are_found_by_name() -> None:
    with make_engine("local", 3) as engine:
        assert isinstance(engine, LocalEngine)
    with pytest.raises(EngineError, match="there are local and ray"):
        make_engine("cloud", 1)
    with pytest.raises(EngineError, match="at least one"):
        make_engine("local", 0)


def _workers() -> list[int]:
    """This test's worker processes themselves, without their keepers."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes(MARK)}
    return [pid for pid, line in lines.items() if b"engines.worker" in line and b"keeper.py" not in line]


def _until(holds: object, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < limit, "it did not come about in time"
        time.sleep(0.05)
