"""What identifies a policy in records, and the whole system that it makes with an environment.

A policy's source is read once for each policy object; what its ``spec()`` says is asked anew for every attempt, so a
prompt changed between two attempts makes two systems.
"""

import os
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
from pydantic import ValidationError

from agent_envs.baselines.policy import FunctionPolicy, Policy, PolicyError
from agent_envs.contract import SpecError, SystemSpec, canonical_json, jsonable
from agent_envs.contract.secrets import secret_values
from agent_envs.contract.sources import subject_digest
from agent_envs.contract.system import explain
from agent_envs.wrappers.system import environment_sections

_PARTS = ("model", "harness", "budgets")
_sources: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
_made: "weakref.WeakKeyDictionary[gymnasium.Env[Any, Any], dict[bytes, SystemSpec]]" = weakref.WeakKeyDictionary()
_MOST_KEPT = 64


def system_spec(env: gymnasium.Env[Any, Any], policy: Policy) -> SystemSpec:
    """All that is under test when a policy plays in an environment. Cheap when asked again for the same pair.

    Args:
        env: An agenteval environment in its standard dress, perhaps with more wrappers; it need not be reset.
        policy: Who plays.

    Raises:
        SpecError: The policy's words of itself hold a secret or a path of this machine.
        PolicyError: The policy's ``spec()`` fails, or gives something else than JSON under its known keys.
    """
    said = policy_sections(policy)
    key = canonical_json(said)
    kept = _made.setdefault(env, {})
    if key not in kept:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = _combine(environment_sections(env), said)
    return kept[key]


def policy_subject(policy: Policy) -> Any:
    """The class or function that a policy's source is looked up by."""
    subject = policy.function if isinstance(policy, FunctionPolicy) else type(policy)
    return subject if hasattr(subject, "__code__") or isinstance(subject, type) else type(subject)


def policy_sections(policy: Policy) -> dict[str, Any]:
    """The policy's half: the sections ``policy``, ``model``, ``harness``, and its budgets."""
    spec = getattr(policy, "spec", None)
    parts: Any = {}
    if callable(spec):
        try:
            parts = spec()
        except Exception as error:
            raise PolicyError(f"policy {policy.name!r}: its spec() raised {type(error).__name__}: {error}") from error
        if not isinstance(parts, Mapping) or not all(isinstance(part, Mapping) for part in parts.values()):
            what = f"{type(parts).__name__} {list(parts)[:5] if isinstance(parts, Mapping) else ''}".strip()
            raise PolicyError(f"policy {policy.name!r}: spec() gave {what}; an object of objects is needed")
        if unknown := sorted(str(name) for name in parts if name not in _PARTS):
            raise PolicyError(f"policy {policy.name!r}: spec() gave {unknown}; its keys are {', '.join(_PARTS)}")
        try:
            canonical_json(parts if isinstance(parts, dict) else dict(parts))
        except (TypeError, ValueError, RecursionError) as error:
            raise PolicyError(f"policy {policy.name!r}: spec() isn't plain JSON: {error}") from None
    return {
        "policy": {
            "name": policy.name,
            "source": _source(policy),
            "settings": jsonable(getattr(policy, "settings", None)),
            "oracle": bool(getattr(policy, "oracle", False)),
        },
        **{name: dict(parts.get(name, {})) for name in _PARTS},
    }


def _source(policy: Policy) -> str:
    try:
        if (known := _sources.get(policy)) is not None:
            return known
        made = _sources[policy] = subject_digest(policy_subject(policy))
        return made
    except TypeError:  # a policy that can't be a key
        return subject_digest(policy_subject(policy))


def _combine(sections: dict[str, dict[str, Any]], said: dict[str, Any]) -> SystemSpec:
    said, budgets = dict(said), dict(sections["budgets"])
    if own := said.pop("budgets"):
        budgets["policy"] = own
    try:
        spec = SystemSpec(**{**sections, "budgets": budgets, **said})
    except ValidationError as error:  # its own text shows the value, which may be the secret
        faults = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
        raise SpecError(f"policy {said['policy']['name']!r}: {faults}") from None
    for found in spec.unfit(secret_values(os.environ), _roots()):
        raise SpecError(f"policy {said['policy']['name']!r}: {explain(found)}")
    return spec


def _roots() -> list[str]:
    """Folders whose paths are of this machine."""
    places = [
        Path.cwd(),
        Path.home(),
        Path(tempfile.gettempdir()),
        Path(sys.prefix),
        Path(__file__).resolve().parents[1],
    ]
    return sorted({str(place) for place in places if place != Path(place.anchor)})
