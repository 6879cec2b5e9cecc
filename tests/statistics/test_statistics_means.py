"""Counting, means and their intervals, against hand calculation, SciPy and statsmodels."""

from __future__ import annotations

import enum
import json
import math

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from agent_envs.statistics import (
    cluster_mean,
    coverage,
    curve,
    flip_rate,
    macro_mean,
    micro_mean,
    slices,
    tally,
    task_mean,
    wilson,
)
from agent_envs.statistics.distributions import (
    chi_squared_above,
    noncentral_t_above,
    normal_quantile,
    t_cdf,
    t_quantile,
    t_quantiles,
)
from agent_envs.statistics.passk import per_task
from agent_envs.statistics.ratios import ratios

NAN = math.nan


class Status(enum.Enum):
    EASY = "easy"
    HARD = "hard"


class TextStatus(enum.StrEnum):
    EASY = "easy"
    HARD = "hard"


@pytest.mark.parametrize("df", [1, 2, 3.7, 19, 200, 1e5])
@pytest.mark.parametrize("p", [1e-6, 0.025, 0.3, 0.5, 0.9, 0.975, 0.9999])
def test_distributions_agree_with_scipy(p: float, df: float) -> None:
    assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-12)
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, rel=1e-9)
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-9, abs=1e-12)
    if 3 <= df <= 200:
        for shift in (-1.0, 0.0, 2.5):
            assert noncentral_t_above(2.0, df, shift) == pytest.approx(stats.nct.sf(2.0, df, shift), abs=1e-7)


@pytest.mark.parametrize("p", [0.005, 0.05, 0.9, 0.975])
def test_many_t_quantiles_at_once_are_close(p: float) -> None:
    df = np.array([3.0, 4.4, 10.0, 70.0, math.inf])
    np.testing.assert_allclose(t_quantiles(p, df), stats.t.ppf(p, df), rtol=0.02)
    np.testing.assert_allclose(t_quantiles(p, df[2:]), stats.t.ppf(p, df[2:]), rtol=1e-4)
    assert t_quantiles(p, np.array([0.2])) == t_quantiles(p, np.array([1.0]))


@pytest.mark.parametrize("df", [1, 2, 3, 10, 255])
def test_chi_squared_tail_agrees_with_scipy(df: int) -> None:
    for x in (0.0, 1e-3, 0.7, float(df), 2.0 * df + 5.0, 2000.0):
        assert chi_squared_above(x, df) == pytest.approx(stats.chi2.sf(x, df), rel=1e-9, abs=1e-300)


def test_micro_and_macro_are_two_figures_with_two_names() -> None:
    """B158."""
    macro, micro = macro_mean([10, 2], [10, 0]), micro_mean([10, 2], [10, 0])
    assert (macro.kind, macro.value) == ("macro mean", 0.5)
    assert (micro.kind, micro.value) == ("micro mean", pytest.approx(0.8333, abs=5e-5))
    assert (macro.tasks, macro.attempts, micro.attempts) == (2, 12, 12)


def test_error_is_over_tasks_not_attempts() -> None:
    """B156."""
    for estimate in (macro_mean([10, 10], [10, 0]), micro_mean([10, 10], [10, 0])):
        assert estimate.standard_error == pytest.approx(0.5)
    alone = macro_mean([10], [5])
    assert alone.value == 0.5
    assert math.isnan(alone.standard_error) and math.isnan(alone.low) and math.isnan(alone.high)


def test_one_surviving_episode_is_no_result() -> None:
    """B152."""
    n, c = [1, 0, 0, 0], [1, 0, 0, 0]
    strict, partial = macro_mean(n, c), macro_mean(n, c, partial=True)
    assert math.isnan(strict.value) and strict.coverage == 0.25
    assert (partial.value, partial.coverage, partial.tasks) == (1.0, 0.25, 1)
    found = coverage([1] * 4, n, c)
    assert (found.planned, found.valid, found.tasks, found.covered, found.share) == (4, 1, 4, 1, 0.25)
    assert (found.lowest, found.highest) == (0.25, 1.0)


def test_failures_stay_in_the_denominator() -> None:
    """B153."""
    outcomes = [1.0] * 108 + [0.0] * 40 + [0.0] * 24
    counts = tally(["suite"] * 172, outcomes)
    assert micro_mean(counts.valid, counts.total).value == pytest.approx(108 / 172)
    assert counts.valid.tolist() == counts.planned.tolist() == [172]


def test_invalid_episodes_show_in_both_figures() -> None:
    """B154."""
    counts = tally([f"t{i}" for i in range(8)], [1, 1, NAN, NAN, 0, 0, 0, 0])
    valid = micro_mean(counts.valid, counts.total)
    assert (valid.value, valid.attempts, valid.coverage) == (pytest.approx(1 / 3), 6, 0.75)
    for averaging in ("micro", "macro"):
        found = coverage(counts.planned, counts.valid, counts.successes, averaging=averaging)  # type: ignore[arg-type]
        assert (found.lowest, found.highest, found.valid, found.planned) == (0.25, 0.5, 6, 8)


