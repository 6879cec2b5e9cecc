"""A whole campaign on Ray: the results of the local engine, also when its runner is killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

MANIFEST: dict[str, Any] = {
    "name": "clerks",
    "decision": "Results may come from either engine if both find the same.",
    "population": "Refund calls as the generator draws them.",
    "systems": [{"name": "careful", "policy": "rulebook"}, {"name": "hasty", "policy": "hasty"}],
    "suite": [{"env": "agenteval/refund-v1", "train": 3}],
    "attempts": 2,
    "smoke": ["refund/train-0"],
    "canaries": {
        "known_pass": {"policy": "reference", "task": "refund/train-1"},
        "known_fail": {"policy": "noop", "task": "refund/train-1"},
    },
}


def agenteval(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agent_envs.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150, check=False)


def records(folder: Path) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """What a campaign found, by system, task and attempt; nothing that depends on time or place."""
    lines = (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        (run["system"], run["task_id"], run["attempt"]): (
            run["seed"],
            run["outcome_class"],
            run["log_digest"],
            run["evidence_digest"],
            run["system_spec_hash"],
        )
        for run in map(json.loads, lines)
    }


@pytest.mark.ray
@pytest.mark.timeout(400)
def test_a_campaign_killed_on_ray_and_resumed_finds_what_the_local_one_finds(tmp_path: Path) -> None:
    for name in ("local", "ray"):
        manifest = MANIFEST | {"engine": {"kind": name, "workers": 2}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    assert agenteval(tmp_path, "campaign", "run", "local.yaml", "--out", "local").returncode == 0

    command = [sys.executable, "-m", "agent_envs.cli", "campaign", "run", "ray.yaml", "--out", "ray"]
    runner = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    attempts = tmp_path / "ray" / "attempts.jsonl"
    end = time.monotonic() + 120
    while runner.poll() is None and time.monotonic() < end:
        if attempts.exists() and attempts.read_bytes().count(b"\n") >= 7:
            os.kill(runner.pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    runner.wait(30)

    resumed = agenteval(tmp_path, "campaign", "resume", "ray")
    assert resumed.returncode == 0, resumed.stderr
    found = records(tmp_path / "ray")
    assert len(found) == 12
    assert found == records(tmp_path / "local")
    verified = agenteval(tmp_path, "campaign", "report", "ray", "--verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    checked = agenteval(tmp_path, "campaign", "release-check", "ray")
    assert "8 of 9 promises met" in checked.stdout, checked.stdout
