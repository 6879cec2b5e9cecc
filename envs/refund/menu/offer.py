"""What every option is made with."""

from collections.abc import Callable
from typing import Any, Final

from agent_envs.envs.refund.menu.figures import Figures

MOST_CALLS: Final = 16
"""As many calls as one action may carry."""

Calls = list[dict[str, Any]]
Option = Callable[[Figures], Calls]
"""Gives the calls, or none when it isn't on offer."""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """One tool call."""
    return {"tool": tool, "arguments": arguments}


def when(wanted: Any, *calls: dict[str, Any]) -> Calls:
    """The calls if they are wanted, else none."""
    return list(calls) if wanted else []


def ticket_is_open(known: Figures) -> bool:
    """Whether the ticket can still be worked on, as far as was seen."""
    return bool(known.memory.ticket_id) and not known.memory.closed
