"""The text an agent reads: JSON that shows every character as itself, cut where it would be too long."""

from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from agent_envs.contract import canonical_json


def json_text(value: Any) -> str:
    """JSON for the agent to read: other than the canonical form, it shows every character as itself."""
    try:
        return to_json(value).decode()
    except PydanticSerializationError:  # a lone surrogate, or a number beyond every limit
        return canonical_json(value).decode()


def joined(answers: list[str], most: int) -> str:
    """Answers as a JSON list; where they are too long together, each gets an equal share."""
    text = "[" + ",\n".join(answers) + "]"
    if len(text) > most:
        share = most // len(answers) - 2
        text = "[" + ",\n".join(cut(answer, share) for answer in answers) + "]"
    return text


def cut(text: str, most: int) -> str:
    """At most ``most`` characters: head and tail, and between them how much was left out."""
    if len(text) <= most:
        return text
    if most < 120:  # no room for saying so
        return text[:most]
    half = (most - 80) // 2
    return f"{text[:half]} [... {len(text) - 2 * half} of {len(text)} characters left out ...] {text[-half:]}"
