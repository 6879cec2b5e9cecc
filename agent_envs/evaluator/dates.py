"""Reading days and instants from text: English month names, ISO 8601, and numeric forms in a declared order."""

import datetime as dt
import re
from typing import NamedTuple

from agent_envs.contract.errors import AgentEvalError


class Unreadable(AgentEvalError):
    """A text isn't a bare value of the wanted type; the message says what would be."""


class Day(NamedTuple):
    """A calendar day as it was written."""

    year: int | None
    month: int
    day: int
    weekday: int | None
    """Monday is 0; None when no weekday was written."""


_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH = {name: number for number, full in enumerate(_MONTHS, start=1) for name in (full, full[:3])} | {"sept": 9}
_WEEKDAY = {name: number for number, full in enumerate(_WEEKDAYS) for name in (full, full[:3])}

_PREFIX = rf"(?:(?P<weekday>{'|'.join(sorted(_WEEKDAY, reverse=True))})\.?,? )?"
_NAME = rf"(?P<month>{'|'.join(sorted(_MONTH, reverse=True))})\.?"
_NUMBER = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? ?(?<=[ ,])(?P<year>[0-9]{4}))?"
_ISO = re.compile(rf"{_PREFIX}(?P<year>[0-9]{{4}})(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}})")
_NUMERIC = re.compile(
    rf"{_PREFIX}(?P<first>[0-9]{{1,2}})(?P<mark>[-/.])(?P<second>[0-9]{{1,2}})(?:(?P=mark)(?P<year>[0-9]{{4}}))?"
)
_MONTH_FIRST = re.compile(rf"{_PREFIX}{_NAME} {_NUMBER}{_YEAR}")
_DAY_FIRST = re.compile(rf"{_PREFIX}(?:the )?{_NUMBER}(?: of)? {_NAME}{_YEAR}")
_DAY_DASHED = re.compile(rf"(?P<day>[0-9]{{1,2}})-{_NAME}-(?P<year>[0-9]{{4}})")
_INSTANT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r" ?(?P<zone>Z|z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?"
)
_WANTED = "a bare date is required, such as 2025-10-21, 21 October 2025 or Oct 21st, 2025"


def _plain(text: str) -> str:
    """One line of ASCII-spaced text without outer white space and a final full stop."""
    return " ".join(text.replace("\u2212", "-").split()).removesuffix(".").rstrip()


def _exists(year: int | None, month: int, day: int) -> bool:
    try:
        # 2000 is a leap year, so that 29 February exists where the year is left out.
        dt.date(2000 if year is None else year, month, day)
    except ValueError:
        return False
    return True


def parse_day(text: str, month_first: bool | None) -> Day:
    """Read a day that is the whole text.

    Args:
        text: At most 60 characters, such as ``Tuesday, October 21st, 2025``, ``21 Oct``, ``10/21/2025``.
        month_first: Order for numeric forms that are days both ways (10/11); None means such a form is refused.

    Raises:
        Unreadable: The text is no date, a date that doesn't exist, or one that can be read in two ways.
    """
    plain = _plain(text[:100]).casefold()
    if len(text) > 60:
        raise Unreadable(_WANTED)
    if match := _NUMERIC.fullmatch(plain):
        year = int(match["year"]) if match["year"] else None
        if year is None and match["mark"] == ".":
            raise Unreadable(_WANTED)
        first, second = int(match["first"]), int(match["second"])
        orders = [pair for pair in ((first, second), (second, first)) if _exists(year, *pair)]
        if len(orders) == 2 and first != second and month_first is None:
            raise Unreadable("this numeric date can be read in two ways; name the month")
        if not orders:
            raise Unreadable("there is no such day")
        month, day = orders[-1] if month_first is False else orders[0]
    else:
        match = _ISO.fullmatch(plain) or _MONTH_FIRST.fullmatch(plain) or _DAY_FIRST.fullmatch(plain)
        match = match or _DAY_DASHED.fullmatch(plain)
        if match is None:
            raise Unreadable(_WANTED)
        month = _MONTH[match["month"]] if match["month"] in _MONTH else int(match["month"])
        year, day = int(match["year"]) if match["year"] else None, int(match["day"])
        if not _exists(year, month, day):
            raise Unreadable("there is no such day")
    weekday = match.groupdict().get("weekday")
    return Day(year, month, day, _WEEKDAY[weekday] if weekday else None)


def parse_instant(text: str) -> dt.datetime:
    """Read an ISO 8601 date-time that is the whole text; without an offset the result is naive.

    Raises:
        Unreadable: The text is no date-time, or one that doesn't exist.
    """
    match = _INSTANT.fullmatch(_plain(text[:100])) if len(text) <= 60 else None
    if match is None:
        raise Unreadable("a bare date-time in ISO 8601 is required, such as 2025-10-21T10:00:00+02:00")
    zone = match["zone"] or ""
    offset = "+00:00" if zone.upper() in ("Z", "UTC", "GMT") else zone
    try:
        return dt.datetime.fromisoformat(f"{match['day']}T{match['time']}{offset}")
    except ValueError:
        raise Unreadable("there is no such date-time") from None
