"""The kinds of training tasks, by name."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from agent_envs.envs.refund.generator import refused, settled
from agent_envs.envs.refund.generator.draft import Draft

Difficulty = Literal["easy", "medium", "hard"]


class Kind(NamedTuple):
    """A situation: what the policy says to it, and how hard it is."""

    write: Callable[[Draft], None]
    """Fills a draft: who calls about what, the right outcome, and the calls that reach it."""
    difficulty: Difficulty


KINDS: dict[str, Kind] = {
    "full": Kind(settled.full, "easy"),
    "partial": Kind(settled.partial, "easy"),
    "defective": Kind(settled.defective, "easy"),
    "cancel": Kind(settled.cancel, "easy"),
    "late": Kind(refused.late, "easy"),
    "final_sale": Kind(refused.final_sale, "easy"),
    "fee": Kind(settled.fee, "medium"),
    "credit": Kind(settled.credit, "medium"),
    "duplicate": Kind(refused.duplicate, "medium"),
    "undelivered": Kind(refused.undelivered, "medium"),
    "lost": Kind(settled.lost, "medium"),
    "hold": Kind(refused.hold, "medium"),
    "unverified": Kind(refused.unverified, "medium"),
    "split": Kind(settled.split, "hard"),
    "foreign": Kind(settled.foreign, "hard"),
    "namesake": Kind(settled.namesake, "hard"),
    "stranger": Kind(refused.stranger, "hard"),
    "approval": Kind(settled.approval, "hard"),
    "denied": Kind(refused.denied, "hard"),
    "change_of_mind": Kind(settled.change_of_mind, "hard"),
    "two_requests": Kind(settled.two_requests, "hard"),
}
"""Every kind by name, in the order in which seeds are dealt out: adding one changes what every seed gives."""
