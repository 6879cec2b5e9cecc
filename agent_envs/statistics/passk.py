"""pass@k and pass^k: the chance that at least one, or that every one, of k attempts at a task succeeds.

Both are estimated task by task without bias and only then averaged over tasks. The short cuts seen elsewhere are
absent: no plug-in of the success rate (biased), no suite average raised to the k-th power (another quantity), and no
    value at all
where k exceeds the attempts made.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from agent_envs.statistics.inputs import Counts, Floats, counts, successes

Kind = Literal["pass@k", "pass^k"]

_EXACT = 56
"""Up to this many attempts every binomial coefficient is a whole number below 2**53, which a float holds exactly."""

_BINOMIAL = np.array([[math.comb(n, k) for k in range(_EXACT + 1)] for n in range(_EXACT + 1)], dtype=np.float64)


def pass_at_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Floats:
    """Chance that at least one of k attempts succeeds: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of Chen et al. 2021, "Evaluating large language models trained on code", equation 1. Up to 56
    attempts the result is the correctly rounded quotient of whole numbers; beyond, its relative error stays below
    1e-10.

    Args:
        n: Attempts at each task, whole numbers.
        c: Successes among them, c <= n.
        k: Attempts looked at, 1 or more. All three broadcast against each other.

    Returns:
        The estimates, of the broadcast shape; NaN (undefined) where k > n.

    Raises:
        ValueError: A count is no whole number, negative, or c > n, or k < 1.

    >>> float(pass_at_k(5, 2, 3))
    0.9
    >>> float(pass_at_k(2, 0, 5))
    nan
    """
    return _estimate(n, c, k, at_least_one=True)


def pass_hat_k(n: ArrayLike, c: ArrayLike, k: ArrayLike) -> Floats:
    """Chance that all of k attempts succeed (pass^k): C(c, k) / C(n, k).

    The estimator of Yao et al. 2024, "tau-bench", section 3. Arguments, accuracy, result and errors as for `pass_at_k`.

    >>> float(pass_hat_k(5, 3, 2))
    0.3
    """
    return _estimate(n, c, k, at_least_one=False)


def per_task(n: ArrayLike, c: ArrayLike, ks: ArrayLike, kind: Kind) -> Floats:
    """One row a task and one column a k, from `pass_at_k` or `pass_hat_k`.

    Args:
        n: Attempts, shape (tasks,).
        c: Successes, shape (tasks,).
        ks: Shape (K,), each 1 or more.
        kind: Which of the two.

    Returns:
        Shape (tasks, K); NaN where k > n.

    Raises:
        ValueError: As `pass_at_k`, or the kind is unknown.
    """
    if kind not in ("pass@k", "pass^k"):
        raise ValueError(f"kind is {kind!r}: pass 'pass@k' or 'pass^k'")
    tried, passed = successes(n, c)
    # Many tasks share the same counts: each pair is worked out once.
    pairs, which = np.unique(np.stack([tried.ravel(), passed.ravel()]), axis=1, return_inverse=True)
    table = _estimate(
        pairs[0][:, None], pairs[1][:, None], np.atleast_1d(np.asarray(ks)), at_least_one=kind == "pass@k"
    )
    result: Floats = table[which.reshape(-1)]
    return result


def _estimate(n: ArrayLike, c: ArrayLike, k: ArrayLike, at_least_one: bool) -> Floats:
    tried, passed = successes(n, c)
    tried, passed, drawn = np.broadcast_arrays(tried, passed, counts("k", k, lowest=1))
    result = np.full(tried.shape, math.nan)
    small = (drawn <= tried) & (tried <= _EXACT)
    large = (drawn <= tried) & (tried > _EXACT)
    # pass^k is the chance that k draws miss the n - c failures: the same ratio with failures in place of successes.
    marked = passed if at_least_one else tried - passed
    ways = _BINOMIAL[tried[small], drawn[small]]
    missing = _BINOMIAL[(tried - marked)[small], drawn[small]]
    result[small] = (ways - missing) / ways if at_least_one else missing / ways
    if large.any():
        log_missing = _log_missing(tried[large], marked[large], drawn[large])
        result[large] = -np.expm1(log_missing) if at_least_one else np.exp(log_missing)
    result += 0.0  # -expm1(0) is -0.0, and no success is plainly 0.
    return result


def _log_missing(n: Counts, marked: Counts, drawn: Counts) -> Floats:
    """log(C(n - marked, drawn) / C(n, drawn)), flat arrays; -inf where a draw cannot miss.

    The ratio is the product over i < min(marked, drawn) of 1 - max(marked, drawn) / (n - i), for marked and drawn play
    the same part. A sum of log1p keeps both the ratio and its complement accurate, which gamma functions do not.
    """
    few, many = np.minimum(marked, drawn), np.maximum(marked, drawn)
    base = int(n.max()) + 1
    keys, which = np.unique((n * base + few) * base + many, return_inverse=True)
    few, many, size = keys // base % base, keys % base, keys // base // base
    order = np.argsort(-few, kind="stable")
    few, many, size = few[order], many[order], size[order].astype(np.float64)
    total = np.zeros(keys.size)
    certain = few + many > size
    many = np.where(certain, 0, many)
    still = np.searchsorted(-few, -np.arange(int(few[0]) if few.size else 0), side="left")
    for i, active in enumerate(still.tolist()):
        total[:active] += np.log1p(-many[:active] / (size[:active] - i))
    total[certain] = -math.inf
    result = np.empty(keys.size)
    result[order] = total
    return result[which.reshape(-1)]
