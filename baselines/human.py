"""A person at the terminal, under the same tools, permissions and limits as an agent."""

import json
import shlex
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from agent_envs.baselines.policy import GaveUp
from agent_envs.contract import PublicTask

HELP = """Type a call as  TOOL name=value name="two words"  or as JSON. Lists are  name=one,two  and objects JSON in
single quotes:  name='{"key": "value"}'.  ?  lists the tools,  ? TOOL  shows one,  quit  gives up (what you did so far
is judged)."""


class Human:
    """Asks a person for each action.

    Args:
        read: Reads a line after a prompt; raises EOFError at the end of input.
        write: Shows a text.
    """

    name = "human"

    def __init__(self, read: Callable[[str], str] = input, write: Callable[[str], None] = print) -> None:
        """Talk through ``read`` and ``write``."""
        self._read, self._write = read, write
        self._tools: dict[str, dict[str, Any]] = {}

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Show what can be done and within which limits."""
        self._tools = {tool["name"]: tool for tool in tools if tool["name"] in task.available_tools}
        limits = task.limits
        seconds = limits.wall_seconds or "no limit of"
        self._write(f"{task.task_id}: at most {limits.steps} steps, {seconds} seconds.\n{HELP}")

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """The person's next call.

        Raises:
            GaveUp: The person typed quit, or the input ended.
        """
        self._write(_pretty(observation["text"]))
        while True:
            try:
                line = self._read(f"[step {info['step'] + 1}] > ").strip()
            except EOFError:
                line = "quit"
            if line in ("quit", "exit"):
                raise GaveUp("the person gave up")
            if line.startswith("?"):
                self._write(self._help(line[1:].strip()))
            elif line.startswith(("{", "[")):
                return line
            elif line:
                return parse_line(line, self._tools)

    def _help(self, name: str) -> str:
        if name in self._tools:
            tool = self._tools[name]
            return f"{name}: {tool['description']}\n{json.dumps(tool['parameters'], indent=1)}"
        return "\n".join(f"  {tool['name']}: {tool['description']}" for tool in self._tools.values())


def parse_line(line: str, tools: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> dict[str, Any]:
    """A call from ``TOOL name=value ...``; what doesn't parse is sent as it is and answered by the environment.

    Args:
        line: What was typed.
        tools: Name to schema of the tools; what a parameter takes decides how its value is read.
    """
    try:
        name, *words = shlex.split(line)
    except ValueError:
        name, *words = line.split()
    properties = tools[name]["parameters"].get("properties", {}) if name in tools else {}
    arguments: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        arguments[key] = _value(value, _kinds(properties.get(key, {})))
    return {"tool": name, "arguments": arguments}


def _value(text: str, kinds: set[str]) -> Any:
    if kinds == {"string"} or (kinds == {"string", "null"} and text != "null"):
        return text  # a postcode of digits, say
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        if "array" in kinds:
            return [item.strip() for item in text.strip("[]").split(",")]
        parsed = text
    # Ids such as 007 and amounts stay text unless they are plain integers, lists, objects or true, false, null.
    return text if isinstance(parsed, float) else parsed


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a parameter takes; empty where its schema names none."""
    choices = schema.get("anyOf", (schema,))
    return {choice["type"] for choice in choices if "type" in choice}


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except ValueError:
        return text
