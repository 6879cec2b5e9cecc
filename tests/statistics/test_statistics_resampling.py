"""The bootstrap against closed forms, SciPy and a plain loop that draws tasks one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from agent_envs.statistics import attempts_only, bootstrap, curve, curve_rows, divide, macro_mean


def rows_of(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values, np.ones(values.size)])


def test_standard_error_is_the_closed_form_one() -> None:
    values = np.random.default_rng(0).random(40)
    own = bootstrap(rows_of(values), divide, seed=1, replicates=20_000)
    assert own.value[0] == pytest.approx(values.mean())
    assert own.standard_error[0] == pytest.approx(values.std() / np.sqrt(40), rel=0.02)


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_ends_agree_with_scipy_at_the_widened_level(method: str) -> None:
    values = np.random.default_rng(4).exponential(size=25)
    own = bootstrap(rows_of(values), divide, seed=1, replicates=40_000, method=method.lower())  # type: ignore[arg-type]
    tail = stats.norm.cdf(-np.sqrt(25 / 24) * stats.t.ppf(0.975, 24))
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, confidence_level=1 - 2 * tail, method=method, rng=7
    ).confidence_interval
    assert (own.low[0], own.high[0]) == pytest.approx((reference.low, reference.high), abs=0.02)


def test_drawing_equal_rows_together_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    n, weight = np.full(60, 6), rng.choice([1.0, 2.0], 60)
    c = rng.binomial(6, rng.beta(1, 1, 60))
    rows = curve_rows(n, c, [1, 3], weight, kind="pass^k")
    own = bootstrap(rows, divide, seed=3, replicates=20_000, method="percentile")
    # The plain way: an index for each drawn task.
    plain = np.array([divide(rows[rng.integers(0, 60, 60)].sum(axis=0)) for _ in range(20_000)])
    np.testing.assert_allclose(own.standard_error, plain.std(axis=0), rtol=0.03)
    np.testing.assert_allclose(own.value, curve(n, c, [1, 3], weight, kind="pass^k").value)


def test_batches_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(np.random.default_rng(0).random(30))
    whole = bootstrap(rows, divide, seed=9, replicates=500)
    monkeypatch.setattr("agent_envs.statistics.resampling._BATCH_BYTES", 8 * 30 * 7)
    parts = bootstrap(rows, divide, seed=9, replicates=500)
    np.testing.assert_allclose(whole.low, parts.low)
    np.testing.assert_allclose(whole.standard_error, parts.standard_error)


def test_seed_decides_and_order_does_not() -> None:
    rows = rows_of(np.random.default_rng(0).random(30))
    one = bootstrap(rows, divide, seed=9)
    np.testing.assert_array_equal(one.low, bootstrap(rows[::-1], divide, seed=9).low)
    assert one.low[0] != bootstrap(rows, divide, seed=10).low[0]
    with pytest.raises(ValueError, match="seed"):
        bootstrap(rows, divide, seed=-1)


def test_difference_of_systems_keeps_the_pairing() -> None:
    rng = np.random.default_rng(5)
    base = rng.random(50) * 0.8
    better = base + 0.1 + rng.normal(0, 0.01, 50)
    rows = np.column_stack([base, better, np.ones(50)])
    own = bootstrap(rows, lambda sums: (sums[..., 1:2] - sums[..., :1]) / sums[..., 2:], seed=1)
    assert own.value[0] == pytest.approx(0.1, abs=0.01) and own.standard_error[0] < 0.003


def test_no_interval_where_nothing_varies_or_something_is_undefined() -> None:
    same = bootstrap(rows_of(np.ones(20)), divide, seed=1)
    assert same.value[0] == 1.0 and np.isnan(same.low[0]) and np.isnan(same.high[0])
    alone = bootstrap(rows_of(np.ones(1)), divide, seed=1)
    assert np.isnan(alone.standard_error[0]) and np.isnan(alone.low[0])
    # One task of three has enough attempts for k = 3: most replicates miss it.
    rare = bootstrap(curve_rows([3, 2, 2], [2, 1, 1], [3], kind="pass@k"), divide, seed=1)
    assert rare.value[0] == 1.0 and np.isnan(rare.low[0])


def test_attempts_only_leaves_task_difficulty_out() -> None:
    n, c = np.full(50, 10), np.repeat([0, 10, 5, 5, 5], 10)
    own = attempts_only(n, c, seed=1, replicates=20_000)
    assert own.standard_error[0] == pytest.approx(np.sqrt(30 * 0.25 / 9) / 50, rel=0.02)
    assert own.standard_error[0] < macro_mean(n, c).standard_error / 2
    assert own.low[0] < 0.5 < own.high[0]
    assert np.isnan(attempts_only([1, 5], [1, 2], seed=1).low[0])
    assert np.isnan(attempts_only([5, 5], [5, 5], seed=1).low[0])