def test_a_retry_does_not_rescue_an_attempt() -> None:
    """B160."""
    # Attempt 0 failed and was tried again; attempt 1 broke, and its second try is its first valid one.
    arguments = (["a"] * 4, [0, 1, NAN, 1], [0, 0, 1, 1], [0, 1, 0, 1])
    counts = tally(*arguments)
    assert (counts.valid.tolist(), counts.total.tolist(), counts.retries) == ([2], [1.0], 2)
    with pytest.raises(ValueError, match="recorded twice"):
        tally(*arguments[:3])
    with pytest.raises(ValueError, match="without attempts"):
        tally(*arguments[:2], tries=[0, 1, 0, 1])


@pytest.mark.parametrize("kind", [Status, TextStatus])
def test_labels_count_by_value_after_a_round_trip(kind: type[enum.Enum]) -> None:
    """B162."""
    members = [kind("hard"), kind("easy"), kind("hard")]
    read = json.loads(json.dumps([member.value for member in members]))
    frame = pandas.DataFrame({"status": read, "n": [4, 4, 4], "total": [1, 4, 2]})
    before = slices(members, frame["n"], frame["total"])
    assert [(group.label, group.planned) for group in before] == [("easy", 1), ("hard", 2)]
    for labels in (read, frame["status"], np.array(read), np.array(read, dtype=object)):
        after = slices(labels, frame["n"], frame["total"])
        assert [(group.label, group.planned, group.estimate.value) for group in after] == [
            (group.label, group.planned, group.estimate.value) for group in before
        ]
    mixed = tally([members[0], "hard"], [1, 0])
    assert mixed.tasks == ("hard",)


def test_partial_scores_are_not_successes() -> None:
    counts = tally(["a", "a"], [0.5, 0.5])
    assert counts.total.tolist() == [1.0]
    with pytest.raises(ValueError, match="partial scores"):
        _ = counts.successes


@pytest.mark.parametrize("outcomes", [[math.inf, 0], [2, 0], [-1, 0], ["1", 0], [None, 0]])
def test_impossible_outcomes_are_refused(outcomes: list[object]) -> None:
    with pytest.raises(ValueError, match="pass"):
        tally(["a", "b"], outcomes)  # type: ignore[arg-type]


def test_bounds_of_pass_k_contain_every_completion() -> None:
    planned, valid, passed, weight = [4, 4], [2, 4], [1, 3], [2.0, 1.0]
    for kind, k in (("pass@k", 2), ("pass^k", 3)):
        found = coverage(planned, valid, passed, weight, kind=kind, k=k)  # type: ignore[arg-type]
        ends = [
            float(curve(planned, [1 + more, 3], [k], weight, kind=kind).value[0])  # type: ignore[arg-type]
            for more in range(3)
        ]
        assert (found.lowest, found.highest) == (pytest.approx(min(ends)), pytest.approx(max(ends)))
    with pytest.raises(ValueError, match="c must be"):
        coverage([1], [2], [1])


@given(st.integers(0, 10_000))
def test_cluster_error_agrees_with_weighted_regression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = np.concatenate([np.arange(4), rng.integers(0, 4, 20)])
    y, w = rng.normal(size=24), rng.uniform(0.2, 3, 24)
    fit = sm.WLS(y, np.ones(24), weights=w).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True, "df_correction": True}, use_t=True
    )
    own = cluster_mean(y, clusters, w)
    assert own.value == pytest.approx(float(fit.params[0]))
    assert own.standard_error == pytest.approx(float(fit.bse[0]))
    assert (own.low, own.high) == pytest.approx(tuple(fit.conf_int()[0]))


def test_task_mean_is_the_plain_t_interval() -> None:
    values = np.array([3.0, 9.0, 4.5, 7.0])
    own = task_mean(values)
    interval = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (own.low, own.high) == pytest.approx(interval)
    assert math.isnan(task_mean([1.0, NAN]).value) and task_mean([1.0, NAN], partial=True).value == 1.0
    assert task_mean([1.0, NAN], [1.0, 0.0]).value == 1.0
    with pytest.raises(ValueError, match="outside the range"):
        task_mean([0.2, 1.2], interval="rate")


@pytest.mark.parametrize(("n", "c"), [(10, 0), (10, 3), (10, 10), (1, 1), (250, 249)])
def test_wilson_agrees_with_statsmodels(n: int, c: int) -> None:
    low, high = wilson(n, c)
    assert (float(low), float(high)) == pytest.approx(proportion_confint(c, n, method="wilson"), abs=1e-12)
    assert np.isnan(wilson(0, 0)).all()


@pytest.mark.parametrize(("tasks", "passed"), [(20, 1), (20, 19), (2000, 600), (7, 0), (3, 3)])
def test_rate_interval_is_wilsons_for_one_attempt_a_task(tasks: int, passed: int) -> None:
    own = macro_mean([1] * tasks, [1] * passed + [0] * (tasks - passed))
    low, high = wilson(tasks, passed)
    assert (own.low, own.high) == pytest.approx((float(low), float(high)), abs=1e-12)
    # More attempts with equal outcomes at each task say nothing more.
    again = macro_mean([8] * tasks, [8] * passed + [0] * (tasks - passed))
    assert (again.low, again.high) == pytest.approx((own.low, own.high), abs=1e-12)


