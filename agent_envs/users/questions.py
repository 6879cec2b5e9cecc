"""Which facts a message asks for, by fixed and public rules.

The user answers questions and nothing else: a fact the agent states, right or wrong, is neither confirmed nor
corrected.
Everything here is linear in the text, of which the first ``SEARCHED_CHARACTERS`` count.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, islice
from typing import Final, NamedTuple

from agent_envs.contract import Fact

SEARCHED_CHARACTERS: Final = 4000
"""How much of a message is read; what comes later is ignored."""

ASKED_NAMES: Final = 64
"""How many entries of ``ask`` are read."""

NAME_CHARACTERS: Final = 200
"""How much of one entry of ``ask`` is read."""

REQUESTS: Final = (
    "please", "could you", "can you", "would you", "will you", "may i have", "may i ask", "may i know",
    "can i have", "could i have", "could i get", "can i get", "i need your", "i ll need your", "i will need your",
    "i would need your", "i d need your", "what", "which", "who", "when", "where", "how", "tell", "give", "confirm",
    "provide", "share", "send", "let me know", "verify",
)  # fmt: skip
"""Beginnings that make a sentence a request, after any ``COURTESIES``."""

NO_REQUESTS: Final = (
    "please note", "please be", "please wait", "please hold", "please bear", "please keep", "please remember",
    "please know", "please rest", "please stand", "please allow",
)  # fmt: skip
"""Beginnings that look like requests and ask for nothing."""

COURTESIES: Final = frozenset(
    ("hello", "hi", "hey", "thanks", "thank", "you", "ok", "okay", "sure", "and", "so", "then", "also", "now", "first",
     "sorry")
)  # fmt: skip
"""Words skipped at the beginning of a sentence."""

OFFERS: Final = (
    "shall i", "shall we", "should i", "should we", "can i", "do you want", "would you like", "do you agree",
    "are you ok", "is it ok", "is that ok", "is it okay", "is that okay", "i will", "i ll", "we will", "we ll",
    "i can", "we can", "i could", "we could", "i am going to", "i m going to", "i suggest", "i propose", "i offer",
    "i d like to", "i would like to", "proceed", "go ahead",
)  # fmt: skip
"""Phrases by which an agent talks about doing something."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W_]+")


class _Sentence(NamedTuple):
    words: str
    asks: bool


class Asked(NamedTuple):
    """What a message asks for."""

    facts: tuple[str, ...]
    """Names of known facts, each once."""
    unknown: bool
    """Whether something else was asked for by name, or a question names no known fact."""


def folded(text: str) -> str:
    """The words of a text, case and compatibility forms folded, one space around and between them.

    >>> folded("What's your E-Mail, order_ID?")
    ' what s your e mail order id '
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} " if words else " "


def _sentences(text: str) -> Iterator[_Sentence]:
    for sentence in _SENTENCE_END.split(unicodedata.normalize("NFKC", text[:SEARCHED_CHARACTERS])):
        words = folded(sentence)
        yield _Sentence(words, sentence.rstrip().endswith("?") or _is_request(words))


def _is_request(words: str) -> bool:
    rest = dropwhile(COURTESIES.__contains__, words.split())
    start = " ".join(islice(rest, 5)) + " "
    begins = any(start.startswith(f"{phrase} ") for phrase in REQUESTS)
    return begins and not any(start.startswith(f"{phrase} ") for phrase in NO_REQUESTS)


def makes_an_offer(text: str) -> bool:
    """Whether a text talks about doing something.

    >>> makes_an_offer("Shall I refund it?"), makes_an_offer("Goodbye.")
    (True, False)
    """
    words = folded(text[:SEARCHED_CHARACTERS]).replace(" can t ", " cannot ")
    return any(f" {phrase} " in words for phrase in OFFERS)


class Questions:
    """Finds the facts of one script in messages."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        """Prepare the phrases of a script's facts.

        Args:
            facts: The script's facts by name.
        """
        self._phrases = {name: _phrases(name, facts[name].words) for name in sorted(facts)}

    def by_name(self, ask: Sequence[str]) -> Asked:
        """Facts asked for by name. An entry that is no fact's name may also be one of its phrases.

        Args:
            ask: The names; the first ``ASKED_NAMES`` count, and of each the first ``NAME_CHARACTERS``.
        """
        found: list[str] = []
        unknown = False
        for entry in ask[:ASKED_NAMES]:
            names = [entry] if entry in self._phrases else self._named(folded(entry[:NAME_CHARACTERS]))
            unknown = unknown or not names
            found += names
        return Asked(tuple(dict.fromkeys(found)), unknown)

    def in_text(self, text: str) -> Asked:
        """Facts asked for in words, in the order of their names.

        Args:
            text: The message; its first ``SEARCHED_CHARACTERS`` count.
        """
        questions = [sentence.words for sentence in _sentences(text) if sentence.asks]
        found = tuple(
            name
            for name, phrases in self._phrases.items()
            if any(phrase in words for words in questions for phrase in phrases)
        )
        return Asked(found, bool(questions) and not found)

    def _named(self, words: str) -> list[str]:
        return [name for name, phrases in self._phrases.items() if words in phrases]


def _phrases(name: str, words: Iterable[str]) -> tuple[str, ...]:
    phrases = dict.fromkeys(folded(phrase) for phrase in (name, *words))
    return tuple(phrase for phrase in phrases if phrase != " ")
