"""A person at the terminal, under the same tools, permissions and limits as an agent."""

import json
import shlex
from collections.abc import Callable
from typing import Any

from agent_envs.baselines.policy import GaveUp
from agent_envs.contract import PublicTask

HELP = """Type a call as  TOOL name=value name="two words"  or as JSON. A value that reads as JSON is JSON,
anything else text.  ?  lists the tools,  ? TOOL  shows one,  quit  gives up (what you did so far is judged)."""


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
                return parse_line(line)

    def _help(self, name: str) -> str:
        if name in self._tools:
            tool = self._tools[name]
            return f"{name}: {tool['description']}\n{json.dumps(tool['parameters'], indent=1)}"
        return "\n".join(f"  {tool['name']}: {tool['description']}" for tool in self._tools.values())


def parse_line(line: str) -> dict[str, Any]:
    """A call from ``TOOL name=value ...``; what doesn't parse is sent as it is and answered by the environment."""
    try:
        name, *words = shlex.split(line)
    except ValueError:
        name, *words = line.split()
    arguments: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = value
        # Ids such as 007 and amounts stay text unless they are plain integers, lists, objects or true, false, null.
        arguments[key] = value if isinstance(parsed, float) else parsed
    return {"tool": name, "arguments": arguments}


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except ValueError:
        return text
