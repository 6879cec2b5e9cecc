"""The results folder: nothing finished is lost, nothing half is read, nothing is counted twice."""

import json
import subprocess
import sys
import time
import warnings

import pytest

from agent_envs.campaign.results import RUNS_NAME, Results, ResultsError
from agent_envs.contract import (
    AgentEvalError,
    AgentRun,
    EvidenceError,
    Limits,
    OutcomeClass,
    Terminal,
    Usage,
)


def run(run_id, detail="", kind="policy_error", origin="agent", **fields):
    environment = origin == "environment"
    data = {
        "run_id": run_id,
        "env_id": "agenteval/shop-v1",
        "task_id": "shop/one",
        "task_revision": 1,
        "task_digest": "0" * 64,
        "policy": "p",
        "oracle": False,
        "system_spec_hash": "2" * 64,
        "attempt": 0,
        "seed": 1,
        "initial_state_hash": "3" * 64,
        "final_state_hash": "4" * 64,
        "log_digest": "5" * 64,
        "evidence_digest": "1" * 64,
        "terminal": Terminal(phase="act", origin=origin, kind=kind, detail=detail),
        "outcome_class": OutcomeClass.ENVIRONMENT_FAILURE if environment else OutcomeClass.AGENT_FAILURE,
        "counts": not environment,
        "verdict": None,
        "declared_success": False,
        "usage": Usage(steps=1, calls=1),
        "limits": Limits(),
        "seconds": 1.0,
        "environment_seconds": 0.5,
        "infrastructure_status": "faulted" if environment else "ok",
        "evidence": f"evidence/{run_id}",
    }
    return AgentRun.model_validate(data | fields)


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "out")


def test_records_come_back_in_order(results):
    written = [run(f"r{number}", detail="\ud835\x00\n\u2028[/red]") for number in range(5)]
    assert results.read() == []
    for item in written:
        results.append(item)
    assert results.read() == written
    assert len(results.path.read_bytes().split(b"\n")) == 6


def test_every_line_is_strict_json(results):
    """B140."""
    results.append(run("r", detail="\ud835 NaN"))

    def refuse(name):
        raise AssertionError(name)

    for line in results.path.read_bytes().splitlines():
        json.loads(line, parse_constant=refuse)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_a_number_that_is_none_never_reaches_the_file(results, seconds):
    """B140."""
    with pytest.raises(ValueError):
        results.append(run("r").model_copy(update={"seconds": seconds}))
    assert not results.path.exists()


# Torn and damaged files ---------------------------------------------------------------------------------------------


def test_a_torn_last_line_is_dropped_with_a_warning_and_cut_off_by_the_next_writer(results):
    """B132: at every length of the last line."""
    results.append(run("a"))
    whole = results.path.read_bytes()
    results.append(run("b"))
    both = results.path.read_bytes()
    for size in range(len(whole) + 1, len(both), 7):
        results.path.write_bytes(both[:size])
        with pytest.warns(UserWarning, match="last line is torn"):
            assert [item.run_id for item in results.read()] == ["a"]
        results.append(run("c"))
        assert [item.run_id for item in results.read()] == ["a", "c"]


def test_a_torn_only_line_leaves_an_empty_folder(results):
    results.append(run("a"))
    results.path.write_bytes(results.path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="torn"):
        assert results.read() == []
    results.append(run("b"))
    assert [item.run_id for item in results.read()] == ["b"]


