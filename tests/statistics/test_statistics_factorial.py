"""The two-way layout and variance shares: known effects come back, and statsmodels agrees where it can."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from agent_envs.statistics import components, layout


def test_known_effects_come_back_with_intervals_around_them() -> None:
    rng = np.random.default_rng(0)
    interaction = np.array([[0.1, -0.1], [-0.1, 0.1]])
    truth = 0.5 + np.array([[0.1], [-0.1]]) + np.array([[0.05, -0.05]]) + interaction
    means = truth + rng.normal(0, 0.3, (80, 1, 1)) + rng.normal(0, 0.05, (80, 2, 2))
    own = layout(means, seed=1)
    np.testing.assert_allclose(own.models.value, [0.1, -0.1], atol=0.02)
    np.testing.assert_allclose(own.harnesses.value, [0.05, -0.05], atol=0.02)
    np.testing.assert_allclose(own.interaction.value, interaction, atol=0.02)
    np.testing.assert_allclose(own.cells.value, means.mean(axis=0))
    # Task difficulty scatters the cells and cancels out of the effects.
    assert own.models.standard_error.max() < 0.006 < 0.02 < own.cells.standard_error.min()
    assert (own.interaction.low[0, 0] > 0) and (own.interaction.low <= own.interaction.value).all()
    assert own.grand.value.shape == (1,) and own.tasks == 80


def test_effects_sum_to_nothing_and_rebuild_the_cells() -> None:
    means = np.random.default_rng(3).random((12, 3, 4))
    weight = np.arange(1.0, 13.0)
    own = layout(means, weight, seed=1, replicates=200)
    np.testing.assert_allclose(own.cells.value, np.average(means, axis=0, weights=weight))
    rebuilt = own.grand.value[0] + own.models.value[:, None] + own.harnesses.value + own.interaction.value
    np.testing.assert_allclose(rebuilt, own.cells.value)
    for total in (own.models.value.sum(), own.harnesses.value.sum(), *own.interaction.value.sum(axis=0)):
        assert total == pytest.approx(0.0, abs=1e-12)


def test_incomplete_tasks_withhold_the_layout() -> None:
    means = np.random.default_rng(3).random((10, 2, 2))
    means[4, 1, 0] = math.nan
    strict, partial = layout(means, seed=1), layout(means, seed=1, partial=True)
    assert np.isnan(strict.cells.value).all() and np.isnan(strict.grand.value).all() and strict.coverage == 0.9
    np.testing.assert_allclose(partial.cells.value, np.delete(means, 4, axis=0).mean(axis=0))
    assert partial.tasks == 9
    with pytest.raises(ValueError, match="pass \\(tasks, models, harnesses\\)"):
        layout(means[0], seed=1)


def simulated(rng: np.random.Generator, shape: tuple[int, int, int, int], sd: dict[str, float]) -> np.ndarray:
    t, m, h, a = shape
    return (
        rng.normal(0, sd["task"], (t, 1, 1, 1))
        + rng.normal(0, sd["model"], (1, m, 1, 1))
        + rng.normal(0, sd["harness"], (1, 1, h, 1))
        + rng.normal(0, sd["task x model"], (t, m, 1, 1))
        + rng.normal(0, sd["task x harness"], (t, 1, h, 1))
        + rng.normal(0, sd["model x harness"], (1, m, h, 1))
        + rng.normal(0, sd["task x model x harness"], (t, m, h, 1))
        + rng.normal(0, sd["attempt"], (t, m, h, a))
    )


def test_known_components_come_back_on_average() -> None:
    sd = {"task": 2.0, "model": 1.0, "harness": 0.8, "task x model": 0.7, "task x harness": 0.5}
    sd |= {"model x harness": 0.6, "task x model x harness": 0.4, "attempt": 1.5}
    rng = np.random.default_rng(0)
    found = [components(simulated(rng, (30, 8, 8, 3), sd)) for _ in range(60)]
    for name, value in sd.items():
        mean = np.mean([one.variance[name] for one in found])
        error = np.std([one.variance[name] for one in found]) / np.sqrt(60)
        assert abs(mean - value**2) < 4 * error, name
    for one in found:
        assert math.fsum(one.share.values()) == pytest.approx(1.0)
        assert min(one.variance.values()) >= 0.0


def test_mean_squares_agree_with_statsmodels() -> None:
    rng = np.random.default_rng(5)
    y = rng.normal(size=(4, 3, 2, 2)) + rng.normal(0, 2, (4, 1, 1, 1)) + rng.normal(0, 2, (4, 3, 1, 1))
    index = np.indices(y.shape).reshape(4, -1)
    frame = pandas.DataFrame({"y": y.ravel(), "t": index[0], "m": index[1], "h": index[2]})
    table = anova_lm(smf.ols("y ~ C(t) * C(m) * C(h)", frame).fit())
    square = (table["sum_sq"] / table["df"]).to_dict()
    own = components(y)
    assert own.variance["attempt"] == pytest.approx(square["Residual"])
    pair = (square["C(t):C(m)"] - square["C(t):C(m):C(h)"]) / (2 * 2)
    assert own.variance["task x model"] == pytest.approx(max(0.0, pair))
    alone = square["C(t)"] - square["C(t):C(m)"] - square["C(t):C(h)"] + square["C(t):C(m):C(h)"]
    assert own.variance["task"] == pytest.approx(max(0.0, alone / (3 * 2 * 2)))
    assert ("task" in own.truncated) == (alone < 0)


def test_one_way_case_is_restricted_maximum_likelihood() -> None:
    y = np.random.default_rng(1).normal(size=(30, 1, 1, 4)) + np.random.default_rng(2).normal(0, 2, (30, 1, 1, 1))
    frame = pandas.DataFrame({"y": y.ravel(), "t": np.repeat(np.arange(30), 4)})
    fit = smf.mixedlm("y ~ 1", frame, groups=frame["t"]).fit(reml=True)
    own = components(y)
    assert own.variance["attempt"] == pytest.approx(fit.scale, rel=1e-3)
    assert own.variance["task"] == pytest.approx(float(fit.cov_re.iloc[0, 0]), rel=1e-3)
    assert math.isnan(own.variance["model"]) and math.isnan(own.share["task x harness"])
    assert own.share["task"] + own.share["attempt"] == pytest.approx(1.0)


def test_negative_estimates_are_cut_and_named() -> None:
    # Task means are equal by construction, which chance alone would not make them.
    y = np.tile([0.0, 1.0], (6, 2, 2, 1))
    own = components(y)
    assert own.variance["task"] == 0.0 and "task x model x harness" in own.truncated
    assert own.share["attempt"] == 1.0


def test_a_single_attempt_cannot_be_told_from_the_highest_interaction() -> None:
    y = np.random.default_rng(0).random((8, 3, 2, 1))
    own = components(y)
    assert math.isnan(own.variance["task x model x harness"]) and own.variance["attempt"] > 0
    assert math.fsum(value for value in own.share.values() if not math.isnan(value)) == pytest.approx(1.0)
    flat = components(np.ones((3, 2, 2, 2)))
    assert all(math.isnan(value) for value in flat.share.values()) and flat.truncated == ()
    with pytest.raises(ValueError, match="pass"):
        components(np.full((3, 2, 2, 2), math.nan))
    with pytest.raises(ValueError, match="2 tasks"):
        components(np.ones((1, 2, 2, 2)))
