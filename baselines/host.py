"""Plays a policy for `agent_envs.baselines.process`: ``python -m agent_envs.baselines.host SPEC``.

What the policy prints goes to the standard error output, so it can't be taken for an answer.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from agent_envs.baselines import load
from agent_envs.baselines.identity import policy_sections
from agent_envs.baselines.policy import GaveUp, Policy, begin
from agent_envs.contract import PublicTask, canonical_json, jsonable, parse_json


def main(spec: str) -> None:
    """Answer messages until the input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    policy: Policy | None = None
    for line in sys.stdin.buffer:
        message = parse_json(line)
        if policy is None:
            with contextlib.suppress(_Answered):
                policy = _tried(answers, lambda: load(spec))
            if policy is None:
                continue
        with contextlib.suppress(_Answered):
            _tell(answers, _tried(answers, lambda: _answer(policy, message)))  # noqa: B023 (called at once)


class _Answered(Exception):
    """The message has been answered already, by saying why it can't be."""


def _answer(policy: Policy, message: dict[str, Any]) -> dict[str, Any]:
    if "describe" in message:
        return policy_sections(policy)
    if "begin" in message:
        what = message["begin"]
        begin(policy, PublicTask.model_validate(what["task"]), what["tools"], what["seed"])
        return {"ready": True}
    action = jsonable(policy.act(message["observation"], message["info"]))
    usage = getattr(policy, "usage", None)
    tokens, cost = usage() if callable(usage) else (None, None)
    return {"action": action, "usage": {"tokens": jsonable(tokens), "cost": jsonable(cost)}}


def _tried(answers: BinaryIO, function: Callable[[], Any]) -> Any:
    """What ``function`` gives; what it raises becomes the answer."""
    try:
        return function()
    except GaveUp as error:
        _tell(answers, {"stop": str(error)})
    except (Exception, SystemExit) as error:
        _tell(answers, {"error": f"{type(error).__name__}: {error}"[:2000]})
    raise _Answered


def _tell(answers: BinaryIO, answer: dict[str, Any]) -> None:
    rest = memoryview(canonical_json(answer) + b"\n")
    while rest:
        rest = rest[answers.write(rest) :]


if __name__ == "__main__":
    main(sys.argv[1])
