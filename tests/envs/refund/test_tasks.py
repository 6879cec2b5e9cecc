"""Every curated task: solved by its references, failed by each wrong run for the stated reason, giving nothing away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import agent_envs  # noqa: F401 (registers the environment)
from agent_envs.baselines.cheap import Liar, Noop, RandomCalls, Refuser
from agent_envs.baselines.reference import scripted
from agent_envs.baselines.rollout import rollout
from agent_envs.contract import AgentRun, Call, ReferenceRun, Status, TaskError, WrongRun
from agent_envs.contract.outcome import lookup
from agent_envs.envs.refund.env import SUITE
from agent_envs.envs.refund.generator import KINDS

ROOT = Path(__file__).resolve().parents[3]
REQUIRED = {
    "already_refunded",
    "approval",
    "cancellation",
    "changed_midway",
    "defective",
    "fee_reduced",
    "final_sale",
    "foreign_currency",
    "fraud_hold",
    "full",
    "not_delivered",
    "out_of_window",
    "partial",
    "split_tender",
    "store_credit",
    "two_requests",
    "wrong_account",
}
TELLING = re.compile(
    r"refund|refus|cancel|credit|fraud|hold|approv|denied|deny|wrong|partial|full|fee|final|sale|window|late|defect"
    r"|broken|deliver|tender|split|currency|twice|already|stranger|account|midway|reject|void"
)
TASKS = pytest.mark.parametrize("task_id", SUITE.eval_ids)


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    env = gymnasium.make("agenteval/refund-v1", recheck=1.0)
    yield env
    env.close()


def failed(run: AgentRun) -> list[str]:
    assert run.verdict is not None
    return [check.name for check in (*run.verdict.assertions, *run.verdict.constraints) if check.status is Status.FAIL]


def main_calls(task_id: str) -> tuple[Call, ...]:
    return SUITE.references(task_id).references[0].calls


def replay(env: Any, evidence: Any, task_id: str) -> str:
    """Send the recorded calls again; head of the log's chain."""
    env.reset(seed=evidence.seed, options={"task": task_id})
    for event in evidence.events[1:]:
        env.step({"tool": event["tool"], "arguments": event["arguments"]})
    return str(env.unwrapped.episode.log.digest)


# The set of tasks -------------------------------------------------------------------------------------------------


def test_there_are_enough_tasks_of_every_kind() -> None:
    assert len(SUITE.eval_ids) >= 40
    kinds = Counter(SUITE.task(task_id).slice_labels["kind"] for task_id in SUITE.eval_ids)
    assert set(kinds) >= REQUIRED
    assert set(kinds) <= REQUIRED | set(KINDS)
    for task_id in SUITE.eval_ids:
        labels = SUITE.task(task_id).slice_labels
        assert labels["difficulty"] in ("easy", "medium", "hard") and labels["length"] in ("short", "medium", "long")


def test_ids_openings_and_customers_are_unlike_each_other() -> None:
    """B239."""
    tasks = [SUITE.task(task_id) for task_id in SUITE.eval_ids]
    assert len({task.task_id.casefold() for task in tasks}) == len(tasks)
    openings = [wish.opening for task in tasks if task.user is not None for wish in task.user.wishes]
    assert len(set(openings)) == len(openings) >= len(tasks)
    assert len({task.digest for task in tasks}) == len(tasks)


@TASKS
def test_the_id_and_the_request_are_neutral(task_id: str) -> None:
    task = SUITE.task(task_id)
    name = task_id.partition("/")[2]
    assert not TELLING.search(name), "the id tells how the task ends"
    kind = task.slice_labels["kind"].replace("_", "[ _-]")
    assert not re.search(kind, task.user_request.casefold())
    others = {re.sub(r"T\d{4}", "T", SUITE.task(other).user_request) for other in SUITE.eval_ids}
    assert len(others) == 1, "the requests differ by more than the ticket"


