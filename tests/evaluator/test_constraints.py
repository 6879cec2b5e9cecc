"""Process constraints over recorded events: what counts, what belongs together, and what can't be told."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent_envs.contract import Status
from agent_envs.contract.outcome import Constraint
from agent_envs.evaluator.constraints import Monitor, matches

_CONSTRAINT = TypeAdapter(Constraint)
FAILED = ("error", "denied", "invalid", "timeout", "skipped", "fault")


def constraint(kind, **fields):
    return _CONSTRAINT.validate_python({"constraint": kind, "name": "rule", **fields})


def call(tool, status="ok", result=None, clock="2026-03-01T09:00:00Z", **arguments):
    entry = {"step": 1, "tool": tool, "arguments": arguments, "status": status, "clock": clock}
    return entry | ({"result": result or {}} if status == "ok" else {"error": "no"})


def judge(rule, events):
    """Feed one by one, and prove on the way that the result so far is the result of the part alone."""
    monitor = Monitor(rule)
    breached = False
    for number, event in enumerate(events, start=1):
        monitor.feed(event)
        alone = Monitor(rule)
        for part in events[:number]:
            alone.feed(part)
        assert monitor.result() == alone.result()
        assert monitor.breached == (monitor.result().status is Status.FAIL)
        assert monitor.breached or not breached  # a breach is for good
        breached = monitor.breached
    return monitor.result()


VERIFY_FIRST = constraint(
    "requires_before",
    first={"tool": "verify"},
    then={"tool": "refund"},
    same=[{"first": "arguments.customer", "then": "arguments.customer"}],
)


def test_the_earlier_call_comes_first():
    assert judge(VERIFY_FIRST, [call("verify", customer="C1"), call("refund", customer="C1")]).status is Status.PASS
    late = judge(VERIFY_FIRST, [call("refund", customer="C1"), call("verify", customer="C1")])
    assert late.status is Status.FAIL
    assert "customer='C1'" in late.explanation
    assert "verify" in late.explanation


def test_nothing_happened_so_nothing_was_broken():
    for events in ([], [{"step": 0, "tool": "", "opening": {}}], [call("verify", customer="C1")], [call("look")]):
        assert judge(VERIFY_FIRST, events).status is Status.PASS


@pytest.mark.parametrize("status", FAILED)
def test_a_call_without_effect_serves_nothing(status):
    """B216: a failed verification is no verification."""
    result = judge(VERIFY_FIRST, [call("verify", status, customer="C1"), call("refund", customer="C1")])
    assert result.status is Status.FAIL


@pytest.mark.parametrize("status", FAILED)
def test_a_call_without_effect_breaks_nothing(status):
    events = [call("refund", status, customer="C1")] * 3
    assert judge(VERIFY_FIRST, events).status is Status.PASS
    assert judge(constraint("never", event={"tool": "refund"}), events).status is Status.PASS
    assert judge(constraint("at_most", event={"tool": "refund"}, count=1), events).status is Status.PASS
    window = constraint("only_within", event={"tool": "refund"}, start="2027-01-01T00:00:00Z")
    assert judge(window, events).status is Status.PASS
    attempted = constraint("never", event={"tool": "refund", "status": "attempted"})
    assert judge(attempted, events).status is Status.FAIL


@pytest.mark.parametrize("first", ["C2", "c1", 1, None, ["C1"], "C1 C2", ""])
def test_another_entity_serves_nothing(first):
    result = judge(VERIFY_FIRST, [call("verify", customer=first), call("refund", customer="C1")])
    assert result.status is Status.FAIL


def test_a_value_that_is_missing_belongs_to_nothing():
    """Law 2: two absent values are not the same entity."""
    for pair in ([call("verify"), call("refund")], [call("verify", customer=None), call("refund", customer=None)]):
        assert judge(VERIFY_FIRST, pair).status is Status.FAIL


def test_one_call_serves_many_unless_it_serves_once():
    events = [call("verify", customer="C1"), call("refund", customer="C1"), call("refund", customer="C1")]
    assert judge(VERIFY_FIRST, events).status is Status.PASS
    once = VERIFY_FIRST.model_copy(update={"once": True})
    assert judge(once, events[:2]).status is Status.PASS
    assert judge(once, events).status is Status.FAIL
    again = [events[0], events[1], events[0], events[2]]
    assert judge(once, again).status is Status.PASS
    assert judge(once, [events[0], events[0], events[1], events[2]]).status is Status.PASS


APPROVED = constraint(
    "requires_before",
    first={"tool": "approve"},
    then={"tool": "refund"},
    same=[{"first": "arguments.amount", "then": "arguments.amount", "relation": "at_least"}],
    once=True,
)


@pytest.mark.parametrize(
    ("approved", "refunded", "status"),
    [
        (["100"], ["100.00"], "pass"),
        (["100"], ["99.99"], "pass"),
        (["100"], ["100.01"], "fail"),
        (["9"], ["10"], "fail"),
        (["100", "50"], ["50", "100"], "pass"),
        (["50", "100"], ["50", "100"], "pass"),
        (["50", "100"], ["100", "50"], "pass"),
        (["100", "50"], ["60", "70"], "fail"),
        ([100], ["100"], "pass"),
        ([True], ["1"], "fail"),
        (["NaN"], ["1"], "fail"),
        (["1e9"], ["1"], "fail"),
        (["\u0661\u0660\u0660"], ["1"], "fail"),
        (["9" * 400], ["1"], "fail"),
    ],
)
def test_an_approval_covers_an_amount_once(approved, refunded, status):
    """B065: amounts as exact numbers. Two approvals serve two refunds however they can be dealt out."""
    events = [call("approve", amount=amount) for amount in approved]
    events += [call("refund", amount=amount) for amount in refunded]
    assert judge(APPROVED, events).status is Status(status)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(["approve", "refund"]), st.integers(1, 4)), max_size=7))
def test_serving_once_is_found_whenever_some_way_exists(steps):
    """Against every way of dealing earlier approvals out to refunds."""
    events = [call(tool, amount=amount) for tool, amount in steps]
    refunds = [place for place, (tool, _) in enumerate(steps) if tool == "refund"]
    approvals = [place for place, (tool, _) in enumerate(steps) if tool == "approve"]
    possible = any(
        all(a < r and steps[a][1] >= steps[r][1] for a, r in zip(chosen, refunds, strict=True))
        for chosen in itertools.permutations(approvals, len(refunds))
    )
    assert (judge(APPROVED, events).status is Status.PASS) == possible


CONFIRMED = constraint(
    "confirmed_before",
    action={"tool": "refund"},
    same=[
        {"first": "arguments.propose.order", "then": "arguments.order"},
        {"first": "arguments.propose.amount", "then": "arguments.amount", "relation": "equal_number"},
    ],
)


def _proposal(order, amount, accepted):
    return call("send_message", result={"customer": {"accepted": accepted}}, propose={"order": order, "amount": amount})


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ([_proposal("A", "25", True)], "pass"),
        ([_proposal("A", "25", False)], "fail"),
        ([_proposal("A", "25", None)], "fail"),
        ([_proposal("A", "25", "true")], "fail"),
        ([_proposal("A", "25", 1)], "fail"),
        ([_proposal("A", "24", True)], "fail"),
        ([_proposal("B", "25", True)], "fail"),
        ([call("send_message", "error", propose={"order": "A", "amount": "25"})], "fail"),
        ([call("send_message", result={}, propose={"order": "A", "amount": "25"})], "fail"),
        ([call("send_message", result={"customer": {"accepted": True}})], "fail"),
        ([], "fail"),
    ],
)
def test_only_a_yes_to_this_very_action_confirms_it(said, status):
    """B175: bound to the act in question, not to some yes."""
    assert judge(CONFIRMED, [*said, call("refund", order="A", amount="25.00")]).status is Status(status)


def test_a_yes_confirms_one_action():
    """B022."""
    yes, refund = _proposal("A", "25", True), call("refund", order="A", amount="25")
    assert judge(CONFIRMED, [yes, refund, refund]).status is Status.FAIL
    assert judge(CONFIRMED, [yes, refund, yes, refund]).status is Status.PASS


@pytest.mark.parametrize("count", [1, 2, 3])
def test_at_most(count):
    rule = constraint("at_most", event={"tool": "refund", "arguments": {"order": "A"}}, count=count)
    other = call("refund", order="B")
    for done in range(5):
        events = [item for _ in range(done) for item in (call("refund", order="A"), other)]
        assert (judge(rule, events).status is Status.FAIL) == (done > count)


def test_never_looks_into_arguments_and_results():
    rule = constraint("never", event={"tool": ["refund", "credit"], "result": {"card.owner": "other"}})
    assert judge(rule, [call("refund", result={"card": {"owner": "self"}})]).status is Status.PASS
    assert judge(rule, [call("refund", result={"card": "other"})]).status is Status.PASS
    assert judge(rule, [call("look", result={"card": {"owner": "other"}})]).status is Status.PASS
    assert judge(rule, [call("credit", result={"card": {"owner": "other"}})]).status is Status.FAIL


@pytest.mark.parametrize(
    ("clock", "status"),
    [
        ("2026-03-01T08:59:59Z", "fail"),
        ("2026-03-01T09:00:00Z", "pass"),
        ("2026-03-01T17:00:00Z", "pass"),
        ("2026-03-01T17:00:01Z", "fail"),
        ("", "undetermined"),
        (None, "undetermined"),
    ],
)
def test_only_within_a_window(clock, status):
    """Law 1: a call at an unknown time is neither inside nor outside."""
    rule = constraint("only_within", event={"tool": "refund"}, start="2026-03-01T09:00:00Z", end="2026-03-01T17:00:00Z")
    assert judge(rule, [call("refund", clock=clock)]).status is Status(status)
    assert judge(rule, [call("look", clock=clock)]).status is Status.PASS


# What can't be told ------------------------------------------------------------------------------------------------


def _with_gaps(pattern, event):
    """As `matches`, but a call with ``unsure`` in it may or may not be meant."""
    found = matches(pattern, event)
    unsure = event.get("arguments", {}).get("unsure", False)
    return Status.UNDETERMINED if found is Status.PASS and unsure else found


def _meanings(events):
    """Every reading of the unsure calls: each either happened as meant, or was something else."""
    unsure = [number for number, event in enumerate(events) if event["arguments"].get("unsure")]
    for truth in itertools.product([True, False], repeat=len(unsure)):
        reading = [{**event, "arguments": {**event["arguments"], "unsure": False}} for event in events]
        for number, meant in zip(unsure, truth, strict=True):
            if not meant:
                reading[number]["tool"] = "other"
        yield reading


RULES = {
    "requires": VERIFY_FIRST,
    "requires-once": VERIFY_FIRST.model_copy(update={"once": True}),
    "approved-once": APPROVED,
    "never": constraint("never", event={"tool": "refund"}),
    "at-most": constraint("at_most", event={"tool": "refund"}, count=1),
    "within": constraint("only_within", event={"tool": "refund"}, end="2026-03-01T10:00:00Z"),
}

uncertain_events = st.lists(
    st.builds(
        lambda tool, amount, unsure, late: call(
            tool,
            customer="C1",
            amount=amount,
            unsure=unsure,
            clock="2026-03-01T11:00:00Z" if late else "2026-03-01T09:00:00Z",
        ),
        st.sampled_from(["verify", "approve", "refund"]),
        st.integers(1, 3),
        st.booleans(),
        st.booleans(),
    ),
    max_size=5,
)


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=150)
@given(events=uncertain_events)
def test_open_means_that_readings_differ(name, events):
    """Law 1: a result is pass or fail only when every reading of what can't be told agrees."""
    rule = RULES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_envs.evaluator.constraints.matches", _with_gaps)
        found = judge(rule, events).status
        statuses = {judge(rule, reading).status for reading in _meanings(events)}
    # Served once each, the unsure calls can stand in one another's way, and the bounds are not always tight: then the
    # result may stay open although all readings agree, but it never says what some reading denies.
    if found is Status.UNDETERMINED:
        assert rule.constraint == "requires_before" or len(statuses) == 2
    else:
        assert statuses == {found}


