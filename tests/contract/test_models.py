"""The nouns: frozen, closed at every level, exported as JSON Schema, and refusing what contradicts itself."""

import copy
import pickle

import pytest
from pydantic import ValidationError

from agent_envs import contract
from agent_envs.contract import (
    AgentEvalError,
    AgentRun,
    AgentTask,
    Change,
    CheckResult,
    EnvironmentFault,
    Evidence,
    EvidenceError,
    GraderFault,
    OutcomeClass,
    RowPatch,
    Status,
    TaskError,
    TaskReferences,
    Terminal,
    ToolError,
    Usage,
    Verdict,
    net_changes,
)

TASK = {
    "task_id": "shop/one",
    "source": "test",
    "initial_state": {
        "fixture": "shop",
        "clock": "2026-03-01T09:00:00Z",
        "patch": [{"table": "orders", "insert": {"id": "A"}}],
    },
    "user_request": "Refund order A.",
    "user": {"wishes": [{"opening": "Hello.", "accepts": [{"proposal": {"amount": {"money": "5"}}}]}]},
    "available_tools": ["refund", "finish"],
    "permissions": [{"tools": ["refund"], "when": {"amount": {"number": 5}}, "reason": "no"}],
    "constraints": [
        {"constraint": "never", "name": "never", "event": {"tool": "refund", "arguments": {"id": "B"}}},
        {
            "constraint": "requires_before",
            "name": "order",
            "first": {"tool": "refund"},
            "then": {"tool": "finish"},
            "same": [{"first": "arguments.id", "then": "arguments.id"}],
        },
    ],
    "limits": {"steps": 5},
    "outcome": [{"check": "changes", "expect": [{"table": "refunds", "kind": "insert", "values": {"id": "A"}}]}],
    "rubric": [{"check": "changes", "weight": 1}],
}


def _places(value, path=()):
    """Every mapping that is a model of ours, not a free record of columns or expectations."""
    if isinstance(value, dict):
        if not path or path[-1] not in ("arguments", "values", "insert", "when", "proposal"):
            yield path
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


@pytest.mark.parametrize("path", list(_places(TASK)), ids=lambda path: ".".join(map(str, path)) or "task")
def test_an_unknown_key_is_refused_at_every_level(path):
    """B012: a key that nothing reads is an error, wherever it stands."""
    data = copy.deepcopy(TASK)
    AgentTask.model_validate(data)
    place = data
    for part in path:
        place = place[part]
    place["expectd_rows"] = 1
    with pytest.raises(ValidationError, match=r"expectd_rows|tag"):
        AgentTask.model_validate(data)


def test_a_task_is_frozen_and_its_digest_covers_every_field():
    task = AgentTask.model_validate(TASK)
    with pytest.raises(ValidationError, match="frozen"):
        task.source = "other"
    with pytest.raises(ValidationError, match="frozen"):
        task.limits.steps = 9
    changed = {
        "task_revision": 2,
        "source": "x",
        "slice_labels": {"a": "b"},
        "user_request": "x",
        "user": None,
        "permissions": (),
        "constraints": (),
        "limits": contract.Limits(steps=6),
        "rubric": (),
        "grader_revision": 2,
        "reset_check": {"clock": "00"},
    }
    digests = {task.model_copy(update={name: value}).digest for name, value in changed.items()}
    assert len(digests | {task.digest}) == len(changed) + 1
    assert AgentTask.parse(task.canonical()) == task
    assert AgentTask.parse(task.canonical()).digest == task.digest


def test_a_changed_copy_has_its_own_digest():
    task = AgentTask.model_validate(TASK)
    before = task.digest
    assert task.model_copy(update={"source": "x"}).digest != before
    assert task.model_copy().digest == before
    assert pickle.loads(pickle.dumps(task)).digest == before


def test_a_policy_sees_no_gold():
    """Law 6: nothing of the checks, the start, the user or the constraints is in the public view."""
    public = AgentTask.model_validate(TASK).public().as_json()
    assert set(public) == {"task_id", "task_revision", "user_request", "available_tools", "limits"}


