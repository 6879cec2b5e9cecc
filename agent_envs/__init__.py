"""Gymnasium environments that measure tool-using agents by what they do.

Importing this package registers the ids ``agenteval/<name>-v<n>`` and loads nothing else; each environment's own
modules are imported when it is made. Where nothing imports this package,
``gymnasium.make("agent_envs:agenteval/refund-v1")`` does both.
"""

import gymnasium

__version__ = "0.1.0"

_ENTRY_POINTS = {"agenteval/refund-v1": "agent_envs.envs.refund:make"}


def register_envs() -> None:
    """Register every environment id that isn't registered yet."""
    for env_id, entry_point in _ENTRY_POINTS.items():
        if env_id not in gymnasium.registry:
            # The task's own step limit is enforced by its limits, the one source of truncation.
            gymnasium.register(id=env_id, entry_point=entry_point, reward_threshold=1.0)


register_envs()
