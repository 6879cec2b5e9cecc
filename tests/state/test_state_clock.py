"""The virtual clock and the rate limits that run on it."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract import Change, EnvironmentFault, ToolError
from agent_envs.state import Clock, RateLimits

START = "2026-03-01T09:30:00Z"


def test_the_clock_moves_only_when_told() -> None:
    clock = Clock()
    clock.restore(START)
    assert clock.now == dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC)
    assert clock.iso == START and clock.changes() == []
    start = clock.digest()
    clock.advance(3600 * 24 + 1)
    assert clock.iso == "2026-03-02T09:30:01Z"
    assert clock.changes() == [
        Change(channel="clock", table="clock", key={}, before={"now": START}, after={"now": "2026-03-02T09:30:01Z"})
    ]
    assert clock.digest() != start
    clock.restore(START)
    assert clock.digest() == start and clock.changes() == []


@pytest.mark.parametrize(
    "start", ["2026-03-01", "2026-03-01T09:30:00", "2026-03-01T09:30:00+01:00", "2026-3-1T9:30:00Z", 5]
)
def test_a_start_has_one_form(start: str) -> None:
    with pytest.raises(ValueError, match="no start for a clock"):
        Clock().restore(start)


@pytest.mark.parametrize("seconds", [-1, 1.5, True, "1", 10**12, 10**30])
def test_time_passes_forwards_in_whole_seconds(seconds: int) -> None:
    clock = Clock()
    clock.restore(START)
    with pytest.raises(ValueError):
        clock.advance(seconds)
    assert clock.iso == START


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5))
def test_a_frozen_clock_thaws(steps: list[int]) -> None:
    clock, other = Clock(), Clock()
    clock.restore(START)
    other.restore(START)
    for step in steps:
        clock.advance(step)
    other.thaw(clock.freeze())
    assert (other.iso, other.digest(), other.changes()) == (clock.iso, clock.digest(), clock.changes())
    other.restore("2026-03-01T09:30:01Z")
    with pytest.raises(ValueError, match="no frozen point"):
        other.thaw(clock.freeze())
    for damaged in (None, {}, {"start": START, "elapsed": -1}, {"start": START}):
        with pytest.raises(ValueError):
            clock.thaw(damaged)
    assert other.iso == "2026-03-01T09:30:01Z"


def test_an_unset_clock_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault):
        Clock().probe()
    with pytest.raises(EnvironmentFault):
        RateLimits(Clock(), {}).probe()


def limits() -> tuple[Clock, RateLimits]:
    clock = Clock()
    clock.restore(START)
    rates = RateLimits(clock, {"mail": (2, 60)})
    rates.restore()
    return clock, rates


def test_a_window_slides() -> None:
    clock, rates = limits()
    rates.use("mail")
    clock.advance(20)
    rates.use("mail")
    with pytest.raises(ToolError, match=r"2 in 60 seconds\. Try again in 40 seconds\."):
        rates.use("mail")
    clock.advance(39)
    with pytest.raises(ToolError, match="in 1 seconds"):
        rates.use("mail")
    clock.advance(1)
    rates.use("mail")
    with pytest.raises(ToolError, match="in 20 seconds"):
        rates.use("mail")


def test_subjects_are_counted_apart_and_unknown_rules_are_errors() -> None:
    _, rates = limits()
    for subject in ("ann", "bob"):
        rates.use("mail", subject)
        rates.use("mail", subject)
        with pytest.raises(ToolError):
            rates.use("mail", subject)
    with pytest.raises(KeyError, match="there are mail"):
        rates.use("post")
    with pytest.raises(ValueError, match="at least 1"):
        RateLimits(Clock(), {"x": (0, 60)})


def test_limits_reset_freeze_and_forget() -> None:
    clock, rates = limits()
    start = rates.digest()
    rates.use("mail", "ann")
    used, frozen = rates.digest(), rates.freeze()
    assert used != start
    assert rates.changes() == [
        Change(
            channel="rate_limits",
            table="uses",
            key={"rule": "mail", "subject": "ann"},
            before=None,
            after={"rule": "mail", "subject": "ann", "seconds": [0]},
        )
    ]
    rates.restore()
    assert rates.digest() == start
    rates.thaw(frozen)
    assert rates.digest() == used
    rates.use("mail", "ann")
    with pytest.raises(ToolError):
        rates.use("mail", "ann")
    clock.advance(60)
    assert rates.digest() == start and rates.changes() == []
    for damaged in (5, [["mail", "ann"]], [["post", "", [0]]]):
        with pytest.raises(ValueError):
            rates.thaw(damaged)
