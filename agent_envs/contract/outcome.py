"""How a task says what success is: outcome assertions over changes, and constraints over recorded events.

Outcome assertions look at initial and final state only. Constraints look at the order of recorded facts, and only at
facts the task demands; they never prescribe a favourite route.
"""

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from agent_envs.contract.expected import Exact, Expected
from agent_envs.contract.model import Model


class ExpectedChange(Model):
    """A pattern over changed rows. Values are compared by their declared type."""

    table: str
    """Table the row belongs to."""
    channel: str = "database"
    """State channel of the table."""
    kind: Literal["insert", "update", "delete", "any"] = "any"
    """What happened to the row."""
    key: dict[str, Expected] = {}
    """Columns of the primary key that must match; the others may hold anything."""
    values: dict[str, Expected] = {}
    """Columns after the change (of a deletion: before it) that must match."""
    free: tuple[str, ...] = ()
    """For an update: columns that may change to anything. Columns in neither ``values`` nor here must stay."""
    count: int = Field(default=1, ge=0)
    """How many rows of this kind the outcome has; 0 forbids such rows, also where ``allow`` would let them pass.
    Ignored in ``allow``, where any number may match."""

    @functools.cached_property
    def description(self) -> str:
        """One line for people: ``insert refunds (amount=25 USD)``."""
        parts = [f"{column}={_short(value)}" for column, value in (*self.key.items(), *self.values.items())]
        times = "" if self.count == 1 else f"{self.count} x "
        return f"{times}{self.kind} {self.table} ({', '.join(parts)})"[:600]


def _short(expected: Expected) -> str:
    values = expected.model_dump(mode="json", exclude_defaults=True).values()
    return " ".join(str(value) for value in values)[:80] or "null"


class ChangesAssertion(Model):
    """The exact change set: every expected row changed as stated, and nothing else outside ``allow``."""

    check: Literal["changes"]
    name: str = "changes"
    """Name shown in verdicts."""
    expect: tuple[ExpectedChange, ...] = ()
    """Rows that must have changed."""
    either: tuple[tuple[ExpectedChange, ...], ...] = ()
    """Alternative right outcomes: beside ``expect``, exactly one of these groups must hold."""
    allow: tuple[ExpectedChange, ...] = ()
    """Rows that may have changed in any number, such as notes and look-up logs."""

    @model_validator(mode="after")
    def _positive_evidence(self) -> Self:
        # Each alternative by itself: one that asks for nothing would let doing nothing pass.
        for group in self.either or ((),):
            if not any(change.count for change in (*self.expect, *group)):
                raise ValueError(
                    "a 'changes' assertion needs at least one expected change with count > 0 (in 'expect' or in every "
                    "'either' group): with none, doing nothing would pass (record a refusal or hand-over as a change)"
                )
        return self


class AnswerAssertion(Model):
    """One field of the declared answer, compared by type. Only for tasks whose product is an answer."""

    check: Literal["answer"]
    name: str = "answer"
    """Name shown in verdicts."""
    field: str
    """Field of the answer given to ``finish``."""
    expect: Expected
    """The value that field must have."""


class TotalAssertion(Model):
    """The exact sum of a decimal column over the rows that were added, for amounts that may be split lawfully."""

    check: Literal["total"]
    name: str = "total"
    """Name shown in verdicts."""
    table: str
    """Table of the new rows."""
    channel: str = "database"
    """State channel of the table."""
    column: str
    """Column to add up."""
    where: dict[str, Expected] = {}
    """Which new rows count."""
    expect: Expected
    """The sum."""


class PythonAssertion(Model):
    """Escape hatch: a pure function ``(evidence) -> (status, explanation)`` named ``package.module:function``."""

    check: Literal["python"]
    name: str
    """Name shown in verdicts."""
    function: str = Field(pattern=r"^agent_envs(\.\w+)+:\w+$")
    """Where the function stands."""


Assertion = Annotated[
    ChangesAssertion | AnswerAssertion | TotalAssertion | PythonAssertion, Field(discriminator="check")
]


ToolName = Annotated[str, Field(min_length=1)]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
"""A moment as the virtual clock writes it, such as ``2026-03-01T09:30:00Z``: comparing the texts compares the times."""


