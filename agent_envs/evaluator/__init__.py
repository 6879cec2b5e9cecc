"""Verdicts from frozen evidence: outcome assertions, process constraints, typed comparison."""

from agent_envs.evaluator.constraints import Monitor
from agent_envs.evaluator.evaluate import check, evaluate
from agent_envs.evaluator.values import MISSING, Comparison, compare

__all__ = ["MISSING", "Comparison", "Monitor", "check", "compare", "evaluate"]
