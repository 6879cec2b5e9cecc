"""What a customer's words mean, by keywords: facts, wishes, goods and their condition.

It is the weak part of the rulebook on purpose: whoever reads better than these patterns, earns more.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_envs.envs.refund.rules import Condition

FACTS = ("name", "email", "postcode", "birth_date", "order_id", "items", "condition", "reason")
"""What the customer is asked for, in one message."""

_STANDARD = re.compile(r"(?:my|the|here is my) [\w ]+: (.+)", re.IGNORECASE)
_VALUES = {
    "email": re.compile(r"[^\s<>,;:]+@[^\s<>,;:]*\w"),
    "postcode": re.compile(r"\b(?:[A-Z]{1,2}\d\w? ?\d[A-Z]{2}|[A-Z]{0,2}-?\d{3,6}(?:[- ]?(?:\d{2,4}|[A-Z]{2}))?)\b"),
    "name": re.compile(
        r"\b(?!I'm|It's)[^\W\d_a-z][\w'.-]*(?: (?:van |von |de |der |da |di |del |la )*[^\W\d_a-z][\w'-]+)+"
    ),
    "order_id": re.compile(r"\bW\d+\b"),
}
_DAYS = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"),
    re.compile(r"(?P<day>\d{1,2})[a-z]* (?:of )?(?P<month>[A-Z][a-z]{2,}),? (?P<year>\d{4})"),
    re.compile(r"(?P<month>[A-Z][a-z]{2,}) (?P<day>\d{1,2})[a-z]*,? (?P<year>\d{4})"),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}

_WISH = re.compile(
    r"refund|return|money|credit|voucher|cancel|\bstop\b|(?:tak|giv|send|bring)\w* .*back|\bkeep\b|instead|rather"
    r"|\bw\d{3,}|\border\b|broken|defect|faulty|never (?:arrived|came)|exchange"
)
_CREDIT = re.compile(r"\b(?:credit|voucher)\b")
_NO_CREDIT = re.compile(r"(?:\bno\b|\bnot\b|n't|rather than|instead of)[^.,;!?]{0,25}\b(?:credit|voucher)\b")
_ALL = re.compile(r"\b(?:everything|both|(?:whole|entire|complete) (?:order|lot)|all of (?:it|them|order|the|my))\b")
_SOME = re.compile(r"\b(\d+|one|two|three|four|five) of (?:them|those|these)\b|\b(?:just|only) (\d+|one|two|three)\b")
_CLAUSE = re.compile(r"[,;.!?\n]|\band\b|\bbut\b|\binstead\b|(?=\bexcept\b)")
_KEPT = re.compile(r"\b(?:keep|keeping|kept|except|not the|happy with|forget)\b")

_NEVER = re.compile(
    r"never (?:arriv|came|got|reach|receiv|turned|show|deliver)|nothing (?:came|arr)|lost (?:in|by)\b"
    r"|(?:n't|not) (?:yet )?(?:arriv|come\b|reach|receiv|been deliv|turn\w* up|show\w* up)"
    r"|(?:parcel|package|got|gone|been|is|was|were) lost"
)
_SOUND = re.compile(r"(?:\bno\b|\bnot\b|n't|nothing)(?: \w+){0,2} (?:broken|damage|defect|fault|wrong|crack)\w*")
_DEFECTIVE = re.compile(
    r"brok|defect|fault|damag|crack|(?:n't|not|stopped|never) (?:\w+ )?(?:work|turn on|start|charg|switch on)|\bdead\b"
    r"|leak|\btorn|tore\b|chipped|shatter|flicker|malfunction|\bbent\b|smash|died"
)
_UNTOUCHED = re.compile(
    r"\bun-?(?:opened|used|worn|touched)\b"
    r"|(?:never|not|n't)(?: \w+)? (?:open\w*|unpack\w*|unwrap\w*|used?|worn|wore|wear|touch\w*|tr(?:y|ied))\b"
)
_OPENED = re.compile(r"open|used|unpack|unwrap|tried|\bworn?\b|out of (?:the|its) box|set it up|plugged|switched it on")
_SEALED = re.compile(r"sealed|original (?:box|packag|wrapp)|(?:in|with) (?:its|the) (?:box|wrapp|packag|tag)|brand new")


def fact(name: str, sentence: str) -> str:
    """The value in the sentence that tells a fact; empty where none is found."""
    if name == "birth_date":
        return _day(sentence)
    if name != "order_id" and (standard := _STANDARD.fullmatch(sentence.strip())):
        return standard[1].strip()
    found = _VALUES[name].findall(sentence) if name in _VALUES else [sentence]
    return str(found[-1]).strip() if found else ""


def wants_something(text: str) -> bool:
    """Whether a sentence brings up a request, rather than thanks or a plain yes or no."""
    return bool(_WISH.search(_plain(text)))


def wants_credit(texts: Iterable[str]) -> bool:
    """Whether the latest text that speaks of store credit or of money asks for the former."""
    for text in map(_plain, texts):
        if _CREDIT.search(text):
            return not _NO_CREDIT.search(text)
        if "money" in text or "refund" in text:
            return False
    return False


def condition_of(line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Condition:
    """The condition of a line's goods: from a part of a sentence about them, else from any text; else unopened."""
    clauses = (part for text in texts for part in _clauses(text) if line["line_no"] in _mentions(part, lines))
    return next((told for text in (*clauses, *texts) if (told := _condition(text))), "unopened")


