"""The refund family: a retailer's back office, as ``agenteval/refund-v1``."""

from typing import Any


def make(**arguments: Any) -> Any:
    """Make the environment; its modules are imported now, not when the id was registered."""
    from agent_envs.envs.refund.env import make as make_refund

    return make_refund(**arguments)


make.metadata = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[attr-defined]
