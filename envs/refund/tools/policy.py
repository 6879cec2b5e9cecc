"""The refund policy as the agent reads it: the text of `policy.md`, whole or by section."""

# ruff: noqa: D417 (the docstrings are what agents read; the world is no argument of theirs)

import functools
from pathlib import Path
from typing import Any, Literal

from agent_envs.envs.refund.world import Office
from agent_envs.episode.tools import tool

Section = Literal[
    "all",
    "identity",
    "confirmation",
    "window",
    "final_sale",
    "amount",
    "tenders",
    "approval",
    "holds",
    "cancellation",
    "duplicates",
    "closing",
]


@functools.cache
def sections() -> dict[str, str]:
    """Name to text of each section, ``all`` among them; a name has underscores for the heading's spaces."""
    text = (Path(__file__).resolve().parent.parent / "policy.md").read_text(encoding="utf-8")
    parts = text.split("\n## ")
    named = {"all": text}
    for part in parts[1:]:
        heading, _, body = part.partition("\n")
        named[heading.strip().replace(" ", "_")] = body.strip()
    return named


@tool()
def read_policy(world: Office, section: Section = "all") -> dict[str, Any]:
    """The company's refund policy, which binds you.

    Args:
        section: Which section to read; all of it if not given.
    """
    return {"section": section, "text": sections()[section]}
