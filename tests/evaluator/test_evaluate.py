"""evaluate(task, evidence): pure, three-valued, and of this task's evidence only."""

import copy
import itertools
import json
import os
import subprocess
import sys

import pytest

from agent_envs.contract import (
    OUTCOME_TABLE,
    AgentTask,
    Change,
    Evidence,
    EvidenceError,
    OutcomeClass,
    Status,
    Terminal,
    Usage,
    chain,
    classify,
)
from agent_envs.evaluator import evaluate

FINISHED = Terminal(phase="act", origin="agent", kind="finished")
REFUNDED = Change(
    channel="database",
    table="refunds",
    key={"id": 1},
    before=None,
    after={"id": 1, "order": "A", "amount": {"$decimal": "25"}},
)


def task(**fields):
    data = {
        "task_id": "shop/one",
        "source": "test",
        "initial_state": {"fixture": "shop", "clock": "2026-03-01T09:00:00Z"},
        "user_request": "Refund order A.",
        "available_tools": ["verify", "refund", "finish"],
        "constraints": [
            {
                "constraint": "requires_before",
                "name": "verified",
                "first": {"tool": "verify"},
                "then": {"tool": "refund"},
            }
        ],
        "outcome": [
            {"check": "changes", "expect": [{"table": "refunds", "kind": "insert", "values": {"order": "A"}}]},
        ],
        "rubric": [{"check": "changes", "weight": 3}, {"check": "verified", "weight": 1}],
    }
    return AgentTask.model_validate(data | fields)


def call(tool, **fields):
    return {"step": 1, "tool": tool, "arguments": {}, "status": "ok", "result": {}, "clock": ""} | fields


def evidence(of, tools=("verify", "refund", "finish"), **fields):
    events = tuple([{"step": 0, "tool": ""}, *map(call, tools)])
    head = b""
    for entry in events:
        head = chain(head, entry)
    data = {
        "task_id": of.task_id,
        "task_revision": of.task_revision,
        "task_digest": of.digest,
        "seed": 1,
        "initial_state_hash": "3" * 64,
        "final_state_hash": "4" * 64,
        "changes": (REFUNDED,) if "refund" in tools else (),
        "events": events,
        "log_digest": head.hex(),
        "answer": {"outcome": "completed"},
        "terminal": FINISHED,
        "usage": Usage(steps=3, calls=3),
    }
    return Evidence.model_validate(data | fields)


@pytest.mark.parametrize(
    ("tools", "g", "c", "y", "score"),
    [
        (("verify", "refund", "finish"), "pass", "pass", "pass", 1.0),
        (("refund", "finish"), "pass", "fail", "fail", 0.75),
        (("verify", "finish"), "fail", "pass", "fail", 0.25),
        ((), "fail", "pass", "fail", 0.25),
    ],
)
def test_success_is_outcome_times_constraints(tools, g, c, y, score):
    """B019: the partial score decides nothing."""
    verdict = evaluate(task(), evidence(task(), tools))
    assert (verdict.G, verdict.C, verdict.Y) == (g, c, y)
    assert verdict.partial_score == score
    assert verdict.reward == float(y == "pass")
    assert verdict.evidence_digest == evidence(task(), tools).digest
    assert [result.name for result in (*verdict.assertions, *verdict.constraints)] == ["changes", "verified"]


def test_the_claim_plays_no_part():
    """What the agent says is no evidence where the product is a state."""
    for answer in (None, {"outcome": "completed"}, {"outcome": "unable"}, {"outcome": "\ud835", "G": "pass"}):
        assert evaluate(task(), evidence(task(), (), answer=answer)).Y is Status.FAIL
        assert evaluate(task(), evidence(task(), answer=answer)).Y is Status.PASS


def test_other_evidence_is_refused():
    """B138: neither another task's, nor another version's of the same task."""
    other = task(task_id="shop/two")
    revised = task(user_request="Refund order A, please.")
    for of in (other, revised):
        with pytest.raises(EvidenceError, match="shop/"):
            evaluate(task(), evidence(of))
    with pytest.raises(EvidenceError):
        evaluate(task(), evidence(other, task_id="shop/one"))
    with pytest.raises(EvidenceError):
        evaluate(task(), evidence(task(), task_id="shop/two"))


