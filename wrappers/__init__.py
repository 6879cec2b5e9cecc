"""What stands around an environment: permissions, limits, recording, evaluation, and views for trainers.

The order, inner to outer, is permissions, limits, recording, evaluation; `compose` puts them on. They keep no state of
their own about the episode, so a forked environment dressed again goes on as if it had never been forked.
"""

from agent_envs.wrappers.compose import compose
from agent_envs.wrappers.discrete import DiscreteActions
from agent_envs.wrappers.evaluation import Evaluation
from agent_envs.wrappers.limits import EpisodeLimits
from agent_envs.wrappers.numeric import NumericObservation
from agent_envs.wrappers.permissions import Permissions
from agent_envs.wrappers.recording import Recording

__all__ = [
    "DiscreteActions",
    "EpisodeLimits",
    "Evaluation",
    "NumericObservation",
    "Permissions",
    "Recording",
    "compose",
]
