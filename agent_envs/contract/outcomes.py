"""The outcome table: how each way of ending is classed, and what follows from the class.

One versioned table, keyed by (phase, origin, kind). The runner, the statistics and the reports all derive from it. A
way of ending that is not in the table is *unclassified*: invalid and quarantined, never a zero and never a pass.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from agent_envs.contract.evidence import Terminal
from agent_envs.contract.verdict import Status

OUTCOME_TABLE_VERSION = 2


class OutcomeClass(StrEnum):
    """What an attempt says, and of whom."""

    SUCCESS = "success"
    AGENT_FAILURE = "agent_failure"
    HARNESS_INCOMPATIBILITY = "harness_incompatibility"
    ENVIRONMENT_FAILURE = "environment_failure"
    GRADER_FAILURE = "grader_failure"
    UNCLASSIFIED = "unclassified"


class Consequences(NamedTuple):
    """What follows from a row of the table."""

    judged: bool
    """The verdict decides between success and agent failure."""
    outcome_class: OutcomeClass
    """The class where the verdict doesn't decide."""
    retry: bool
    """The attempt may be repeated."""
    counts: bool
    """The attempt is in the denominator."""
    regrade: bool
    """Judging the kept evidence again may settle it."""


_JUDGED = Consequences(True, OutcomeClass.AGENT_FAILURE, retry=False, counts=True, regrade=False)
_AGENT = Consequences(False, OutcomeClass.AGENT_FAILURE, retry=False, counts=True, regrade=False)
_HARNESS = Consequences(False, OutcomeClass.HARNESS_INCOMPATIBILITY, retry=False, counts=True, regrade=False)
_ENVIRONMENT = Consequences(False, OutcomeClass.ENVIRONMENT_FAILURE, retry=True, counts=False, regrade=False)
_GRADER = Consequences(False, OutcomeClass.GRADER_FAILURE, retry=False, counts=False, regrade=True)
UNCLASSIFIED = Consequences(False, OutcomeClass.UNCLASSIFIED, retry=False, counts=False, regrade=False)

OUTCOME_TABLE: dict[tuple[str, str, str], Consequences] = {
    ("act", "agent", "finished"): _JUDGED,
    ("act", "agent", "stopped"): _JUDGED,
    ("act", "agent", "user_stop"): _JUDGED,
    ("act", "agent", "forbidden_action"): _JUDGED,
    ("act", "agent", "step_limit"): _JUDGED,
    ("act", "agent", "call_limit"): _JUDGED,
    ("act", "agent", "wall_time_limit"): _JUDGED,
    ("act", "agent", "token_limit"): _JUDGED,
    ("act", "agent", "cost_limit"): _JUDGED,
    ("act", "agent", "too_many_errors"): _JUDGED,
    ("act", "agent", "policy_error"): _AGENT,
    # The policy's process died in the policy's own code: exit, crash, out of memory.
    ("act", "agent", "policy_crash"): _AGENT,
    # The policy let no other code run when its time was up, so its process was killed and with it the state reached.
    # Not judged, yet counted: who blocks the judging must not leave the denominator by it.
    ("act", "agent", "policy_hung"): _AGENT,
    ("act", "harness", "too_many_invalid_calls"): _HARNESS,
    ("reset", "environment", "start_state_mismatch"): _ENVIRONMENT,
    ("reset", "environment", "reset_fault"): _ENVIRONMENT,
    ("act", "environment", "tool_fault"): _ENVIRONMENT,
    ("act", "environment", "channel_fault"): _ENVIRONMENT,
    ("act", "environment", "undeclared_write"): _ENVIRONMENT,
    # The worker died outside the policy's code, or the machine it ran on is gone.
    ("act", "environment", "worker_lost"): _ENVIRONMENT,
    ("grade", "grader", "grader_fault"): _GRADER,
    ("grade", "grader", "disagreement"): _GRADER,
}


Table = Mapping[tuple[str, str, str], Consequences]


def consequences(terminal: Terminal, table: Table = OUTCOME_TABLE) -> Consequences:
    """Look a way of ending up; an unknown one is unclassified."""
    return table.get((terminal.phase, terminal.origin, terminal.kind), UNCLASSIFIED)


def classify(
    terminal: Terminal, success: Status | None, table: Table = OUTCOME_TABLE
) -> tuple[OutcomeClass, Consequences]:
    """Class and consequences of an attempt.

    Args:
        terminal: Why the episode ended.
        success: The verdict's Y, or None when there is no verdict.
        table: The outcome table; a campaign's may have rows of its own.

    Returns:
        The class, and the row it follows from. A judged ending without a determined verdict is a grader failure.
    """
    row = consequences(terminal, table)
    if not row.judged:
        return row.outcome_class, row
    if success is Status.PASS:
        return OutcomeClass.SUCCESS, row
    if success is Status.FAIL:
        return OutcomeClass.AGENT_FAILURE, row
    return OutcomeClass.GRADER_FAILURE, _GRADER
