"""SystemSpec: what is under test, versioned as a whole.

A score belongs to a system: a policy with its model and prompts, the tools it was given, the environment it acted in,
the budgets it had and the grader that judged it. Any of them changed is another system with another hash.
"""

import functools
from collections.abc import Sequence
from typing import Any, Self

from pydantic import field_validator, model_validator

from agent_envs.contract.canonical import canonical_json, digest, parse_json
from agent_envs.contract.errors import AgentEvalError
from agent_envs.contract.model import Model
from agent_envs.contract.secrets import SECRET, Unfit, unfit

SECTIONS = ("policy", "model", "harness", "tools", "environment", "user", "budgets", "grader")
"""The parts of a spec that are hashed, in the order in which they are shown."""


class SpecError(AgentEvalError):
    """A system can't be described; the message names the place in its spec and what to do."""


class SystemSpec(Model):
    """What is under test. Each section is a JSON object; the order of keys makes no difference.

    Nothing in it depends on the machine: no absolute path, no host, no time. No secret may stand in it.
    """

    policy: dict[str, Any]
    """``name``, ``source`` (digest of its package or file), ``settings``, ``oracle``; empty without a policy."""
    model: dict[str, Any]
    """What the policy's ``spec()`` says of its model: name, version, route, decoding, reasoning budget."""
    harness: dict[str, Any]
    """What the policy's ``spec()`` says of the rest of it: prompts, loop, context policy."""
    tools: dict[str, Any]
    """``tools`` (name to ``description``, ``parameters``, ``implementation``), ``source`` (digest of the family's
    package, so what the tools call counts too) and ``denied`` (tools the permissions deny)."""
    environment: dict[str, Any]
    """``id``, ``settings``, ``wrappers``, ``fixtures`` (digests), ``source`` (digest of the episode's code),
    ``sandbox_image``, ``python``, ``packages`` (versions by name), ``distributions`` (digest of all installed)."""
    user: dict[str, Any]
    """``kind`` and ``source`` of the simulated user."""
    budgets: dict[str, Any]
    """``limits`` tighter than the tasks' own, and ``policy``: what ``spec()`` says of the policy's own budgets."""
    grader: dict[str, Any]
    """``source`` (digest of the code that judges) and ``recheck``."""
    provenance: dict[str, Any] = {}
    """Where the policy came from: ``commit`` and ``dirty`` of its checkout. Not part of the hash: what the policy is,
    its source's digest says, and a commit of the same files makes no other system."""

    @functools.cached_property
    def digest(self) -> str:
        """The system's hash: SHA-256 of the canonical JSON of all sections but ``provenance``."""
        return digest({name: getattr(self, name) for name in SECTIONS})

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        try:
            return parse_json(canonical_json(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"not plain JSON: {error}") from None

    @model_validator(mode="after")
    def _no_secret(self) -> Self:
        for found in self.unfit():
            raise ValueError(explain(found))
        return self

    def unfit(self, known: Sequence[str] = (), roots: Sequence[str] = ()) -> list[Unfit]:
        """Places that must not be written down; arguments as `agent_envs.contract.secrets.unfit` takes them."""
        found: list[Unfit] = []
        for name in SECTIONS:
            found += unfit(getattr(self, name), name, names=name != "tools", known=known, roots=roots)
        return found


def explain(found: Unfit) -> str:
    """What is wrong with a place and what to do, without showing the value."""
    if "path" in found.reason:
        return f"{found.place} {found.reason}; give a name, a relative path or a digest in its place"
    return f"{found.place} {found.reason}; leave it out, or write {SECRET!r} there (secrets stay in the environment)"
