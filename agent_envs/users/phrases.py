"""What a scripted user says where the task's author wrote nothing.

Each tuple holds phrasings that mean the same; the episode's generator picks one. None of them says anything about what
the user would accept, knows or will want later.
"""

from typing import Final

FACT: Final = ("My {name}: {value}", "The {name}: {value}", "Here is my {name}: {value}")
"""A fact without a sentence of its own. The value ends the line, so that no punctuation can be taken for a part."""

UNKNOWN: Final = ("I don't know.", "I don't know that, sorry.", "Sorry, I don't know.")
"""Asked for something that isn't among the user's facts."""

YES: Final = ("Yes, please do that.", "Yes, I agree.", "Yes, go ahead.")
"""A proposal is accepted."""

NO: Final = ("No, I don't agree to that.", "No, I don't want that.", "No, please don't do that.")
"""A proposal is declined."""

CONCRETE: Final = (
    "I would like a concrete proposal from you first.",
    "Please make me a concrete proposal and you get an answer.",
    "Tell me exactly what you propose and you get an answer.",
)
"""The agent only talked about doing something."""

WAITING: Final = ("I'm still waiting.", "I'm still here, waiting for you.", "Well, I'm waiting.")
"""The agent said nothing that can be answered."""

UNSETTLED: Final = ("That doesn't settle it for me.", "I can't leave it at that.", "For me this isn't settled.")
"""The agent reported an outcome the user doesn't put up with."""

ONE_THING: Final = (
    "One thing at a time: tell me the outcome afterwards.",
    "Let me know the outcome once there is one.",
    "As for the outcome, tell me about it afterwards.",
)
"""The agent reported an outcome in the very message that proposes something."""

THANKS: Final = ("Thank you, that was all.", "Thanks, I have nothing else.", "Thank you for your time, that is all.")
"""The last wish is settled."""

LEAVING: Final = (
    "This leads nowhere. I'm leaving.",
    "I've had enough of this. I'm leaving.",
    "I don't have more time. I'm leaving.",
)
"""Patience has run out."""

GONE: Final = "The customer has left the conversation."
"""The answer to every message after the end. Always the same: nothing is drawn for it."""
