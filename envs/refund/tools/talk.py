"""Talking to the customer, letting time pass, and ending the work."""

# ruff: noqa: D417 (the docstrings are what agents read; the world is no argument of theirs)

from typing import Annotated, Any, Literal

from pydantic import Field

from agent_envs.contract import decimal_text
from agent_envs.envs.refund.tools.arguments import FactName, Message, Proposal, Remark
from agent_envs.envs.refund.world import Office
from agent_envs.episode.tools import tool


@tool()
def send_message(
    world: Office,
    text: Message,
    ask: Annotated[list[FactName], Field(max_length=11)] | None = None,
    propose: Annotated[Proposal, Field(strict=False)] | None = None,
    report: Literal["done", "refused", "handed_over"] | None = None,
) -> dict[str, Any]:
    """Say something to the customer and get the answer.

    Args:
        text: What you say.
        ask: The facts you ask for, if any.
        propose: What you ask the customer to agree to; only this can be agreed to, never the words alone.
        report: The outcome you tell the customer, once it stands.
    """
    proposal = None
    if propose is not None:
        proposal = propose.model_dump(exclude_none=True)
        if propose.amount is not None:
            proposal["amount"] = decimal_text(propose.amount)
    reply = world.user.hear(text, ask=ask or (), propose=proposal, report=report)
    return {"customer": reply.as_json()}


@tool()
def wait(world: Office, hours: Annotated[int, Field(ge=1, le=72)]) -> dict[str, Any]:
    """Let time pass.

    Args:
        hours: How many hours, 1 to 72.
    """
    world.clock.advance(hours * 3600)
    return {"now": world.clock.iso}


@tool()
def finish(
    world: Office,
    outcome: Literal["completed", "refused", "handed_over", "unable"],
    reason: Remark = "",
    summary: Remark = "",
) -> dict[str, Any]:
    """End your work on the request. Nothing can be done after it.

    Args:
        outcome: How it ended.
        reason: Why, if there is something to say.
        summary: What you did.
    """
    return {"outcome": outcome}
