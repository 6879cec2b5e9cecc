"""What a policy is, and how one is named on the command line."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agent_envs.contract import AgentEvalError, PublicTask

Act = Callable[[dict[str, Any], dict[str, Any]], Any]
"""The plain form: ``act(observation, info) -> action``."""


class PolicyError(AgentEvalError):
    """A policy can't be found or made; the message says what was looked for."""


class GaveUp(AgentEvalError):
    """Raised by an ``act`` that wants to stop: the episode ends as ``stopped``, and the state reached is judged."""


class PolicyCrash(AgentEvalError):
    """Raised by an ``act`` whose process has died: the episode ends as ``policy_crash``, the agent's failure."""


@runtime_checkable
class Policy(Protocol):
    """Chooses actions from what it observes.

    Four further methods are called when they exist: ``begin(task, tools, seed)`` before each episode, with the task's
    public view and the tools' JSON Schemas; ``usage() -> (tokens, cost)`` after each action, with what that action used
    (None where unknown); ``end()`` after each episode, which may let go of resources; ``spec() -> {"model": {...},
    "harness": {...}, "budgets": {...}}`` before each episode, with all that may move a result, as JSON without secrets:
    model and route, decoding, prompts, loop. Two attributes are read when they exist: ``oracle``, true for a policy
    that plays with the reference solution, and ``settings``, JSON that tells policies of one source apart. Two policies
    are one in records when name, source, settings and ``spec()`` are.
    """

    name: str

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """The next action: a call, a JSON text of one, or a list of calls."""


class FunctionPolicy:
    """A plain function ``act(observation, info)`` as a policy."""

    def __init__(self, function: Act, name: str = "") -> None:
        """Wrap ``function``; its own name is the policy's unless one is given."""
        self.act = function
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.settings: Any = None
        if isinstance(function, functools.partial):
            self.function = function.func
            self.settings = {"arguments": function.args, "keywords": function.keywords}


def as_policy(value: Any, name: str = "") -> Policy:
    """Make a policy of a policy, a policy class, or a plain function.

    Raises:
        PolicyError: It is none of them, or the class can't be called without arguments.
    """
    if inspect.isclass(value):
        try:
            value = value()
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise PolicyError(f"{value!r} can't be made: {what}; give an instance, or a function that acts") from error
    if callable(getattr(value, "act", None)):
        if not isinstance(getattr(value, "name", None), str):
            try:
                value.name = name or type(value).__name__
            except AttributeError:
                raise PolicyError(f"{value!r} has no text as 'name' and takes none; give its class one") from None
        policy: Policy = value
        return policy
    if callable(value):
        return FunctionPolicy(value, name)
    raise PolicyError(
        f"{value!r} is no policy: give an object with act(observation, info), its class, or such a function"
    )


def load_policy(spec: str, builtin: dict[str, Callable[[], Policy]]) -> Policy:
    """Find a policy by name.

    Args:
        spec: A built-in name, ``package.module:attribute`` or ``path/to/file.py:attribute``.
        builtin: Built-in policies by name.

    Raises:
        PolicyError: Nothing is there; the message lists the built-in names.
    """
    if spec in builtin:
        return builtin[spec]()
    place, colon, attribute = spec.rpartition(":")
    if not colon:
        raise PolicyError(
            f"there is no policy {spec!r}; built in are {', '.join(sorted(builtin))}; "
            "your own is named module:attribute or file.py:attribute"
        )
    try:
        module = _import(place)
    except Exception as error:
        raise PolicyError(f"policy {spec!r}: {place} can't be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        raise PolicyError(f"policy {spec!r}: {place} has no {attribute!r}")
    try:
        return as_policy(getattr(module, attribute), attribute)
    except PolicyError as error:
        raise PolicyError(f"policy {spec!r}: {error}") from error


def _import(place: str) -> Any:
    path = Path(place)
    if path.suffix != ".py":
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(place)
    path = path.resolve()
    # Two files of one name are two modules.
    name = f"agenteval_policy_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PolicyError(f"there is no file {place}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def begin(policy: Policy, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
    """Tell a policy that wants to know that an episode begins."""
    if callable(hook := getattr(policy, "begin", None)):
        hook(task, tools, seed)
