"""The environment's half of a `SystemSpec`: everything under test that isn't the policy's to say."""

import functools
import importlib.metadata
import inspect
import platform
import re
from typing import Any, cast
from urllib.parse import urlsplit

import gymnasium

from agent_envs.contract import digest, jsonable
from agent_envs.contract.sources import code_digest, subject_digest
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.spaces import ToolCall

JUDGES = ("contract", "evaluator")
"""Floors whose change can move a verdict of the same evidence."""
EPISODE = ("state", "sandbox", "episode", "wrappers")
"""Floors whose change can move the episode itself."""
_NO_MATTER = {"task", "split", "render_mode"}
"""Settings that move no attempt, or that the attempt's own task stands for."""
_NOT_CODE = ("tasks", "references", "README.md")
"""Parts of a family's package that each task's own digest covers, or that nothing runs."""
_MATTER = ("gymnasium", "numpy", "orjson", "pydantic", "sqlalchemy", "psycopg")


def environment_sections(env: gymnasium.Env[Any, Any]) -> dict[str, dict[str, Any]]:
    """The sections ``tools``, ``environment``, ``user``, ``budgets`` and ``grader`` of an environment's `SystemSpec`.

    Nothing live is made or touched: an environment that was never reset has the same sections.

    Args:
        env: An agenteval environment with all its wrappers.
    """
    core = cast(AgentEnv, env.unwrapped)
    layers = _layers(env)
    # By attribute, not by class: the evaluation, which asks for this, stands below some of the wrappers.
    limits = {name: value for layer in layers for name, value in getattr(layer, "given", {}).items()}
    denied = {name for layer in layers for name in getattr(layer, "denied", ())}
    tools = cast(ToolCall, core.action_space).tools
    talks = "send_message" in tools
    return {
        "tools": {
            "tools": {
                name: {
                    "description": tool.description,
                    "parameters": tool.schema,
                    "implementation": tool.implementation_digest,
                }
                for name, tool in tools.items()
            },
            "source": _family_digest(type(core)),  # type: ignore[arg-type]
            "denied": sorted(denied),
        },
        "environment": {
            "id": core.spec.id if core.spec is not None else type(core).__name__,
            "settings": {
                name: _portable(name, value) for name, value in core.arguments.items() if name not in _NO_MATTER
            },
            "wrappers": [_described(layer) for layer in layers],
            "fixtures": sorted({pin["fixture_digest"] for pin in core.suite.pins.values()}),
            "source": code_digest(*EPISODE),
            "sandbox_image": getattr(core, "sandbox_image", None),
            **_installed(),
        },
        "user": {"kind": "scripted" if talks else "none", "source": code_digest("users") if talks else ""},
        "budgets": {"limits": limits},
        "grader": {
            "source": code_digest(*JUDGES),
            "recheck": next((layer.recheck for layer in layers if hasattr(layer, "recheck")), None),
        },
    }


def _layers(env: gymnasium.Env[Any, Any]) -> list[gymnasium.Wrapper[Any, Any, Any, Any]]:
    """The wrappers, outermost first, without those that only check how the environment is used."""
    layers = []
    while isinstance(env, gymnasium.Wrapper):
        if not isinstance(env, gymnasium.wrappers.PassiveEnvChecker | gymnasium.wrappers.OrderEnforcing):
            layers.append(env)
        env = env.env
    return layers


def _described(layer: gymnasium.Wrapper[Any, Any, Any, Any]) -> dict[str, Any]:
    """A wrapper by name and arguments; our own and Gymnasium's source is counted elsewhere, any other's here."""
    kind = type(layer)
    described: dict[str, Any] = {"name": kind.__name__}
    told = {"folder", "recheck", "deny", *getattr(layer, "given", ())}  # elsewhere in the spec, or moves nothing
    arguments = {
        name: value
        for name, value in getattr(layer, "_saved_kwargs", {}).items()
        if name not in told and value is not None
    }
    if arguments:
        described["arguments"] = jsonable(arguments)
    if not kind.__module__.startswith(("agent_envs.", "gymnasium.")):
        described["source"] = subject_digest(kind)
    return described


@functools.cache
def _family_digest(kind: type[AgentEnv]) -> str:
    """Digest of the packages that a family's environment is made of, its base families' too."""
    families = []
    for base in inspect.getmro(kind):
        if base is AgentEnv:
            break
        families.append(subject_digest(base, _NOT_CODE))
    return digest(families)


def _portable(name: str, value: Any) -> Any:
    """A setting without the place of a server: both back ends hold equal rows, wherever they stand."""
    if name == "database" and isinstance(value, str):
        return urlsplit(value).scheme
    return jsonable(value)


@functools.cache
def _installed() -> dict[str, Any]:
    """Interpreter and packages, without anything of the platform."""
    versions: dict[str, str] = {}
    for item in importlib.metadata.distributions():
        if name := item.metadata["Name"]:
            # Of two copies on the path the first is imported.
            versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), item.version)
    versions.pop("agent-envs", None)  # its source is counted file by file
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: versions[name] for name in _MATTER if name in versions},
        "distributions": digest(versions),
    }
