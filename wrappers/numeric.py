"""Numeric observations: a fixed vector of named numbers in place of text, for trainers that can't read."""

from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agent_envs.episode.env import Observation
from agent_envs.wrappers.discrete import DiscreteActions, MenuError, find

Vector = NDArray[np.float32]


@runtime_checkable
class Encoder(Protocol):
    """Turns what an episode has shown so far into numbers; a `Menu` may be one too.

    Attributes:
        feature_names: One name an entry, in order; the same in every episode.
    """

    feature_names: tuple[str, ...]

    def reset(self, observation: Observation, info: dict[str, Any]) -> None:
        """Forget everything; an episode begins with this observation."""

    def observe(self, choice: int | None, observation: Observation, info: dict[str, Any]) -> None:
        """Take in an observation; ``choice`` is None where the encoder isn't the menu."""

    def features(self) -> list[float]:
        """One number from 0.0 to 1.0 for each name."""


class NumericObservation(gymnasium.Wrapper[Any, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    """Observations are a float32 vector in ``Box(0, 1, (n,))``; rewards and info, the mask in it too, are passed on.

    Args:
        env: An environment inside `DiscreteActions`, or any with text observations if ``encoder`` is given.
        encoder: Where an encoder's class is found, as ``package.module:Class``, or the class itself; empty: the menu of
            the `DiscreteActions` inside, which remembers what its own options brought.

    Attributes:
        names: What each entry of the vector means.

    Raises:
        MenuError: There is no such encoder, or an encoder gave something else than one number in [0, 1] a name.

    Example:
        >>> import gymnasium, agent_envs
        >>> from agent_envs.wrappers import DiscreteActions, NumericObservation
        >>> env = NumericObservation(DiscreteActions(gymnasium.make("agenteval/refund-v1", split="train")))
        >>> vector, _ = env.reset(seed=1)
        >>> vector.dtype.name, vector.shape == (len(env.names),), env.names[0]
        ('float32', True, 'told_name')
        >>> env.close()
    """

    def __init__(self, env: gymnasium.Env[Observation, Any], encoder: str | type[Encoder] = "") -> None:
        """Put an encoder before ``env``."""
        place = encoder if isinstance(encoder, str) else f"{encoder.__module__}:{encoder.__qualname__}"
        gymnasium.utils.RecordConstructorArgs.__init__(self, encoder=place)
        gymnasium.Wrapper.__init__(self, env)
        self._driven = bool(place)
        made: Any
        if isinstance(encoder, str):
            made = find(encoder)() if encoder else _menu(env)
        else:
            made = encoder()
        if not isinstance(made, Encoder):
            raise MenuError(f"{type(made).__name__} is no encoder: it needs feature_names, reset, observe and features")
        self._encoder: Encoder = made
        self.names = made.feature_names
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (len(self.names),), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        if self._driven:
            self._encoder.reset(observation, info)
        return self._vector(), info

    def step(self, action: Any) -> tuple[Vector, Any, bool, bool, dict[str, Any]]:
        """Step, and tell what is known now."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._driven:
            self._encoder.observe(None, observation, info)
        return self._vector(), reward, terminated, truncated, info

    def _vector(self) -> Vector:
        vector = np.array(self._encoder.features(), dtype=np.float32)
        if vector.shape != (len(self.names),):
            raise MenuError(f"{type(self._encoder).__name__} gave {vector.size} numbers for {len(self.names)} names")
        wrong = ~((vector >= 0.0) & (vector <= 1.0))  # true for NaN too
        if wrong.any():
            first = int(wrong.argmax())
            raise MenuError(f"the feature {self.names[first]!r} is {float(vector[first])!r}; it has to be in [0, 1]")
        return vector


def _menu(env: Any) -> Any:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, DiscreteActions):
            return env.menu
        env = env.env
    raise MenuError("there is no DiscreteActions inside, whose menu could be the encoder; add it, or name an encoder")
