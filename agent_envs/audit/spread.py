"""Work spread over processes, results in order: what `multiprocessing.Pool` does, but a killed worker is noticed."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

LOST = "a worker process died before this was done, perhaps for want of memory; try fewer --workers"
"""Why there is no result of an item."""


def spread(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int, lost: Callable[[Item], Result]
) -> Iterator[Result]:
    """Results of ``work`` by item, in the order of the items.

    Args:
        work: A function of a module, which other processes can import.
        items: What to work on; must survive pickling.
        workers: Processes, at least 1.
        lost: Makes the result of an item that was not done when a process died; `LOST` says why.
    """
    pool = ProcessPoolExecutor(
        min(workers, len(items) or 1),
        mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C reaches all processes; the workers have nothing to say about it.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        futures = [pool.submit(work, item) for item in items]
        for item, future in zip(items, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield lost(item)
    finally:
        pool.shutdown(cancel_futures=True)
