"""Discrete actions: a fixed list of options in place of free tool calls, so that standard trainers can play.

What an option means now, and whether it is on offer, is worked out by a `Menu` from what the episode has shown so far,
never from the task's answer.
"""

import abc
import importlib
import operator
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agent_envs.contract import AgentEvalError
from agent_envs.episode.calls import Call, Calls
from agent_envs.episode.env import Observation


class MenuError(AgentEvalError):
    """A menu or encoder can't be found, or doesn't do what it has to."""


class Menu(abc.ABC):
    """The options of a family: made anew for each environment, fed with everything the agent sees.

    Attributes:
        names: One name an option, in the order of the indices; the same in every episode.
    """

    names: tuple[str, ...]

    @abc.abstractmethod
    def reset(self, observation: Observation, info: dict[str, Any]) -> None:
        """Forget everything; an episode begins with this observation."""

    @abc.abstractmethod
    def observe(self, choice: int | None, observation: Observation, info: dict[str, Any]) -> None:
        """Take in what followed an option; None stands for a choice that wasn't on offer and was not run."""

    @abc.abstractmethod
    def calls(self, index: int) -> list[dict[str, Any]] | None:
        """The tool calls that an option stands for now (1 to 16), or None when it isn't on offer.

        Must not change the menu: it is asked for every option at every step. At least one option is always on offer.
        """


class DiscreteActions(gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    """Actions are indices of a menu's options; which are on offer now stands in ``info["action_mask"]``.

    The mask is an int8 array of the shape ``(n,)``, 1 where an option is on offer, at least one of them always. A
    choice that isn't on offer, or no index at all, doesn't raise: the environment answers it as an invalid call and
    counts it. Options on offer are possible, not right: breaking the policy, paying a wrong sum and giving up are among
    them.

    Args:
        env: An environment with tool calls as actions.
        menu: Where the menu's class is found, as ``package.module:Class``, or the class itself; empty: the one that the
            environment's class names as ``menu``.

    Attributes:
        menu: The live menu.

    Raises:
        MenuError: There is no such menu.

    Example:
        >>> import gymnasium, agent_envs
        >>> from agent_envs.wrappers import DiscreteActions
        >>> env = DiscreteActions(gymnasium.make("agenteval/refund-v1", split="train"))
        >>> _, info = env.reset(seed=1)
        >>> [env.menu.names[i] for i in info["action_mask"].nonzero()[0]][:2]
        ['ask_identity', 'ask_name']
        >>> env.close()
    """

    def __init__(self, env: gymnasium.Env[Observation, Any], menu: str | type[Menu] = "") -> None:
        """Put a menu before ``env``."""
        # A class is recorded by its place: the spec stays JSON.
        place = menu if isinstance(menu, str) else f"{menu.__module__}:{menu.__qualname__}"
        gymnasium.utils.RecordConstructorArgs.__init__(self, menu=place)
        gymnasium.Wrapper.__init__(self, env)
        make = (find(menu) if menu else getattr(env.unwrapped, "menu", None)) if isinstance(menu, str) else menu
        if make is None:
            raise MenuError(f"{type(env.unwrapped).__name__} has no menu of its own; name one as menu='module:Class'")
        made = make()
        if missing := [name for name in ("names", "reset", "observe", "calls") if not getattr(made, name, None)]:
            raise MenuError(f"{type(made).__name__} is no menu: it has no {' and no '.join(missing)}")
        self.menu: Menu = made
        self.action_space = gymnasium.spaces.Discrete(len(made.names))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the menu forgets the last one."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.menu.reset(observation, info)
        return observation, info | {"action_mask": self._mask()}

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Run the calls of an option."""
        choice = self._choice(action)
        calls = None if choice is None else self.menu.calls(choice)
        sent: Any = calls if calls else self._refused(choice, action)
        observation, reward, terminated, truncated, info = self.env.step(sent)
        self.menu.observe(choice if calls else None, observation, info)
        return observation, reward, terminated, truncated, info | {"action_mask": self._mask()}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which options are on offer now, as a bool array of the shape ``(n,)``; MaskablePPO asks for it."""
        return self._mask().astype(np.bool_)

    def _mask(self) -> NDArray[np.int8]:
        mask = np.array([bool(self.menu.calls(index)) for index in range(len(self.menu.names))], dtype=np.int8)
        if not mask.any():
            raise MenuError(f"{type(self.menu).__name__} offers nothing; a menu always needs a way to give up")
        return mask

    def _choice(self, action: Any) -> int | None:
        try:
            index = operator.index(action)
        except TypeError:
            return None
        return index if 0 <= index < len(self.menu.names) else None

    def _refused(self, choice: int | None, action: Any) -> Calls:
        if choice is None:
            kind = type(action).__name__
            problem = f"there is no such option ({kind}); choose from 0 to {len(self.menu.names) - 1}"
        else:
            problem = f"the option {self.menu.names[choice]!r} is not on offer now"
        return Calls((Call("", {}, problem=problem),))


def find(place: str) -> Callable[[], Any]:
    """What stands at ``package.module:attribute``, made to be called without arguments.

    Raises:
        MenuError: Nothing stands there, or it can't be called.
    """
    module, _, name = place.partition(":")
    try:
        found = operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise MenuError(f"{place!r} can't be found ({error}); write it as 'package.module:Class'") from error
    if not callable(found):
        raise MenuError(f"{place!r} is {type(found).__name__}; a class is needed")
    make: Callable[[], Any] = found
    return make
