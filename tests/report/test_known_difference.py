"""The whole way on two systems whose true difference is known: played, counted, compared."""

from pathlib import Path

import pytest

from agent_envs.campaign.campaign import run_campaign
from agent_envs.campaign.engines import make_engine
from agent_envs.campaign.lock import make_lock, write_lock
from agent_envs.campaign.manifest import read_manifest
from agent_envs.report.export import write_report
from agent_envs.report.verify import verify

ROOT = Path(__file__).parents[2]
TRUE = -0.4
"""The rulebook solves every generated task; the other clerk works in 60 % of its attempts, drawn from their seeds."""


def test_a_difference_that_is_there_by_construction_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    manifest, fault = read_manifest(Path("examples", "refund-known-difference.yaml"))
    write_lock(make_lock(manifest, fault), tmp_path)
    assert run_campaign(tmp_path, make_engine("local", 2, "")).state == "finished"
    analysis = write_report(tmp_path)
    always, sometimes = analysis.systems
    assert (always.successes, always.valid, sometimes.valid) == (120, 120, 120)
    low, high = sometimes.headline.estimate.low, sometimes.headline.estimate.high
    assert low is not None and high is not None and low < 1 + TRUE < high
    (pair,) = analysis.comparisons
    assert (pair.a, pair.b, pair.differs) == ("always", "sometimes", ("policy",))
    assert pair.difference.low is not None and pair.difference.high is not None and pair.p_holm is not None
    assert pair.difference.low < TRUE < pair.difference.high < 0
    assert pair.p_holm < 0.001
    assert verify(tmp_path).ok
