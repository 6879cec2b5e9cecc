"""Paired comparison and adjustment, against enumeration, SciPy and statsmodels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from agent_envs.statistics import (
    Estimate,
    equivalence,
    holm,
    paired_difference,
    sign_flip_test,
    task_mean,
    unpaired_difference,
)
from agent_envs.statistics.ratios import ratios

NAN = math.nan


def enumerated(values: np.ndarray) -> float:
    reached = abs(values.sum()) - 1e-12 * np.abs(values).sum()
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((-1, 1), repeat=values.size)]
    return float(np.mean([total >= reached for total in sums]))


@given(st.lists(st.sampled_from([-1.0, -0.4, -0.2, 0.0, 0.2, 1 / 3, 0.6]), min_size=1, max_size=9))
def test_lattice_differences_are_exact(values: list[float]) -> None:
    own = sign_flip_test(values)
    assert own.method == "exact"
    assert own.p_value == pytest.approx(enumerated(np.array(values)), abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=9))
def test_other_differences_are_exact_up_to_twenty(values: list[float]) -> None:
    own = sign_flip_test(values)
    assert own.method == "exact"
    assert own.p_value == pytest.approx(enumerated(np.array(values)), abs=1e-12)


def test_one_attempt_is_mcnemars_exact_test() -> None:
    values = [1.0] * 14 + [-1.0] * 5 + [0.0] * 200
    own = sign_flip_test(values)
    assert own.p_value == pytest.approx(stats.binomtest(14, 19).pvalue, rel=1e-12)
    many = sign_flip_test([0.2] * 300 + [-0.2] * 220)
    assert (many.method, many.p_value) == ("exact", pytest.approx(stats.binomtest(300, 520).pvalue, rel=1e-9))


def test_monte_carlo_is_close_to_the_exact_value_and_never_zero() -> None:
    values = np.random.default_rng(3).normal(0.3, 1, 19)
    exact = sign_flip_test(values)
    # A 20th and 21st tiny value make enumeration impossible without changing the question.
    drawn = sign_flip_test(np.append(values, [1e-9, -1e-9]), seed=5, draws=40_000)
    assert (exact.method, drawn.method) == ("exact", "monte carlo")
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert drawn == sign_flip_test(np.append(values, [1e-9, -1e-9]), seed=5, draws=40_000)
    sure = sign_flip_test(np.random.default_rng(1).uniform(0.5, 1, 60), seed=1, draws=99)
    assert sure.p_value == 0.01


def test_weights_and_degenerate_differences() -> None:
    weighted = sign_flip_test([0.5, -0.25, 0.125], [1, 2, 4])
    assert weighted.p_value == pytest.approx(enumerated(np.array([0.5, -0.5, 0.5])))
    assert sign_flip_test([0.0, 0.0]).p_value == 1.0
    assert math.isnan(sign_flip_test([]).p_value)
    with pytest.raises(ValueError, match="differences holds nan"):
        sign_flip_test([0.1, NAN])


def test_difference_is_the_t_interval_where_many_tasks_differ() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(400), rng.random(400)
    own = paired_difference(a, b)
    reference = stats.ttest_rel(b, a).confidence_interval()
    assert own.value == pytest.approx(float(np.mean(b - a)))
    assert own.standard_error == pytest.approx(float(stats.sem(b - a)))
    assert (own.low, own.high) == pytest.approx((reference.low, reference.high), abs=1e-5)


def test_systems_that_agree_everywhere_still_have_an_interval() -> None:
    own = paired_difference([0.5] * 30, [0.5] * 30)
    assert own.value == 0.0 and 0.0 < own.high < 0.1 and own.low == -own.high
    alone = paired_difference([0.0], [1.0])
    assert alone.value == 1.0 and math.isnan(alone.low)


def test_undefined_tasks_withhold_the_difference() -> None:
    first, second = [0.5, NAN, 0.2], [1.0, 0.5, 0.4]
    assert math.isnan(paired_difference(first, second).value)
    partial = paired_difference(first, second, partial=True)
    assert (partial.value, partial.tasks, partial.coverage) == (pytest.approx(0.35), 2, pytest.approx(2 / 3))
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        paired_difference([0.5], [1.5])
    with pytest.raises(ValueError, match="second has shape"):
        paired_difference([0.5, 0.5], [0.5])


def test_unpaired_difference_is_welchs() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(0, 1, 12), rng.normal(1, 3, 30)
    own = unpaired_difference(task_mean(a), task_mean(b))
    reference = stats.ttest_ind(b, a, equal_var=False).confidence_interval()
    assert (own.low, own.high) == pytest.approx((reference.low, reference.high))
    assert math.isnan(unpaired_difference(task_mean([1.0]), task_mean(b)).low)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(values: list[float]) -> None:
    expected = multipletests(values, method="holm")[1]
    np.testing.assert_allclose(holm(values), expected, rtol=1e-12)
    with_gap = holm([*values, NAN])
    np.testing.assert_allclose(with_gap[:-1], expected, rtol=1e-12)
    assert math.isnan(with_gap[-1])


def test_equivalence_needs_an_interval_inside_the_margin() -> None:
    made = Estimate("d", 0.0, 0.01, -0.02, 0.02, 0.9, 50)
    assert equivalence(made, 0.03) is True and equivalence(made, 0.02) is False
    assert equivalence(Estimate("d", 0.0, NAN, NAN, NAN, 0.9, 1), 0.03) is None
    with pytest.raises(ValueError, match="margin"):
        equivalence(made, 0.0)


@pytest.mark.parametrize(
    ("tasks", "attempts", "rate", "gain"),
    [(20, 5, 0.3, 0.1), (30, 1, 0.5, 0.2), (50, 3, 0.8, 0.0), (200, 1, 0.05, 0.0)],
)
def test_difference_covers_as_often_as_it_says(tasks: int, attempts: int, rate: float, gain: float) -> None:
    rng = np.random.default_rng(tasks + attempts)
    first = rng.beta(2 * rate, 2 * (1 - rate), (tasks, 4000))
    second = first + (1 - first) * gain / (1 - rate)
    values = (rng.binomial(attempts, second) - rng.binomial(attempts, first)) / attempts
    found = ratios(np.ones(values.shape), values, 0.95, "difference")
    covered = np.mean((found.low <= gain) & (gain <= found.high))
    # 4,000 suites have a standard error of 0.0035.
    assert 0.93 - 0.007 <= covered <= 0.97 + 0.007
