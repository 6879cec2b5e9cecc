"""Deadlines enforced from outside the code they bound.

In a process's main thread the code runs in place and a timer signal breaks it off, also while it sleeps or waits for a
lock or socket; that costs a few microseconds. In any other thread signals don't arrive, so the code runs in a thread of
its own, which is left behind when time is up (the caller then throws away whatever that thread still holds). Code
that blocks inside a native call without ever returning to Python can only be ended with its process; the campaign's
runner does that.
"""

import importlib
import math
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

# The public functions turn numbers into enums on the way, which costs more than a typical tool's query.
_signals = importlib.import_module("_signal") if sys.implementation.name == "cpython" else signal
_ALARM, _REAL = int(signal.SIGALRM), int(signal.ITIMER_REAL)


class DeadlineExceeded(BaseException):
    """Time is up. Not an `Exception`, so the bounded code can't swallow it by accident.

    Attributes:
        abandoned: The code may still be running in a thread left behind.
    """

    def __init__(self, message: str = "time is up", abandoned: bool = False) -> None:
        """Say whether a thread was left behind."""
        super().__init__(message)
        self.abandoned = abandoned


def run_until(deadline: float, function: Callable[[], T]) -> T:
    """Run ``function`` but no longer than until ``deadline`` (`time.monotonic` seconds; infinity for no bound).

    Raises:
        DeadlineExceeded: Time was up first.
    """
    if deadline == math.inf:
        return function()
    if threading.current_thread() is threading.main_thread():
        return _in_place(deadline, function)
    return _in_thread(deadline, function)


def _in_place(deadline: float, function: Callable[[], T]) -> T:
    armed = True

    def expire(signum: int, frame: FrameType | None) -> None:
        if armed:
            raise DeadlineExceeded

    started = time.monotonic()
    if deadline <= started:
        raise DeadlineExceeded
    previous = _signals.signal(_ALARM, expire)
    # The timer repeats, in case the code swallows the first signal in a bare except.
    outer, interval = _signals.setitimer(_REAL, deadline - started, 0.05)
    try:
        return function()
    finally:
        while armed:
            try:
                armed = False
            except DeadlineExceeded:  # the signal came in the very moment the code returned
                continue
        _signals.setitimer(_REAL, 0)
        _signals.signal(_ALARM, previous)
        if outer:
            # Whoever set a timer before us (a test runner, say) gets it back, less the time that has passed.
            left = outer - (time.monotonic() - started)
            _signals.setitimer(_REAL, max(left, 0.001), interval)


def _in_thread(deadline: float, function: Callable[[], T]) -> T:
    done: queue.SimpleQueue[tuple[bool, T | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((True, function()))
        except BaseException as error:
            done.put((False, error))

    threading.Thread(target=work, daemon=True, name="agenteval bounded call").start()
    try:
        good, value = done.get(timeout=max(deadline - time.monotonic(), 0))
    except queue.Empty:
        raise DeadlineExceeded(abandoned=True) from None
    if not good:
        assert isinstance(value, BaseException)
        raise value
    return value  # type: ignore[return-value]
