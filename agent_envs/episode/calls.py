"""From whatever an agent hands over to a list of calls; nothing an agent sends can raise.

An action may be

* a call ``{"tool": name, "arguments": {...}}``, with an optional ``"id"``;
* a JSON text of such a call or list;
* a list of up to 16 calls, run in order, each answered;
* the same with ``"arguments"`` as JSON text, the way chat APIs send it; ``null`` and ``""`` mean ``{}`` there.

Everything else becomes a call with a ``problem``, which the environment answers with an error and logs as invalid. The
sender is never guessed right: names are matched exactly, duplicate keys in JSON text are refused.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from agent_envs.contract import jsonable, parse_json

MAX_CALLS = 16
MAX_ACTION_CHARACTERS = 262_144
_MAX_DEPTH = 64
_KEYS = {"tool", "arguments", "id"}


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call as it will be logged."""

    tool: str
    arguments: dict[str, Any]
    call_id: str = ""
    """The agent's own id for the call, or ``""``."""
    problem: str = ""
    """Why the call is malformed; empty when it is well-formed."""
    denied: str = ""
    """Why a permission forbids it; empty when it is allowed."""


class Calls(tuple[Call, ...]):
    """An action that has been parsed: at least one call."""

    __slots__ = ()


def parse_action(action: Any) -> Calls:
    """Turn an action into calls. One that has been parsed is passed through."""
    if type(action) is Calls:
        return action
    try:
        if type(action) is dict:
            return Calls((_call(action),))
        if isinstance(action, str):
            return _from_text(action)
        if isinstance(action, list | tuple):
            if not action:
                return Calls((_bad("the action is an empty list; send at least one call"),))
            if len(action) > MAX_CALLS:
                return Calls((_bad(f"the action has {len(action)} calls; at most {MAX_CALLS} may be sent at once"),))
            return Calls(_call(item) for item in action)
        return Calls((_call(action),))
    except Exception as error:  # an object of the agent's own making, whose methods raise
        return Calls((_bad(f"the action can't be read: looking at it raises {type(error).__name__}"),))


def _from_text(text: str) -> Calls:
    if not text.strip():
        return Calls((_bad("the action is empty; send a tool call"),))
    try:
        value = _parse_json(text)
    except ValueError as error:
        return Calls((_bad(f"the action is text but not a JSON tool call ({error})", text),))
    return parse_action(value if isinstance(value, list) else [value])


def _call(value: Any) -> Call:
    if not isinstance(value, Mapping):
        return _bad(f'a call is an object {{"tool": ..., "arguments": {{...}}}}, not {type(value).__name__}', value)
    tool, call_id = value.get("tool"), value.get("id", "")
    if type(tool) is not str:
        return _bad("the call has no text under 'tool'", value)
    if not value.keys() <= _KEYS:
        extra = sorted(str(key)[:40] for key in value.keys() - _KEYS)[:5]
        return _bad(f"the call has the unknown key(s) {extra}; only 'tool', 'arguments' and 'id' are known", value)
    if not tool.isascii():
        tool = str(jsonable(tool))
    if type(call_id) is not str or not call_id.isascii():
        call_id = "" if call_id is None else str(jsonable(call_id))
    arguments = value.get("arguments")
    if isinstance(arguments, str) and arguments.strip():
        try:
            arguments = _parse_json(arguments)
        except ValueError as error:
            return Call(
                tool[:200],
                {"$text": str(jsonable(arguments))[:2000]},
                call_id[:200],
                f"'arguments' is not JSON ({error})",
            )
    if arguments is None or arguments == "":
        arguments = {}
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        return Call(tool[:200], {}, call_id[:200], f"'arguments' must be an object, not {kind}")
    plain = jsonable(arguments)
    if (size := _size(plain)) > MAX_ACTION_CHARACTERS:
        most = f"the most is {MAX_ACTION_CHARACTERS}"
        return Call(tool[:200], {}, call_id[:200], f"the arguments have about {size} characters; {most}")
    return Call(tool[:200], plain, call_id[:200])


def _size(value: Any) -> int:
    """About how many characters a JSON value takes."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(len(key) + 4 + _size(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(2 + _size(item) for item in value)
    return value.bit_length() // 3 + 1 if isinstance(value, int) else 8


def _bad(problem: str, value: Any = None) -> Call:
    shown = {} if value is None else {"$sent": str(jsonable(value))[:2000]}
    return Call("", shown, "", problem)


def _parse_json(text: str) -> Any:
    if len(text) > MAX_ACTION_CHARACTERS:
        raise ValueError(f"{len(text)} characters; the most is {MAX_ACTION_CHARACTERS}")
    return parse_json(text)
