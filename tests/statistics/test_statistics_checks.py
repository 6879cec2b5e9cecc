"""Drift, variance between and within tasks, and planning: found where put in, absent where not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.power import TTestIndPower, TTestPower

from agent_envs.statistics import (
    Plan,
    attempts_needed,
    between_and_within,
    detectable,
    drift,
    power,
    task_mean,
    tasks_needed,
    unpaired_difference,
)


def runs(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, tasks, starts and workers of 40 tasks x 6 attempts: hard tasks run last, nothing drifts within them."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(40), 6)
    outcome = (rng.random(240) > task / 40).astype(float)
    return outcome, task, task * 10.0 + rng.random(240), np.tile([0, 1, 2], 80)


def test_hard_tasks_last_are_no_drift() -> None:
    results = [drift(*runs(seed), seed=seed, permutations=199) for seed in range(20)]
    assert abs(stats.pearsonr(runs(0)[0], runs(0)[2])[0]) > 0.4
    # At level 0.05 each of 40 tests rejects once in 20: seven or more would be one in 500.
    small = sum((result.order.p_value <= 0.05) + (result.worker.p_value <= 0.05) for result in results)
    assert small <= 6


def test_drift_in_time_and_a_broken_worker_are_found_apart() -> None:
    outcome, task, started, worker = runs(1)
    phase = started - np.floor(started / 10.0) * 10.0
    slowed = np.where(phase > 0.5, 0.0, outcome)
    found = drift(slowed, task, started, worker, seed=1, permutations=999)
    assert found.order.p_value < 0.01 and found.correlation < -0.2 and found.worker.p_value > 0.01
    broken = drift(np.where(worker == 2, 0.0, outcome), task, started, worker, seed=1, permutations=999)
    assert broken.worker.p_value < 0.01 and broken.worker.statistic > 0.05
    assert broken.adjusted[1] >= broken.worker.p_value and found.adjusted[0] <= 2 * found.order.p_value


def test_drift_does_not_depend_on_the_order_of_the_records() -> None:
    outcome, task, started, worker = runs(3)
    order = np.random.default_rng(0).permutation(240)
    one = drift(outcome, task, started, worker, seed=5, permutations=99)
    assert one == drift(outcome[order], task[order], started[order], worker[order], seed=5, permutations=99)


def test_what_cannot_drift_is_undefined() -> None:
    nested = drift([0, 1, 0, 1], ["a", "a", "b", "b"], [1, 2, 3, 4], ["x", "x", "y", "y"], seed=0, permutations=50)
    assert math.isnan(nested.worker.p_value) and math.isnan(nested.adjusted[1]) and not math.isnan(nested.order.p_value)
    flat = drift([1, 1, 0, 0], ["a", "a", "b", "b"], [1, 2, 3, 4], ["x", "y", "x", "y"], seed=0, permutations=50)
    assert math.isnan(flat.correlation) and math.isnan(flat.order.p_value) and math.isnan(flat.worker.p_value)


def test_p_value_of_drift_is_the_enumerated_one() -> None:
    # One task, outcomes 0 0 1 1 in start order: 2 of the 6 arrangements are as extreme.
    own = drift([0, 0, 1, 1], ["a"] * 4, [1, 2, 3, 4], ["x"] * 4, seed=1, permutations=20_000)
    assert own.order.p_value == pytest.approx(1 / 3, abs=0.015)
    assert own.correlation == pytest.approx(stats.pearsonr([0, 0, 1, 1], [1, 2, 3, 4])[0])


def test_two_workers_are_the_cochran_mantel_haenszel_test() -> None:
    rng = np.random.default_rng(4)
    task = np.repeat(np.arange(60), rng.integers(2, 9, 60))
    outcome = (rng.random(task.size) < rng.beta(1, 1, 60)[task]).astype(float)
    worker = rng.integers(0, 2, task.size)
    own = drift(outcome, task, rng.permutation(task.size), worker, seed=0)
    tables = [
        [[np.sum((task == t) & (worker == w) & (outcome == y)) for y in (0, 1)] for w in (0, 1)] for t in range(60)
    ]
    found = StratifiedTable(np.array(tables, dtype=float).transpose(1, 2, 0)).test_null_odds(correction=False)
    assert own.worker.method == "chi-squared"
    assert own.worker.p_value == pytest.approx(found.pvalue, rel=1e-9)


def test_closed_forms_of_drift_agree_with_permuting() -> None:
    rng = np.random.default_rng(9)
    task = np.repeat(np.arange(50), 6)
    outcome = rng.integers(0, 3, 300) / 2.0  # partial scores, too
    started, worker = rng.permutation(300), rng.integers(0, 4, 300)
    outcome[started > 200] = np.maximum(outcome[started > 200] - 0.5 * (rng.random((started > 200).sum()) < 0.4), 0.0)
    own = drift(outcome, task, started, worker, seed=0)
    assert (own.order.method, own.worker.method) == ("normal", "chi-squared")
    table = outcome.reshape(50, 6)
    residual = table - table.mean(axis=1, keepdims=True)
    centred = started.reshape(50, 6) - started.reshape(50, 6).mean(axis=1, keepdims=True)
    member = np.eye(4)[worker]
    permuted = np.stack([rng.permuted(residual, axis=1) for _ in range(4000)])
    sums = permuted.reshape(4000, 300) @ member
    covariance = np.linalg.pinv(np.cov(sums.T), rcond=1e-6)
    seen = residual.ravel() @ member
    order = np.mean(np.abs((permuted * centred).sum(axis=(1, 2))) >= abs((residual * centred).sum()))
    workers = np.mean(np.einsum("ri,ij,rj->r", sums, covariance, sums) >= seen @ covariance @ seen)
    # 4,000 permutations have a standard error of at most 0.008.
    assert own.order.p_value == pytest.approx(order, abs=0.02) and 0.001 < own.order.p_value < 0.5
    assert own.worker.p_value == pytest.approx(workers, abs=0.03)


@pytest.mark.parametrize("attempts", [3, 5])
def test_closed_forms_of_drift_reject_as_often_as_they_say(attempts: int) -> None:
    rng = np.random.default_rng(attempts)
    small = np.zeros(2)
    for seed in range(500):
        task = np.repeat(np.arange(200), attempts)
        outcome = (rng.random(task.size) < rng.beta(1, 1, 200)[task]).astype(float)
        own = drift(outcome, task, rng.permutation(task.size), rng.integers(0, 3, task.size), seed=seed)
        assert (own.order.method, own.worker.method) == ("normal", "chi-squared")
        small += np.array([own.order.p_value, own.worker.p_value]) <= 0.05
    # 500 tests at level 0.05 have a standard error of 0.01.
    assert small / 500 == pytest.approx(0.05, abs=0.035)


def test_hundreds_of_workers_and_a_sparse_one_are_still_tested() -> None:
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(200), 20)
    outcome = (rng.random(4000) < 0.5).astype(float)
    many = drift(outcome, task, np.arange(4000), rng.integers(0, 900, 4000), seed=1, permutations=99)
    assert many.worker.method == "monte carlo" and many.worker.p_value > 0.02
    crew = np.where(np.arange(4000) < 3, "rare", "usual")
    sparse = drift(outcome, task, np.arange(4000), crew, seed=1, permutations=99)
    assert (sparse.order.method, sparse.worker.method) == ("normal", "monte carlo")


def test_between_and_within_are_found_again() -> None:
    rng = np.random.default_rng(0)
    rate = rng.beta(2, 3, 20_000)
    n = rng.integers(2, 9, 20_000)
    between, within = between_and_within(n, rng.binomial(n, rate))
    assert between == pytest.approx(stats.beta(2, 3).var(), rel=0.05)
    assert within == pytest.approx(float(np.mean(rate * (1 - rate))), rel=0.02)
    assert np.isnan(between_and_within([1, 1, 5], [1, 0, 2])).all()


def test_power_agrees_with_statsmodels() -> None:
    plan = Plan(between=0.04, within=0.15, correlation=0.6)
    spread = math.sqrt(2 * 0.04 * 0.4 + 2 * 0.15 / 5)
    assert power(plan, 0.1, 50, 5) == pytest.approx(TTestPower().power(0.1 / spread, 50, 0.05), abs=1e-6)
    apart = Plan(between=0.04, within=0.15, paired=False)
    spread = math.sqrt(0.04 + 0.15 / 5)
    assert power(apart, 0.1, 50, 5) == pytest.approx(TTestIndPower().power(0.1 / spread, 50, 0.05), abs=1e-6)
    assert power(plan, 0.0, 50, 5) == pytest.approx(0.05, abs=1e-6)


def test_needs_and_detectable_difference_invert_the_power() -> None:
    plan = Plan(between=0.04, within=0.15, correlation=0.6)
    tasks = tasks_needed(plan, 0.1, 5)
    assert power(plan, 0.1, tasks, 5) >= 0.8 > power(plan, 0.1, tasks - 1, 5)
    assert power(plan, detectable(plan, 60, 3), 60, 3) == pytest.approx(0.8, abs=1e-4)
    attempts = attempts_needed(plan, 0.1, 80)
    assert attempts is not None and power(plan, 0.1, 80, attempts) >= 0.8 > power(plan, 0.1, 80, attempts - 1)
    assert tasks_needed(Plan(0.04, 0.15, paired=False), 0.1, 5) > tasks
    # Attempts cannot make up for few tasks: the difference between tasks remains.
    assert attempts_needed(Plan(0.04, 0.15), 0.05, 20) is None


@pytest.mark.parametrize("paired", [True, False])
def test_promised_power_is_had_in_simulation(paired: bool) -> None:
    # The mean of p (1 - p) at mean 0.44 or 0.56 and variance 0.03.
    plan = Plan(between=0.03, within=0.44 * 0.56 - 0.03, correlation=0.7, paired=paired)
    tasks = tasks_needed(plan, 0.12, 4)
    rng = np.random.default_rng(0)
    cov = 0.03 * np.array([[1, 0.7 if paired else 0.0], [0.7 if paired else 0.0, 1]])
    rejected = 0
    for _ in range(600):
        rate = np.clip(rng.multivariate_normal([0.44, 0.56], cov, tasks), 0, 1)
        seen = rng.binomial(4, rate) / 4
        if paired:
            own = task_mean(seen[:, 1] - seen[:, 0])
        else:
            own = unpaired_difference(task_mean(seen[:, 0]), task_mean(seen[:, 1]))
        rejected += not own.low <= 0.0 <= own.high
    # 600 runs have a standard error of 0.016.
    assert rejected / 600 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    "arguments", [{"between": -1.0}, {"within": math.nan}, {"correlation": 1.5}, {"alpha": 0.0}, {"alpha": 1.0}]
)
def test_impossible_plans_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="pass"):
        Plan(**{"between": 0.1, "within": 0.1, **arguments})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="difference"):
        tasks_needed(Plan(0.1, 0.1), 0.0, 3)
    with pytest.raises(ValueError, match="above alpha"):
        detectable(Plan(0.1, 0.1), 10, 3, wanted=0.01)
