"""The outcome table: every way of ending has one class, and what nobody recognises counts for nothing."""

import pytest

from agent_envs.contract import OUTCOME_TABLE, OutcomeClass, Status, Terminal, classify, consequences


@pytest.mark.parametrize("key", list(OUTCOME_TABLE), ids="-".join)
def test_every_row_follows_from_its_origin(key):
    """Law 8: limits are scored, faults are not."""
    phase, origin, kind = key
    terminal = Terminal(phase=phase, origin=origin, kind=kind)
    row = consequences(terminal)
    classes = {
        "agent": OutcomeClass.AGENT_FAILURE,
        "harness": OutcomeClass.HARNESS_INCOMPATIBILITY,
        "environment": OutcomeClass.ENVIRONMENT_FAILURE,
        "grader": OutcomeClass.GRADER_FAILURE,
    }
    assert classify(terminal, Status.FAIL)[0] is classes[origin]
    assert row.counts == (origin in ("agent", "harness"))
    assert row.retry == (origin == "environment")
    assert (classify(terminal, Status.PASS)[0] is OutcomeClass.SUCCESS) == row.judged
    if row.judged:
        assert origin == "agent"


@pytest.mark.parametrize(
    "kind", ["step_limit", "call_limit", "wall_time_limit", "token_limit", "cost_limit", "user_stop"]
)
def test_a_limit_reached_is_judged_by_the_state(kind):
    """B117: the goal reached before the limit is a success."""
    terminal = Terminal(phase="act", origin="agent", kind=kind)
    assert classify(terminal, Status.PASS)[0] is OutcomeClass.SUCCESS
    assert classify(terminal, Status.FAIL)[0] is OutcomeClass.AGENT_FAILURE


@pytest.mark.parametrize("status", [Status.UNDETERMINED, None])
def test_a_judged_ending_without_a_verdict_is_the_graders_failure(status):
    """B115: no verdict is never read as 0."""
    found, row = classify(Terminal(phase="act", origin="agent", kind="finished"), status)
    assert found is OutcomeClass.GRADER_FAILURE
    assert not row.counts
    assert row.regrade


@pytest.mark.parametrize("status", [*Status, None])
@pytest.mark.parametrize(
    "terminal",
    [
        Terminal(phase="act", origin="harness", kind="step_error"),
        Terminal(phase="reset", origin="agent", kind="finished"),
        Terminal(phase="act", origin="environment", kind="finished"),
        Terminal(phase="act", origin="agent", kind=""),
        Terminal(phase="record", origin="harness", kind="disk"),
    ],
    ids=lambda terminal: f"{terminal.phase}-{terminal.origin}-{terminal.kind}",
)
def test_an_unknown_ending_is_neither_success_nor_failure(terminal, status):
    """B142; law 8."""
    found, row = classify(terminal, status)
    assert found is OutcomeClass.UNCLASSIFIED
    assert not (row.counts or row.judged or row.retry)