@TASKS
def test_there_are_pins_references_and_wrong_runs(task_id: str) -> None:
    """B231, B239; law 4."""
    task, runs = SUITE.task(task_id), SUITE.references(task_id)
    assert set(task.reset_check) >= {"database", "clock", "rate_limits", "user"} and task.initial_state.fixture_digest
    assert len(runs.wrong) >= 2
    names = [*(run.name for run in runs.references), *(run.name for run in runs.wrong)]
    assert len(set(names)) == len(names)
    assert all(run.reason and run.fails in task.check_names for run in runs.wrong)


# What earns the reward --------------------------------------------------------------------------------------------


@TASKS
def test_references_succeed_under_every_seed_and_replay_to_the_same_chain(env: Any, task_id: str) -> None:
    """B232, B234, law 12."""
    for seed in (1, 2, 3):
        for reference in SUITE.references(task_id).references:
            run = rollout(env, scripted(reference), seed=seed, task=task_id)
            assert run.terminal.kind == "finished", run.terminal.detail
            assert run.verdict is not None and run.verdict.reward == 1.0, failed(run)
            assert (run.outcome_class, run.counts) == ("success", True)
    evidence = env.get_wrapper_attr("evidence")
    assert replay(env, evidence, task_id) == evidence.log_digest
    assert env.get_wrapper_attr("run").evidence_digest == evidence.digest


@TASKS
def test_wrong_runs_fail_for_the_stated_reason(env: Any, task_id: str) -> None:
    for wrong in SUITE.references(task_id).wrong:
        run = rollout(env, scripted(wrong), seed=3, task=task_id)
        assert run.terminal.kind != "policy_error", run.terminal.detail
        assert run.verdict is not None and run.verdict.reward == 0.0, wrong.name
        assert wrong.fails in failed(run), (wrong.name, failed(run))


@TASKS
def test_doing_nothing_refusing_lying_and_chance_earn_nothing(env: Any, task_id: str) -> None:
    """B001, B008."""
    for policy in (Noop, Refuser, Liar):
        run = rollout(env, policy(), seed=5, task=task_id)
        assert run.outcome_class == "agent_failure" and run.verdict is not None and run.verdict.reward == 0.0
    for seed in (5, 6):
        run = rollout(env, RandomCalls(), seed=seed, task=task_id)
        assert run.verdict is not None and run.verdict.reward == 0.0
        assert run.terminal.origin != "environment", run.terminal.detail


def test_a_payment_made_twice_is_no_success(env: Any) -> None:
    """B022: the call again at once. Where it moves money a second time the episode fails; refused, it does no harm."""
    moved, refused = 0, 0
    for task_id in SUITE.eval_ids:
        calls = main_calls(task_id)
        for number, twice in enumerate(calls):
            if twice.tool not in ("issue_refund", "issue_store_credit", "cancel_order"):
                continue
            env.reset(seed=1, options={"task": task_id})
            saved: dict[str, Any] = {}
            for place, call in enumerate(calls):
                for _ in range(1 + (place == number)):
                    arguments = {name: saved.get(str(value), value) for name, value in call.arguments.items()}
                    _, reward, _, _, info = env.step({"tool": call.tool, "arguments": arguments})
                    if place == number:
                        again = env.unwrapped.episode.log.entries[-1]
                result = env.unwrapped.episode.log.entries[-1].get("result", {})
                saved |= {f"${name}": lookup(result, path)[1] for name, path in call.save.items() if place != number}
                if place == number:
                    first = env.unwrapped.episode.log.entries[-2]["result"]
                    saved |= {f"${name}": lookup(first, path)[1] for name, path in call.save.items()}
            assert info["terminal_reason"] == "finished"
            assert reward == (0.0 if "changes" in again else 1.0), (task_id, again)
            moved += "changes" in again
            refused += "changes" not in again
    assert moved > 5 and refused > 5


