"""The exact change set: every expected row changed as stated, and nothing else outside what is allowed."""

from collections.abc import Iterable, Sequence

from agent_envs.contract.canonical import canonical_json
from agent_envs.contract.change import Change
from agent_envs.contract.outcome import ChangesAssertion, ExpectedChange
from agent_envs.contract.verdict import CheckResult, Status
from agent_envs.evaluator.matching import paired_items
from agent_envs.evaluator.values import MISSING, compare, fits

_MOST_SHOWN = 12


def check_changes(assertion: ChangesAssertion, changes: Sequence[Change]) -> CheckResult:
    """Compare a net change set with what a task expects and allows.

    With ``either``, the group that fits best explains a failure.
    """
    groups = [(*assertion.expect, *group) for group in assertion.either] or [assertion.expect]
    results = [_check_group(group, assertion.allow, changes) for group in groups]
    status, faults = min(results, key=lambda item: (_ORDER[item[0]], len(item[1])))
    right = "the expected rows changed as stated, and nothing else did"
    return CheckResult(
        name=assertion.name,
        status=status,
        expected=[item.description for item in groups[results.index((status, faults))]],
        actual=[describe(change) for change in changes[:_MOST_SHOWN]]
        + ([f"... {len(changes) - _MOST_SHOWN} more"] if len(changes) > _MOST_SHOWN else []),
        explanation="; ".join(faults[:_MOST_SHOWN]) or right,
    )


_ORDER = {Status.PASS: 0, Status.UNDETERMINED: 1, Status.FAIL: 2}


def _check_group(
    expected: Sequence[ExpectedChange], allowed: Sequence[ExpectedChange], changes: Sequence[Change]
) -> tuple[Status, list[str]]:
    slots = [item for item in expected for _ in range(item.count)]
    fits = [
        [match(item, change) if item.table == change.table else Status.FAIL for change in changes] for item in slots
    ]
    may = [_best(match(item, change) for item in allowed if item.table == change.table) for change in changes]
    none = [_best(match(item, change) for item in expected if item.count == 0) for change in changes]
    for lenient, status in ((False, Status.PASS), (True, Status.UNDETERMINED)):
        faults = _faults(slots, changes, fits, may, lenient) + _forbidden(changes, none, lenient)
        if not faults:
            return status, [] if status is Status.PASS else ["a value could not be compared on this machine"]
    return Status.FAIL, faults


def _faults(
    slots: Sequence[ExpectedChange],
    changes: Sequence[Change],
    fits: Sequence[Sequence[Status]],
    may: Sequence[Status],
    lenient: bool,
) -> list[str]:
    """What stands in the way of pairing every slot with a change, and every change with a slot or an allowance."""

    def good(status: Status) -> bool:
        return status is Status.PASS or (lenient and status is Status.UNDETERMINED)

    # A pairing that fills all slots and one that covers all changes which aren't merely allowed exist together exactly
    # when both exist apart (Mendelsohn and Dulmage, 1958), so each side is checked by itself.
    options = [[column for column, status in enumerate(row) if good(status)] for row in fits]
    filled = paired_items(options, len(changes))
    needy = [column for column, status in enumerate(may) if not good(status)]
    claims = [[row for row, columns in enumerate(options) if column in columns] for column in needy]
    covered = paired_items(claims, len(slots))
    faults = []
    spare = [changes[column] for position, column in enumerate(needy) if position not in covered]
    for row, item in enumerate(slots):
        if row not in filled:
            faults.append(f"missing: {item.description}{_nearest(item, spare)}")
    faults += [f"unexpected change: {describe(change)}" for change in spare]
    return faults


def _forbidden(changes: Sequence[Change], none: Sequence[Status], lenient: bool) -> list[str]:
    """Changes that a pattern with ``count: 0`` rules out."""
    return [
        f"unexpected change: {describe(change)}"
        for change, status in zip(changes, none, strict=True)
        if status is Status.PASS or (status is Status.UNDETERMINED and not lenient)
    ]


def match(item: ExpectedChange, change: Change) -> Status:
    """Whether a change fits a pattern."""
    if (item.table, item.channel) != (change.table, change.channel) or item.kind not in ("any", kind_of(change)):
        return Status.FAIL
    # A pattern of any kind that names no column asks for the row only.
    if kind_of(change) == "update" and (item.kind == "update" or item.values or item.free):
        stay = altered(change) - set(item.values) - set(item.free)
        if stay:
            return Status.FAIL
    row = change.after if change.after is not None else change.before or {}
    result = Status.PASS
    for source, wanted in ((change.key, item.key), (row, item.values)):
        for column, expected in wanted.items():
            status = fits(expected, source.get(column, MISSING))
            if status is Status.FAIL:
                return status
            if status is Status.UNDETERMINED:
                result = status
    return result


def _best(statuses: Iterable[Status]) -> Status:
    """The best of several statuses; fail when there are none."""
    seen = set(statuses)
    return Status.PASS if Status.PASS in seen else Status.UNDETERMINED if Status.UNDETERMINED in seen else Status.FAIL


def kind_of(change: Change) -> str:
    """``insert``, ``update`` or ``delete``."""
    return "insert" if change.before is None else "delete" if change.after is None else "update"


def altered(change: Change) -> set[str]:
    """Columns that an update changed."""
    before, after = change.before or {}, change.after or {}
    return {column for column in after if after[column] != before.get(column, MISSING)}


def describe(change: Change) -> str:
    """One line for people: ``update orders/W1 (status: 'delivered' -> 'cancelled')``.

    Columns come in the order of their names: evidence read back from a file has lost any other.
    """
    kind = kind_of(change)
    if kind == "update" and change.before and change.after:
        detail = ", ".join(
            f"{column}: {_plain(change.before[column])} -> {_plain(change.after[column])}"
            for column in sorted(altered(change))
        )
    else:
        row = change.after or change.before or {}
        detail = ", ".join(f"{column}={_plain(value)}" for column, value in sorted(row.items()) if value is not None)
    return f"{kind} {change.label} ({detail})"[:600]


def _nearest(item: ExpectedChange, spare: Sequence[Change]) -> str:
    """Says what is wrong with the unexplained change that fits best, if one is of the same table and kind."""
    best: tuple[int, str] | None = None
    for change in spare:
        if (item.table, item.channel) != (change.table, change.channel) or item.kind not in ("any", kind_of(change)):
            continue
        row = change.after if change.after is not None else change.before or {}
        wrong = [
            f"{column}: {result.explanation}"
            for source, wanted in ((change.key, item.key), (row, item.values))
            for column, expected in wanted.items()
            if (result := compare(expected, source.get(column, MISSING))).status is not Status.PASS
        ]
        if kind_of(change) == "update":
            wrong += [f"{column} changed too" for column in sorted(altered(change) - set(item.values) - set(item.free))]
        if best is None or len(wrong) < best[0]:
            best = len(wrong), f" (nearest: {change.label}, {', '.join(wrong)})"
    return best[1][:400] if best else ""


def _plain(value: object) -> str:
    if isinstance(value, dict) and len(value) == 1:
        return str(next(iter(value.values())))[:80]
    return (canonical_json(value).decode() if isinstance(value, dict | list) else repr(value))[:80]
