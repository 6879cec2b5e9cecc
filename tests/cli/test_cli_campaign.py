"""The campaign's commands, from the manifest to the release check."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from agent_envs.campaign.results import Results
from agent_envs.cli import main

MANIFEST = {
    "name": "tiny",
    "decision": "Whether the rules are kept.",
    "population": "Generated refund calls.",
    "systems": [{"name": "book", "policy": "rulebook"}, {"name": "mine", "policy": "mine.py:act"}],
    "suite": [{"env": "agenteval/refund-v1", "train": 2}],
    "attempts": 2,
    "smoke": ["refund/train-0"],
    "canaries": {
        "known_pass": {"policy": "reference", "task": "refund/train-1"},
        "known_fail": {"policy": "noop", "task": "refund/train-1"},
    },
}
MINE = """
import time


def act(observation, info):
    time.sleep(0.0)
    return {"tool": "finish", "arguments": {"outcome": "refused", "summary": "No."}}
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A finished campaign; copy it before changing it."""
    place = tmp_path_factory.mktemp("campaign")
    (place / "mine.py").write_text(MINE)
    (place / "m.yaml").write_text(yaml.safe_dump(MANIFEST))
    before = os.getcwd()
    os.chdir(place)
    try:
        assert main(["campaign", "run", "m.yaml", "--out", "c"]) == 0
    finally:
        os.chdir(before)
    return place


@pytest.fixture
def cli(capsys, monkeypatch, campaign):
    """Runs a command beside the finished campaign; gives exit status, output and errors."""
    monkeypatch.chdir(campaign)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return run


def test_check_says_what_would_run_and_writes_nothing(cli, campaign):
    before = sorted(campaign.rglob("*"))
    status, out, _ = cli("campaign", "check", "m.yaml")
    assert status == 0
    assert "2 tasks x 2 attempts x 2 systems = 8 attempts; 2 smoke runs and 2 canaries first" in out
    assert sorted(campaign.rglob("*")) == before


def test_check_names_file_line_and_field(cli, campaign):
    (campaign / "bad.yaml").write_text((campaign / "m.yaml").read_text().replace("attempts: 2", "attempts: none"))
    status, _, err = cli("campaign", "check", "bad.yaml")
    assert status == 2
    assert "bad.yaml, line 1, attempts" in err


def test_check_flags_oracles(cli, campaign):
    data = MANIFEST | {"systems": [{"name": "gold", "policy": "reference"}]}
    (campaign / "gold.yaml").write_text(yaml.safe_dump(data))
    assert "oracle: shown, never ranked" in cli("campaign", "check", "gold.yaml")[1]


def test_run_wrote_every_file(campaign):
    names = {path.name for path in (campaign / "c").iterdir()}
    assert names >= {"campaign.lock.json", "runs.jsonl", "attempts.jsonl", "health.jsonl", "evidence", "report"}
    assert len(Results(campaign / "c").read()) == 8


def test_running_again_does_nothing(cli, campaign):
    before = (campaign / "c" / "runs.jsonl").read_bytes()
    status, out, _ = cli("campaign", "run", "m.yaml", "--out", "c")
    assert (status, out.splitlines()[-1]) == (0, f"written: {Path('c', 'report')}")
    assert (campaign / "c" / "runs.jsonl").read_bytes() == before


def test_an_edited_manifest_is_refused_by_the_fields_name(cli, campaign):
    (campaign / "other.yaml").write_text(yaml.safe_dump(MANIFEST | {"attempts": 5}))
    status, _, err = cli("campaign", "run", "other.yaml", "--out", "c")
    assert status == 2
    assert "attempts: locked 2, manifest says 5; start a new campaign in another folder" in err


def test_status(cli):
    status, out, _ = cli("campaign", "status", "c")
    assert status == 0
    assert out.startswith("finished\nplanned 8, done 8 (")
    assert "cost unknown (no cost known; 12 of 12 tries reported none)" in out
    found = json.loads(cli("campaign", "status", "c", "--json")[1])
    assert (found["state"], found["planned"], found["remaining"], found["eta"]) == ("finished", 8, 0, 0.0)


def test_report_and_verify(cli, campaign, tmp_path):
    status, out, _ = cli("campaign", "report", "c", "--parquet", tmp_path / "runs.parquet")
    assert status == 0
    assert "8 rows" in out
    status, out, _ = cli("campaign", "report", "c", "--verify")
    assert (status, out.splitlines()[-1]) == (0, "everything is as the records say")


def test_verify_sees_a_report_that_was_edited(cli, campaign):
    path = campaign / "c" / "report" / "report.json"
    before = path.read_bytes()
    path.write_bytes(before.replace(b"tiny", b"TINY"))
    try:
        status, out, _ = cli("campaign", "report", "c", "--verify")
    finally:
        path.write_bytes(before)
    assert status == 1
    assert "differs: " in out and "report.json" in out


def test_compare(cli, campaign):
    (campaign / "two.yaml").write_text(yaml.safe_dump(MANIFEST | {"name": "two", "seed": 9}))
    status, _, err = cli("campaign", "run", "two.yaml", "--out", "c2")
    assert status == 0, err
    status, out, _ = cli("campaign", "compare", "c", "c2")
    assert status == 0
    assert "2 tasks are the same in all, 0 left out" in out
    assert cli("campaign", "compare", "c")[0] == 2


def test_release_check_says_what_is_missing(cli):
    status, out, _ = cli("campaign", "release-check", "c")
    assert status == 1
    assert "NOT MET" in out and "of 9 promises met" in out
    promises = json.loads(cli("campaign", "release-check", "c", "--json")[1])["promises"]
    assert [promise["number"] for promise in promises] == list(range(1, 10))


def test_plan_by_given_variances(cli):
    status, out, _ = cli(
        "campaign", "plan", "--between", 0.1, "--within", 0.1, "--difference", 0.2, "--correlation", 0.5
    )
    assert status == 0
    assert "tasks needed at 4 attempts: " in out
    assert cli("campaign", "plan")[0] == 2
    assert cli("campaign", "plan", "--between", -1, "--within", 0.1)[0] == 2


def test_plan_refuses_what_is_no_variance_of_a_rate(cli):
    for text in ("0.26", "-0.01", "nan", "much"):
        status, _, err = cli("campaign", "plan", "--between", text, "--within", "0.1")
        assert status == 2 and text in err


def test_plan_by_a_pilot(cli):
    status, out, _ = cli("campaign", "plan", "--pilot", "c", "--within", 0.2)
    assert status == 0
    assert "variance between tasks, within a task: 0.0000, 0.2000" in out


def test_resume_refuses_a_changed_policy_and_says_what_to_do(cli, campaign):
    path = campaign / "mine.py"
    path.write_text(MINE + "\n# changed\n")
    try:
        status, out, err = cli("campaign", "resume", "c2")
        assert status == 2
        assert "rerun        4  mine: policy.source" in out
        assert "reuse        4" in out
        assert "--accept-changes" in err
        status, out, _ = cli("campaign", "resume", "c2", "--accept-changes")
        assert status == 0
        assert "reuse: 4 records, regrade: 0 records, rerun: 4 records" in out
        assert len(Results(campaign / "c2").read()) == 8
        assert cli("campaign", "report", "c2", "--verify")[0] == 0
    finally:
        path.write_text(MINE)


def test_a_folder_that_is_no_campaign(cli, tmp_path):
    for command in ("status", "resume", "report", "release-check"):
        status, _, err = cli("campaign", command, tmp_path)
        assert (status, len(err.strip().splitlines())) == (2, 1)
        assert "no campaign is locked here" in err


def test_spec_show_and_diff(cli, tmp_path):
    for name in ("rulebook", "noop"):
        assert cli("spec", "show", "agenteval/refund-v1", "--policy", name, "--out", tmp_path / name)[0] == 0
    assert json.loads(cli("spec", "show", "agenteval/refund-v1", "--policy", "noop")[1])["policy"]["name"] == "noop"
    status, out, _ = cli("spec", "diff", tmp_path / "rulebook", tmp_path / "noop")
    assert status == 1
    assert 'policy.name: "rulebook" -> "noop"' in out
    assert cli("spec", "diff", tmp_path / "noop", tmp_path / "noop")[:2] == (0, "the same system\n")
    assert cli("spec", "diff", "c:book", tmp_path / "rulebook")[0] == 0


def test_a_sealed_suite_from_lock_to_campaign(cli, campaign, monkeypatch):
    monkeypatch.setenv("AGENTEVAL_SUITE_PASSPHRASE", "a long enough passphrase for tests")
    status, out, _ = cli("suite", "lock", "--draw", 2, "--out", "s.sealed", "--by", "somebody")
    assert status == 0
    assert "2 tasks sealed in s.sealed" in out
    status, out, _ = cli("suite", "open", "s.sealed", "--manifest", "m.yaml", "--campaign", "confirm")
    assert status == 0
    assert "opening 1 of s.sealed" in out
    status, _, err = cli("campaign", "resume", "confirm")
    assert status == 0, err
    status, out, _ = cli("suite", "status", "s.sealed")
    assert status == 0
    assert "openings: 1" in out


def test_regression_cases_from_add_to_check(cli, campaign):
    run = next(run for run in Results(campaign / "c").read() if run.outcome_class == "agent_failure")
    said = ("--confirmed-by", "somebody", "--reason", "It refused without looking.")
    status, out, err = cli("regression", "add", run.run_id, "--results", "c", "--out", "cases", *said)
    assert (status, err) == (0, "")
    assert out.startswith("kept: cases")
    assert cli("regression", "add", run.run_id, "--results", "c", "--out", "cases", "--as", "task", *said)[0] == 0
    status, out, _ = cli("regression", "check", "cases")
    assert status == 0
    assert len(out.splitlines()) == 2
    assert cli("regression", "check", "nowhere")[0] == 2


def test_a_policy_in_a_process_of_its_own(cli, campaign):
    systems = [{"name": "apart", "policy": "rulebook", "isolation": "process"}]
    (campaign / "apart.yaml").write_text(yaml.safe_dump(MANIFEST | {"systems": systems}))
    status, out, err = cli("campaign", "run", "apart.yaml", "--out", "apart")
    assert status == 0, out + err
    assert {run.outcome_class.value for run in Results(campaign / "apart").read()} == {"success"}


def test_a_killed_runner_is_told_apart_from_a_campaign_that_has_not_begun(cli, campaign, tmp_path):
    """B131."""
    shutil.copytree(campaign / "c", tmp_path / "k")
    lines = (tmp_path / "k" / "health.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "k" / "health.jsonl").write_bytes(b"".join(line for line in lines if b'"kind":"stop"' not in line))
    for name, cut in (("runs.jsonl", 3), ("attempts.jsonl", 3)):
        kept = (tmp_path / "k" / name).read_bytes().splitlines(keepends=True)[:-cut]
        (tmp_path / "k" / name).write_bytes(b"".join(kept))
    status, out, _ = cli("campaign", "status", tmp_path / "k")
    assert status == 0
    assert "stopped: the runner was killed; 'agenteval campaign resume' goes on" in " ".join(out.split())
    assert "planned 8, done 5" in out


def test_ctrl_c_ends_with_130_and_says_how_to_go_on(campaign, tmp_path):
    (tmp_path / "mine.py").write_text(MINE.replace("sleep(0.0)", "sleep(0.2)"))
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(MANIFEST | {"attempts": 50}))
    command = [sys.executable, "-m", "agent_envs.cli", "campaign", "run", "m.yaml", "--out", "c"]
    root = str(campaign.__class__(__file__).parents[2])
    runner = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    path = tmp_path / "c" / "runs.jsonl"
    until = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    runner.send_signal(signal.SIGINT)
    out, err = runner.communicate(timeout=60)
    assert runner.returncode == 130, out + err
    assert "go on with: agenteval campaign resume c" in out
    assert "Traceback" not in err
    assert 0 < len(Results(tmp_path / "c").read()) < 200
