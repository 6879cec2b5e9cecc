"""Deadlines enforced from outside the code they bound.

In a process's main thread the code runs in place and a timer signal breaks it off, also while it sleeps or waits for a
lock or socket; that costs a few microseconds. Code that swallows the exception meets it again, outside its ``try``. In
any other thread signals don't arrive, so the code runs in a thread of its own, which is left behind when time is up
(the caller must not touch again what that thread holds). Code that blocks inside a native call without ever returning
to Python can only be ended with its process; the campaign's runner does that.
"""

import contextlib
import importlib
import math
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_NOTHING = contextlib.nullcontext()
_AGAIN = 0.25
"""Seconds between signals. Psycopg waits in turns of 0.1 seconds and looks for signals only between whole turns."""
_LINES = 16
"""How far on from where it was interrupted swallowing code is met again, at most; it may run no further and block."""

# The public functions turn numbers into enums on the way, which costs more than a typical tool's query.
_signals = importlib.import_module("_signal") if sys.implementation.name == "cpython" else signal
_ALARM, _REAL = int(signal.SIGALRM), int(signal.ITIMER_REAL)


def _do_nothing() -> None:
    """There is nothing to close."""


class DeadlineExceeded(BaseException):
    """Time is up. Not an `Exception`, so the bounded code can't swallow it by accident.

    Attributes:
        abandoned: The code may still be running in a thread left behind.
    """

    def __init__(self, message: str = "time is up", abandoned: bool = False) -> None:
        """Say whether a thread was left behind."""
        super().__init__(message)
        self.abandoned = abandoned


def run_until(
    deadline: float,
    function: Callable[[], T],
    part: contextlib.AbstractContextManager[Any] = _NOTHING,
    leave: Callable[[], object] = _do_nothing,
) -> T:
    """Run ``function`` but no longer than until ``deadline``.

    Args:
        deadline: `time.monotonic` seconds; infinity for no bound.
        function: What to run.
        part: Entered before and left after it, never broken off itself: undoes what was done when that raises.
        leave: Called by a thread that was left behind when its code has ended after all, to close what it held.

    Raises:
        DeadlineExceeded: Time was up first; also when ``part`` couldn't undo what was broken off.
    """
    if deadline == math.inf:
        with part:
            return function()
    if threading.current_thread() is not threading.main_thread():
        return _in_thread(deadline, function, part, leave)
    late = False
    try:
        with part:
            try:
                return _in_place(deadline, function)
            except DeadlineExceeded:
                late = True
                raise
    except Exception as error:
        if late:
            raise DeadlineExceeded from error
        raise


def _in_place(deadline: float, function: Callable[[], T]) -> T:
    armed = True
    signals = 0
    tracing: Any = None

    def expire(signum: int, frame: FrameType | None) -> None:
        nonlocal signals, tracing
        if armed:
            signals += 1
            if signals == 2:
                tracing = sys.gettrace()
            if signals > 1:
                _pursue(frame, (signals - 2) % _LINES + 1, lambda: armed)
            raise DeadlineExceeded

    started = time.monotonic()
    if deadline <= started:
        raise DeadlineExceeded
    previous = _signals.signal(_ALARM, expire)
    # The timer repeats, in case the code swallows the first signal in a bare except.
    outer, interval = _signals.setitimer(_REAL, deadline - started, _AGAIN)
    try:
        return next(_apart(function))
    finally:
        while armed:
            try:
                armed = False
            except DeadlineExceeded:  # the signal came in the very moment the code returned
                continue
        _signals.setitimer(_REAL, 0)
        _signals.signal(_ALARM, previous)
        if signals > 1:
            sys.settrace(tracing)
        if outer:
            # Whoever set a timer before us (a test runner, say) gets it back, less the time that has passed.
            left = outer - (time.monotonic() - started)
            _signals.setitimer(_REAL, max(left, 0.001), interval)


def _apart(function: Callable[[], T]) -> Iterator[T]:
    """Run in a generator, whose own stack of handled exceptions may be left untidy by code left in mid-handler."""
    yield function()


def _pursue(frame: FrameType | None, lines: int, armed: Callable[[], bool]) -> None:
    """Raise once more, so many lines further on: code that swallows it is not inside its ``try`` all the time."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if event == "line" and armed():
            lines -= 1
            if lines <= 0:
                raise DeadlineExceeded
        return trace

    while frame is not None and frame.f_code is not _apart.__code__:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)


def _in_thread(
    deadline: float,
    function: Callable[[], T],
    part: contextlib.AbstractContextManager[Any],
    leave: Callable[[], object],
) -> T:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise DeadlineExceeded
    done: queue.SimpleQueue[tuple[bool, T | BaseException]] = queue.SimpleQueue()
    ending = threading.Lock()
    left = False

    def work() -> None:
        outcome: tuple[bool, T | BaseException]
        try:
            with part:
                outcome = True, function()
        except BaseException as error:
            outcome = False, error
        with ending:
            done.put(outcome)
            if not left:
                return
        leave()

    # An exception can't be sent there: while one waits for a sleeping thread, CPython 3.11 hangs wherever it traces.
    threading.Thread(target=work, daemon=True, name="agenteval bounded call").start()
    try:
        good, value = done.get(timeout=seconds)
    except queue.Empty:
        with ending:
            left = done.empty()
        if left:
            raise DeadlineExceeded(abandoned=True) from None
        good, value = done.get()
    if not good:
        assert isinstance(value, BaseException)
        raise value
    return value  # type: ignore[return-value]
