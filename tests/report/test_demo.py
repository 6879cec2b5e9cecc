"""What `agenteval demo` and `agenteval run` print: read as a person would, at the width of a plain terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import pytest
from rich.console import Console

import agent_envs  # noqa: F401  (registers the ids)
from agent_envs.baselines import BASELINES, as_policy
from agent_envs.campaign.runner import plan, run_attempts
from agent_envs.contract import AgentRun
from agent_envs.report.demo import print_demo
from agent_envs.report.tables import print_results

TASKS = ("refund/allotment-saturday", "refund/boots-then-a-kettle", "refund/books-for-the-ferry")


def mistaken(observation, info):
    raise LookupError("no such\x1b[31m key")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("a folder whose name is long enough that a line with it is folded") / "demo-results"


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[AgentRun]:
    policies = [BASELINES[name]() for name in ("reference", "rulebook", "hasty", "noop", "liar")]
    runs: list[AgentRun] = []
    with gymnasium.make("agenteval/refund-v1") as env:
        for policy in (*policies, as_policy(mistaken)):
            runs += run_attempts(env, policy, list(plan(env, policy, TASKS, 1, 0)), folder)
    return runs


def printed(show, runs: Sequence[AgentRun], *arguments: object) -> str:
    out = io.StringIO()
    show(Console(file=out, width=80, highlight=False, markup=False, emoji=False), runs, *arguments)
    return out.getvalue()


def test_the_demo_shows_one_of_each_kind(runs, folder):
    """B008, B063: what the cheap policies earn is printed, and the oracle is labelled."""
    text = printed(print_demo, runs, folder)
    shown = [line for line in text.splitlines() if " on refund/" in line]
    assert [line.split()[0] for line in shown] == ["rulebook", "liar", "hasty", "rulebook"]
    assert "reference *" in text and "never ranked" in text
    found = {run.run_id: run for run in runs}
    stories = [line.split()[4] for line in text.splitlines() if line.startswith("whole story: ")]
    success, lie, breach, failure = (found[run_id] for run_id in stories)
    assert success.verdict.Y == "pass" and not success.oracle
    assert lie.false_claim
    assert breach.broke_rule
    assert failure.verdict.Y == "fail" and not failure.false_claim  # called honest, so it must be


def test_commands_can_be_copied(runs, folder):
    lines = printed(print_demo, runs, folder).splitlines()
    assert sum(line.endswith(f" --out {folder}") for line in lines) == 4
    assert lines[-1].endswith(f"agenteval regrade {folder}")


def test_legends_are_not_folded_by_a_narrow_table(runs):
    lines = printed(print_results, [run for run in runs if run.policy == "noop"]).splitlines()
    assert any(line.startswith("+ success") and "R right, but broke a rule" in line for line in lines)
    assert not any("reference" in line for line in lines)


def test_a_policy_that_broke_down_is_told_with_its_error(runs):
    lines = printed(print_results, runs).splitlines()
    (told,) = [line for line in lines if "an error of the policy's own" in line]
    assert told.startswith("mistaken: 3 of 3 runs ")
    assert told.endswith(r"LookupError: no such\x1b[31m key")
    assert "error" not in printed(print_results, [run for run in runs if run.policy != "mistaken"])
