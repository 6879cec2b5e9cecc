"""Tools: typed Python functions that an agent may call.

The JSON Schema comes from the signature, the descriptions from the docstring. Arguments are validated once, strictly:
no coercion beyond what a parameter's own type documents, no extra keys, and values must be storable (no NUL, no lone
surrogate, no integer beyond 64 bits): what an agent sends must not be able to break the environment. A tool states the
tables it reads and writes; writing anything else is an environment fault.
"""

import functools
import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from agent_envs.contract import ToolError, canonical_json

P = ParamSpec("P")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Tool:
    """A callable tool: ``tool.call(world, arguments)`` validates and runs it.

    Attributes:
        name: The function's name.
        description: First paragraph of its docstring.
        schema: JSON Schema of the arguments (an object; no extra keys).
        reads: Tables or stores it looks at.
        writes: Tables or stores it may change.
    """

    def __init__(self, function: Callable[..., dict[str, Any]], reads: Sequence[str], writes: Sequence[str]) -> None:
        """Derive schema and descriptions from ``function``; see `tool`."""
        self.function = function
        self.name = function.__name__
        self.reads, self.writes = tuple(reads), tuple(writes)
        self.description, fields = _docstring(function)
        self._arguments = _arguments_model(function, fields)
        self.schema: dict[str, Any] = self._arguments.model_json_schema()
        _strip_titles(self.schema)
        self.required: tuple[str, ...] = tuple(self.schema.get("required", ()))

    @functools.cached_property
    def implementation_digest(self) -> str:
        """SHA-256 of the source and the schema."""
        source = inspect.getsource(self.function)
        return hashlib.sha256(source.encode() + canonical_json(self.schema)).hexdigest()

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check arguments against the signature.

        Returns:
            Keyword arguments for the function, defaults filled in.

        Raises:
            ToolError: Names each field at fault and what was expected.
        """
        try:
            valid = self._arguments.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(f"{self.name}: {_faults(error)}") from None
        except RecursionError:
            raise ToolError(f"{self.name}: the arguments are nested too deeply") from None
        _check_storable(self.name, arguments, ())
        return valid.__dict__.copy()

    def accepts(self, arguments: Any) -> bool:
        """Whether ``validate`` would let these arguments pass."""
        if not isinstance(arguments, Mapping):
            return False
        try:
            self.validate(arguments)
        except ToolError:
            return False
        return True

    def call(self, world: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and run.

        Raises:
            ToolError: The arguments are wrong, or the tool refuses.
        """
        return self.function(world, **self.validate(arguments))

    def __reduce__(self) -> tuple[Callable[[str, str], "Tool"], tuple[str, str]]:
        """Pickle by name: worker processes import the same tool."""
        return _find, (self.function.__module__, self.name)

    def __repr__(self) -> str:
        """The tool's name."""
        return f"Tool({self.name})"


def tool(
    *, reads: Sequence[str] = (), writes: Sequence[str] = ()
) -> Callable[[Callable[Concatenate[Any, P], dict[str, Any]]], Tool]:
    """Make a module-level function a tool.

    The first parameter is the world; the others are the arguments. Their annotations may be str, int, float, bool,
    ``Literal``, lists of these, pydantic models, ``Annotated`` with constraints, and ``... | None``.

    Args:
        reads: Tables or stores it looks at.
        writes: Tables or stores it may change.
    """

    def decorate(function: Callable[Concatenate[Any, P], dict[str, Any]]) -> Tool:
        return Tool(function, reads, writes)

    return decorate


def _find(module: str, name: str) -> Tool:
    return cast(Tool, getattr(importlib.import_module(module), name))


def _arguments_model(function: Callable[..., Any], fields: Mapping[str, str]) -> type[BaseModel]:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    definitions: dict[str, Any] = {}
    for parameter in parameters:
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        definitions[parameter.name] = (
            hints[parameter.name],
            Field(default=default, description=fields.get(parameter.name)),
        )
    return create_model(
        function.__name__, __config__=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False), **definitions
    )


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function) or ""
    head, _, tail = text.partition("\nArgs:\n")
    fields: dict[str, str] = {}
    name = ""
    for line in tail.splitlines():
        if line and not line.startswith(" "):
            break
        if match := re.match(r"    (\w+): (.*)", line):
            name, fields[match[1]] = match[1], match[2]
        elif name and line.startswith("        "):
            fields[name] += " " + line.strip()
    head = head.partition("\nReturns:\n")[0].partition("\nRaises:\n")[0]
    return " ".join(head.split()), fields


def _strip_titles(schema: Any) -> None:
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for value in schema.values():
            _strip_titles(value)
    elif isinstance(schema, list):
        for value in schema:
            _strip_titles(value)


def _faults(error: ValidationError) -> str:
    seen = []
    for fault in error.errors(include_url=False, include_context=False)[:4]:
        field = ".".join(str(part) for part in fault["loc"]) or "arguments"
        message = fault["msg"].removeprefix("Value error, ")
        got = "" if fault["type"] in ("missing", "extra_forbidden") else f", got {_short(fault['input'])}"
        seen.append(f"argument {field!r}: {message}{got}")
    more = f" (and {error.error_count() - 4} more)" if error.error_count() > 4 else ""
    return "; ".join(seen)[:1500] + more


def _short(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return "a huge integer"  # Python refuses to write the longest ones out
    text = repr(value[:80]) if isinstance(value, str) else repr(value) if isinstance(value, int | float) else ""
    return (text or type(value).__name__)[:80]


def _check_storable(name: str, value: Any, path: tuple[str | int, ...]) -> None:
    if isinstance(value, str):
        if (not value.isascii() or "\x00" in value) and (match := _UNSTORABLE.search(value)):
            field = ".".join(str(part) for part in path)
            raise ToolError(
                f"{name}: argument {field!r}: the text has U+{ord(match[0]):04X} at position {match.start()}, "
                "which can't be stored; send plain Unicode text without it"
            )
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            field = ".".join(str(part) for part in path)
            raise ToolError(f"{name}: argument {field!r}: the number doesn't fit into 64 bits")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_storable(name, item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_storable(name, item, (*path, index))