def test_a_long_torn_tail_is_cut_off(results):
    results.append(run("a"))
    with results.path.open("ab") as file:
        file.write(b"x" * 300_000)
    results.append(run("b"))
    assert [item.run_id for item in results.read()] == ["a", "b"]


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda line: line[:-20], "line 2"),
        (lambda line: b"", "line 2"),
        (lambda line: b"\xff" + line, "line 2"),
        (lambda line: b"null", "line 2"),
        (lambda line: b"[" * 100_000, "line 2"),
        (lambda line: line.replace(b'"seed":1', b'"seed":"x"'), "line 2, seed"),
        (lambda line: line.replace(b'"seed":1', b'"seed":1,"sead":1'), "line 2, sead"),
        (lambda line: line.replace(b'"seed":1,', b""), "line 2, seed"),
        (lambda line: line.replace(b'"seconds":1.0', b'"seconds":NaN'), "line 2"),
        (lambda line: line + line, "line 2"),
        (lambda line: line.replace(b'"seed":1', b'"seed":1,"seed":2'), "line 2"),
    ],
    ids=["cut", "emptied", "no-text", "null", "deep", "type", "unknown", "missing", "nan", "merged", "twice"],
)
def test_damage_in_the_middle_is_an_error_with_its_line(results, damage, named):
    """B132: never skipped over."""
    for name in "abc":
        results.append(run(name))
    lines = results.path.read_bytes().split(b"\n")
    lines[1] = damage(lines[1])
    results.path.write_bytes(b"\n".join(lines))
    with pytest.raises(ResultsError, match=named) as caught:
        results.read()
    assert str(results.path) in str(caught.value)
    assert len(str(caught.value)) < 1000


# Duplicates and retries ---------------------------------------------------------------------------------------------


def test_the_first_record_of_a_run_counts_and_the_second_is_told(results):
    """B133."""
    for item in (run("a", "first"), run("b"), run("a", "second")):
        results.append(item)
    with pytest.warns(UserWarning, match="line 3: a is recorded a second time; the first counts"):
        found = results.read()
    assert [(item.run_id, item.terminal.detail) for item in found] == [("a", "first"), ("b", "")]


def test_a_retry_replaces_what_the_environment_broke(results):
    """B134: errored attempts are done again, and the new record is the one that counts."""
    broken = run("a", "broken", kind="tool_fault", origin="environment")
    for item in (broken, run("b"), run("a", "still", "tool_fault", "environment"), run("a", "good")):
        results.append(item)
    assert [(item.run_id, item.terminal.detail) for item in results.read()] == [("a", "good"), ("b", "")]


# Places that can't be read or written -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["folder is a file", "records are a folder"])
def test_a_place_that_is_no_results_folder_is_told(tmp_path, what):
    folder = tmp_path / "out"
    if what == "folder is a file":
        folder.write_text("x")
    else:
        (folder / RUNS_NAME).mkdir(parents=True)
    for action in (Results(folder).read, lambda: Results(folder).append(run("a"))):
        with pytest.raises(ResultsError, match=RUNS_NAME):
            action()
    assert issubclass(ResultsError, AgentEvalError)


_NOBODY = """
import os, sys
from pathlib import Path
from agent_envs.campaign.results import Results, ResultsError
from agent_envs.contract import AgentRun
record = AgentRun.parse(sys.stdin.buffer.read())
os.chdir(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
results = Results(Path("."))
try:
    results.append(record)
except ResultsError as error:
    print("refused", error)
print(len(results.read()))
"""


def test_a_folder_that_may_not_be_written_is_told_and_unharmed(tmp_path):
    folder = tmp_path / "out"
    Results(folder).append(run("a"))
    before = (folder / RUNS_NAME).read_bytes()
    (folder / RUNS_NAME).chmod(0o444)
    folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", _NOBODY, str(folder)], input=run("b").canonical(), capture_output=True, timeout=60
    )
    folder.chmod(0o755)
    lines = done.stdout.decode().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["refused", "1"], done.stderr.decode()
    assert (folder / RUNS_NAME).read_bytes() == before


_FULL = """
import resource, sys
from pathlib import Path
from agent_envs.campaign.results import Results, ResultsError
from agent_envs.contract import AgentRun
results = Results(Path(sys.argv[1]))
record = AgentRun.parse(sys.stdin.buffer.read())
size = results.path.stat().st_size
limit = size + len(record.canonical()) // 2
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    results.append(record)
except ResultsError as error:
    print("refused", error)
print(results.path.stat().st_size == size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
results.append(record)
print(len(results.read()))
"""


