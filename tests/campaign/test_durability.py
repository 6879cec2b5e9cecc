"""A campaign survives: kills at any instant, full disks, second runners, impatient people."""

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.engines import LocalEngine
from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.results import Results
from agent_envs.campaign.standing import standing
from agent_envs.campaign.store import CampaignStore
from tests.campaign.serial import SerialEngine, locked, same

KILLS = 200
RUNNER = """
import sys
from pathlib import Path
from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.engines import LocalEngine

if __name__ == "__main__":
    result = run_campaign(Path(sys.argv[1]), LocalEngine(2), lambda standing: print("done", standing.done, flush=True))
    print(result.state, result.reason)
    sys.exit(result.exit_status)
"""
SLOW = """
import time
from agent_envs.baselines import Rulebook

class Slow(Rulebook):
    name = "slow"

    def act(self, observation, info):
        time.sleep(0.05)
        return super().act(observation, info)
"""


def forked(folder: Path) -> int:
    """A runner in a child process."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            warnings.simplefilter("ignore")
            status = run_campaign(folder, SerialEngine()).exit_status
        os._exit(status)
    return child


def check_files(folder: Path) -> None:
    """What a reader finds after a kill: whole lines, nothing twice, evidence for every record."""
    store = CampaignStore(folder)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torn and was dropped")
        runs, tries = list(store.runs), list(store.attempts)
        list(store.health)
    assert max(Counter(run.run_id for run in runs).values(), default=1) == 1
    attempts = [item.run.run_id for item in tries if item.purpose == "attempt"]
    assert max(Counter(attempts).values(), default=1) == 1  # a check may be made again
    assert {run.run_id for run in runs} <= {item.run.run_id for item in tries}
    for run in runs[-3:]:
        assert Results(folder).evidence(run).digest == run.evidence_digest


@pytest.mark.timeout(300)
def test_kills_at_any_instant_lose_nothing_and_double_nothing(tmp_path):
    """B127, B131, B132, B133, B134: a chain of 200 kills, each followed by a resume."""
    chance = random.Random(5)
    locked(tmp_path / "whole", attempts=12)
    started = time.monotonic()
    run_campaign(tmp_path / "whole", SerialEngine())
    whole = time.monotonic() - started
    expected = same(Results(tmp_path / "whole").read())
    kills = campaigns = 0
    while kills < KILLS:
        campaigns += 1
        folder = tmp_path / str(campaigns)
        lock = locked(folder, attempts=12)
        killed, life = True, 0.02 * whole  # short lives at first, so that the checks are hit too
        while killed and kills < KILLS:
            child = forked(folder)
            time.sleep(chance.uniform(0, life))
            os.kill(child, signal.SIGKILL)
            killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
            kills += killed
            check_files(folder)
            life = min(life * 1.1, 0.5 * whole)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*torn and was dropped")
            assert run_campaign(folder, SerialEngine()).state == "finished"
        runs = Results(folder).read()
        assert sorted(run.run_id for run in runs) == sorted(row.run_id for row in lock.planned)
        # Campaigns of one manifest and one code are one campaign: the records are equal, but for times.
        assert same(runs) == expected
        kept = {entry.name for entry in (folder / "evidence").iterdir()}
        assert kept == {Path(item.run.evidence).name for item in CampaignStore(folder).attempts}


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_record_is_made_good_from_the_tries(tmp_path, cut):
    """B132: a kill between the two files, or in the middle of the second."""
    locked(tmp_path)
    run_campaign(tmp_path, SerialEngine())
    whole = same(Results(tmp_path).read())
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    engine = SerialEngine()
    with pytest.warns(UserWarning, match="torn and was dropped"):
        assert run_campaign(tmp_path, engine).state == "finished"
    assert engine.jobs == []
    assert same(Results(tmp_path).read()) == whole


def test_a_torn_try_is_run_again(tmp_path):
    locked(tmp_path)
    run_campaign(tmp_path, SerialEngine())
    whole = same(Results(tmp_path).read())
    for name in ("runs.jsonl", "attempts.jsonl"):
        lines = (tmp_path / name).read_bytes().splitlines(keepends=True)
        (tmp_path / name).write_bytes(b"".join(lines[:-1]) + (lines[-1][:100] if name == "attempts.jsonl" else b""))
    engine = SerialEngine()
    with pytest.warns(UserWarning, match="torn and was dropped"):
        assert run_campaign(tmp_path, engine).state == "finished"
    assert len(engine.jobs) == 1
    assert same(Results(tmp_path).read()) == whole


def test_only_one_runner_may_work_in_a_folder(tmp_path):
    """The second one is told who the first is."""
    locked(tmp_path)
    with CampaignStore(tmp_path).runner():
        assert standing(tmp_path).state == "running"
        with pytest.raises(ResultsError, match=rf"another runner \(process {os.getpid()} on .+\) is at work here"):
            run_campaign(tmp_path, SerialEngine())
    assert run_campaign(tmp_path, SerialEngine()).state == "finished"


def test_a_full_disk_is_a_clear_error_and_damages_nothing(tmp_path):
    """B137: the write error is raised, the half record is taken back, and the campaign goes on when there is room."""
    locked(tmp_path)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            run_campaign(tmp_path, SerialEngine())
        except ResultsError as error:
            os._exit(7 if "can't be written" in str(error) and "File too large" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    for name in ("runs.jsonl", "attempts.jsonl", "health.jsonl"):
        data = (tmp_path / name).read_bytes()
        assert data.endswith(b"\n")
        for line in data.splitlines():
            json.loads(line)
    assert 0 < standing(tmp_path).done < 8
    assert run_campaign(tmp_path, SerialEngine()).state == "finished"
    check_files(tmp_path)


def test_a_read_only_folder_is_a_clear_error(tmp_path):
    folder = tmp_path / "c"
    locked(folder)
    before = sorted(folder.iterdir())
    child = os.fork()
    if child == 0:
        for path in (tmp_path, *tmp_path.parents):
            with contextlib.suppress(OSError):
                path.chmod(path.stat().st_mode | 0o055)
        folder.chmod(0o555)
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        try:
            run_campaign(folder, SerialEngine())
        except ResultsError as error:
            os._exit(7 if "the campaign can't be written" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    folder.chmod(0o755)
    assert sorted(folder.iterdir()) == before


# With real worker processes ------------------------------------------------------------------------------------


def start(folder: Path, attempts: int = 6) -> "subprocess.Popen[str]":
    """A runner with two workers and a policy that takes its time."""
    policy = folder.parent / "slow.py"
    policy.write_text(SLOW)
    systems = [{"name": "slow", "policy": f"{policy}:Slow"}]
    if not folder.exists():
        locked(folder, systems=systems, attempts=attempts)
    script = folder.parent / "runner.py"
    script.write_text(RUNNER)
    return subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for(runner: "subprocess.Popen[str]", text: str) -> str:
    """Read its output up to a line with a text."""
    assert runner.stdout is not None
    seen = ""
    for line in runner.stdout:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"no {text!r} in the output: {seen}")


def workers_of(runner: int) -> list[int]:
    """Live children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == runner and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def gone(processes: list[int], seconds: float = 10.0) -> bool:
    """Whether processes end within some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(Path(f"/proc/{number}").exists() for number in processes):
            return True
        time.sleep(0.05)
    return False


def test_ctrl_c_once_lets_running_attempts_finish(tmp_path):
    runner = start(tmp_path / "c")
    wait_for(runner, "done 1\n")
    runner.send_signal(signal.SIGINT)
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 130, out
    assert "interrupted by SIGINT" in out
    found = standing(tmp_path / "c")
    assert found.state == "interrupted"
    assert 1 <= found.done < 12
    check_files(tmp_path / "c")
    assert run_campaign(tmp_path / "c", LocalEngine(2)).state == "finished"
    check_files(tmp_path / "c")


def test_ctrl_c_twice_stops_at_once_and_leaves_a_folder_to_resume(tmp_path):
    runner = start(tmp_path / "c")
    wait_for(runner, "done 1\n")
    workers = workers_of(runner.pid)
    runner.send_signal(signal.SIGINT)
    runner.send_signal(signal.SIGTERM)
    started = time.monotonic()
    out, _ = runner.communicate(timeout=60)
    assert time.monotonic() - started < 10
    assert runner.returncode == 130, out
    assert gone(workers)
    check_files(tmp_path / "c")
    assert run_campaign(tmp_path / "c", LocalEngine(2)).state == "finished"
    assert len(Results(tmp_path / "c").read()) == 12


def test_a_killed_runner_takes_its_workers_with_it_and_can_be_resumed(tmp_path):
    """B127, B128."""
    for wanted in ("done 1\n", "done 4\n"):
        runner = start(tmp_path / "c")
        wait_for(runner, wanted)
        workers = workers_of(runner.pid)
        runner.kill()
        runner.communicate(timeout=30)
        assert workers and gone(workers)
        check_files(tmp_path / "c")
        assert standing(tmp_path / "c").state == "stopped"
        assert "killed" in standing(tmp_path / "c").reason
    assert run_campaign(tmp_path / "c", LocalEngine(2)).state == "finished"
    assert len(Results(tmp_path / "c").read()) == 12


def test_a_killed_worker_costs_one_try(tmp_path):
    runner = start(tmp_path / "c")
    wait_for(runner, "done 1\n")
    os.kill(workers_of(runner.pid)[0], signal.SIGKILL)
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, out
    runs = Results(tmp_path / "c").read()
    assert len(runs) == 12
    lost = [item for item in CampaignStore(tmp_path / "c").attempts if item.run.terminal.kind in KINDS_OF_LOSS]
    assert len(lost) <= 1
    assert sum(run.outcome_class.value == "success" for run in runs) >= 11


KINDS_OF_LOSS = ("worker_lost", "policy_crash")
