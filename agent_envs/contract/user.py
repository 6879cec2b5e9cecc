"""What a simulated user is told: facts, wishes and temper. The agent under test never sees any of it directly."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agent_envs.contract.expected import Expected
from agent_envs.contract.model import Model

Report: TypeAlias = Literal["done", "refused", "handed_over"]
"""An outcome the agent may report to the user."""

Words: TypeAlias = Annotated[str, Field(pattern=r"\S")]
"""Text that says something: a user never sends a blank message."""

OwnWords: TypeAlias = Annotated[str, Field(pattern=r"^$|\S")]
"""Text that replaces a standard sentence when it isn't empty."""


class Fact(Model):
    """Something the user knows and tells when asked for it."""

    value: Words
    """What the user says, such as ``W7001``."""
    says: OwnWords = ""
    """The sentence that gives it; empty means a standard sentence with the value in it."""
    words: tuple[Words, ...] = ()
    """Phrases in a question that ask for this fact, beside its name (``order number``)."""


class Terms(Model):
    """A pattern over a proposal's fields, and what the user answers."""

    proposal: dict[str, Expected] = Field(min_length=1)
    """Field to expected value, at least one; fields not named may hold anything."""
    says: OwnWords = ""
    """The user's words; empty means a standard sentence."""


class Wish(Model):
    """One thing the user wants."""

    opening: Words
    """The words that bring it up, said once."""
    accepts: tuple[Terms, ...] = ()
    """Proposals the user says yes to; every other one is declined without a hint."""
    declines: tuple[Terms, ...] = ()
    """Proposals declined with particular words; looked at first."""
    settled_by: tuple[Report, ...] = Field(default=("done", "refused", "handed_over"), min_length=1)
    """Reports of the agent that end this wish, at least one."""


class Turn(Model):
    """A change of mind: from a moment on, a wish is replaced."""

    after: Literal["facts_given", "first_proposal"]
    """``facts_given``: after the user has answered its first question; ``first_proposal``: instead of answering it."""
    wish: int = Field(default=0, ge=0)
    """Index of the wish that is replaced."""
    becomes: Wish
    """The new wish; its opening is what the user says at that moment."""


class ScriptedUserSpec(Model):
    """A user played by rules: same words for the same events and seed."""

    kind: Literal["scripted"] = "scripted"
    persona: str = ""
    """Manner of speaking, for readers of the task."""
    facts: dict[str, Fact] = {}
    """What the user knows, by name."""
    wishes: tuple[Wish, ...] = Field(min_length=1)
    """What the user wants, in order; the first opening is the first message, word for word."""
    turn: Turn | None = None
    """A change of mind on the way."""
    patience: int = Field(default=8, ge=1)
    """How many useless messages (nothing asked, proposed or reported; the same fact asked again) before leaving."""

    @model_validator(mode="after")
    def _turn_is_about_a_wish(self) -> Self:
        if self.turn is not None and self.turn.wish >= len(self.wishes):
            raise ValueError(f"turn.wish is {self.turn.wish}, but there are {len(self.wishes)} wishes (counted from 0)")
        return self

    @model_validator(mode="after")
    def _openings_differ(self) -> Self:
        openings = [wish.opening for wish in self.wishes] + ([self.turn.becomes.opening] if self.turn else [])
        for number, opening in enumerate(openings):
            if opening in openings[:number]:
                raise ValueError(
                    f"two wishes open with {opening!r}; an opening is said once, so each needs its own words"
                )
        return self
