"""The oracle: plays a task's reference solution, or any other scripted run of it.

It reads gold, which no policy under test may; its runs are marked ``oracle`` and never ranked.
"""

import functools
import importlib
import json
from typing import Any

from agent_envs.contract import AgentEvalError, Call, PublicTask, ReferenceRun, TaskError, TaskReferences, WrongRun
from agent_envs.contract.outcome import lookup
from agent_envs.episode.suite import Suite


class ScriptError(AgentEvalError):
    """A scripted run doesn't go as written: the reference is wrong, or the tools have changed."""


class Scripted:
    """Plays the calls of one scripted run, filling in saved results, and checks that each goes as expected.

    Raises (from ``act``):
        ScriptError: A call failed that was to succeed, or the other way round.
    """

    oracle = True

    def __init__(self, calls: tuple[Call, ...], name: str = "scripted") -> None:
        """Play ``calls``, then stop by ``finish`` if the script didn't."""
        self.name = name
        self._script = calls
        self._next = 0
        self._saved: dict[str, Any] = {}

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Start the script from its beginning."""
        self._next, self._saved = 0, {}

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """The next call."""
        if self._next:
            self._check(self._script[self._next - 1], observation["text"])
        if self._next == len(self._script):
            return {"tool": "finish", "arguments": {"outcome": "unable"}}
        call = self._script[self._next]
        self._next += 1
        return {"tool": call.tool, "arguments": self._filled(call.arguments)}

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$") and value[1:] in self._saved:
            return self._saved[value[1:]]
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        return [self._filled(item) for item in value] if isinstance(value, list) else value

    def _check(self, call: Call, text: str) -> None:
        where = f"{self.name}, call {self._next} ({call.tool})"
        try:
            answer = json.loads(text)
        except ValueError:
            raise ScriptError(f"{where}: the answer isn't JSON: {text[:200]}") from None
        if (answer["status"] != "ok") != call.error:
            wanted = "be refused" if call.error else "succeed"
            raise ScriptError(f"{where}: was to {wanted}, but: {text[:300]}")
        for name, path in call.save.items():
            found, value = lookup(answer.get("result", {}), path)
            if not found:
                raise ScriptError(f"{where}: the result has no {path!r} to save as {name!r}: {text[:300]}")
            self._saved[name] = value


class Reference(Scripted):
    """Plays the first reference of whatever task comes."""

    def __init__(self) -> None:
        """Wait for a task."""
        super().__init__((), "reference")

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Open the task's references."""
        self._script = references(task.task_id).references[0].calls
        super().begin(task, tools, seed)


def references(task_id: str) -> TaskReferences:
    """A task's scripted runs.

    Raises:
        TaskError: There are none.
    """
    return _suite(task_id.partition("/")[0]).references(task_id)


def scripted(run: ReferenceRun | WrongRun) -> Scripted:
    """A policy that plays one scripted run."""
    return Scripted(run.calls, run.name)


@functools.cache
def _suite(family: str) -> Suite:
    try:
        module = importlib.import_module(f"agent_envs.envs.{family.replace('-', '_')}.env")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("agent_envs.envs."):
            raise  # the family is there, something it needs isn't
        raise TaskError(f"there is no family {family!r}") from None
    suite: Suite = module.SUITE
    return suite
