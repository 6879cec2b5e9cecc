"""What becomes of a try: its class by the campaign's outcome table, and whether the attempt is settled or tried again.

Pure functions of records and rules declared before the first attempt, so a resumed campaign decides as the first one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from agent_envs.campaign.health import failed_after
from agent_envs.campaign.manifest import Manifest
from agent_envs.contract import AgentRun, Limits, OutcomeClass, Terminal, classify, consequences
from agent_envs.contract.outcomes import OUTCOME_TABLE, Table

LIMITS = ("steps", "wall_seconds", "tokens", "cost")
"""Limits that a system may tighten and that a further try does not get anew."""
_AGENTS = frozenset((OutcomeClass.AGENT_FAILURE, OutcomeClass.HARNESS_INCOMPATIBILITY))


@dataclass(frozen=True)
class Rules:
    """What the manifest declared."""

    table: Table = field(default_factory=lambda: OUTCOME_TABLE)
    """Outcome table with the manifest's own rows."""
    classes: tuple[OutcomeClass, ...] = ()
    """Classes that are tried again, where the row of the table allows it."""
    max_tries: int = 1
    """Tries of one attempt, the first included."""

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """The rules of a campaign."""
        return cls(manifest.outcome_table, manifest.retry.classes, manifest.retry.max_tries)


class Ruling(NamedTuple):
    """A try as it is recorded."""

    run: AgentRun
    settles: bool
    """The run is its attempt's record; otherwise the attempt is tried again."""
    reason: str
    """Why, for people."""
    reclassified_from: Terminal | None
    """How the try ended by itself, where the probe right after it says otherwise."""


def decide(run: AgentRun, probes: Iterable[Mapping[str, Any]], earlier: Sequence[AgentRun], rules: Rules) -> Ruling:
    """Class a try and say what follows.

    Args:
        run: Its record.
        probes: Health probes around it.
        earlier: The attempt's earlier tries, all invalid.
        rules: The campaign's.
    """
    terminal, before = run.terminal, None
    success = None if run.verdict is None else run.verdict.Y
    outcome, row = classify(terminal, success, rules.table)
    if outcome in _AGENTS and (broken := failed_after(probes)) is not None:
        terminal, before = broken, terminal
        outcome, row = classify(terminal, None, rules.table)
    status = "faulted" if before is not None else run.infrastructure_status
    update = {"terminal": terminal, "outcome_class": outcome, "counts": row.counts, "infrastructure_status": status}
    run = run.model_copy(update=update)
    return Ruling(run, *settles([*earlier, run], rules), before)


def settles(tries: Sequence[AgentRun], rules: Rules) -> tuple[bool, str]:
    """Whether an attempt is settled by the last of its tries, and why."""
    last = tries[-1]
    if last.counts:
        return True, f"counts: {last.outcome_class.value}"
    kind = last.terminal.kind
    if last.outcome_class not in rules.classes or not consequences(last.terminal, rules.table).retry:
        return True, f"invalid, and {kind} is not tried again"
    if len(tries) >= rules.max_tries:
        return True, f"invalid, and all {len(tries)} tries are used"
    if spent := [name for name, left in limits_left(tries).items() if left <= 0]:
        return True, f"invalid ({kind}), and nothing is left of its limit on {', '.join(spent)}"
    return False, f"invalid ({kind}), tried again"


def limits_left(tries: Sequence[AgentRun]) -> dict[str, Any]:
    """What invalid tries have left of each limit: a further try goes on with the budget, it doesn't get a new one.

    What a try doesn't report (of a lost process, say) can't be taken off.
    """
    if not tries:
        return {}
    used = {
        "steps": sum(run.usage.steps for run in tries),
        "wall_seconds": sum(run.seconds for run in tries),
        "tokens": sum(run.usage.tokens or 0 for run in tries),
        "cost": sum(run.usage.cost or 0.0 for run in tries),
    }
    first = tries[0].limits
    return {name: limit - used[name] for name in LIMITS if (limit := getattr(first, name)) is not None}


def tighter(limits: Limits, given: Mapping[str, Any]) -> Limits:
    """The tighter of two budgets, limit by limit."""
    wanted = {name: value for name, value in given.items() if value is not None}
    own = {name: getattr(limits, name) for name in wanted}
    update = {name: value if own[name] is None else min(value, own[name]) for name, value in wanted.items()}
    return limits.model_copy(update=update)
