"""Whether a user agrees to a proposal: a yes is bound to the structured proposal, never to words about it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from agent_envs.contract import Status, Terms, Wish, digest, jsonable
from agent_envs.evaluator.values import compare


class Answer(NamedTuple):
    """A user's answer to a proposal."""

    accepted: bool
    """Yes or no."""
    says: str
    """The author's words for it; empty for a standard sentence."""


def answer(wish: Wish, proposal: Mapping[str, Any]) -> Answer:
    """Judge a proposal by a wish: its ``declines`` in order, then its ``accepts``; anything else is declined.

    Args:
        wish: The wish at hand.
        proposal: Field to JSON value, as the agent gave it.
    """
    for terms in wish.declines:
        if _fits(terms, proposal):
            return Answer(False, terms.says)
    for terms in wish.accepts:
        if _fits(terms, proposal):
            return Answer(True, terms.says)
    return Answer(False, "")


def _fits(terms: Terms, proposal: Mapping[str, Any]) -> bool:
    # An undetermined comparison is no match: a user doesn't agree to what it can't make out.
    return all(
        field in proposal and compare(expected, proposal[field]).status is Status.PASS
        for field, expected in terms.proposal.items()
    )


def fingerprint(proposal: Mapping[str, Any]) -> str:
    """A short digest by which a proposal is known again, 32 hexadecimal digits; the order of fields doesn't count."""
    try:
        return digest(jsonable(proposal))[:32]
    except ValueError:
        # Python refuses to write integers of thousands of digits; all such proposals count as one.
        return digest("unreadable proposal")[:32]
