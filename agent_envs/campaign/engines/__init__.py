"""Engines: where attempts are played. Local worker processes by default, Ray where one machine is too small."""

from agent_envs.campaign.engines.base import Done, Engine, EngineError, Job
from agent_envs.campaign.engines.local import LocalEngine

__all__ = ["Done", "Engine", "EngineError", "Job", "LocalEngine", "make_engine"]


def make_engine(kind: str, workers: int, address: str = "") -> Engine:
    """An engine by its name in a manifest.

    Args:
        kind: ``local`` or ``ray``.
        workers: How many attempts are played at once.
        address: Of a running Ray cluster; empty: one is started on this machine.

    Raises:
        EngineError: There is no such engine, or it isn't installed.
    """
    if kind == "local":
        return LocalEngine(workers)
    if kind == "ray":
        from agent_envs.campaign.engines.ray import RayEngine

        return RayEngine(workers, address=address)
    raise EngineError(f"engine {kind!r}: there are local and ray")