BROKEN = {
    "no outcome": {"outcome": []},
    "no tools": {"available_tools": []},
    "upper case id": {"task_id": "Shop/One"},
    "no family": {"task_id": "one"},
    "unknown tool in a constraint": {
        "constraints": [{"constraint": "never", "name": "n", "event": {"tool": "refnd"}}],
    },
    "no tool in a constraint": {"constraints": [{"constraint": "never", "name": "n", "event": {"tool": []}}]},
    "unknown tool in a permission": {"permissions": [{"tools": ["refnd"], "reason": "no"}]},
    "unknown terminal tool": {"terminal_conditions": ["done"]},
    "rubric of an unknown check": {"rubric": [{"check": "chnges", "weight": 1}]},
    "weight of zero": {"rubric": [{"check": "changes", "weight": 0}]},
    "weight not finite": {"rubric": [{"check": "changes", "weight": float("inf")}]},
    "two checks of one name": {
        "constraints": [{"constraint": "never", "name": "changes", "event": {"tool": "finish"}}]
    },
    "nothing expected": {"outcome": [{"check": "changes"}]},
    "only forbidden rows": {"outcome": [{"check": "changes", "expect": [{"table": "t", "count": 0}]}]},
    "an alternative that asks for nothing": {
        "outcome": [{"check": "changes", "either": [[{"table": "t"}], []]}],
    },
    "an alternative that only forbids": {
        "outcome": [{"check": "changes", "either": [[{"table": "t"}], [{"table": "t", "count": 0}]]}],
    },
    "a total alone": {"outcome": [{"check": "total", "table": "t", "column": "c", "expect": {"money": "5"}}]},
    "unknown check": {"outcome": [{"check": "chnges"}]},
    "negative count": {"outcome": [{"check": "changes", "expect": [{"table": "t", "count": -1}]}]},
    "window without bounds": {
        "constraints": [{"constraint": "only_within", "name": "n", "event": {"tool": "finish"}}],
    },
    "window back to front": {
        "constraints": [
            {
                "constraint": "only_within",
                "name": "n",
                "event": {"tool": "finish"},
                "start": "2026-03-02T00:00:00Z",
                "end": "2026-03-01T00:00:00Z",
            }
        ],
    },
    "window in another zone": {
        "constraints": [
            {
                "constraint": "only_within",
                "name": "n",
                "event": {"tool": "finish"},
                "start": "2026-03-02T00:00:00+02:00",
            }
        ],
    },
    "function outside": {"outcome": [{"check": "python", "name": "p", "function": "os:system"}]},
    "no steps": {"limits": {"steps": 0}},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_task_that_could_pass_for_nothing_is_refused(change):
    """B001, B003, B012; laws 2 and 3."""
    with pytest.raises(ValidationError):
        AgentTask.model_validate(TASK | change)


@pytest.mark.parametrize(
    "data",
    [
        {"table": "t"},
        {"table": "t", "insert": {"a": 1}, "delete": True},
        {"table": "t", "insert": {"a": 1}, "key": {"a": 1}},
        {"table": "t", "set": {"a": 1}},
        {"table": "t", "delete": True},
        {"table": "t", "key": {"a": 1}},
        {"table": "t", "key": {"a": 1}, "set": {"b": 1}, "delete": True},
    ],
)
def test_a_patch_is_exactly_one_operation(data):
    with pytest.raises(ValidationError, match="exactly one"):
        RowPatch.model_validate(data)


def _check(status, name="a"):
    return CheckResult(name=name, status=status, expected=None, actual=None, explanation="")


def _verdict(**fields):
    data = {
        "task_id": "shop/one",
        "task_revision": 1,
        "task_digest": "0" * 64,
        "grader_revision": 1,
        "evidence_digest": "1" * 64,
        "assertions": (_check(Status.PASS),),
        "constraints": (),
        "G": Status.PASS,
        "C": Status.PASS,
        "Y": Status.PASS,
        "partial_score": None,
    }
    return Verdict.model_validate(data | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"assertions": ()},
        {"assertions": (_check(Status.FAIL),)},
        {"constraints": (_check(Status.FAIL, "b"),)},
        {"assertions": (_check(Status.UNDETERMINED),)},
        {"Y": Status.FAIL},
        {"partial_score": 1.5},
        {"partial_score": float("nan")},
    ],
)
def test_a_verdict_that_does_not_follow_from_its_checks_is_refused(fields):
    """B020, B140; laws 2 and 11: a record can't claim what its own checks deny."""
    with pytest.raises(ValidationError):
        _verdict(**fields)


