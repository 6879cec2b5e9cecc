"""What every estimator checks first, in one place, so that a bad number stops at the door.

Counts have to be whole numbers by type: a float that happens to be whole may be a mean or a rounded rate, and a boolean
is a single outcome, not a count of them. Undefined results leave these functions as NaN; undefined input does not
enter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_ATTEMPTS = 1_000_000
"""Most attempts of one task; sums over a task stay accurate to about 1e-10 up to here."""


def counts(name: str, values: ArrayLike, lowest: int = 0) -> Counts:
    """The values as 64-bit counts, of the same shape.

    Raises:
        ValueError: A value is no whole number by type, below `lowest` or above `MOST_ATTEMPTS`.
    """
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} has type {array.dtype}: pass whole numbers (an integer array), not rates or flags")
    if array.size and not (lowest <= int(array.min()) and int(array.max()) <= MOST_ATTEMPTS):
        wrong = array[(array < lowest) | (array > MOST_ATTEMPTS)].flat[0]
        raise ValueError(f"{name} holds {int(wrong)!r}: pass values from {lowest} to {MOST_ATTEMPTS}")
    return array.astype(np.int64)


def successes(n: ArrayLike, c: ArrayLike) -> tuple[Counts, Counts]:
    """Attempts and successes of each task, checked against each other and broadcast to one shape.

    Raises:
        ValueError: A count is bad, or there are more successes than attempts.
    """
    tried, passed = np.broadcast_arrays(counts("n", n), counts("c", c))
    if np.any(passed > tried):
        at = int(np.flatnonzero(passed > tried)[0])
        raise ValueError(
            f"c = {int(passed.flat[at])!r} successes of n = {int(tried.flat[at])!r} attempts: c must be <= n"
        )
    return tried, passed


def numbers(name: str, values: ArrayLike, *, missing: bool = False) -> Floats:
    """The values as floats, of the same shape.

    Args:
        name: What they are, for the message.
        values: Numbers; booleans count as 0 and 1.
        missing: Whether NaN, for "undefined", may occur.

    Raises:
        ValueError: A value is infinite, no number, or NaN without `missing`.
    """
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has type {array.dtype}: pass numbers")
    result = array.astype(np.float64)
    wrong = np.isinf(result) if missing else ~np.isfinite(result)
    if wrong.any():
        allowed = "finite numbers, or NaN for undefined" if missing else "finite numbers"
        raise ValueError(f"{name} holds {float(result[wrong].flat[0])!r}: pass {allowed}")
    return result


def weights(values: ArrayLike | None, tasks: int) -> Floats:
    """The tasks' weights, shape (tasks,); all 1 for None. Only their ratios matter.

    Raises:
        ValueError: A weight is negative or not finite, all are 0, or there are not as many as tasks.
    """
    if values is None:
        return np.ones(tasks)
    result = numbers("weights", values)
    if result.shape != (tasks,):
        raise ValueError(f"weights has shape {result.shape!r}: pass one weight for each of {tasks} tasks")
    if np.any(result < 0):
        raise ValueError(f"weights holds {float(result.min())!r}: pass weights of 0 or more")
    if tasks and not result.any():
        raise ValueError("weights are all 0: give some task a weight")
    return result


def vector(name: str, values: Any, length: int | None = None) -> Any:
    """The array, if it has one dimension (and the length).

    Raises:
        ValueError: It has not.
    """
    if values.ndim != 1 or (length is not None and values.size != length):
        wanted = "one value a task" if length is None else f"{length} values in one dimension"
        raise ValueError(f"{name} has shape {values.shape!r}: pass {wanted}")
    return values


def share(name: str, value: float) -> float:
    """The value, if it lies strictly between 0 and 1, as a confidence level or a power does.

    Raises:
        ValueError: It does not.
    """
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} is {value!r}: pass a number between 0 and 1, such as 0.95")
    return float(value)


def whole(name: str, value: int, lowest: int) -> int:
    """The value, if it is a whole number of at least `lowest`.

    Raises:
        ValueError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ValueError(f"{name} is {value!r}: pass a whole number of at least {lowest}")
    return int(value)


def generator(seed: int) -> np.random.Generator:
    """A generator that depends on the seed only; there is no default, so no result can be unrepeatable by oversight.

    Raises:
        ValueError: The seed is no whole number of at least 0.
    """
    return np.random.Generator(np.random.PCG64(whole("seed", seed, 0)))