@TASKS
def test_the_end_reached_counts_even_if_cut_off_before_finish(env: Any, task_id: str) -> None:
    """B117, B024: without ``finish`` it is truncated, and graded by the state reached."""
    calls = main_calls(task_id)
    assert calls[-1].tool == "finish"
    policy = scripted(SUITE.references(task_id).references[0])
    limited = gymnasium.make("agenteval/refund-v1", steps=len(calls) - 1)
    observation, info = limited.reset(seed=1, options={"task": task_id})
    for _ in calls[:-1]:
        observation, reward, terminated, truncated, info = limited.step(policy.act(observation, info))
    assert (terminated, truncated, info["terminal_reason"]) == (False, True, "step_limit")
    assert (reward, info["is_success"]) == (1.0, True)
    limited.close()
    short = gymnasium.make("agenteval/refund-v1", steps=2)
    short.reset(seed=1, options={"task": task_id})
    short.step({"tool": "read_policy", "arguments": {}})
    _, reward, terminated, truncated, info = short.step({"tool": "read_policy", "arguments": {}})
    assert (reward, terminated, truncated, info["is_success"]) == (0.0, False, True, False)
    short.close()


def test_talking_on_to_a_customer_who_has_gone_ends_the_episode(env: Any) -> None:
    """B171: the reason is the user, not the step limit, and the state is graded."""
    for task_id in SUITE.eval_ids[::6]:
        env.reset(seed=1, options={"task": task_id})
        for _ in range(50):
            step = env.step({"tool": "send_message", "arguments": {"text": "Thank you, goodbye!"}})
            if step[2] or step[3]:
                break
        assert (step[1], step[2], step[3]) == (0.0, True, False)
        assert (step[4]["terminal_reason"], step[4]["user"]) == ("user_stop", "left")


# What an agent must not be able to see ----------------------------------------------------------------------------


def gold(task_id: str) -> set[str]:
    """Texts that stand in the task's expectations or reference runs, and nowhere in what it starts from."""
    task, runs = SUITE.task(task_id), SUITE.references(task_id)
    texts: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, list | tuple):
            for item in value:
                collect(item)
        elif isinstance(value, str) and len(value) >= 4:
            texts.add(value)

    collect([assertion.as_json() for assertion in task.outcome])
    collect([constraint.as_json() for constraint in task.constraints])
    everything: list[ReferenceRun | WrongRun] = [*runs.references, *runs.wrong]
    for run in everything:
        collect([run.name if run.name != "reference" else "", getattr(run, "reason", "")])
        collect([call.arguments for call in run.calls])
    ticket = re.search(r"T\d{4}", task.user_request)
    assert ticket is not None and task.user is not None
    public = json.dumps(task.public().as_json()) + task.user.wishes[0].opening
    # Whole sentences and codes; a word that stands in the request or opening itself gives nothing away.
    return {text for text in texts if text not in public and (" " in text or "_" in text or re.search(r"\d", text))}


@TASKS
def test_nothing_at_the_start_gives_the_outcome_away(env: Any, task_id: str) -> None:
    """Law 6: observation, info, public task, spec, tools, rendering and log entry."""
    secrets = gold(task_id)
    assert len(secrets) > 5
    shown = gymnasium.make("agenteval/refund-v1", task=task_id, render_mode="ansi")
    observation, info = shown.reset(seed=1)
    core: Any = shown.unwrapped
    assert shown.spec is not None
    seen = {
        "observation": observation["text"],
        "info": json.dumps(info),
        "public task": core.task.model_dump_json(),
        "spec": shown.spec.to_json(),
        "rendering": str(shown.render()),
    }
    for place, text in seen.items():
        assert not [secret for secret in secrets if secret in text], place
    # Tools are the same for every task: their schemas name codes, never which one is right.
    schemas = json.dumps(core.action_space.schemas())
    assert task_id not in schemas and not re.search(r"[TCWP]9\d{3}", schemas)
    assert not [name for name in info if re.search("kind|difficulty|label|reference|expected|outcome|seed", name)]
    shown.close()


@TASKS
def test_labels_and_expectations_never_come_up_in_the_whole_episode(env: Any, task_id: str) -> None:
    """Law 6, and B168: neither the labels, nor check names, nor what the customer has not said yet."""
    task = SUITE.task(task_id)
    assert task.user is not None
    texts = []
    policy = scripted(SUITE.references(task_id).references[0])
    observation, info = env.reset(seed=2, options={"task": task_id})
    texts.append(observation["text"])
    done = False
    while not done:
        observation, _, terminated, truncated, info = env.step(policy.act(observation, info))
        texts.append(observation["text"])
        done = terminated or truncated
    everything = "\n".join(texts)
    assert task.user.persona not in everything and task.digest not in everything
    assert "slice_labels" not in everything and "grader" not in everything and "fixture" not in everything
    for wrong in SUITE.references(task_id).wrong:
        assert wrong.reason not in everything
    later = [wish.opening for wish in task.user.wishes[1:]] + (
        [task.user.turn.becomes.opening] if task.user.turn else []
    )
    assert not [opening for opening in later if opening in texts[0]]


