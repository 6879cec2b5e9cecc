"""Recording: when an episode ends, its evidence is frozen and, where a folder is given, kept on disk."""

from pathlib import Path
from typing import Any, cast

import gymnasium

from agent_envs.contract import Evidence, write_evidence
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.record import Episode


class Recording(gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    """Freezes the evidence of each episode at its end.

    Args:
        env: The environment to record.
        folder: Where evidence is kept, one sub-folder an episode named after its digest; empty: only in memory.

    Attributes:
        evidence: Evidence of the episode that has just ended, else None.
        location: Its folder, or None when it isn't kept.
    """

    def __init__(self, env: gymnasium.Env[Observation, Any], folder: str = "") -> None:
        """Record ``env``."""
        gymnasium.utils.RecordConstructorArgs.__init__(self, folder=folder)
        gymnasium.Wrapper.__init__(self, env)
        self._core = cast(AgentEnv, env.unwrapped)
        self._folder = folder
        self._episode: Episode | None = None
        """The episode that the evidence is of; not the environment's own once that was reset or restored."""
        self.evidence: Evidence | None = None
        self.location: Path | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the last one's evidence is let go."""
        self.evidence = self.location = None
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Freeze the evidence when this step ends the episode."""
        result = self.env.step(action)
        if self._core.episode.terminal is not None:
            self.freeze()
        return result

    def freeze(self) -> Evidence:
        """The evidence of the ended episode; made (and kept) at the first call.

        Raises:
            RuntimeError: The episode hasn't ended.
            EvidenceError: The evidence can't be kept in the folder.
        """
        episode = self._core.episode
        if self.evidence is None or self._episode is not episode:
            self.evidence = self.location = None
            evidence, location = episode.evidence(), None
            if self._folder:
                location = Path(self._folder) / evidence.digest[:32]
                write_evidence(evidence, location)
            self.evidence, self.location, self._episode = evidence, location, episode
        return self.evidence

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the episode, which the environment copies or pickles itself."""
        return {**self.__dict__, "_episode": None}
