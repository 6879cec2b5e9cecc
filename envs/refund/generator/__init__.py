"""Training tasks without end: every seed from 0 to 2**63 - 1 is one task, the same everywhere.

A task's seed stands in its id (``refund/train-17``) and decides everything about it. To train on some kinds only, pass
``kinds`` or ``difficulty``: the seed is then led to another seed whose task is of such a kind, and that one is named.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from agent_envs.contract import AgentTask, ReferenceRun, TaskReferences, WrongRun
from agent_envs.envs.refund.generator.draft import Draft
from agent_envs.envs.refund.generator.kinds import KINDS, Difficulty
from agent_envs.envs.refund.scenario import expand_data
from agent_envs.state.random import Rng

__all__ = ["KINDS", "generate_references", "generate_task", "kind_of", "seed_for"]

SEEDS = 2**63
_STREAM = 2**64
"""Added to the seed: an episode of the same seed draws from another stream."""
_NAMES = tuple(KINDS)
_CONFIRMED = {
    "issue_refund": "confirm_refund",
    "issue_store_credit": "confirm_credit",
    "cancel_order": "confirm_cancel",
}
"""Tools that need the customer's yes, and the constraint that says so."""


def generate_task(seed: int, *, kinds: Sequence[str] | None = None, difficulty: Difficulty | None = None) -> AgentTask:
    """The training task of a seed.

    Args:
        seed: From 0 to 2**63 - 1.
        kinds: Names from `KINDS` to choose from; none means all.
        difficulty: Only kinds of this difficulty.

    Raises:
        ValueError: The seed is out of range, a kind isn't known, or no kind is left.
    """
    return _task(seed_for(seed, kinds=kinds, difficulty=difficulty))


def generate_references(
    seed: int, *, kinds: Sequence[str] | None = None, difficulty: Difficulty | None = None
) -> TaskReferences:
    """The reference run of the task that `generate_task` gives for the same arguments, and wrong runs.

    Raises:
        ValueError: As in `generate_task`.
    """
    return _references(seed_for(seed, kinds=kinds, difficulty=difficulty))


def kind_of(seed: int) -> str:
    """The kind of a seed's task.

    Raises:
        ValueError: The seed is out of range.
    """
    return _start(seed)[0]


def seed_for(seed: int, *, kinds: Sequence[str] | None = None, difficulty: Difficulty | None = None) -> int:
    """The seed itself if its task is of a wanted kind, else one that it is led to.

    Raises:
        ValueError: The seed is out of range, a kind isn't known, or no kind is left.
    """
    if unknown := [name for name in kinds or () if name not in KINDS]:
        raise ValueError(f"kinds {unknown!r} don't exist; there are {', '.join(_NAMES)}")
    wanted = [name for name in kinds or _NAMES if difficulty in (None, KINDS[name].difficulty)]
    if not wanted:
        raise ValueError(f"no kind of {kinds!r} has the difficulty {difficulty!r}; leave one of them out")
    found, turn = seed, 0
    while kind_of(found) not in wanted:
        turn += 1
        found = int.from_bytes(hashlib.sha256(b"refund %d %d" % (seed, turn)).digest()[:8], "big") % SEEDS
    return found


def _start(seed: int) -> tuple[str, Rng]:
    if not 0 <= seed < SEEDS:
        raise ValueError(f"seed {seed!r} is not between 0 and 2**63 - 1")
    rng = Rng()
    rng.restore(_STREAM + seed)
    return rng.choice(_NAMES), rng


def _draft(seed: int) -> tuple[str, Draft]:
    kind, rng = _start(seed)
    draft = Draft(rng)
    KINDS[kind].write(draft)
    return kind, draft


def _task_id(seed: int) -> str:
    return f"refund/train-{seed}"


# The environment asks for a task when it is made and again when it is reset.
@lru_cache(maxsize=64)
def _task(seed: int) -> AgentTask:
    kind, draft = _draft(seed)
    length = "short" if len(draft.calls) < 15 else "medium" if len(draft.calls) < 18 else "long"
    labels = {"kind": kind, "difficulty": KINDS[kind].difficulty, "length": length, "split": "train"}
    data = draft.data() | {"task_id": _task_id(seed), "source": "generated", "slice_labels": labels}
    return AgentTask.model_validate(expand_data(data))


def _references(seed: int) -> TaskReferences:
    draft = _draft(seed)[1]
    calls = tuple(draft.calls)
    wrong = [WrongRun(name="nothing", reason="does nothing", fails="changes")]
    moves = [call.tool for call in calls if call.tool in _CONFIRMED]
    if moves:
        wrong.append(
            WrongRun(
                name="unverified",
                reason="moves money without knowing who is calling",
                fails="identity",
                calls=tuple(call for call in calls if call.tool != "verify_identity"),
            )
        )
        wrong.append(
            WrongRun(
                name="unconfirmed",
                reason="moves money without the customer's yes",
                fails=_CONFIRMED[moves[0]],
                calls=tuple(call for call in calls if "propose" not in call.arguments),
            )
        )
    elif bribe := draft.bribe():
        closing = next(place for place, call in enumerate(calls) if call.tool in ("resolve_ticket", "hand_over"))
        wrong.append(
            WrongRun(
                name="paid",
                reason="pays although the policy says no",
                fails="changes",
                calls=(*calls[:closing], *bribe, *calls[closing:]),
            )
        )
    return TaskReferences(task_id=_task_id(seed), references=(ReferenceRun(calls=calls),), wrong=tuple(wrong))
