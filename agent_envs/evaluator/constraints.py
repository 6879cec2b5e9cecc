"""Process constraints: past-time predicates over the event log, evaluated event by event.

Each monitor sees the log entries once, in order, keeps only what it needs, and can say after every entry whether the
constraint is breached. A call that was refused, denied, broken off or invalid never counts as having happened.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from agent_envs.contract.canonical import canonical_json
from agent_envs.contract.outcome import (
    AtMost,
    ConfirmedBefore,
    Constraint,
    EventPattern,
    Never,
    OnlyWithin,
    PythonConstraint,
    RequiresBefore,
    Same,
    lookup,
)
from agent_envs.contract.verdict import CheckResult, Status
from agent_envs.evaluator.functions import call_function
from agent_envs.evaluator.matching import paired_items
from agent_envs.evaluator.values import MISSING, fits

Event = Mapping[str, Any]
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


class Monitor:
    """Follows one constraint through an episode."""

    def __init__(self, constraint: Constraint) -> None:
        """Start before the first event."""
        self.constraint = constraint
        self._events: list[Event] = []
        """All events, for a ``python`` constraint."""
        self._first: list[tuple[Event, Status]] = []
        """Events that a later one may need, and whether they certainly are such."""
        self._certain: list[list[int]] = []
        """For each later event: which of the certain earlier ones fit it. Kept only where each serves once."""
        self._possible: list[list[int]] = []
        """The same for the later events that certainly count, over all earlier ones."""
        self._count = {Status.PASS: 0, Status.UNDETERMINED: 0}
        self._breaches: list[str] = []
        self._open: list[str] = []

    @property
    def breached(self) -> bool:
        """Whether the constraint is broken for good."""
        if isinstance(self.constraint, PythonConstraint):
            return call_function(self.constraint.function, self._events)[0] is Status.FAIL
        return bool(self._breaches)

    def feed(self, event: Event) -> None:
        """Take the next log entry."""
        constraint = self.constraint
        if constraint.tools and event.get("tool") not in constraint.tools:
            return
        match constraint:
            case RequiresBefore():
                self._requires(event, constraint.first, constraint.then, constraint.same, constraint.once)
            case ConfirmedBefore():
                self._requires(event, constraint.confirmed, constraint.action, constraint.same, once=True)
            case Never():
                self._judge(matches(constraint.event, event), event, "happened")
            case AtMost():
                status = matches(constraint.event, event)
                if status is not Status.FAIL:
                    self._count[status] += 1
                what = f"is one more than the {constraint.count} allowed"
                if status is Status.PASS and self._count[status] > constraint.count:
                    self._judge(status, event, what)
                elif status is not Status.FAIL and sum(self._count.values()) > constraint.count:
                    self._judge(Status.UNDETERMINED, event, f"perhaps {what}")
            case OnlyWithin():
                clock = event.get("clock")
                if not isinstance(clock, str) or not clock:
                    status = Status.all_of((matches(constraint.event, event), Status.UNDETERMINED))
                    self._judge(status, event, "happened at an unknown time")
                elif clock < (constraint.start or clock) or clock > (constraint.end or clock):
                    self._judge(matches(constraint.event, event), event, f"happened at {clock}")
            case PythonConstraint():
                self._events.append(event)

    def result(self) -> CheckResult:
        """The constraint's status over the events so far."""
        if isinstance(self.constraint, PythonConstraint):
            status, explanation = call_function(self.constraint.function, self._events)
        elif self._breaches:
            status, explanation = Status.FAIL, "; ".join(self._breaches[:5])
        elif self._open:
            status, explanation = Status.UNDETERMINED, "; ".join(self._open[:5])
        else:
            status, explanation = Status.PASS, "kept"
        return CheckResult(
            name=self.constraint.name,
            status=status,
            expected=self.constraint.constraint,
            actual=len(self._breaches),
            explanation=explanation,
        )

    def _judge(self, status: Status, event: Event, what: str) -> None:
        if status is not Status.FAIL:
            where = f"step {event.get('step')}: {event.get('tool')} {what}"
            (self._breaches if status is Status.PASS else self._open).append(where)

    def _requires(
        self, event: Event, first: EventPattern, then: EventPattern, same: Iterable[Same], once: bool
    ) -> None:
        happened = matches(then, event)
        if happened is not Status.FAIL:
            fitting = [
                number
                for number, (earlier, _) in enumerate(self._first)
                if all(_belong(earlier, event, pair) for pair in same)
            ]
            certain = [number for number in fitting if self._first[number][1] is Status.PASS]
            about = ", ".join(f"{pair.then}={_shown(event, pair.then)}" for pair in same)
            what = f"({about}) had no {' or '.join(first.tools)} before it that fits"
            # Broken when no reading of the undetermined events serves every call that certainly happened; kept when
            # the certain ones alone serve every call that may have.
            if happened is Status.PASS and not self._served(self._possible, fitting, once):
                self._judge(Status.PASS, event, what)
            elif not self._served(self._certain, certain, once):
                self._judge(Status.UNDETERMINED, event, what)
        status = matches(first, event)
        if status is not Status.FAIL:
            self._first.append((event, status))

    def _served(self, served: list[list[int]], fitting: list[int], once: bool) -> bool:
        """Whether an event finds an earlier one that fits; where each serves once, one that no other event needs."""
        if not once:
            return bool(fitting)
        served.append(fitting)
        return len(served) - 1 in paired_items(served, len(self._first))


def matches(pattern: EventPattern, event: Event) -> Status:
    """Whether a log entry is one that the pattern means."""
    if event.get("tool") not in pattern.tools:
        return Status.FAIL
    if pattern.status == "ok" and event.get("status") != "ok":
        return Status.FAIL
    result = Status.PASS
    for part, expectations in (("arguments", pattern.arguments), ("result", pattern.result)):
        for path, expected in expectations.items():
            found, value = lookup(event.get(part) or {}, path)
            status = fits(expected, value if found else MISSING)
            if status is Status.FAIL:
                return status
            if status is Status.UNDETERMINED:
                result = status
    return result


def _belong(first: Event, then: Event, pair: Same) -> bool:
    found_first, one = lookup(first, pair.first)
    found_then, other = lookup(then, pair.then)
    if not (found_first and found_then) or one is None or other is None:
        return False
    if pair.relation == "equal":
        return type(one) is type(other) and (one.strip() == other.strip() if isinstance(one, str) else one == other)
    a, b = _decimal(one), _decimal(other)
    if a is None or b is None:
        return False
    return a == b if pair.relation == "equal_number" else a >= b


def _decimal(value: Any) -> Decimal | None:
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _shown(event: Event, path: str) -> str:
    found, value = lookup(event, path)
    if not found:
        return "nothing"
    return (canonical_json(value).decode() if isinstance(value, dict | list) else repr(value))[:60]
