"""The standard dress of an environment."""

from typing import Any

import gymnasium

from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.wrappers.evaluation import Evaluation
from agent_envs.wrappers.limits import EpisodeLimits
from agent_envs.wrappers.permissions import Permissions
from agent_envs.wrappers.recording import Recording


def compose(
    env: AgentEnv, *, record: str = "", recheck: float = 0.05, **limits: Any
) -> gymnasium.Env[Observation, Any]:
    """Put permissions, limits, recording and evaluation around an environment, in this order.

    Args:
        env: A bare environment, perhaps forked in the middle of an episode.
        record: Folder to keep evidence in; empty: in memory only.
        recheck: Share of verdicts made twice and compared.
        limits: Tighter limits, as `EpisodeLimits` takes them.
    """
    return Evaluation(Recording(EpisodeLimits(Permissions(env), **limits), record), recheck)
