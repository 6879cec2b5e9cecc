"""Policies to measure against, and the interface for your own.

``BASELINES`` maps each built-in name to what makes the policy; ``load`` also finds yours.
"""

from collections.abc import Callable

from agent_envs.baselines.cheap import Constant, HandOver, Liar, Noop, RandomCalls, RandomInvalid, Refuser
from agent_envs.baselines.policy import FunctionPolicy, Policy, PolicyError, as_policy, load_policy
from agent_envs.baselines.reference import Reference
from agent_envs.baselines.rollout import rollout
from agent_envs.baselines.rulebook import Hasty, Rulebook

BASELINES: dict[str, Callable[[], Policy]] = {
    "reference": Reference,
    "rulebook": Rulebook,
    "hasty": Hasty,
    "noop": Noop,
    "refuser": Refuser,
    "liar": Liar,
    "random": RandomCalls,
}
"""Name to policy, in the order in which the demo shows them."""


def load(spec: str) -> Policy:
    """A policy by built-in name, ``module:attribute`` or ``file.py:attribute``.

    Raises:
        PolicyError: There is no such policy.
    """
    return load_policy(spec, BASELINES)


__all__ = [
    "BASELINES",
    "Constant",
    "FunctionPolicy",
    "HandOver",
    "Hasty",
    "Liar",
    "Noop",
    "Policy",
    "PolicyError",
    "RandomCalls",
    "RandomInvalid",
    "Reference",
    "Refuser",
    "Rulebook",
    "as_policy",
    "load",
    "rollout",
]
