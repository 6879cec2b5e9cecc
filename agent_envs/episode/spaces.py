"""The two spaces of a tool environment: calls out, text in.

`gymnasium.spaces.Text` fits neither: its membership is per character of a fixed set, and vector environments hand out
stale texts from shared memory. These two are plain, picklable and cheap, and fail loudly under shared memory.
"""

import json
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from agent_envs.episode.tools import Tool

_PRINTABLE = string.ascii_letters + string.digits + " .,-"


class Unicode(spaces.Space[str]):
    """Any text of at most ``max_length`` characters (code points)."""

    def __init__(self, max_length: int, seed: int | np.random.Generator | None = None) -> None:
        """Bound the length; ``seed`` is for `sample`."""
        self.max_length = max_length
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text has no fixed numeric form."""
        return False

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is text and short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """A short printable text.

        Raises:
            ValueError: A mask or probability was given; neither means anything for text.
        """
        _no_mask(mask, probability)
        length = int(self.np_random.integers(0, min(self.max_length, 32) + 1))
        return "".join(_PRINTABLE[int(i)] for i in self.np_random.integers(0, len(_PRINTABLE), size=length))

    def __eq__(self, other: object) -> bool:
        """Equal bounds."""
        return isinstance(other, Unicode) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """``Unicode(16384)``."""
        return f"Unicode({self.max_length})"


class ToolCall(spaces.Space[dict[str, Any]]):
    """Calls ``{"tool": name, "arguments": {...}}`` whose arguments fit the named tool's JSON Schema.

    Attributes:
        tools: Name to `Tool`, in the environment's order.
    """

    def __init__(self, tools: Sequence[Tool], seed: int | np.random.Generator | None = None) -> None:
        """Calls of these tools; ``seed`` is for `sample`."""
        self.tools: dict[str, Tool] = {tool.name: tool for tool in tools}
        self._schemas = ""
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: calls have no fixed numeric form; see the wrappers for a numeric view."""
        return False

    def schemas(self) -> list[dict[str, Any]]:
        """Name, description and parameters of every tool, as chat APIs take them; the caller's own copy."""
        if not self._schemas:
            tools = [
                {"name": tool.name, "description": tool.description, "parameters": tool.schema}
                for tool in self.tools.values()
            ]
            self._schemas = json.dumps(tools)
        schemas: list[dict[str, Any]] = json.loads(self._schemas)
        return schemas

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a well-formed call of a known tool."""
        if not isinstance(x, Mapping) or not x.keys() <= {"tool", "arguments", "id"}:
            return False
        tool = self.tools.get(x["tool"]) if isinstance(x.get("tool"), str) else None
        return tool is not None and tool.accepts(x.get("arguments", {}))

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> dict[str, Any]:
        """A valid call: a random tool with random arguments that fit its schema.

        Raises:
            ValueError: A mask or probability was given; use the discrete wrapper for masked sampling.
        """
        _no_mask(mask, probability)
        names = list(self.tools)
        tool = self.tools[names[int(self.np_random.integers(len(names)))]]
        for _ in range(100):
            arguments = sample_arguments(tool.schema, self.np_random)
            if tool.accepts(arguments):
                return {"tool": tool.name, "arguments": arguments}
        raise ValueError(f"no valid arguments for {tool.name!r} were found by sampling its schema; give it examples")

    def __eq__(self, other: object) -> bool:
        """Same tools with the same schemas, in the same order."""
        return isinstance(other, ToolCall) and self.schemas() == other.schemas()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """``ToolCall(get_order, ...)``."""
        return f"ToolCall({', '.join(self.tools)})"


def _no_mask(mask: Any, probability: Any) -> None:
    if mask is not None or probability is not None:
        raise ValueError("this space takes neither mask nor probability")


def sample_arguments(schema: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Random arguments that fit a tool's JSON Schema (formats and patterns aside)."""
    arguments: dict[str, Any] = _sample(schema, schema.get("$defs", {}), rng)
    return arguments


def _sample(schema: Mapping[str, Any], definitions: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """A random value that fits a (simple) JSON Schema; enough for schemas that come from signatures."""
    if "$ref" in schema:
        return _sample(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions, rng)
    if "const" in schema:
        return schema["const"]
    for choices in ("enum", "examples"):
        if schema.get(choices):
            return schema[choices][int(rng.integers(len(schema[choices])))]
    if "anyOf" in schema:
        return _sample(schema["anyOf"][int(rng.integers(len(schema["anyOf"])))], definitions, rng)
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        return {
            name: _sample(field, definitions, rng)
            for name, field in schema.get("properties", {}).items()
            if name in required or rng.random() < 0.3
        }
    if kind == "array":
        size = int(rng.integers(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3) + 1))
        return [_sample(schema["items"], definitions, rng) for _ in range(size)]
    if kind == "string":
        low = schema.get("minLength", 1)
        size = int(rng.integers(low, min(schema.get("maxLength", 12), max(low, 12)) + 1))
        return "".join(_PRINTABLE[int(i)] for i in rng.integers(0, len(_PRINTABLE) - 4, size=size))
    if kind == "integer":
        low, high = int(schema.get("minimum", 1)), int(schema.get("maximum", 99))
        return int(rng.integers(low, high + 1))
    if kind == "number":
        return round(float(rng.uniform(schema.get("minimum", 0.01), schema.get("maximum", 500.0))), 2)
    return None if kind == "null" else bool(rng.integers(2))
