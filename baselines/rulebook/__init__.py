"""An honest clerk made of rules: what hand-written patterns and the policy's arithmetic reach without any model.

`words` reads the customer, `decision` applies the policy, `course` is the order of the work. It sees what any agent
sees, the observations, and nothing else.
"""

import json
import re
from typing import Any

from agent_envs.baselines.rulebook.course import Clerk, Course, HastyClerk
from agent_envs.contract import PublicTask

__all__ = ["Hasty", "Rulebook"]


class Rulebook:
    """Works refund tickets by the policy. On other families' tasks it finishes at once."""

    name = "rulebook"
    clerk = Clerk

    def __init__(self) -> None:
        """Wait for a task."""
        self._ticket = ""
        self._course: Course[None] | None = None

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Forget the last episode; nothing is drawn, so ``seed`` doesn't matter."""
        ticket = re.search(r"\bT\d+\b", task.user_request)
        self._ticket = ticket[0] if ticket and "resolve_ticket" in task.available_tools else ""
        self._course = None

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
        """The next call of the course; ``finish`` after its end."""
        try:
            if self._course is not None:
                return self._course.send(_read(observation["text"]))
            if self._ticket:
                customer = _read(observation["text"].rpartition("\n")[2]).get("customer", {})
                self._course = self.clerk(self._ticket).play(str(customer.get("says", "")))
                return next(self._course)
        except StopIteration:
            pass
        return {"tool": "finish", "arguments": {"outcome": "unable"}}


class Hasty(Rulebook):
    """The same clerk without the patience to ask for a yes: often right, and never by the rules where it pays."""

    name = "hasty"
    clerk = HastyClerk


def _read(text: str) -> dict[str, Any]:
    """An answer as data. One too long to be shown whole is no JSON any more; it counts as a failed call."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"status": "unreadable", "error": text[:200]}
