"""Training tasks: valid for every seed, the same everywhere, solvable, and right by the policy's own arithmetic."""

import datetime as dt
import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_envs.contract import AgentTask, Call, digest
from agent_envs.contract.outcome import ChangesAssertion
from agent_envs.envs.refund.env import make
from agent_envs.envs.refund.fixture import fixture
from agent_envs.envs.refund.generator import KINDS, generate_references, generate_task, kind_of, seed_for
from agent_envs.envs.refund.rules import instant, window_state
from agent_envs.envs.refund.tools import TOOLS
from agent_envs.state import Database

SEEDS = range(300)
Row = dict[str, Any]


def rows(task: AgentTask, table: str) -> list[Row]:
    return [patch.insert or {} for patch in task.initial_state.patch if patch.table == table]


def expected_tables(task: AgentTask) -> Counter[str]:
    assertion = task.outcome[0]
    assert isinstance(assertion, ChangesAssertion)
    groups = [assertion.expect, *assertion.either]
    return Counter(item.table for group in groups for item in group)


def test_every_seed_gives_a_valid_task() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        task, references = generate_task(seed), generate_references(seed)
        assert task.task_id == references.task_id == f"refund/train-{seed}"
        assert (task.source, task.slice_labels["split"]) == ("generated", "train")
        assert task.slice_labels["kind"] == kind_of(seed)
        assert {check.fails for check in references.wrong} <= set(task.check_names)
        seen[kind_of(seed)] += 1
    assert set(seen) == set(KINDS)


@given(st.integers(min_value=0, max_value=2**63 - 1))
@settings(max_examples=40)
def test_any_seed(seed: int) -> None:
    assert generate_task(seed).task_id == f"refund/train-{seed}"


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(ValueError, match=f"seed {seed} is not between"):
        generate_task(seed)


def test_different_seeds_differ() -> None:
    starts = {json.dumps(generate_task(seed).initial_state.as_json(), sort_keys=True) for seed in SEEDS}
    assert len(starts) == len(SEEDS)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_same_task_in_another_process(hash_seed: str) -> None:
    """B206: neither the hash seed nor global random state reaches a task."""
    program = (
        "import random; random.seed(99)\n"
        "from agent_envs.envs.refund.generator import generate_references, generate_task\n"
        "for seed in (3, 0, 2**63 - 1, *range(20, 60)):\n"
        "    print(generate_task(seed).digest, generate_references(seed).digest)\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    here = [
        f"{generate_task(seed).digest} {generate_references(seed).digest}" for seed in (3, 0, 2**63 - 1, *range(20, 60))
    ]
    assert result.stdout.split("\n")[:-1] == here


def test_content_is_pinned() -> None:
    """A seed's start and solution never change by accident: training runs must be repeatable."""
    found = []
    for seed in (0, 1, 2**62):
        task, references = generate_task(seed), generate_references(seed)
        start = [[patch.table, patch.insert] for patch in task.initial_state.patch]
        calls = [[call.tool, call.arguments] for call in references.references[0].calls]
        found.append(digest([task.initial_state.clock, start, calls])[:16])
    assert found == ["68d1e12b7546532a", "dc33466d6b0d5c69", "1a95a160cf9ecda2"]


def test_kinds_and_difficulty_can_be_chosen() -> None:
    for seed in range(30):
        task = generate_task(seed, kinds=["split", "credit"])
        assert task.slice_labels["kind"] in ("split", "credit")
        found = int(task.task_id.rpartition("-")[2])
        # What is drawn so can be asked for by its own seed, as its id says.
        assert generate_task(found) == task
        assert generate_references(seed, kinds=["split", "credit"]).task_id == task.task_id
        assert generate_task(seed, difficulty="easy").slice_labels["difficulty"] == "easy"
    assert seed_for(7, kinds=[kind_of(7)]) == 7


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="'fulll'"):
        generate_task(1, kinds=["fulll"])
    with pytest.raises(ValueError, match="leave one of them out"):
        generate_task(1, kinds=["full"], difficulty="hard")


def test_start_can_be_restored() -> None:
    """Ids never meet the fixture's, and every row fits its table."""
    database = Database(fixture())
    database.restore()
    bare = database.digest()
    for seed in range(100):
        database.restore(generate_task(seed).initial_state.patch)
        assert database.changes() == []  # the patch is part of the start
        assert database.digest() != bare
    assert database.digest() == database.recompute()
    database.close()


WINDOWS = {
    "full": "refundable",
    "partial": "refundable",
    "fee": "refundable",
    "defective": "refundable",
    "approval": "refundable",
    "final_sale": "refundable",
    "duplicate": "refundable",
    "hold": "refundable",
    "credit": "credit_only",
    "late": "closed",
}
CONDITIONS = {"fee": "opened", "defective": "defective"}