def test_only_a_success_is_rewarded():
    """B019, B020: partial credit is no success, and an open question is neither."""
    assert _verdict().reward == 1.0
    part = _verdict(assertions=(_check(Status.FAIL),), G=Status.FAIL, Y=Status.FAIL, partial_score=0.9)
    assert part.reward == 0.0
    unknown = _verdict(assertions=(_check(Status.UNDETERMINED),), G=Status.UNDETERMINED, Y=Status.UNDETERMINED)
    assert unknown.reward == 0.0
    assert type(unknown.reward) is float


@pytest.mark.parametrize(
    ("statuses", "together"),
    [
        ("", "pass"),
        ("p", "pass"),
        ("pp", "pass"),
        ("pu", "undetermined"),
        ("u", "undetermined"),
        ("uf", "fail"),
        ("fu", "fail"),
        ("pf", "fail"),
        ("fp", "fail"),
    ],
)
def test_conjunction_in_three_values(statuses, together):
    """Law 1; B031: the order of the sources plays no part."""
    names = {"p": Status.PASS, "f": Status.FAIL, "u": Status.UNDETERMINED}
    assert Status.all_of(names[letter] for letter in statuses) is Status(together)


def _change(before, after, key="A"):
    return Change(channel="database", table="orders", key={"id": key}, before=before, after=after)


def test_changes_are_folded_to_what_is_left():
    one, two, three = {"id": "A", "n": 1}, {"id": "A", "n": 2}, {"id": "A", "n": 3}
    assert net_changes([_change(one, two), _change(two, three)]) == [_change(one, three)]
    assert net_changes([_change(one, two), _change(two, one)]) == []
    assert net_changes([_change(None, one), _change(one, None)]) == []
    assert net_changes([_change(one, None), _change(None, one)]) == []
    assert net_changes([_change(one, None), _change(None, two)]) == [_change(one, two)]
    assert net_changes([_change(None, one, "B"), _change(None, one, "A")]) == [
        _change(None, one, "A"),
        _change(None, one, "B"),
    ]


@pytest.mark.parametrize("name", ["AgentTask", "TaskReferences", "Evidence", "Verdict", "AgentRun"])
def test_every_noun_exports_a_closed_schema_with_descriptions(name):
    schema = getattr(contract, name).model_json_schema()
    closed = [item for item in (schema, *schema.get("$defs", {}).values()) if item.get("type") == "object"]
    assert closed
    assert all(item.get("additionalProperties") is False for item in closed)
    assert schema["description"]


@pytest.mark.parametrize(
    "calls",
    [
        [{"tool": "refund", "arguments": {"id": "$order"}}],
        [{"tool": "a", "save": {"other": "id"}}, {"tool": "b", "arguments": {"x": [{"y": "$order"}]}}],
        [{"tool": "a", "arguments": {"id": "$order"}, "save": {"order": "id"}}],
    ],
)
def test_a_reference_that_uses_what_no_call_saved_is_refused_at_load(calls):
    """B231, B234."""
    with pytest.raises(ValidationError, match=r"\$order"):
        TaskReferences.model_validate({"task_id": "shop/one", "references": [{"calls": calls}]})


def test_money_in_a_message_is_no_saved_name():
    calls = [{"tool": "say", "arguments": {"text": "$25.00"}}, {"tool": "say", "arguments": {"text": "$ 5"}}]
    run = TaskReferences.model_validate({"task_id": "shop/one", "references": [{"calls": calls}]})
    assert len(run.references[0].calls) == 2


