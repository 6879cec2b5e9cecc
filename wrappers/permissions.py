"""Permissions: calls that may not run are answered and logged as denied, never run."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast

import gymnasium

from agent_envs.contract import Permission, Status
from agent_envs.contract.expected import Expected
from agent_envs.contract.outcome import lookup
from agent_envs.episode.calls import Call, Calls, parse_action
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.spaces import ToolCall
from agent_envs.evaluator import MISSING, compare


class Permissions(gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    r"""Denies calls by tool and by argument. All rules hold together: the task's own, and those given here.

    A rule whose condition can't be decided denies.

    Args:
        env: The environment to guard.
        deny: Names of tools denied on top of the task's permissions.

    Example:
        >>> import gymnasium, agent_envs
        >>> env = Permissions(gymnasium.make("agenteval/refund-v1"), deny=("issue_refund",))
        >>> _ = env.reset(seed=1)
        >>> env.step({"tool": "issue_refund", "arguments": {}})[0]["text"]
        '{"status":"denied","error":"the tool \'issue_refund\' is not permitted here"}'
        >>> env.close()
    """

    def __init__(self, env: gymnasium.Env[Observation, Any], deny: Iterable[str] = ()) -> None:
        """Guard ``env``."""
        deny = list(deny)
        gymnasium.utils.RecordConstructorArgs.__init__(self, deny=deny)
        gymnasium.Wrapper.__init__(self, env)
        self._core = cast(AgentEnv, env.unwrapped)
        unknown = sorted(set(deny) - set(cast(ToolCall, self._core.action_space).tools))
        if unknown:
            raise ValueError(f"deny={unknown}: the environment has no such tools")
        self.denied = tuple(deny)
        self._rules = tuple(
            Permission(tools=(name,), reason=f"the tool {name!r} is not permitted here") for name in deny
        )

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Mark the calls that a rule denies; the environment answers and logs them."""
        core = self._core
        rules = (*core.episode.task.permissions, *self._rules)
        calls = parse_action(action)
        if rules:
            calls = Calls(_checked(call, rules) for call in calls)
        return self.env.step(calls)


def _checked(call: Call, rules: Iterable[Permission]) -> Call:
    if call.problem or call.denied:
        return call
    for rule in rules:
        if call.tool in rule.tools and _denies(rule, call.arguments):
            return dataclasses.replace(call, denied=rule.reason)
    return call


def _denies(rule: Permission, arguments: Mapping[str, Any]) -> bool:
    if not rule.when and not rule.unless:
        return True
    forbidden = bool(rule.when) and _all(rule.when, arguments) is not Status.FAIL
    required = bool(rule.unless) and _all(rule.unless, arguments) is not Status.PASS
    return forbidden or required


def _all(expectations: Mapping[str, Expected], arguments: Mapping[str, Any]) -> Status:
    statuses = []
    for path, expected in expectations.items():
        found, value = lookup(arguments, path)
        statuses.append(compare(expected, value if found else MISSING).status)
    return Status.all_of(statuses)