def test_a_gap_leaves_everything_open():
    """Law 1 and 2: what was not captured can't be judged, in either direction."""
    for tools in (("verify", "refund"), ()):
        verdict = evaluate(task(), evidence(task(), tools, gaps=("the mailbox was not read",)))
        assert {verdict.G, verdict.C, verdict.Y} == {Status.UNDETERMINED}
        assert verdict.partial_score is None
        assert verdict.reward == 0.0
        assert "the mailbox was not read" in verdict.assertions[0].explanation


ENDINGS = [
    *(Terminal(phase=phase, origin=origin, kind=kind) for phase, origin, kind in OUTCOME_TABLE),
    Terminal(phase="act", origin="harness", kind="nobody knows"),
    Terminal(phase="act", origin="agent", kind="nobody knows"),
    Terminal(phase="reset", origin="environment", kind="nobody knows"),
    Terminal(phase="record", origin="grader", kind="nobody knows"),
]


@pytest.mark.parametrize("terminal", ENDINGS, ids=lambda item: f"{item.phase}-{item.origin}-{item.kind}")
def test_the_verdict_agrees_with_the_outcome_table(terminal):
    """B114, B142; law 8: a broken or unknown ending is open whatever the state, a limit is judged."""
    good = evaluate(task(), evidence(task(), terminal=terminal))
    bad = evaluate(task(), evidence(task(), (), terminal=terminal))
    outcome, row = classify(terminal, good.Y)
    if row.judged:
        assert (good.Y, bad.Y) == (Status.PASS, Status.FAIL)
        assert outcome is OutcomeClass.SUCCESS
    elif outcome is OutcomeClass.HARNESS_INCOMPATIBILITY:
        assert bad.Y is Status.FAIL
    else:
        assert good.Y is bad.Y is Status.UNDETERMINED


def test_two_sources_are_both_needed_in_either_order():
    """B031: the later source doesn't overwrite the first."""
    checks = [
        {"check": "changes", "name": "a", "expect": [{"table": "refunds", "values": {"order": "A"}}]},
        {"check": "changes", "name": "b", "expect": [{"table": "refunds", "values": {"order": "B"}}]},
    ]
    for outcome in (checks, checks[::-1]):
        of = task(outcome=outcome, rubric=[])
        verdict = evaluate(of, evidence(of))
        assert verdict.G is verdict.Y is Status.FAIL
        assert sorted(result.status for result in verdict.assertions) == ["fail", "pass"]
        assert verdict.partial_score is None


_STATUSES = {"pass": Status.PASS, "fail": Status.FAIL, "undetermined": Status.UNDETERMINED}


@pytest.mark.parametrize(("g", "c"), list(itertools.product(_STATUSES, repeat=2)))
def test_three_values_are_joined_as_kleene_joins_them(g, c, monkeypatch):
    """Law 1."""
    from agent_envs import contract

    monkeypatch.setattr(contract, "outcome_check", lambda item: (g, "because"), raising=False)
    monkeypatch.setattr(contract, "process_check", lambda item: (c, "because"), raising=False)
    of = task(
        outcome=[{"check": "python", "name": "g", "function": "agent_envs.contract:outcome_check"}],
        constraints=[{"constraint": "python", "name": "c", "function": "agent_envs.contract:process_check"}],
        rubric=[{"check": "g", "weight": 1}, {"check": "c", "weight": 1}],
    )
    verdict = evaluate(of, evidence(of))
    assert (verdict.G, verdict.C) == (g, c)
    expected = "fail" if "fail" in (g, c) else "undetermined" if "undetermined" in (g, c) else "pass"
    assert verdict.Y == expected
    assert verdict.partial_score == (None if "undetermined" in (g, c) else [g, c].count("pass") / 2)


TOTAL = {
    "check": "total",
    "table": "refunds",
    "column": "amount",
    "where": {"order": "A"},
    "expect": {"money": "0.60"},
}


