"""pass@k and pass^k against enumeration and exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.statistics import curve, pass_at_k, pass_hat_k, per_task

counted = st.integers(1, 90).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@pytest.mark.parametrize("n", range(1, 8))
def test_equal_to_counting_every_draw(n: int) -> None:
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        draws = [sum(draw) for draw in itertools.combinations([1] * c + [0] * (n - c), k)]
        assert float(pass_at_k(n, c, k)) == sum(total > 0 for total in draws) / len(draws)
        assert float(pass_hat_k(n, c, k)) == sum(total == k for total in draws) / len(draws)


def test_the_plug_in_is_not_used() -> None:
    """B148, B150."""
    assert float(pass_at_k(5, 2, 3)) == 0.9
    assert float(pass_hat_k(5, 3, 2)) == 0.3
    assert float(pass_hat_k(3, 2, 3)) == 0.0


def test_more_draws_than_attempts_is_undefined() -> None:
    """B147."""
    assert math.isnan(pass_at_k(2, 0, 5)) and math.isnan(pass_hat_k(2, 2, 3)) and math.isnan(pass_at_k(0, 0, 1))
    assert pass_at_k([5, 5], 0, [1, 5]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [(5, 2, 0), (5, 6, 1), (-1, 0, 1), (5, -1, 1), (5, 2, -1), (5.0, 2, 1), (5, 2.5, 1), (5, True, 1), ("5", 2, 1)],
)
def test_bad_counts_raise(n: object, c: object, k: object) -> None:
    """B147."""
    for estimator in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=r"pass whole numbers|pass values|c must be"):
            estimator(n, c, k)  # type: ignore[arg-type]


@given(counted)
def test_agrees_with_exact_fractions(case: tuple[int, int, int]) -> None:
    n, c, k = case
    missing = Fraction(math.comb(n - c, k), math.comb(n, k))
    assert float(pass_at_k(n, c, k)) == pytest.approx(float(1 - missing), rel=1e-12, abs=0)
    every = Fraction(math.comb(c, k), math.comb(n, k))
    assert float(pass_hat_k(n, c, k)) == pytest.approx(float(every), rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [(100_000, 1, 1), (100_000, 3, 50_000), (100_000, 99_990, 40), (99_999, 700, 900), (100_000, 9, 99_991)],
)
def test_large_counts_keep_their_accuracy(n: int, c: int, k: int) -> None:
    whole = math.comb(n, k)
    exact_at = Fraction(whole - math.comb(n - c, k), whole)
    exact_hat = Fraction(math.comb(c, k), whole)
    assert float(pass_at_k(n, c, k)) == pytest.approx(float(exact_at), rel=1e-10, abs=0)
    assert float(pass_hat_k(n, c, k)) == pytest.approx(float(exact_hat), rel=1e-10, abs=0)


@given(counted)
def test_monotone_and_within_bounds(case: tuple[int, int, int]) -> None:
    n, c, k = case
    at, hat = float(pass_at_k(n, c, k)), float(pass_hat_k(n, c, k))
    assert 0.0 <= hat <= at + 1e-15 <= 1.0 + 1e-15
    if c < n:
        assert float(pass_at_k(n, c + 1, k)) >= at - 1e-13 and float(pass_hat_k(n, c + 1, k)) >= hat - 1e-13
    if k < n:
        assert float(pass_at_k(n, c, k + 1)) >= at - 1e-13 and float(pass_hat_k(n, c, k + 1)) <= hat + 1e-13
    assert at == pytest.approx(1.0 - float(pass_hat_k(n, n - c, k)), abs=1e-13)


def test_mixed_sizes_broadcast_as_single_calls() -> None:
    n, c, ks = np.array([3, 60, 200, 60, 1]), np.array([1, 59, 0, 2, 1]), np.array([1, 2, 57, 150])
    table = per_task(n, c, ks, "pass@k")
    assert table.shape == (5, 4)
    for row, column in itertools.product(range(5), range(4)):
        np.testing.assert_equal(table[row, column], float(pass_at_k(int(n[row]), int(c[row]), int(ks[column]))))


def test_curve_reports_every_k() -> None:
    """B163."""
    result = curve([4, 4, 4], [4, 2, 0], kind="pass^k")
    assert result.ks.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(result.value, [0.5, (1 + 1 / 6) / 3, 1 / 3, 1 / 3], rtol=1e-15)
    # The suite's rate raised to the power would be 0.25 for k = 2.
    assert result.value[1] != pytest.approx(0.25, abs=0.05)


def test_curve_is_withheld_below_full_definition() -> None:
    arguments = ([4, 2, 4], [4, 1, 1], [1, 3], [1.0, 2.0, 1.0])
    strict, partial = curve(*arguments), curve(*arguments, partial=True)
    assert strict.coverage.tolist() == [1.0, 0.5] and strict.tasks.tolist() == [3, 2]
    assert strict.value[0] == pytest.approx((1.0 + 2 * 0.5 + 0.25) / 4)
    for array in (strict.value, strict.low, strict.high, strict.standard_error):
        assert np.isnan(array[1]) and not np.isnan(array[0])
    assert partial.value[1] == pytest.approx((1.0 + 0.75) / 2)
    assert np.isnan(curve([2, 2], [1, 1], [3], partial=True).value).all()


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1), st.floats(0.1, 5)), min_size=2, max_size=8), st.randoms())
def test_curve_ignores_order_and_scale_of_weights(tasks: list[tuple[int, float, float]], chance: object) -> None:
    n = np.array([size for size, _, _ in tasks])
    c = np.array([int(size * rate) for size, rate, _ in tasks])
    weight = np.array([w for _, _, w in tasks])
    order = np.array(sorted(range(len(tasks)), key=lambda _: chance.random()))  # type: ignore[attr-defined]
    one = curve(n, c, weight=weight, partial=True)
    other = curve(n[order], c[order], weight=weight[order] * 7.3, partial=True)
    for name in ("value", "low", "high", "standard_error", "coverage"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-7)
    defined = ~np.isnan(one.value)
    assert defined.all() and ((one.value >= 0) & (one.value <= 1)).all()