@pytest.mark.parametrize(
    ("tasks", "attempts", "rate", "likeness", "k"),
    [
        (20, 5, 0.95, 0.3, 1),
        (20, 3, 0.3, 0.1, 1),
        (30, 10, 0.8, 0.5, 1),
        (100, 5, 0.05, 0.2, 1),
        (200, 1, 0.03, 0.5, 1),
        (40, 5, 0.7, 0.3, 3),
        (150, 8, 0.3, 0.3, 4),
    ],
)
def test_rate_interval_covers_as_often_as_it_says(
    tasks: int, attempts: int, rate: float, likeness: float, k: int
) -> None:
    rng = np.random.default_rng(tasks + attempts)
    size = 1 / likeness - 1
    passed = rng.binomial(attempts, rng.beta(rate * size, (1 - rate) * size, (tasks, 4000)))
    values = per_task(np.full(attempts + 1, attempts), np.arange(attempts + 1), [k], "pass^k")[passed, 0]
    truth = math.prod((rate * size + i) / (size + i) for i in range(k))
    found = ratios(np.ones(values.shape), values, 0.95, "rate")
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    # 4,000 suites have a standard error of 0.0035.
    assert 0.93 - 0.007 <= covered <= 0.97 + 0.007


def test_weights_count_in_the_rate_interval() -> None:
    rng = np.random.default_rng(3)
    weight = rng.gamma(2.0, 1.0, (150, 1)) + 0.2
    values = rng.binomial(5, rng.beta(0.6, 1.4, (150, 4000))) / 5
    size = np.broadcast_to(weight, values.shape)
    found = ratios(size, size * values, 0.95, "rate")
    covered = np.mean((found.low <= 0.3) & (found.high >= 0.3))
    assert 0.93 <= covered <= 0.97
    # An equal weight is no weight.
    plain, scaled = (ratios(np.full(values.shape, w), w * values, 0.95, "rate") for w in (1.0, 7.0))
    np.testing.assert_allclose(plain.low, scaled.low, atol=1e-9)


def test_few_tasks_that_happen_to_agree_are_no_certainty() -> None:
    for tasks in (2, 3, 5):
        own = macro_mean([5] * tasks, [2] * tasks)
        assert own.standard_error == pytest.approx(0.0, abs=1e-12)
        assert own.low < 0.33 and own.high > 0.47
    wide, narrow = (macro_mean([5] * tasks, [2] * tasks) for tasks in (2, 5))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_rate_interval_of_nothing_solved() -> None:
    nothing = macro_mean([5] * 20, [0] * 20)
    assert (nothing.value, nothing.low) == (0.0, 0.0) and 0.1 < nothing.high < 0.25
    assert macro_mean([5] * 20, [5] * 20).low == pytest.approx(1 - nothing.high)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.floats(0.1, 9)), min_size=2, max_size=12),
    st.floats(0.01, 100),
)
def test_intervals_hold_the_estimate_and_ignore_scale(tasks: list[tuple[int, int, float]], scale: float) -> None:
    n = [size for size, _, _ in tasks]
    total = [min(size, passed) for size, passed, _ in tasks]
    weight = np.array([w for _, _, w in tasks])
    own, scaled = macro_mean(n, total, weight), macro_mean(n[::-1], total[::-1], weight[::-1] * scale)
    assert 0.0 <= own.low <= own.value + 1e-12 and own.value <= own.high + 1e-12 and own.high <= 1.0
    pairs = [(getattr(own, name), getattr(scaled, name)) for name in ("value", "low", "high", "standard_error")]
    np.testing.assert_allclose(*zip(*pairs, strict=True), atol=1e-7)
    flipped = macro_mean(n, np.array(n) - total, weight)
    assert (flipped.low, flipped.high) == pytest.approx((1 - own.high, 1 - own.low), abs=1e-7)


def test_tasks_of_no_weight_do_not_enter() -> None:
    own = macro_mean([2, 2, 0], [2, 0, 0], [1.0, 1.0, 0.0])
    assert (own.value, own.tasks, own.coverage, own.attempts) == (0.5, 2, 1.0, 4)
    for weight in ([1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, NAN, 1.0], [1.0]):
        with pytest.raises(ValueError, match="weight"):
            macro_mean([2, 2, 2], [2, 0, 1], weight)


def test_empty_suite_is_undefined() -> None:
    assert math.isnan(micro_mean([], []).value) and math.isnan(macro_mean([], []).value)
    assert math.isnan(micro_mean([0, 0], [0, 0]).value)


def test_flip_rate_counts_disagreeing_pairs() -> None:
    own = flip_rate([4, 2], [1, 1])
    assert own.value == pytest.approx((3 / 6 + 1) / 2)
    assert flip_rate([4, 4], [4, 0]).value == 0.0
    single = flip_rate([4, 1], [1, 1])
    assert math.isnan(single.value) and single.coverage == 0.5
    assert flip_rate([4, 1], [1, 1], partial=True).value == pytest.approx(0.5)