@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_are_as_the_policy_counts_them(kind: str) -> None:
    """Also half a day later: no talk is long enough to leave the window."""
    for seed in range(12):
        task = generate_task(seed, kinds=[kind])
        (customer,), (order, *_) = rows(task, "customers"), rows(task, "orders")
        for hours in (0, 12):
            now = instant(task.initial_state.clock) + dt.timedelta(hours=hours)
            for line in rows(task, "order_lines"):
                state = window_state(
                    now,
                    delivered=instant(order["delivered_at"]),
                    placed=instant(order["placed_at"]),
                    category=line["category"],
                    tier=customer["tier"],
                    condition=CONDITIONS.get(kind, "unopened"),  # type: ignore[arg-type]
                )
                assert state == WINDOWS[kind]


MOVES = {
    "refunds": {"full", "partial", "defective", "fee", "split", "foreign", "lost", "namesake", "approval"}
    | {"change_of_mind", "two_requests"},
    "store_credits": {"credit"},
    "orders": {"cancel"},
    "authorisations": {"approval", "denied"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_what_they_say(kind: str) -> None:
    for seed in range(8):
        task = generate_task(seed, kinds=[kind])
        tables = expected_tables(task)
        for table, kinds in MOVES.items():
            if table != "authorisations" or KINDS[kind].difficulty == "easy":
                assert (tables[table] > 0) == (kind in kinds), table
        assert tables["authorisations"] > 0 or kind not in MOVES["authorisations"]
    names = set(task.check_names)
    assert ("hold" in names) == (kind == "hold")
    assert "approval" in names or kind != "approval"
    payments = rows(task, "payments")
    assert (len(payments) > len(rows(task, "orders"))) == (kind == "split")
    assert any(payment["rate"] != {"$decimal": "1"} for payment in payments) == (kind == "foreign")
    assert (task.user is not None and task.user.turn is not None) == (kind == "change_of_mind")
    assert (task.user is not None and len(task.user.wishes) > 1) == (kind == "two_requests")


def test_names_of_tools() -> None:
    tools = {tool.name for tool in TOOLS}
    for seed in SEEDS:
        references = generate_references(seed)
        assert {call.tool for run in references.references for call in run.calls} <= tools


def test_the_user_is_not_told_the_right_amount() -> None:
    """The customer takes any amount: declining wrong ones would hand the agent the answer."""
    for seed in range(60):
        task = generate_task(seed)
        assert task.user is not None
        for wish in task.user.wishes:
            for terms in wish.accepts:
                amount = terms.proposal.get("amount")
                assert amount is None or amount.model_dump() == {"any": True}


def play(env: Any, calls: tuple[Call, ...]) -> tuple[float, dict[str, str], list[str]]:
    """Reward, status by check, and errors of a scripted run."""
    env.reset(seed=5)
    saved: dict[str, Any] = {}
    errors, reward = [], 0.0
    for call in calls:
        arguments = {
            name: saved[value[1:]] if isinstance(value, str) and value.startswith("$") else value
            for name, value in call.arguments.items()
        }
        observation, reward, terminated, truncated, _ = env.step({"tool": call.tool, "arguments": arguments})
        answer = json.loads(observation["text"])
        if answer["status"] != "ok":
            errors.append(f"{call.tool}: {answer}")
        saved |= {name: answer["result"][path] for name, path in call.save.items()}
        if terminated or truncated:
            break
    verdict = env.get_wrapper_attr("run").verdict
    checks = (
        {} if verdict is None else {item.name: str(item.status) for item in (*verdict.assertions, *verdict.constraints)}
    )
    return reward, checks, errors


@pytest.mark.parametrize("kind", KINDS)
def test_references_pass_and_wrong_runs_fail(kind: str) -> None:
    for seed in range(3):
        references = generate_references(seed, kinds=[kind])
        env = make(task=references.task_id, split="train")
        reward, checks, errors = play(env, references.references[0].calls)
        assert (reward, errors) == (1.0, []), checks
        assert set(checks.values()) == {"pass"}
        assert {"unverified", "unconfirmed"} <= {wrong.name for wrong in references.wrong} or "paid" in [
            wrong.name for wrong in references.wrong
        ]
        for wrong in references.wrong:
            if wrong.calls:
                reward, checks, errors = play(env, wrong.calls)
                assert (reward, errors) == (0.0, []), wrong.name
                assert checks[wrong.fails] == "fail", wrong.name
        env.close()