class EventPattern(Model):
    """Which recorded calls are meant. A failed call never matches unless ``status`` says so."""

    tool: ToolName | Annotated[tuple[ToolName, ...], Field(min_length=1)]
    """Name of the tool, or several."""
    arguments: dict[str, Expected] = {}
    """Dotted path into the arguments to its expected value."""
    result: dict[str, Expected] = {}
    """Dotted path into the structured result to its expected value."""
    status: Literal["ok", "attempted"] = "ok"
    """``ok``: the call took effect. ``attempted``: also refused, denied and failed calls."""

    @functools.cached_property
    def tools(self) -> tuple[str, ...]:
        """The tool names as a tuple."""
        return (self.tool,) if isinstance(self.tool, str) else self.tool


class Same(Model):
    """Two recorded values that must belong together, by dotted path such as ``arguments.order_id``."""

    first: str
    """Path in the earlier event."""
    then: str
    """Path in the later event."""
    relation: Literal["equal", "equal_number", "at_least"] = "equal"
    """``equal``: the same id or text. ``equal_number``: the same amount however written. ``at_least``: the earlier
    number is at least the later one (an approval covers the amount)."""


class _Constraint(Model):
    name: str
    """Name shown in verdicts."""
    on_breach: Literal["record", "terminate"] = "record"
    """``terminate`` ends the episode at once with reason ``forbidden_action``."""

    @functools.cached_property
    def tools(self) -> frozenset[str]:
        """Tools whose events the constraint looks at; empty: every event."""
        patterns = (getattr(self, name) for name in type(self).model_fields)
        return frozenset(tool for pattern in patterns if isinstance(pattern, EventPattern) for tool in pattern.tools)


class RequiresBefore(_Constraint):
    """Each ``then`` event needs an earlier ``first`` event about the same entity."""

    constraint: Literal["requires_before"]
    first: EventPattern
    then: EventPattern
    same: tuple[Same, ...] = ()
    """Values that tie the two together."""
    once: bool = False
    """Each ``first`` event serves one ``then`` event only."""


class ConfirmedBefore(_Constraint):
    """Each ``action`` needs the user's recorded yes to a proposal of that very action."""

    constraint: Literal["confirmed_before"]
    action: EventPattern
    confirmed: EventPattern = EventPattern(tool="send_message", result={"customer.accepted": Exact(exact=True)})
    """The event in which the user says yes."""
    same: tuple[Same, ...] = Field(min_length=1)
    """Values of the proposal (``first``, such as ``arguments.propose.amount``) and the action that must be equal."""


class Never(_Constraint):
    """No such event."""

    constraint: Literal["never"]
    event: EventPattern


class AtMost(_Constraint):
    """At most ``count`` such events."""

    constraint: Literal["at_most"]
    event: EventPattern
    count: int = Field(ge=1)


class OnlyWithin(_Constraint):
    """Such events happen only while the virtual clock is inside ``[start, end]`` (ISO 8601, UTC)."""

    constraint: Literal["only_within"]
    event: EventPattern
    start: Moment | None = None
    end: Moment | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.start is None and self.end is None:
            raise ValueError("give 'start', 'end' or both: without a bound the constraint is always true")
        if self.start is not None and self.end is not None and self.start > self.end:
            raise ValueError(f"start {self.start} is after end {self.end}: nothing could ever happen within")
        return self


class PythonConstraint(_Constraint):
    """Escape hatch: a pure function ``(events) -> (status, explanation)`` named ``package.module:function``."""

    constraint: Literal["python"]
    function: str = Field(pattern=r"^agent_envs(\.\w+)+:\w+$")
    """Where the function stands; it gets the recorded events so far."""


Constraint = Annotated[
    RequiresBefore | ConfirmedBefore | Never | AtMost | OnlyWithin | PythonConstraint,
    Field(discriminator="constraint"),
]


def lookup(event: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Follow a dotted path into a recorded event.

    Returns:
        Whether the path exists, and its value (None where it doesn't).
    """
    value: Any = event
    for part in path.split("."):
        if not (type(value) is dict or isinstance(value, Mapping)) or part not in value:
            return False, None
        value = value[part]
    return True, value