def goods(texts: Iterable[str], lines: Sequence[Mapping[str, Any]]) -> dict[int, int | None]:
    """What the first text about goods names: line numbers to pieces, None for all of them; empty if none does."""
    return next((named for text in texts if (named := _goods(text, lines))), {})


def _goods(text: str, lines: Sequence[Mapping[str, Any]]) -> dict[int, int | None]:
    named: dict[int, int | None] = {}
    kept: set[int] = set()
    for clause in _clauses(text):
        for line_no, (start, _) in _mentions(clause, lines).items():
            if _KEPT.search(clause):
                kept.add(line_no)
            else:
                named[line_no] = _quantity(clause[:start])
    some = _SOME.search(_plain(text))
    rest = _ALL.search(_plain(text)) or (kept and re.search(r"\brest|\bother", text)) or (some and len(lines) == 1)
    if rest and not named:
        named = {line["line_no"]: None for line in lines if line["line_no"] not in kept}
    if some and len(named) == 1:
        named = {line_no: quantity or _number(some[1] or some[2]) for line_no, quantity in named.items()}
    return named


def _mentions(clause: str, lines: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, int]]:
    """Where a part of a sentence names lines: by the full name, else by its noun."""
    found: dict[int, tuple[int, int]] = {}
    for noun_only in (False, True):
        rest = clause
        for start, end in found.values():
            rest = rest[:start] + " " * (end - start) + rest[end:]
        for line in lines:
            name = _plain(line["name"])
            word = re.split(r" of | for | with ", name)[0].split()[-1] if noun_only else name
            match = re.search(rf"\b{re.escape(word.removesuffix('s'))}(?:e?s)?\b", rest)
            if match and line["line_no"] not in found:
                found[line["line_no"]] = match.span()
    return found


def _condition(text: str) -> Condition | None:
    text = _SOUND.sub(" ", _plain(text))
    if _NEVER.search(text):
        return "never_arrived"
    if _DEFECTIVE.search(text):
        return "defective"
    rest, untouched = _UNTOUCHED.subn(" ", text)
    if _OPENED.search(rest):
        return "opened"
    return "unopened" if untouched or _SEALED.search(rest) else None


def _quantity(before: str) -> int | None:
    words = re.findall(r"\w+", before)[-6:]
    return None if "both" in words or "all" in words else next(filter(None, map(_number, words)), None)


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 5 else _NUMBERS.get(word)


def _clauses(text: str) -> list[str]:
    return _CLAUSE.split(_plain(text))


def _plain(text: str) -> str:
    return text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _day(sentence: str) -> str:
    for found in filter(None, (pattern.search(sentence) for pattern in _DAYS)):
        month = found["month"]
        if month.isdecimal() or month[:3] in _MONTHS:
            number = int(month) if month.isdecimal() else _MONTHS.index(month[:3]) + 1
            return f"{found['year']}-{number:02}-{int(found['day']):02}"
    return ""
