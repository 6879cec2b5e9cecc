"""The back office as its tools see it: database, office clock, rate limits, customer on the line, random choices."""

from collections.abc import Mapping
from typing import Any

from agent_envs.contract import AgentTask, TaskError
from agent_envs.episode.world import World
from agent_envs.state import Clock, Database, Fixture, RateLimits, Rng, StateChannel
from agent_envs.users.scripted import ScriptedUser

RATE_RULES: Mapping[str, tuple[int, int]] = {"find_customer": (30, 3600)}
"""Calls allowed in so many seconds, by tool."""
FAILED_CHECKS = (3, 24 * 3600)
"""Failed identity checks of one ticket in so many seconds, after which further ones are refused.

Counted from the ``identity_checks`` table: only failures count, yet after too many a right answer is refused as well.
"""


class Office(World):
    """All state of one refund episode.

    Attributes:
        database: Tables of `schema.metadata`.
        clock: Office clock, UTC.
        rate_limits: Sliding windows of `RATE_RULES`.
        user: The customer on the line.
        rng: Picks among the customer's equivalent phrasings.
    """

    def __init__(self, fixture: Fixture, url: str = "sqlite://") -> None:
        """Name the channels; nothing is opened before the first `restore`.

        Args:
            fixture: Start content of the database.
            url: SQLAlchemy URL of the database.
        """
        self._fixture = fixture
        self._database = Database(fixture, url)
        self.clock = Clock()
        self.rate_limits = RateLimits(self.clock, RATE_RULES)
        self.rng = Rng()
        self.user = ScriptedUser(self.rng)
        self._channels: dict[str, StateChannel] = {
            channel.name: channel for channel in (self._database, self.clock, self.rate_limits, self.rng, self.user)
        }

    @property
    def database(self) -> Database:
        """The back office's tables."""
        return self._database

    @property
    def channels(self) -> Mapping[str, StateChannel]:
        """Every channel by name."""
        return self._channels

    def restore(self, task: AgentTask, seed: int) -> None:
        """Bring every channel to the task's start state.

        Raises:
            TaskError: The task starts from another fixture, or has no customer.
        """
        start = task.initial_state
        if start.fixture != self._fixture.name:
            raise TaskError(
                f"{task.task_id}: starts from fixture {start.fixture!r}, but this office holds {self._fixture.name!r}; "
                "make the environment with the task's fixture"
            )
        if task.user is None:
            raise TaskError(f"{task.task_id}: has no user; a refund task needs a customer on the line")
        self._database.restore(start.patch)
        self.clock.restore(start.clock)
        self.rate_limits.restore()
        self.rng.restore(seed)
        self.user.restore(task.user)

    def opening(self) -> dict[str, Any]:
        """The customer's first words."""
        return {"customer": {"says": self.user.opening(), "status": self.user.status}}

    def over(self) -> str:
        """``user_stop`` once the agent keeps talking to a customer who has gone."""
        return "user_stop" if self.user.overstayed else ""

    def status(self) -> dict[str, str]:
        """Whether the customer is still there."""
        return {"user": self.user.status}
