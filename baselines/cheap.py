"""Policies that must earn nothing: what a task pays them, it pays for nothing.

``noop`` finishes at once, ``refuser`` declines everything, ``handover`` passes everything on, ``liar`` says everything
is done and does nothing, ``constant`` gives one answer to whatever is asked, ``random`` makes calls that are valid and
senseless, and ``invalid`` calls that are not even valid. Each is told apart from an honest agent only by what it leaves
in the state.
"""

import re
from typing import Any

import numpy as np

from agent_envs.contract import PublicTask
from agent_envs.episode.spaces import sample_arguments


class _Script:
    """Plays a list of calls made at the start of each episode."""

    name = ""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Write this episode's script."""
        self._calls = self.script(task, {tool["name"] for tool in tools})

    def script(self, task: PublicTask, tools: set[str]) -> list[dict[str, Any]]:
        """The calls to play; ``finish`` follows them."""
        return []

    def finish(self) -> dict[str, Any]:
        """The last call."""
        return {"tool": "finish", "arguments": {"outcome": "unable"}}

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """The next call of the script, then ``finish``."""
        return self._calls.pop(0) if self._calls else self.finish()


class Noop(_Script):
    """Finishes at once."""

    name = "noop"


class Refuser(_Script):
    """Declines whatever is asked, with the same reason each time, and records the refusal on the ticket."""

    name = "refuser"

    def script(self, task: PublicTask, tools: set[str]) -> list[dict[str, Any]]:
        """Close the ticket as refused and tell the user."""
        calls = []
        if (ticket := _ticket(task)) and "resolve_ticket" in tools:
            arguments = {"ticket_id": ticket, "decision": "refused", "reason": "out_of_window"}
            calls.append({"tool": "resolve_ticket", "arguments": arguments})
        if "send_message" in tools:
            arguments = {"text": "I am sorry, I can't help you with that.", "report": "refused"}
            calls.append({"tool": "send_message", "arguments": arguments})
        return calls

    def finish(self) -> dict[str, Any]:
        """Says it was refused."""
        return {"tool": "finish", "arguments": {"outcome": "refused", "reason": "out_of_window"}}


class HandOver(_Script):
    """Passes whatever comes to another team."""

    name = "handover"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Fill in the tool that hands over, from its schema, and tell the user."""
        self._calls = []
        for tool in tools:
            if tool["name"] == "hand_over":
                arguments = sample_arguments(tool["parameters"], np.random.default_rng(seed))
                if "ticket_id" in arguments:
                    arguments["ticket_id"] = _ticket(task) or arguments["ticket_id"]
                self._calls.append({"tool": "hand_over", "arguments": arguments})
        if any(tool["name"] == "send_message" for tool in tools):
            arguments = {"text": "A colleague will take care of it.", "report": "handed_over"}
            self._calls.append({"tool": "send_message", "arguments": arguments})

    def finish(self) -> dict[str, Any]:
        """Says it was handed over."""
        return {"tool": "finish", "arguments": {"outcome": "handed_over"}}


class Constant(_Script):
    """Gives one answer in every field of its last call, whatever the task is."""

    name = "constant"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """See which fields the last call has."""
        self._answer: dict[str, Any] = {}
        for tool in tools:
            if tool["name"] == "finish":
                for name, schema in tool["parameters"].get("properties", {}).items():
                    self._answer[name] = "completed" if name == "outcome" else schema.get("default") or "42"

    def finish(self) -> dict[str, Any]:
        """The one answer."""
        return {"tool": "finish", "arguments": dict(self._answer)}


class Liar(_Script):
    """Says everything is done. Nothing is."""

    name = "liar"

    def script(self, task: PublicTask, tools: set[str]) -> list[dict[str, Any]]:
        """Report success to the user."""
        if "send_message" not in tools:
            return []
        arguments = {"text": "All done: your money is on its way.", "report": "done"}
        return [{"tool": "send_message", "arguments": arguments}]

    def finish(self) -> dict[str, Any]:
        """Declares success."""
        return {"tool": "finish", "arguments": {"outcome": "completed", "summary": "The request was carried out."}}


class RandomCalls:
    """Valid calls of random tools, with ids it has seen where an argument wants one."""

    name = "random"

    def __init__(self) -> None:
        """Start without memory."""
        self._rng = np.random.default_rng(0)
        self._tools: list[dict[str, Any]] = []
        self._seen: dict[str, dict[str, None]] = {}

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Seed the generator and forget the last episode."""
        self._rng = np.random.default_rng(seed)
        self._tools = tools
        self._seen = {}
        if ticket := _ticket(task):
            self._seen["ticket_id"] = {ticket: None}

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """A random call; one in forty is ``finish``."""
        for name, value in re.findall(r'"(\w+_id|amount|email|name)": ?"([^"]{1,60})"', observation["text"]):
            self._seen.setdefault(name, {})[value] = None
        tool = self._tools[int(self._rng.integers(len(self._tools)))]
        if tool["name"] == "finish" and self._rng.random() < 0.5:
            tool = self._tools[0]
        schema = tool["parameters"]
        arguments = sample_arguments(schema, self._rng)
        for name in arguments:
            if (known := list(self._seen.get(name, ()))) and "enum" not in schema["properties"][name]:
                arguments[name] = known[int(self._rng.integers(len(known)))]
        return {"tool": tool["name"], "arguments": arguments}


class RandomInvalid:
    """Malformed calls: unknown tools, arguments missing, of the wrong type or too many, and text that is no call."""

    name = "invalid"

    def __init__(self) -> None:
        """Start without tools."""
        self._rng = np.random.default_rng(0)
        self._tools: list[dict[str, Any]] = []

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Seed the generator."""
        self._rng, self._tools = np.random.default_rng(seed), tools

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """A call that must be answered as invalid."""
        tool = self._tools[int(self._rng.integers(len(self._tools)))]
        arguments = sample_arguments(tool["parameters"], self._rng)
        match int(self._rng.integers(5)):
            case 0:
                return {"tool": tool["name"] + "_", "arguments": arguments}
            case 1:
                return {"tool": tool["name"], "arguments": {**arguments, "unknown_key": "x"}}
            case 2:
                return {"tool": tool["name"], "arguments": [arguments]}
            case 3:
                return f"{tool['name']}({arguments})"
            case _:
                return {"tool": tool["name"], "arguments": {**arguments, "\x00": None}}


def _ticket(task: PublicTask) -> str:
    found = re.search(r"\bT\d{4}\b", task.user_request)
    return found[0] if found else ""
