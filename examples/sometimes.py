"""A clerk of known strength, to see whether a comparison finds a difference that is there by construction."""

import random
from typing import Any

from agent_envs.baselines import Rulebook
from agent_envs.contract import PublicTask


class Sometimes(Rulebook):
    """The rulebook clerk in a known share of the attempts; in the others it gives up at once.

    The rulebook solves every generated refund task, so this one's true success rate is the share.
    """

    name = "sometimes"
    share = 0.6

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Draw from the episode's seed whether to work this time."""
        super().begin(task, tools, seed)
        self._works = random.Random(seed).random() < self.share

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
        """The rulebook's next call, or none."""
        return super().act(observation, info) if self._works else {"tool": "finish", "arguments": {"outcome": "unable"}}
