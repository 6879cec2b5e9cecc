"""The rulebook: honest, deterministic, and good enough to show that the tasks can be solved without the gold."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import agent_envs
from agent_envs.baselines import Rulebook, rollout, rulebook
from agent_envs.baselines.rulebook import words
from agent_envs.contract import AgentRun, PublicTask
from agent_envs.envs.refund.env import SUITE
from agent_envs.envs.refund.generator import generate_task
from agent_envs.episode.suite import Suite

SEEDS = range(100)
SOLVED = 90
"""How many of them the rulebook solves at least."""
LINES = [
    {"line_no": 1, "name": "Yoga mat", "quantity": 2},
    {"line_no": 2, "name": "Puzzle of 1000 pieces", "quantity": 1},
    {"line_no": 3, "name": "Leather gloves", "quantity": 3},
]


class Transcript(Rulebook):
    """Keeps what it saw and did."""

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        self.task = task
        self.steps: list[tuple[str, str]] = []
        super().begin(task, tools, seed)

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
        action = super().act(observation, info)
        self.steps.append((observation["text"], json.dumps(action)))
        return action


@pytest.fixture(scope="module")
def env() -> Iterator[gymnasium.Env[Any, Any]]:
    assert agent_envs.__doc__  # importing it registers the environments
    made = gymnasium.make("agenteval/refund-v1", split="train", disable_env_checker=True)
    yield made
    made.close()


def play(env: gymnasium.Env[Any, Any], seed: int) -> tuple[AgentRun, Transcript]:
    policy = Transcript()
    return rollout(env, policy, seed=seed, task=generate_task(seed).task_id), policy


@pytest.fixture(scope="module")
def runs(env: gymnasium.Env[Any, Any]) -> list[tuple[AgentRun, Transcript]]:
    with pytest.MonkeyPatch.context() as patch:
        # Anything that opened the reference solutions would fail here.
        patch.setattr(Suite, "references", _forbidden)
        patch.setattr(SUITE, "_generate_references", _forbidden)
        return [play(env, seed) for seed in SEEDS]


def _forbidden(*arguments: Any, **named: Any) -> None:
    raise AssertionError("the references were opened")


def test_solves_most_training_tasks_without_gold(runs: list[tuple[AgentRun, Transcript]]) -> None:
    solved = [run.task_id for run, _ in runs if run.verdict is not None and run.verdict.reward == 1.0]
    assert len(solved) >= SOLVED


def test_breaks_no_rule_and_always_finishes(runs: list[tuple[AgentRun, Transcript]]) -> None:
    for run, _ in runs:
        assert run.terminal.kind == "finished", run.task_id
        assert run.verdict is not None and run.verdict.C == "pass", run.task_id
        assert not run.oracle


def test_solves_something_of_each_outcome(runs: list[tuple[AgentRun, Transcript]]) -> None:
    ends = {json.loads(transcript.steps[-1][1])["arguments"]["outcome"] for _, transcript in runs}
    assert {"completed", "refused", "handed_over"} <= ends


def test_depends_on_nothing_but_the_public_task_and_the_observed_texts(
    runs: list[tuple[AgentRun, Transcript]],
) -> None:
    for _, transcript in runs:
        again = Rulebook()
        again.begin(transcript.task, [], seed=12345)
        assert [json.dumps(again.act({"text": text}, {})) for text, _ in transcript.steps] == [
            action for _, action in transcript.steps
        ]


def test_imports_of_the_family_only_its_public_arithmetic() -> None:
    allowed = {"agent_envs.contract", "agent_envs.envs.refund.rules"}
    for path in Path(rulebook.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                package = node.module or ""
                names = [f"{package}.{alias.name}" for alias in node.names] if package.endswith("refund") else [package]
            for name in names:
                if name.startswith("agent_envs.") and not name.startswith("agent_envs.baselines.rulebook"):
                    assert name in allowed, f"{path.name} imports {name}"


def test_one_policy_plays_episode_after_episode_alike(env: gymnasium.Env[Any, Any]) -> None:
    policy = Rulebook()
    first, _, again = (rollout(env, policy, seed=seed, task=f"refund/train-{seed}") for seed in (3, 4, 3))
    assert first.log_digest == again.log_digest
    assert first.final_state_hash == again.final_state_hash


@pytest.mark.parametrize("answer", ['{"status": "error", "error": "no"}', "cut off in the mid...dle", "[1]", ""])
def test_ends_quietly_whatever_call_is_refused(runs: list[tuple[AgentRun, Transcript]], answer: str) -> None:
    """A refused call, or an answer too long to be shown whole, must not raise: that would be a `policy_error`."""
    _, transcript = max(runs, key=lambda item: len(item[1].steps))
    texts = [text for text, _ in transcript.steps]
    for failing in range(len(texts)):
        policy = Rulebook()
        policy.begin(transcript.task, [], seed=0)
        for text in (*texts[:failing], answer):
            policy.act({"text": text}, {})
        ends = [policy.act({"text": answer}, {})["tool"] for _ in range(12)]
        assert ends[-1] == "finish"


def test_finishes_tasks_of_other_families() -> None:
    task = generate_task(1).public()
    other = task.model_copy(update={"available_tools": ("read_file", "finish")})
    policy = Rulebook()
    policy.begin(other, [], seed=0)
    assert policy.act({"text": "Tidy the folder T1."}, {})["tool"] == "finish"
    assert policy.act({"text": "{}"}, {})["tool"] == "finish"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("still sealed, never opened", "unopened"),
        ("I haven't even unpacked it", "unopened"),
        ("opened and used a little, but it works", "opened"),
        ("Nothing is broken, I just tried it once", "opened"),
        ("broken, it doesn't work", "defective"),
        ("It won't charge and the lid is cracked", "defective"),
        ("it never arrived", "never_arrived"),
        ("The parcel was lost", "never_arrived"),
        ("It is blue", "unopened"),
    ],
)
def test_condition_is_read_from_ordinary_words(text: str, expected: str) -> None:
    assert words.condition_of(LINES[0], LINES, [text]) == expected


def test_each_line_has_its_own_condition() -> None:
    text = "The mat is torn, the gloves are still sealed"
    assert [words.condition_of(line, LINES, [text]) for line in (LINES[0], LINES[2])] == ["defective", "unopened"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 x Yoga mat, 1 x Puzzle of 1000 pieces", {1: 2, 2: 1}),
        ("one of the two yoga mats", {1: 1}),
        ("the gloves, just one of them", {3: 1}),
        ("both yoga mats and the puzzle", {1: None, 2: None}),
        ("I'd rather keep the yoga mat. Take the puzzle instead.", {2: None}),
        ("everything except the gloves", {1: None, 2: None}),
        ("all of my order", {1: None, 2: None, 3: None}),
        ("what I bought last week", {}),
    ],
)
def test_goods_are_found_by_name_noun_and_number(text: str, expected: dict[int, int | None]) -> None:
    assert words.goods([text], LINES) == expected


@pytest.mark.parametrize(
    ("name", "sentence", "expected"),
    [
        ("email", "It's ada.k@post.example.", "ada.k@post.example"),
        ("postcode", "My postcode: 40213", "40213"),
        ("postcode", "I live in LS6 2AB.", "LS6 2AB"),
        ("birth_date", "Here is my birth date: 1971-04-09", "1971-04-09"),
        ("birth_date", "I was born on the 9th of April 1971", "1971-04-09"),
        ("birth_date", "April 9, 1971", "1971-04-09"),
        ("order_id", "The order id: W7041", "W7041"),
        ("order_id", "I threw the receipt away", ""),
        ("name", "I'm Zoë Müller", "Zoë Müller"),
        ("name", "My name is Ada van der Berg.", "Ada van der Berg"),
    ],
)
def test_facts_are_taken_out_of_sentences(name: str, sentence: str, expected: str) -> None:
    assert words.fact(name, sentence) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["I'd like store credit for it"], True),
        (["I don't want store credit, only my money"], False),
        (["Then rather the money", "A voucher would be fine"], False),
        (["It is broken"], False),
    ],
)
def test_store_credit_is_given_for_money_only_when_asked_for(texts: list[str], expected: bool) -> None:
    assert words.wants_credit(texts) is expected


@pytest.mark.parametrize("text", ["Thank you, that was all.", "No, I don't agree to that.", "I'm still waiting."])
def test_thanks_and_plain_answers_are_no_request(text: str) -> None:
    assert not words.wants_something(text)