def test_a_full_disk_raises_and_leaves_no_half_record(tmp_path):
    """B137: write errors raise; the file is as it was, and goes on when there is room again."""
    Results(tmp_path).append(run("a"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _FULL, str(tmp_path)],
        input=run("b", "x" * 50_000).canonical(),
        capture_output=True,
        timeout=60,
    )
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("refused") and RUNS_NAME in lines[0], done.stderr.decode()
    assert lines[1:] == ["True", "2"]


# Many writers and sudden ends ---------------------------------------------------------------------------------------


_WRITER = """
import os, random, sys
from pathlib import Path
from agent_envs.campaign.results import Results
from agent_envs.contract import AgentRun
folder, writer, count, sync = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "sync"
record, draw, results = AgentRun.parse(sys.stdin.buffer.read()), random.Random(writer), Results(folder)
if not sync:
    os.fsync = lambda descriptor: None  # the disk's speed isn't what is tested
for number in range(count):
    detail = chr(97 + number % 26) * draw.randrange(20_000, 200_000)
    terminal = record.terminal.model_copy(update={"detail": detail})
    results.append(record.model_copy(update={"run_id": f"w{writer}-{number}", "terminal": terminal}))
"""


def _start_writer(folder, writer, count, sync):
    command = [sys.executable, "-c", _WRITER, str(folder), str(writer), str(count), sync]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    process.stdin.write(run("template").canonical())
    process.stdin.close()
    return process


def test_parallel_writers_do_not_mix_their_lines(tmp_path):
    """B137: 8 processes, 500 records each of 20 to 200 kB; all 4000 are whole."""
    writers = [_start_writer(tmp_path, number, 500, "no sync") for number in range(8)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a line that is just being written isn't torn
            if reads < 3:
                reads += bool(Results(tmp_path).read())
        time.sleep(0.1)
    assert [writer.returncode for writer in writers] == [0] * 8
    assert reads
    seen = set()
    with (tmp_path / RUNS_NAME).open("rb") as file:
        for line in file:
            record = json.loads(line)
            assert 20_000 <= len(record["terminal"]["detail"]) < 200_000
            assert len(set(record["terminal"]["detail"])) == 1
            seen.add(record["run_id"])
    assert seen == {f"w{writer}-{number}" for writer in range(8) for number in range(500)}


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.11, 0.23])
def test_a_kill_loses_at_most_the_record_in_flight(tmp_path, delay):
    """B131, B132: what was there stays there, whatever the moment; the next writer goes on."""
    writer = _start_writer(tmp_path, 1, 100_000, "sync")
    while not (tmp_path / RUNS_NAME).exists():
        time.sleep(0.005)
    time.sleep(delay)
    writer.kill()
    writer.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Results(tmp_path).read()
    assert [item.run_id for item in found] == [f"w1-{number}" for number in range(len(found))]
    Results(tmp_path).append(run("after"))
    assert [item.run_id for item in Results(tmp_path).read()] == [*(item.run_id for item in found), "after"]


@pytest.mark.parametrize("size", [1, 4096, 65535, 65536, 65537, 131072])
def test_a_lock_is_let_go_when_its_holder_dies(tmp_path, size):
    """B127: a killed writer blocks nobody."""
    Results(tmp_path).append(run("a"))
    code = (
        "import fcntl, os, sys, time\n"
        "file = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        f"os.write(file, b'x' * {size})\n"
        "print('locked', flush=True)\n"
        "time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / RUNS_NAME)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"locked\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    Results(tmp_path).append(run("b"))
    assert [item.run_id for item in Results(tmp_path).read()] == ["a", "b"]


# Evidence -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "/etc", "../other", "evidence/../../x", "."])
def test_a_record_can_not_point_out_of_its_folder(results, place):
    with pytest.raises(EvidenceError):
        results.evidence(run("a", evidence=place))