def test_a_tool_cannot_reach_the_task_files(env: Any) -> None:
    """Law 6: whatever text is sent, no tool opens a file."""
    for place in ("../references/kite-for-arun.yaml", "/etc/passwd", "tasks/pins.json", "file:///etc/passwd"):
        env.reset(seed=1)
        for tool, arguments in (
            ("read_policy", {"section": place}),
            ("get_ticket", {"ticket_id": place[:40]}),
            ("find_customer", {"name": place}),
        ):
            text = env.step({"tool": tool, "arguments": arguments})[0]["text"]
            answer = json.loads(text)
            assert answer["status"] in ("error", "invalid") or not answer["result"].get("customers")
            assert "references:" not in text and "root:" not in text


# Generated tasks and parallel processes ---------------------------------------------------------------------------


def test_three_hundred_generated_tasks_are_solved_by_their_references() -> None:
    env = gymnasium.make("agenteval/refund-v1", split="train")
    kinds = set()
    for seed in range(300):
        info = env.reset(seed=seed)[1]
        task_id = f"refund/train-{seed}"
        assert info["task_id"] == task_id and SUITE.task(task_id).digest == env.unwrapped.episode.task.digest  # type: ignore[attr-defined]
        run = rollout(env, scripted(SUITE.references(task_id).references[0]), seed=seed)
        assert run.verdict is not None and run.verdict.reward == 1.0, (task_id, run.terminal, failed(run))
        kinds.add(SUITE.task(task_id).slice_labels["kind"])
    assert kinds == set(KINDS)
    env.close()


@pytest.mark.parametrize("number", [0, 7, 2**62, 2**63 - 1])
def test_training_tasks_have_one_id_each(number: int) -> None:
    """B239."""
    task = SUITE.task(f"refund/train-{number}")
    assert task.task_id == f"refund/train-{number}" and task.source == "generated"
    for alias in (f"refund/train-0{number}", f"refund/train-{number + 2**63}", f"refund/train-+{number}"):
        with pytest.raises(TaskError, match="no task"):
            SUITE.task(alias)


def test_seeds_beyond_the_last_training_task_draw_one_too() -> None:
    env = gymnasium.make("agenteval/refund-v1", split="train")
    assert env.reset(seed=2**63 + 5)[1]["task_id"] == "refund/train-5"
    env.close()


def test_references_succeed_twenty_times_in_four_parallel_processes(tmp_path: Path) -> None:
    """B236: random hash seeds, another order in each, and the machine busy."""
    code = """
import hashlib, sys, gymnasium, agent_envs
from agent_envs.baselines.reference import scripted
from agent_envs.baselines.rollout import rollout
from agent_envs.envs.refund.env import SUITE
env = gymnasium.make("agenteval/refund-v1")
chains = {}
for number in range(5):
    mixed = lambda task: hashlib.sha256(f"{sys.argv[1]} {number} {task}".encode()).digest()
    order = sorted(SUITE.eval_ids[::4], key=mixed)
    for task in order:
        run = rollout(env, scripted(SUITE.references(task).references[0]), seed=4, task=task)
        assert run.verdict.reward == 1.0, task
        assert chains.setdefault(task, run.evidence_digest) == run.evidence_digest, task
print(hashlib.sha256(repr(sorted(chains.items())).encode()).hexdigest(), len(chains))
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-W", "error", "-c", code]
    workers = [
        subprocess.Popen(
            [*command, str(worker)],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for worker in range(4)
    ]
    results = [worker.communicate(timeout=110) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, [error for _, error in results]
    assert len({output for output, _ in results}) == 1
    assert results[0][0].split()[1] == str(len(SUITE.eval_ids[::4]))
