"""Rate limits on the virtual clock: a service that refuses too many requests, the same way in every run."""

import math
from collections.abc import Mapping
from typing import Any

from agent_envs.contract import Change, ToolError, digest
from agent_envs.state.channel import StateChannel
from agent_envs.state.clock import Clock

_UNUSED = digest([])
_Uses = dict[tuple[str, str], list[int]]
"""Rule and subject to the seconds, since the clock's start, of the uses that still count."""


class RateLimits(StateChannel):
    """Sliding windows: at most so many uses within so many seconds, for each subject apart.

    A use stops counting when as many seconds as the window has have passed since.

    Args:
        clock: The environment's clock; restore it before this channel.
        rules: Rule name to (how many, seconds), both at least 1.

    Raises:
        ValueError: A rule allows nothing or has no window.
    """

    name = "rate_limits"

    def __init__(self, clock: Clock, rules: Mapping[str, tuple[int, int]]) -> None:
        """Check the rules."""
        for name, (many, seconds) in rules.items():
            if type(many) is not int or type(seconds) is not int or many < 1 or seconds < 1:
                raise ValueError(f"rule {name!r} allows {many!r} uses in {seconds!r} seconds; both must be at least 1")
        self._clock = clock
        self._rules = dict(rules)
        self._uses: _Uses = {}
        self._digested: tuple[str, float] | None = None

    def restore(self) -> None:
        """Forget every use."""
        self._uses, self._digested = {}, None

    def use(self, name: str, subject: str = "") -> None:
        """Count one use, if the rule allows it.

        Args:
            name: Rule.
            subject: Whom the limit is counted for, such as an account.

        Raises:
            ToolError: The limit is reached; the message says when to try again. The attempt isn't counted.
            KeyError: There is no such rule.
        """
        if name not in self._rules:
            raise KeyError(f"no rate limit {name!r}; there are {', '.join(sorted(self._rules))}")
        many, seconds = self._rules[name]
        counting = self._counting().get((name, subject), [])
        if len(counting) >= many:
            wait = counting[len(counting) - many] + seconds - self._clock.seconds
            raise ToolError(f"Rate limit reached: {many} in {seconds} seconds. Try again in {wait} seconds.")
        self._uses[name, subject] = [*counting, self._clock.seconds]
        self._digested = None

    def digest(self) -> str:
        """Digest of the uses that still count; one that no longer does can't be observed."""
        if not self._uses:
            return _UNUSED
        # Nothing changes until the next use, or until one stops counting.
        if self._digested is None or self._clock.seconds >= self._digested[1]:
            windows = {name: seconds for name, (_, seconds) in self._rules.items()}
            counting = self._counting().items()
            ends = [uses[0] + windows[name] for (name, _), uses in counting]
            self._digested = digest(self._shown()), min(ends, default=math.inf)
        return self._digested[0]

    def changes(self) -> list[Change]:
        """One change for each rule and subject with uses that still count."""
        return [
            Change(
                channel=self.name,
                table="uses",
                key={"rule": name, "subject": subject},
                before=None,
                after={"rule": name, "subject": subject, "seconds": seconds},
            )
            for name, subject, seconds in self._shown()
        ]

    def freeze(self) -> list[list[Any]]:
        """Rule, subject and seconds of the uses that still count."""
        return self._shown()

    def thaw(self, frozen: Any) -> None:
        """Go back to a frozen point; thaw the clock first. See `StateChannel.thaw`."""
        try:
            uses: _Uses = {(name, subject): [int(second) for second in seconds] for name, subject, seconds in frozen}
        except (TypeError, ValueError) as error:
            raise ValueError(f"{frozen!r} is no frozen point of rate limits") from error
        unknown = sorted({name for name, _ in uses} - self._rules.keys())
        if unknown:
            raise ValueError(f"the frozen point has uses of {unknown[0]!r}, which is no rule here")
        self._uses, self._digested = uses, None

    def probe(self) -> None:
        """Limits work when their clock does."""
        self._clock.probe()

    def close(self) -> None:
        """Nothing is held."""

    def _counting(self) -> _Uses:
        now = self._clock.seconds
        counting = {}
        for (name, subject), uses in self._uses.items():
            recent = [second for second in uses if now - second < self._rules[name][1]]
            if recent:
                counting[name, subject] = recent
        return counting

    def _shown(self) -> list[list[Any]]:
        return [[name, subject, uses] for (name, subject), uses in sorted(self._counting().items())]