def test_a_python_constraint_sees_the_events_and_can_break(monkeypatch):
    seen = []

    def function(name, events):
        seen.append(list(events))
        return (Status.FAIL, "three is too many") if len(events) > 2 else (Status.PASS, "few")

    monkeypatch.setattr("agent_envs.evaluator.constraints.call_function", function)
    rule = constraint("python", function="agent_envs.somewhere:function")
    events = [call("a"), call("b", "error"), call("c")]
    assert judge(rule, events[:2]).status is Status.PASS
    assert judge(rule, events).explanation == "three is too many"
    assert events in seen


@pytest.mark.parametrize(
    "function",
    [
        "agent_envs.nowhere:function",
        "agent_envs.contract:nothing",
        "agent_envs.contract:digest",
        "agent_envs.contract:AgentTask",
        "agent_envs.contract:OUTCOME_TABLE",
    ],
)
def test_a_python_constraint_that_fails_itself_decides_nothing(function):
    """B005, B115; law 1."""
    result = judge(constraint("python", function=function), [call("a")])
    assert result.status is Status.UNDETERMINED
    assert function in result.explanation


@pytest.mark.parametrize("returned", [True, 1.0, float("nan"), None, "passed", (True, "x"), ("pass",), (Status.PASS,)])
def test_a_python_check_must_return_a_status_with_words(returned, monkeypatch):
    """B140: a truth value, a number or half an answer is no verdict."""
    from agent_envs import contract

    monkeypatch.setattr(contract, "odd", lambda events: returned, raising=False)
    assert judge(constraint("python", function="agent_envs.contract:odd"), []).status is Status.UNDETERMINED


@pytest.mark.parametrize("event", [{}, {"tool": "refund"}, {"tool": "refund", "status": "ok"}, {"tool": None}])
def test_a_scanty_entry_is_no_crash(event):
    for rule in (VERIFY_FIRST, CONFIRMED, APPROVED, *RULES.values()):
        assert Monitor(rule).feed(event) is None
