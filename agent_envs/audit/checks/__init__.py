"""The checks, in the order in which they are made and shown. Each is written once for all families."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from agent_envs.audit.checks.determinism import check_determinism, check_replay
from agent_envs.audit.checks.gold import check_gold
from agent_envs.audit.checks.known_wrong import check_idle, check_known_wrong
from agent_envs.audit.checks.nothing_free import check_nothing_free
from agent_envs.audit.checks.reset import check_books, check_reset
from agent_envs.audit.checks.solvable import check_solvable
from agent_envs.audit.checks.tamper import check_tamper
from agent_envs.audit.finding import Finding
from agent_envs.audit.subject import Subject

TaskCheck = Callable[[Subject, str], Iterable[Finding]]
FamilyCheck = Callable[[Subject], Iterable[Finding]]


class Check(NamedTuple):
    """A check by name: of each task, or of the family as a whole."""

    name: str
    about: str
    """What it proves, in a few words."""
    task: TaskCheck | None = None
    family: FamilyCheck | None = None


CHECKS: tuple[Check, ...] = (
    Check("solvable", "references pass, every time alike", task=check_solvable),
    Check("nothing free", "cheap policies earn nothing", task=check_nothing_free),
    Check("known wrong", "wrong runs fail as stated", task=check_known_wrong),
    Check("idle", "every constraint can fail", family=check_idle),
    Check("books", "the state hash follows every row", task=check_books),
    Check("reset", "after dirty episodes as in a fresh process", family=check_reset),
    Check("determinism", "seeds decide, and nothing else", family=check_determinism),
    Check("replay", "logs play again to the same chain", task=check_replay),
    Check("gold", "nothing hidden can be seen", task=check_gold),
    Check("tamper", "hostile runs earn nothing and are recorded", task=check_tamper),
)
"""Every check but mutation, which has a package of its own."""
