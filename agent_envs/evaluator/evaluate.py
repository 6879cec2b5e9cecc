"""evaluate(task, evidence) -> verdict: a pure function of frozen evidence.

It sees no live environment and runs nothing of the agent's. The answer is read only where the task's product is an
answer. ``Y = G * product of C_j``, each in three values.
"""

from collections.abc import Mapping
from decimal import Decimal

from agent_envs.contract.canonical import decimal_text, untyped
from agent_envs.contract.errors import EvidenceError
from agent_envs.contract.evidence import Evidence
from agent_envs.contract.outcome import AnswerAssertion, Assertion, ChangesAssertion, PythonAssertion, TotalAssertion
from agent_envs.contract.outcomes import OutcomeClass, consequences
from agent_envs.contract.task import AgentTask
from agent_envs.contract.verdict import CheckResult, Status, Verdict
from agent_envs.evaluator.changes import check_changes
from agent_envs.evaluator.constraints import Monitor
from agent_envs.evaluator.functions import call_function
from agent_envs.evaluator.values import MISSING, compare


def evaluate(task: AgentTask, evidence: Evidence) -> Verdict:
    """Judge an episode.

    Evidence with gaps, and evidence of an episode that an environment fault ended, leaves every check undetermined.

    Raises:
        EvidenceError: The evidence is of another task, or of another version of it.
    """
    if (evidence.task_id, evidence.task_digest) != (task.task_id, task.digest):
        raise EvidenceError(
            f"the evidence is of {evidence.task_id} ({evidence.task_digest[:12]}), the task is {task.task_id} "
            f"({task.digest[:12]}): judge it with the task it was made with, or run the task again"
        )
    monitors = [Monitor(constraint) for constraint in task.constraints]
    for event in evidence.events:
        for monitor in monitors:
            monitor.feed(event)
    assertions = tuple(check(assertion, evidence) for assertion in task.outcome)
    constraints = tuple(monitor.result() for monitor in monitors)
    if unjudgeable := _unjudgeable(evidence):
        assertions, constraints = (
            tuple(
                result.model_copy(update={"status": Status.UNDETERMINED, "explanation": unjudgeable})
                for result in results
            )
            for results in (assertions, constraints)
        )
    good = Status.all_of(result.status for result in assertions)
    kept = Status.all_of(result.status for result in constraints)
    return Verdict(
        task_id=task.task_id,
        task_revision=task.task_revision,
        task_digest=task.digest,
        grader_revision=task.grader_revision,
        evidence_digest=evidence.digest,
        assertions=assertions,
        constraints=constraints,
        G=good,
        C=kept,
        Y=Status.all_of((good, kept)),
        partial_score=_partial_score(task, {result.name: result.status for result in (*assertions, *constraints)}),
    )


def check(assertion: Assertion, evidence: Evidence) -> CheckResult:
    """Judge one outcome assertion."""
    match assertion:
        case ChangesAssertion():
            return check_changes(assertion, evidence.changes)
        case AnswerAssertion():
            actual = (evidence.answer or {}).get(assertion.field, MISSING)
            result = compare(assertion.expect, actual)
            return CheckResult(
                name=assertion.name,
                status=result.status,
                expected=assertion.expect.as_json(),
                actual=None if actual is MISSING else actual,
                explanation=result.explanation,
            )
        case TotalAssertion():
            return _total(assertion, evidence)
        case PythonAssertion():
            status, explanation = call_function(assertion.function, evidence)
            return CheckResult(
                name=assertion.name, status=status, expected=assertion.function, actual=None, explanation=explanation
            )


def _total(assertion: TotalAssertion, evidence: Evidence) -> CheckResult:
    total, rows = Decimal(0), 0
    unknown: list[str] = []
    for change in evidence.changes:
        row = change.after
        if (change.channel, change.table) != (assertion.channel, assertion.table) or change.before or row is None:
            continue
        counted = Status.all_of(
            compare(want, row.get(column, MISSING)).status for column, want in assertion.where.items()
        )
        value = untyped(row.get(assertion.column))
        if counted is Status.FAIL:
            continue
        if counted is Status.UNDETERMINED or isinstance(value, bool) or not isinstance(value, Decimal | int):
            unknown.append(change.label)
            continue
        total += value
        rows += 1
    result = compare(assertion.expect, {"$decimal": decimal_text(total)})
    return CheckResult(
        name=assertion.name,
        status=Status.UNDETERMINED if unknown else result.status,
        expected=assertion.expect.as_json(),
        actual=decimal_text(total),
        explanation=f"sum of {assertion.table}.{assertion.column} over {rows} new rows: {result.explanation}"
        + (f"; whether and how {', '.join(unknown[:5])} count can't be told" if unknown else ""),
    )


def _unjudgeable(evidence: Evidence) -> str:
    if evidence.gaps:
        return f"the evidence has gaps: {'; '.join(evidence.gaps)}"
    row = consequences(evidence.terminal)
    if not row.judged and row.outcome_class is not OutcomeClass.HARNESS_INCOMPATIBILITY:
        return f"the episode is void: {evidence.terminal.kind} ({evidence.terminal.detail})"[:500]
    return ""


def _partial_score(task: AgentTask, statuses: Mapping[str, Status]) -> float | None:
    if not task.rubric or any(statuses[item.check] is Status.UNDETERMINED for item in task.rubric):
        return None
    passed = sum(item.weight for item in task.rubric if statuses[item.check] is Status.PASS)
    return passed / sum(item.weight for item in task.rubric)