@pytest.mark.parametrize("data", [{"references": []}, {"references": [{"calls": []}]}, {}])
def test_a_task_without_a_reference_has_no_references(data):
    """B232: no evidence that a task can be solved."""
    with pytest.raises(ValidationError):
        TaskReferences.model_validate({"task_id": "shop/one", **data})


@pytest.mark.parametrize(
    "error",
    [AgentEvalError, TaskError, ToolError, EnvironmentFault, GraderFault, EvidenceError],
    ids=lambda e: e.__name__,
)
def test_errors_survive_a_process_boundary(error):
    again = pickle.loads(pickle.dumps(error("what happened")))
    assert type(again) is error
    assert str(again) == "what happened"
    assert isinstance(again, AgentEvalError)


def run_data(**fields):
    return {
        "run_id": "one.p.0.abc",
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
        "terminal": Terminal(phase="act", origin="agent", kind="finished"),
        "outcome_class": OutcomeClass.SUCCESS,
        "counts": True,
        "verdict": _verdict(),
        "declared_success": True,
        "usage": Usage(steps=1, calls=1),
        "limits": contract.Limits(),
        "seconds": 1.5,
        "environment_seconds": 0.5,
        "infrastructure_status": "ok",
    } | fields


@pytest.mark.parametrize("text", ["plain", "\ud835", "\U0001d504", "[/red]\x1b[31m\n\x00", "\u202e"])
def test_a_record_is_read_back_equal_whatever_text_it_holds(text):
    """B121, B191."""
    terminal = Terminal(phase="act", origin="agent", kind="policy_error", detail=text)
    results = (CheckResult(name="a", status="pass", expected={"x": text}, actual=[text], explanation=text),)
    run = AgentRun.model_validate(
        run_data(terminal=terminal, verdict=_verdict(assertions=results), policy=text, oracle=True)
    )
    assert AgentRun.parse(run.canonical()) == run
    assert AgentRun.parse(run.canonical()).canonical() == run.canonical()


def test_a_claim_is_false_only_where_the_state_denies_it():
    failed = _verdict(assertions=(_check(Status.FAIL),), G=Status.FAIL, Y=Status.FAIL)
    broke = _verdict(constraints=(_check(Status.FAIL, "c"),), C=Status.FAIL, Y=Status.FAIL)
    assert AgentRun.model_validate(run_data(verdict=failed)).false_claim
    assert not AgentRun.model_validate(run_data(verdict=failed, declared_success=False)).false_claim
    assert not AgentRun.model_validate(run_data(verdict=None)).false_claim
    assert AgentRun.model_validate(run_data(verdict=broke)).broke_rule
    assert not AgentRun.model_validate(run_data(verdict=broke)).false_claim
    assert not AgentRun.model_validate(run_data()).broke_rule


def test_evidence_with_other_content_has_another_digest():
    base = {
        "task_id": "shop/one",
        "task_revision": 1,
        "task_digest": "0" * 64,
        "seed": 1,
        "initial_state_hash": "3" * 64,
        "final_state_hash": "4" * 64,
        "changes": (_change(None, {"id": "A"}),),
        "events": ({"step": 0},),
        "log_digest": "5" * 64,
        "answer": {"outcome": "completed"},
        "terminal": Terminal(phase="act", origin="agent", kind="finished"),
        "usage": Usage(steps=1, calls=1),
    }
    other = {
        "task_id": "shop/two",
        "task_revision": 2,
        "task_digest": "1" * 64,
        "seed": 2,
        "initial_state_hash": "6" * 64,
        "final_state_hash": "6" * 64,
        "changes": (_change(None, {"id": "B"}),),
        "log_digest": "6" * 64,
        "answer": None,
        "terminal": Terminal(phase="act", origin="agent", kind="stopped"),
        "usage": Usage(steps=2, calls=1),
        "gaps": ("x",),
    }
    digests = {Evidence.model_validate(base | {name: value}).digest for name, value in other.items()}
    assert len(digests | {Evidence.model_validate(base).digest}) == len(other) + 1
