"""Reading what a customer says: facts out of a sentence, goods and their condition out of remarks.

Patterns, no understanding: a customer who speaks in riddles is beyond them, and the options that need the fact are then
not on offer.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_envs.envs.refund.rules import Condition

_STANDARD = re.compile(r"^(?:My|The|Here is my) [a-z ]+: (.+)$")
_VALUES = {
    "email": re.compile(r"[^\s<>,;]+@[^\s<>,;]+\w"),
    "birth_date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "postcode": re.compile(r"\b(?:[A-Z]{1,2})?\d[\dA-Z]*(?:[ -]\d[\dA-Z]*)?\b"),
    "order_id": re.compile(r"\bW\d+\b"),
    "phone": re.compile(r"\+?\d[\d ()./-]{4,}\d"),
    "name": re.compile(r"(?:[A-Z][\w'-]+ )+[A-Z][\w'-]+"),
}
_CONDITIONS: tuple[tuple[Condition, re.Pattern[str]], ...] = (
    (
        "never_arrived",
        re.compile(r"never (?:arrived|came|reached)|(?:n't|not) (?:arrive|come)|parcel is lost"),
    ),
    (
        "defective",
        re.compile(r"defect|broken|faulty|crack|(?:n't|not) work|stopped working|damaged|won't"),
    ),
    ("unopened", re.compile(r"sealed|unopened|(?:never|not|n't) (?:been )?open|untouched|unused")),
    ("opened", re.compile(r"\bopened\b|\bused\b|tried|\bworn\b|unpacked")),
)
_CHANGED_MIND = re.compile(r"chang\w* my mind|(?:n't|not|no longer) (?:want|need|like)|regret")
_KEPT = re.compile(r"\bkeep\b|\bkeeping\b")


def fact_value(name: str, sentence: str) -> str:
    """The value of a fact in the sentence that tells it; empty when it can't be made out.

    >>> fact_value("email", "Sure: write to ada@post.example."), fact_value("postcode", "My postcode: 20095")
    ('ada@post.example', '20095')
    """
    if standard := _STANDARD.match(sentence):
        return standard[1].strip()
    pattern = _VALUES.get(name)
    if pattern is None:
        return sentence.strip()
    found = pattern.search(sentence)
    return found[0] if found else ""


def condition_of(remarks: Sequence[str]) -> Condition | None:
    """The condition that the latest remark about it names.

    >>> condition_of(["It is broken.", "Well, it is still sealed."]), condition_of(["Hello."])
    ('unopened', None)
    """
    for remark in reversed(remarks):
        for condition, pattern in _CONDITIONS:
            if pattern.search(remark.casefold()):
                return condition
    return None


def changed_mind(remarks: Sequence[str]) -> bool:
    """Whether the customer has said that the goods are simply not wanted any more."""
    return any(_CHANGED_MIND.search(remark.casefold()) for remark in remarks)


def goods_named(remarks: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Line number to pieces, as the latest remark names them that names any; sentences about keeping don't count.

    A name without a number means all pieces of the line.

    >>> kites = {"line_no": 1, "name": "Kite", "quantity": 3}
    >>> goods_named(["2 x Kite, please", "Thank you."], [kites]), goods_named(["I keep the kite."], [kites])
    ({1: 2}, {})
    """
    for remark in reversed(remarks):
        named: dict[int, int] = {}
        for sentence in re.split(r"[.!?]\s", remark.casefold()):
            if _KEPT.search(sentence):
                continue
            for line in lines:
                name = re.escape(line["name"].casefold())
                if found := re.search(rf"(?:\b(\d{{1,4}}) ?(?:x|pieces of|of)? ?(?:the )?)?\b{name}\b", sentence):
                    named[line["line_no"]] = min(int(found[1] or line["quantity"]), line["quantity"])
        if named:
            return {number: pieces for number, pieces in named.items() if pieces > 0}
    return {}
