"""A clock that stands still until an action moves it: no result depends on when or where an episode runs."""

import datetime as dt
import hashlib
from typing import Any

from agent_envs.contract import Change, EnvironmentFault
from agent_envs.state.channel import StateChannel


class Clock(StateChannel):
    """Virtual time, UTC, in whole seconds."""

    name = "clock"

    def __init__(self) -> None:
        """Make a clock that is not set yet."""
        self._start: dt.datetime | None = None
        self._elapsed = 0
        self._iso = ""

    def restore(self, start: str) -> None:
        """Set the clock.

        Args:
            start: Such as ``2026-03-01T09:30:00Z``.

        Raises:
            ValueError: It is no such instant.
        """
        try:
            moment = dt.datetime.fromisoformat(start)
        except (ValueError, TypeError):
            moment = None
        if moment is None or moment.tzinfo is not dt.UTC or _iso(moment) != start:
            raise ValueError(f"{start!r} is no start for a clock; write a UTC instant such as '2026-03-01T09:30:00Z'")
        self._start = moment
        self._elapsed = 0
        self._iso = start

    @property
    def now(self) -> dt.datetime:
        """The present moment, aware, in UTC."""
        return self._started() + dt.timedelta(seconds=self._elapsed)

    @property
    def iso(self) -> str:
        """The present moment as text: ``2026-03-01T09:30:00Z``."""
        if not self._iso:
            self._iso = _iso(self.now)
        return self._iso

    @property
    def seconds(self) -> int:
        """Seconds since the start."""
        return self._elapsed

    def advance(self, seconds: int) -> None:
        """Let time pass.

        Raises:
            ValueError: The number is negative or not whole, or leads past the year 9999.
        """
        if type(seconds) is not int or seconds < 0:
            raise ValueError(f"a clock advances by a whole number of seconds from 0, not by {seconds!r}")
        elapsed = self._elapsed + seconds
        try:
            self._started() + dt.timedelta(seconds=elapsed)
        except OverflowError as error:
            raise ValueError(f"{seconds!r} seconds from {self.iso} lead past the year 9999") from error
        self._elapsed, self._iso = elapsed, ""

    def digest(self) -> str:
        """Digest of the present moment."""
        # Written out: every step asks for it, and the text needs no escapes.
        return hashlib.sha256(b'{"now":"%b"}' % self.iso.encode("ascii")).hexdigest()

    def changes(self) -> list[Change]:
        """One change when time has passed."""
        if not self._elapsed:
            return []
        before, after = {"now": _iso(self._started())}, {"now": self.iso}
        return [Change(channel=self.name, table="clock", key={}, before=before, after=after)]

    def freeze(self) -> dict[str, Any]:
        """Start and seconds since."""
        return {"start": _iso(self._started()), "elapsed": self._elapsed}

    def thaw(self, frozen: Any) -> None:
        """Go back to a frozen point; see `StateChannel.thaw`."""
        if not isinstance(frozen, dict) or frozen.get("start") != _iso(self._started()):
            raise ValueError(f"{frozen!r} is no frozen point of a clock that started at {_iso(self._started())}")
        before, self._elapsed, self._iso = self._elapsed, 0, ""
        try:
            self.advance(frozen.get("elapsed"))  # type: ignore[arg-type]  # checked there
        except ValueError:
            self._elapsed = before
            raise

    def probe(self) -> None:
        """A clock works once it is set."""
        self._started()

    def close(self) -> None:
        """Nothing is held."""

    def _started(self) -> dt.datetime:
        if self._start is None:
            raise EnvironmentFault("the clock is not set; call restore() first")
        return self._start


def _iso(moment: dt.datetime) -> str:
    return moment.replace(tzinfo=None).isoformat() + "Z"  # strftime's %Y has no fixed width on every platform
