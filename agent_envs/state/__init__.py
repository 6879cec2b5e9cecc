"""State channels: the parts of an environment's state, each with reset, digest, exact changes and branching.

The database's names are loaded when they are first used, because SQLAlchemy is slow to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_envs.state.channel import StateChannel
from agent_envs.state.clock import Clock
from agent_envs.state.random import Rng
from agent_envs.state.rates import RateLimits

if TYPE_CHECKING:
    from agent_envs.state.backend import IntegrityViolation
    from agent_envs.state.columns import Blob, Boolean, Day, Exact, Instant, Integer, Real, Text
    from agent_envs.state.database import Database
    from agent_envs.state.fixture import Fixture

__all__ = [
    "Blob",
    "Boolean",
    "Clock",
    "Database",
    "Day",
    "Exact",
    "Fixture",
    "Instant",
    "Integer",
    "IntegrityViolation",
    "RateLimits",
    "Real",
    "Rng",
    "StateChannel",
    "Text",
]

_LATER = {
    "Database": "database",
    "Fixture": "fixture",
    "IntegrityViolation": "backend",
} | dict.fromkeys(("Blob", "Boolean", "Day", "Exact", "Instant", "Integer", "Real", "Text"), "columns")


def __getattr__(name: str) -> Any:
    """Load a name of the database's modules."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
