"""Estimators and intervals for agent evaluation: arrays in, arrays out.

Knows nothing of runs, files or environments, and needs NumPy only. Rules that hold throughout: tasks are the
independent units; weights count by their ratios; what is undefined is NaN, never 0 or 1; averages over what happens to
be left are made only where `partial=True` asks for them, and come with their coverage; random procedures take a seed,
and the same seed gives the same result.
"""

from agent_envs.statistics.checks import between_and_within, flip_rate
from agent_envs.statistics.counting import Coverage, Tally, coverage, tally
from agent_envs.statistics.drifting import Drift, drift
from agent_envs.statistics.factorial import Components, Effect, Layout, components, layout
from agent_envs.statistics.means import Curve, Slice, cluster_mean, curve, macro_mean, micro_mean, slices, task_mean
from agent_envs.statistics.paired import (
    Test,
    equivalence,
    holm,
    paired_difference,
    sign_flip_test,
    unpaired_difference,
)
from agent_envs.statistics.passk import pass_at_k, pass_hat_k, per_task
from agent_envs.statistics.planning import Plan, attempts_needed, detectable, power, tasks_needed
from agent_envs.statistics.ratios import Estimate, wilson
from agent_envs.statistics.resampling import Bootstrap, attempts_only, bootstrap, curve_rows, divide

__all__ = [
    "Bootstrap",
    "Components",
    "Coverage",
    "Curve",
    "Drift",
    "Effect",
    "Estimate",
    "Layout",
    "Plan",
    "Slice",
    "Tally",
    "Test",
    "attempts_needed",
    "attempts_only",
    "between_and_within",
    "bootstrap",
    "cluster_mean",
    "components",
    "coverage",
    "curve",
    "curve_rows",
    "detectable",
    "divide",
    "drift",
    "equivalence",
    "flip_rate",
    "holm",
    "layout",
    "macro_mean",
    "micro_mean",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "per_task",
    "power",
    "sign_flip_test",
    "slices",
    "tally",
    "task_mean",
    "tasks_needed",
    "unpaired_difference",
    "wilson",
]
