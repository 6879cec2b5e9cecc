"""The command line, as people and scripts use it: results on standard output, one line for what went wrong."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from agent_envs.campaign.results import Results
from agent_envs.cli import main

ENV = "agenteval/refund-v1"
COMMANDS = ("list", "show", "run", "inspect", "replay", "regrade", "play", "pin", "schema", "demo")


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Run a command; gives exit status, output and error text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse
            status = stop.code
        return (status, *capsys.readouterr())

    return run


def program(*arguments, **options):
    command = [sys.executable, "-m", "agent_envs.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, **options)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A results folder made by the command line."""
    folder = tmp_path_factory.mktemp("measured") / "out"
    done = program(
        *("run", ENV, "--policy", "reference", "--policy", "liar", "--policy", "noop", "--train", 3, "--out", folder)
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def out(measured, tmp_path):
    shutil.copytree(measured, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_explains_itself(cli, command):
    status, out, err = cli(*command.split(), "--help")
    assert (status, err) == (0, "")
    assert "usage: agenteval" in out
    assert len(max(out.splitlines(), key=len)) <= 110
    if not command:
        assert all(name in out for name in COMMANDS)


def test_environments_and_tasks_are_listed(cli):
    status, out, err = cli("list")
    assert (status, err) == (0, "")
    assert ENV in out
    status, out, err = cli("list", ENV)
    assert (status, err) == (0, "")
    assert len(re.findall(r"^\W*refund/", out, re.MULTILINE)) >= 40


def test_a_task_is_shown_as_a_policy_sees_it(cli):
    """Law 6."""
    status, out, _ = cli("show", "refund/train-1")
    assert status == 0
    public, _ = json.JSONDecoder().raw_decode(out)
    assert set(public) == {"task_id", "task_revision", "user_request", "available_tools", "limits"}
    assert all(f"\n{tool}: " in out for tool in public["available_tools"])
    status, out, _ = cli("show", "refund/train-1", "--full")
    assert status == 0
    assert json.loads(out)["outcome"]


@pytest.mark.parametrize(
    "noun", ["AgentTask", "TaskReferences", "SystemSpec", "Manifest", "Evidence", "Verdict", "AgentRun"]
)
def test_schemas_are_printed(cli, noun):
    status, out, err = cli("schema", noun)
    assert (status, err) == (0, "")
    assert json.loads(out)["title"] == noun


def test_the_pins_are_those_of_the_tasks(cli):
    """Law 4."""
    status, out, _ = cli("pin", ENV, "--check")
    assert status == 0, out
    assert "0 pins differ: none" in out


def test_a_pin_that_differs_is_told(cli, monkeypatch):
    from agent_envs.envs.refund.env import SUITE

    task = SUITE.eval_ids[0]
    monkeypatch.setitem(SUITE.pins, task, {**SUITE.pins[task], "fixture_digest": "0" * 64})
    before = (SUITE.folder / "tasks" / "pins.json").read_bytes()
    status, out, _ = cli("pin", ENV, "--check")
    assert status == 1
    assert f"1 pins differ: {task}" in out
    assert (SUITE.folder / "tasks" / "pins.json").read_bytes() == before


def test_running_twice_adds_nothing(cli, tmp_path):
    """B134: the second run exits 0 and does nothing; more attempts top up."""
    call = ("run", ENV, "--policy", "noop", "--train", 3, "--out", tmp_path / "o")
    assert cli(*call)[0] == 0
    before = (tmp_path / "o" / "runs.jsonl").read_bytes()
    status, out, _ = cli(*call)
    assert status == 0
    assert (tmp_path / "o" / "runs.jsonl").read_bytes() == before
    assert cli(*call, "--attempts", 2)[0] == 0
    assert (tmp_path / "o" / "runs.jsonl").read_bytes().startswith(before)
    assert len(Results(tmp_path / "o").read()) == 6
    assert re.search(r"noop\s+3\s+0\s+0\.000", out)


def test_a_policy_named_twice_is_counted_once(cli, tmp_path):
    """B133."""
    status, out, _ = cli("run", ENV, "--policy", "noop", "--policy", "noop", "--train", 2, "--out", tmp_path / "o")
    assert status == 0
    assert re.search(r"noop\s+2\s+0\s+0\.000", out)


def test_limits_of_the_command_make_other_runs(cli, tmp_path):
    """B138."""
    call = ("run", ENV, "--policy", "random", "--tasks", "refund/train-1", "--out", tmp_path / "o")
    assert cli(*call, "--steps", 2)[0] == 0
    assert cli(*call, "--steps", 3)[0] == 0
    assert [run.limits.steps for run in Results(tmp_path / "o").read()] == [2, 3]


def test_ones_own_policy_is_run_from_a_file(cli, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def act(observation, info):\n    return {'tool': 'finish', 'arguments': {'outcome': 'completed'}}\n"
    )
    status, out, _ = cli("run", ENV, "--policy", "mine.py:act", "--train", 2, "--out", "o")
    assert status == 0
    assert re.search(r"act\s+2\s+0\s+0\.000\s+2\s", out)  # two false claims


def test_two_policies_of_one_name_are_not_mixed(cli, tmp_path):
    """B138: their results stand in rows of their own."""
    for name, outcome in (("a", "completed"), ("b", "unable")):
        (tmp_path / f"{name}.py").write_text(
            f"def act(observation, info):\n    return {{'tool': 'finish', 'arguments': {{'outcome': '{outcome}'}}}}\n"
        )
    status, out, _ = cli("run", ENV, "--policy", "a.py:act", "--policy", "b.py:act", "--train", 2, "--out", "o")
    assert status == 0
    assert len(re.findall(r"act [0-9a-f]{8}\s+2\s+0\s+0\.000", out)) == 2


def test_what_an_agent_says_is_shown_and_never_obeyed(cli, tmp_path):
    """B121: markup, escapes and surrogates, in actions, names and errors."""
    (tmp_path / "hostile.py").write_text(
        "class Hostile:\n"
        "    name = '[/red][bold]x\\x1b[2J\\ud835'\n"
        "    def act(self, observation, info):\n"
        "        if info['step'] == 0: return {'tool': '[/a]\\x1b[2J\\ud835', 'arguments': {'[/b]\\x1b': '\\ud835'}}\n"
        "        if info['step'] == 1: return '[/c]\\x1b[31m\\u202e\\ud835'\n"
        "        raise ValueError('[/red] :smile: \\x1b[31m \\ud835 \\u202e')\n"
    )
    status, shown, _ = cli("run", ENV, "--policy", "hostile.py:Hostile", "--train", 1, "--out", "o")
    assert status == 0
    run = Results(tmp_path / "o").read()[0]
    status, story, err = cli("inspect", run.run_id, "--out", "o")
    assert (status, err) == (0, "")
    for text in (shown, story):
        assert not set(text) & {"\x1b", "\u202e", "\ud835", "\x00"}
    assert "[/red] :smile:" in story
    assert "[/red][bold]x" in shown
    assert cli("replay", run.run_id, "--out", "o")[0] == 0
    assert cli("regrade", "o")[0] == 0


def test_a_run_is_told_as_a_story(cli, out):
    status, text, err = cli("inspect", "train-0.reference", "--out", out)
    assert (status, err) == (0, "")
    for word in ("send_message", "finish", "net changes of state", "end: finished"):
        assert word in text
    status, text, _ = cli("inspect", "train-0.liar", "--out", out)
    assert status == 0
    assert "the agent declared the request completed; the state says otherwise" in text
    assert "missing: " in text


def test_a_run_is_replayed(cli, out):
    """Law 12."""
    status, text, err = cli("replay", "train-0.reference", "--out", out)
    assert (status, err) == (0, "")
    assert "the same" in text
    assert Results(out).read()[0].log_digest[:16] in text


def test_a_replay_that_differs_names_the_first_entry(cli, out, monkeypatch):
    from agent_envs.envs.refund.env import RefundEnv

    tool = RefundEnv.tools[0]
    monkeypatch.setattr(tool, "function", lambda world, **arguments: {"other": "answer"})
    run = next(run for run in Results(out).read() if run.policy == "reference")
    used = [entry["tool"] for entry in Results(out).evidence(run).events]
    assert tool.name in used
    status, text, _ = cli("replay", run.run_id, "--out", out)
    assert status == 1
    assert f"entry {used.index(tool.name)} differs" in text
    assert '"other": "answer"' in text


def test_tampered_evidence_is_told_in_a_line(cli, out):
    run = next(run for run in Results(out).read() if run.run_id.startswith("train-0.reference"))
    path = out / run.evidence / "log.jsonl.zst"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for command in ("replay", "inspect"):
        status, text, err = cli(command, run.run_id, "--out", out)
        assert (status, text) == (2, "")
        assert err.startswith("agenteval: ") and err.count("\n") == 1
        assert run.evidence in err
    status, text, _ = cli("regrade", out)
    assert status == 1
    assert "9 runs judged again, 1 differ" in text
    assert run.run_id in text


def test_regrading_agrees_and_writes_nothing(cli, out):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    status, text, err = cli("regrade", out)
    assert (status, err) == (0, "")
    assert "9 runs judged again, 0 differ" in text
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_torn_record_is_told_as_a_warning(cli, out):
    """B132."""
    path = out / "runs.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    status, text, err = cli("regrade", out)
    assert status == 0
    assert "8 runs judged again" in text
    assert err.startswith("agenteval: warning: ") and "torn" in err
    assert err.count("\n") == 1


def test_a_person_plays_through_standard_input(tmp_path):
    done = program(
        *("play", ENV, "--task", "refund/train-1", "--out", tmp_path / "o"),
        input="?\nread_policy\nfinish outcome=unable\n",
    )
    assert (done.returncode, done.stderr) == (0, "")
    run = Results(tmp_path / "o").read()[0]
    assert run.policy == "human"
    assert run.usage.calls == 2
    assert run.terminal.kind == "finished"
    assert f"kept as {run.run_id}" in done.stdout
    done = program("play", ENV, "--out", tmp_path / "o", input="")
    assert done.returncode == 0
    assert [run.terminal.kind for run in Results(tmp_path / "o").read()] == ["finished", "stopped"]


WRONG = {
    "environment": ("list", "agenteval/nothing-v1"),
    "environment of others": ("list", "CartPole-v1"),
    "environment to import": ("list", "nothing:agenteval/refund-v1"),
    "environment by odd name": ("list", "\ud835"),
    "version": ("list", "agenteval/refund-v0"),
    "task": ("show", "refund/nothing"),
    "family": ("show", "nothing/one"),
    "task without family": ("show", "one"),
    "empty task": ("show", ""),
    "path as a task": ("show", "refund/../../../etc/passwd"),
    "policy": ("run", ENV, "--policy", "nothing", "--train", "1", "--out", "o"),
    "policy file": ("run", ENV, "--policy", "nothing.py:act", "--train", "1", "--out", "o"),
    "policy attribute": ("run", ENV, "--policy", "json:nothing", "--train", "1", "--out", "o"),
    "pattern": ("run", ENV, "--policy", "noop", "--tasks", "nothing*", "--out", "o"),
    "results that are a file": ("run", ENV, "--policy", "noop", "--train", "1", "--out", "file"),
    "results under a file": ("run", ENV, "--policy", "noop", "--train", "1", "--out", "file/o"),
    "run": ("inspect", "nothing", "--out", "o"),
    "run to replay": ("replay", "nothing", "--out", "file"),
    "empty results": ("regrade", "o"),
    "results in a file": ("regrade", "file"),
    "task to play": ("play", ENV, "--task", "refund/nothing"),
    "environment to play": ("play", "nothing"),
    "environment to pin": ("pin", "nothing", "--check"),
    "no environment in records": ("inspect", "stray", "--out", "stray"),
}


def test_the_help_names_a_task_that_is_there(cli):
    text = cli("show", "--help")[1]
    example = text.split("such as ")[1].split()[0]
    assert cli("show", example)[0] == 0


def test_a_task_without_its_family_is_told_how_to_write_it(cli):
    assert "FAMILY/NAME" in cli("show", "tea-set-for-two")[2]


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_one_line(cli, tmp_path, out, arguments):
    """Never a traceback, and nothing is written."""
    (tmp_path / "file").write_text("not a folder")
    shutil.copytree(out, tmp_path / "stray")
    record = json.loads((out / "runs.jsonl").read_bytes().splitlines()[0])
    record |= {"env_id": "agenteval/gone-v1", "run_id": "stray"}
    (tmp_path / "stray" / "runs.jsonl").write_text(json.dumps(record) + "\n")
    shutil.rmtree(out)
    before = sorted(tmp_path.rglob("*"))
    status, text, err = cli(*arguments)
    assert (status, text) == (2, "")
    *progress, line = err.splitlines()
    assert line.startswith("agenteval: ")
    assert not progress or (arguments[0] == "run" and len(progress) == 1)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing",),
        ("run", ENV),
        ("run", ENV, "--policy", "noop"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--attempts", "0"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--attempts", "-1"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--seed", "1.5"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--seed", str(2**63)),
        ("run", ENV, "--policy", "noop", "--out", "o", "--seed", "\u0663"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--train", "9" * 5000),
        ("run", ENV, "--policy", "noop", "--out", "o", "--steps", "0"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--wall-seconds", "nan"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--wall-seconds", "inf"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--cost", "-1"),
        ("run", ENV, "--policy", "noop", "--out", "o", "--tasks"),
        ("schema", "Nothing"),
        ("regrade",),
    ],
    ids=lambda arguments: " ".join(arguments)[:50] or "nothing",
)
def test_a_wrong_call_is_explained(cli, arguments):
    """B063: no policy is chosen by default."""
    status, text, err = cli(*arguments)
    assert (status, text) == (2, "")
    assert "usage: agenteval" in err
    assert "Traceback" not in err


def test_control_c_keeps_what_is_finished(tmp_path):
    """B131, B208: exit 130 within seconds, no traceback, and the same command goes on."""
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "def act(observation, info):\n"
        "    time.sleep(0.05)\n"
        "    return {'tool': 'finish', 'arguments': {'outcome': 'unable'}}\n"
    )
    call = ("run", ENV, "--policy", tmp_path / "slow.py:act", "--train", "30", "--out", tmp_path / "o")
    command = [sys.executable, "-m", "agent_envs.cli", *map(str, call)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    results = Results(tmp_path / "o")
    deadline = time.monotonic() + 60
    while len(results.read()) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGINT)
    asked = time.monotonic()
    _, err = first.communicate(timeout=30)
    assert first.returncode == 130
    assert time.monotonic() - asked < 10
    assert "Traceback" not in err
    assert "run the same command again" in err
    kept = results.read()
    assert 5 <= len(kept) < 30
    assert program(*call).returncode == 0
    assert len(results.read()) == 30
    assert results.read()[: len(kept)] == kept


@pytest.mark.parametrize("arguments", [("schema", "AgentTask"), ("show", "refund/train-1", "--full"), ("list", ENV)])
def test_a_reader_that_goes_away_is_no_error(arguments):
    command = [sys.executable, "-m", "agent_envs.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), err) == (0, b"")


def test_a_terminal_without_unicode_is_served(out):
    done = program("inspect", "train-0.liar", "--out", out, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def test_the_program_leaves_the_interpreter_as_it_was(cli):
    import warnings

    before = warnings.showwarning
    cli("schema", "Verdict")
    assert warnings.showwarning is before
