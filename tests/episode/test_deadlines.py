"""A call that blocks is broken off from outside, has no effect, and leaves everything else as it was."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_envs.episode.deadline import DeadlineExceeded, run_until

HANGS = ("sleep", "spin", "lock", "swallow_asleep", "swallow_at_work")


@pytest.fixture(autouse=True)
def release(tiny: Any) -> Iterator[None]:
    """Lets go of what still hangs in threads left behind."""
    tiny.HELD[:] = [True]
    yield
    tiny.HELD.clear()


def elsewhere(work: Callable[[], Any]) -> Any:
    """Run in a thread that isn't the main one."""
    box: list[Any] = []

    def run() -> None:
        try:
            box.append((True, work()))
        except BaseException as error:
            box.append((False, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert box, "the thread is still running"
    good, value = box[0]
    if not good:
        raise value
    return value


def here(work: Callable[[], Any]) -> Any:
    return work()


@pytest.mark.parametrize("place", [here, elsewhere], ids=["main_thread", "other_thread"])
@pytest.mark.parametrize("how", HANGS)
def test_a_hanging_call_ends_at_the_limit_without_effect(
    dressed: Callable[..., Any], tiny: Any, how: str, place: Callable[..., Any]
) -> None:
    """B219 (wall clock), B117."""

    def play() -> None:
        env = dressed(wall_seconds=0.15)
        env.step(tiny.DONE)
        before = env.unwrapped.episode.state_hash
        started = time.monotonic()
        observation, reward, terminated, truncated, info = env.step({"tool": "hang", "arguments": {"how": how}})
        assert time.monotonic() - started < 5
        assert json.loads(observation["text"])["status"] == "timeout"
        assert (terminated, truncated) == (False, True)
        assert (info["terminal_reason"], info["state_hash"]) == ("wall_time_limit", before)
        # The state before the call is the right one, and it is what is judged.
        assert (reward, info["is_success"], info["verdict"]) == (1.0, True, "pass")
        assert env.unwrapped.episode.log.entries[-1]["status"] == "timeout"
        assert env.get_wrapper_attr("run").terminal.kind == "wall_time_limit"
        tiny.HELD.clear()
        start = env.reset(seed=1)[1]["state_hash"]
        assert start == dressed().unwrapped.episode.initial_hash
        assert env.unwrapped.step(tiny.DONE)[4]["state_hash"] == before

    place(play)


def test_wrong_state_at_the_limit_is_a_counted_failure(dressed: Callable[..., Any]) -> None:
    env = dressed(wall_seconds=0.1)
    assert env.step({"tool": "hang", "arguments": {"how": "sleep"}})[1] == 0.0
    run = env.get_wrapper_attr("run")
    assert (run.outcome_class, run.counts, run.infrastructure_status) == ("agent_failure", True, "ok")


@pytest.mark.parametrize("place", [here, elsewhere], ids=["main_thread", "other_thread"])
def test_a_query_that_hangs_in_the_server_is_broken_off(
    dressed: Callable[..., Any], tiny: Any, postgresql_url: str, place: Callable[..., Any]
) -> None:
    def play() -> None:
        env = dressed(postgresql_url, wall_seconds=2.0)
        env.step(tiny.DONE)
        started = time.monotonic()
        _, reward, _, truncated, info = env.step({"tool": "hang", "arguments": {"how": "query"}})
        assert time.monotonic() - started < 5
        assert (reward, truncated, info["terminal_reason"]) == (1.0, True, "wall_time_limit")
        env.reset(seed=1)
        assert env.step(tiny.DONE)[4]["terminal_reason"] == ""

    with _backends_ended(postgresql_url):
        place(play)


class _backends_ended:
    """Ends the server's part of a query that nobody waits for any more, so that its thread ends as well."""

    def __init__(self, url: str) -> None:
        self.url = url.replace("+psycopg", "")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = %s", ("SELECT pg_sleep(600)",)
            )


def test_somebody_elses_timer_survives() -> None:
    """The test runner's own time-out, or a user's, is neither lost nor put off for ever."""
    old = signal.getsignal(signal.SIGALRM)
    outer = signal.getitimer(signal.ITIMER_REAL)
    rang: list[int] = []
    try:
        signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
        signal.setitimer(signal.ITIMER_REAL, 0.4, 7.0)
        with pytest.raises(DeadlineExceeded):
            run_until(time.monotonic() + 0.1, lambda: time.sleep(60))
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        assert 0 < left <= 0.4 and interval == 7.0 and not rang
        assert run_until(time.monotonic() + 60, lambda: 5) == 5
        time.sleep(0.6)
        assert rang == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, old)


def test_the_runners_own_timer_is_given_back() -> None:
    handler, (before, _) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with pytest.raises(DeadlineExceeded):
        run_until(time.monotonic() + 0.05, lambda: time.sleep(60))
    after = signal.getitimer(signal.ITIMER_REAL)[0]
    assert signal.getsignal(signal.SIGALRM) is handler
    assert (0 < after < before) if before else after == 0


@pytest.mark.parametrize("how", ["swallow_asleep", "swallow_at_work"])
def test_code_that_swallows_everything_leaves_neither_tracer_nor_exception(tiny: Any, how: str) -> None:
    tracing = sys.gettrace()
    with pytest.raises(DeadlineExceeded):
        run_until(time.monotonic() + 0.05, lambda: tiny.HANGS[how](None))
    assert sys.gettrace() is tracing
    # Nor does what was being handled when it left stay "being handled" for ever after.
    assert sys.exc_info() == (None, None, None)
    try:
        raise ValueError("something else")
    except ValueError as error:
        assert error.__context__ is None


@pytest.mark.parametrize("place", [here, elsewhere], ids=["main_thread", "other_thread"])
def test_a_deadline_in_the_past_runs_nothing(place: Callable[..., Any]) -> None:
    ran: list[int] = []
    with pytest.raises(DeadlineExceeded) as caught:
        place(lambda: run_until(time.monotonic() - 1, lambda: ran.append(1)))
    assert not ran and not caught.value.abandoned


@pytest.mark.parametrize("place", [here, elsewhere], ids=["main_thread", "other_thread"])
@pytest.mark.parametrize("deadline", [60.0, math.inf])
def test_results_and_errors_come_through(place: Callable[..., Any], deadline: float) -> None:
    until = time.monotonic() + deadline
    assert place(lambda: run_until(until, lambda: {"a": 1})) == {"a": 1}
    with pytest.raises(ZeroDivisionError):
        place(lambda: run_until(until, lambda: 1 // 0))


def test_what_a_thread_left_behind_holds_is_closed_when_it_ends(tiny: Any) -> None:
    closed = threading.Event()

    def play() -> None:
        with pytest.raises(DeadlineExceeded) as caught:
            run_until(time.monotonic() + 0.1, lambda: tiny.HANGS["swallow_asleep"](None), leave=closed.set)
        assert caught.value.abandoned and not closed.is_set()

    elsewhere(play)
    tiny.HELD.clear()
    assert closed.wait(10)
