"""The refund family's menu of options and its numeric view, for trainers of discrete policies."""

from typing import Any

from agent_envs.envs.refund.menu.features import FEATURES, vector
from agent_envs.envs.refund.menu.figures import Figures
from agent_envs.envs.refund.menu.memory import Memory
from agent_envs.envs.refund.menu.options import OPTIONS
from agent_envs.episode.env import Observation
from agent_envs.wrappers.discrete import Menu

__all__ = ["RefundMenu"]


class RefundMenu(Menu):
    """Options of the back office, made from what the episode has shown; also an encoder of it.

    The options ask, look up, verify, propose, register, pay, close, report and finish. Sums are worked out by the
    policy's public arithmetic, on the right basis and on wrong ones. The mask tells what can be done, not what should:
    see `agent_envs.envs.refund.menu.options`. Where several options stand for the very same calls, only the first is on
    offer. The menu reads observations only, so it knows no more than any agent.

    It is made for the training tasks, whose customers speak plainly. The curated tasks' customers speak as people do;
    where patterns can't read them, the options that need the fact aren't on offer, or are worked out wrongly.

    Attributes:
        names: The options' names.
        feature_names: What the entries of `features` mean.
        memory: What was seen in this episode.
    """

    names = tuple(OPTIONS)
    feature_names = tuple(FEATURES)

    def __init__(self) -> None:
        """Remember nothing."""
        self._become(Memory())

    def reset(self, observation: Observation, info: dict[str, Any]) -> None:
        """Start with the request and the customer's first words."""
        memory = Memory()
        memory.start(observation["text"], info)
        self._become(memory)

    def observe(self, choice: int | None, observation: Observation, info: dict[str, Any]) -> None:
        """Take in the answers to an option's calls."""
        memory = self.memory
        calls = None if choice is None else self._calls[choice]
        if calls:
            memory.take(calls, observation["text"], info)
        else:
            memory.refuse()
        self._become(memory)

    def calls(self, index: int) -> list[dict[str, Any]] | None:
        """The calls of an option, or None when it isn't on offer."""
        return self._calls[index] or None

    def features(self) -> list[float]:
        """Numbers from 0.0 to 1.0, one a name."""
        return vector(self._known)

    def _become(self, memory: Memory) -> None:
        self.memory, self._known = memory, Figures(memory)
        self._calls: list[list[dict[str, Any]]] = []
        for option in OPTIONS.values():
            calls = option(self._known)
            self._calls.append([] if calls in self._calls else calls)