def _rows(*amounts, order="A"):
    return tuple(
        Change(
            channel="database",
            table="refunds",
            key={"id": number},
            before=None,
            after={"id": number, "order": order, "amount": amount},
        )
        for number, amount in enumerate(amounts)
    )


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        (_rows(*({"$decimal": text} for text in ("0.1", "0.2", "0.3"))), "pass"),
        (_rows({"$decimal": "0.6"}), "pass"),
        (_rows({"$decimal": "0.6"}, {"$decimal": "0.0001"}), "fail"),
        (_rows({"$decimal": "0.3"}, {"$decimal": "0.3"}, {"$decimal": "0.6"}), "fail"),
        (_rows({"$decimal": "0.6"}, order="B"), "fail"),
        (_rows({"$decimal": "0.6"}, None), "undetermined"),
        (_rows({"$decimal": "0.5"}, None), "undetermined"),
        (_rows({"$decimal": "0.6"}, "0"), "undetermined"),
        (_rows({"$decimal": "0.6"}, False), "undetermined"),
        (_rows(0.6), "undetermined"),
        ((), "fail"),
    ],
)
def test_a_total_is_exact_and_counts_every_new_row(changes, status):
    """B022, B065: split lawfully it is one amount; a second refund is another. What isn't a number leaves it open."""
    frame = {"check": "changes", "expect": [{"table": "refunds"}], "allow": [{"table": "refunds"}]}
    of = task(outcome=[frame, TOTAL], rubric=[], constraints=[])
    verdict = evaluate(of, evidence(of, ("refund",), changes=changes))
    assert verdict.assertions[1].status == status


def test_a_total_looks_at_new_rows_of_its_table_and_channel():
    old = Change(
        channel="database",
        table="refunds",
        key={"id": 9},
        before={"id": 9, "order": "A", "amount": {"$decimal": "1"}},
        after={"id": 9, "order": "A", "amount": {"$decimal": "2"}},
    )
    gone = old.model_copy(update={"after": None})
    other = _rows({"$decimal": "5"})[0].model_copy(update={"channel": "cache"})
    frame = {"check": "changes", "expect": [{"table": "refunds"}], "allow": [{"table": "refunds"}]}
    of = task(outcome=[frame, TOTAL], rubric=[], constraints=[])
    changes = (*_rows({"$decimal": "0.6"}), old, gone, other)
    assert evaluate(of, evidence(of, ("refund",), changes=changes)).assertions[1].status is Status.PASS


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"value": "3"}, "pass"),
        ({"value": 3}, "pass"),
        ({"value": "I see 13 items"}, "fail"),
        ({"value": ""}, "fail"),
        ({"value": None}, "fail"),
        ({"other": "3"}, "fail"),
        ({}, "fail"),
        (None, "fail"),
    ],
)
def test_a_declared_answer_is_one_typed_field(answer, status):
    """B007, B013."""
    of = task(outcome=[{"check": "answer", "field": "value", "expect": {"number": 3}}], constraints=[], rubric=[])
    verdict = evaluate(of, evidence(of, ("finish",), answer=answer))
    assert verdict.Y == status


def test_evaluation_is_pure():
    """Nothing it was given is changed, and asking twice gives one answer."""
    of, given = task(), evidence(task())
    before = copy.deepcopy(given)
    first = evaluate(of, given)
    assert evaluate(of, given) == first
    assert evaluate(of.model_copy(deep=True), Evidence.model_validate(given.model_dump())) == first
    assert given == before
    assert given.digest == before.digest


_ELSEWHERE = """
import sys
from pathlib import Path
from agent_envs.contract import AgentTask, read_evidence
from agent_envs.evaluator import evaluate
folder = Path(sys.argv[1])
task = AgentTask.parse((folder / "task.json").read_bytes())
sys.stdout.buffer.write(evaluate(task, read_evidence(folder)).canonical())
ours = [name for name in sys.modules if name.startswith("agent_envs.")]
live = [name for name in ours if name.split(".")[1] not in ("contract", "evaluator")]
assert not live, live
"""


@pytest.mark.parametrize("seed", ["0", "1"])
def test_another_process_gives_the_same_bytes_without_any_live_module(tmp_path, seed):
    """Laws 5 and 7: hash seed and process play no part, and nothing of the environment is imported."""
    from agent_envs.contract import write_evidence

    given = evidence(task(), ("refund", "finish"))
    write_evidence(given, tmp_path)
    (tmp_path / "task.json").write_text(json.dumps(task().as_json()))
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(tmp_path)],
        capture_output=True,
        env=os.environ | {"PYTHONHASHSEED": seed},
        timeout=60,
    )
    assert done.stdout == evaluate(task(), given).canonical(), done.stderr.decode()


def test_a_hostile_text_reaches_the_verdict_as_text():
    """B121: lone surrogates in rows and answers end up in a record that can be written and read."""
    row = REFUNDED.model_copy(update={"key": {"id": "\ud835"}, "after": {"id": "\ud835", "order": "\udfff[/red]\x1b"}})
    verdict = evaluate(task(), evidence(task(), changes=(row,)))
    assert verdict.Y is Status.FAIL
    assert type(verdict).parse(verdict.canonical()) == verdict
