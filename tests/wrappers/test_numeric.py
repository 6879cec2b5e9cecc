"""Numeric observations: bounded named vectors, equal for equal seeds, fit for vector environments."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import agent_envs  # noqa: F401  (registers the ids)
from agent_envs.envs.refund.generator import KINDS, seed_for
from agent_envs.envs.refund.menu import RefundMenu
from agent_envs.wrappers import DiscreteActions, NumericObservation
from agent_envs.wrappers.discrete import MenuError

ENV_ID = "agenteval/refund-v1"


class Length:
    """How long the text is: an encoder that is no menu."""

    feature_names: tuple[str, ...] = ("length", "first")

    def __init__(self) -> None:
        self._values = [0.0, 0.0]

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        self._values = [len(observation["text"]) / 65_536, 1.0]

    def observe(self, choice: int | None, observation: Any, info: dict[str, Any]) -> None:
        self._values = [len(observation["text"]) / 65_536, 0.0]

    def features(self) -> list[float]:
        return self._values


class TooMany(Length):
    def features(self) -> list[float]:
        return [0.0, 0.0, 0.0]


class NotANumber(Length):
    def features(self) -> list[float]:
        return [0.5, float("nan")]


class OutOfBounds(Length):
    def features(self) -> list[float]:
        return [0.5, 1.5]


def make() -> NumericObservation:
    # A module-level function: worker processes have to find it.
    return NumericObservation(DiscreteActions(gymnasium.make(ENV_ID, split="train", recheck=0.0)))


@pytest.fixture
def env() -> Iterator[NumericObservation]:
    made = make()
    yield made
    made.close()


def masked(mask: Any, rng: np.random.Generator) -> int:
    choices = np.flatnonzero(mask)
    return int(rng.choice(choices[:-1] if len(choices) > 1 else choices))


def test_vectors_are_named_bounded_and_in_the_space_all_along(env: NumericObservation) -> None:
    rng = np.random.default_rng(0)
    space = env.observation_space
    assert isinstance(space, gymnasium.spaces.Box)
    assert (space.dtype, space.shape) == (np.float32, (len(env.names),))
    assert len(set(env.names)) == len(env.names) > 50
    for seed in range(25):
        vector, info = env.reset(seed=seed)
        ended = False
        while not ended:
            assert vector in space and np.isfinite(vector).all()
            vector, _, terminated, truncated, info = env.step(masked(info["action_mask"], rng))
            ended = terminated or truncated


def test_every_entry_says_something(env: NumericObservation) -> None:
    """No entry is constant over play that mostly leaves closing for later, on tasks of every kind."""
    rng = np.random.default_rng(3)
    late = [place for place, name in enumerate(RefundMenu.names) if name.startswith(("finish", "refuse_", "hand_"))]
    low, high = np.ones(len(env.names)), np.zeros(len(env.names))
    for number in range(6):
        for kind in KINDS:
            vector, info = env.reset(seed=seed_for(number, kinds=[kind]))
            ended = False
            while not ended:
                low, high = np.minimum(low, vector), np.maximum(high, vector)
                mask = info["action_mask"]
                if rng.random() < 0.95:
                    mask[late] = 0
                action = int(rng.choice(np.flatnonzero(mask))) if mask.any() else late[-1]
                vector, _, terminated, truncated, info = env.step(action)
                ended = terminated or truncated
    constant = [name for name, lowest, highest in zip(env.names, low, high, strict=True) if lowest == highest]
    assert constant == ["windows_differ"], "generated tasks return only goods of one window"


def test_entries_mean_what_they_are_called(env: NumericObservation) -> None:
    names = RefundMenu.names
    vector, _ = env.reset(seed=11)
    known = dict(zip(env.names, vector, strict=True))
    assert (known["told_email"], known["verified"], known["customer_found"], known["steps"]) == (0, 0, 0, 0)
    for name in ("ask_identity", "find_by_email"):
        vector, *_ = env.step(names.index(name))
    known = dict(zip(env.names, vector, strict=True))
    assert (known["told_email"], known["told_postcode"], known["customer_found"], known["verified"]) == (1, 1, 1, 0)
    assert known["steps"] == pytest.approx(2 / 50)
    vector, *_ = env.step(names.index("cancel_order"))
    assert dict(zip(env.names, vector, strict=True))["last_refused"] == 1


def test_equal_seeds_give_equal_vectors() -> None:
    """Two environments, one fresh and one used, agree on vectors, masks and rewards."""
    first, second = make(), make()
    second.reset(seed=99)
    second.step(0)
    for seed in (5, 6):
        (a, about), (b, other) = first.reset(seed=seed), second.reset(seed=seed)
        rng, ended = np.random.default_rng(seed), False
        while not ended:
            assert a.tobytes() == b.tobytes()
            assert about["action_mask"].tobytes() == other["action_mask"].tobytes()
            action = masked(about["action_mask"], rng)
            a, reward, terminated, truncated, about = first.step(action)
            b, same, *_, other = second.step(action)
            assert reward == same
            ended = terminated or truncated
    first.close()
    second.close()


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_it_passes_gymnasiums_checker(env: NumericObservation) -> None:
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize("vectorised", [SyncVectorEnv, AsyncVectorEnv])
def test_vector_environments_give_what_single_ones_give(vectorised: Callable[..., Any]) -> None:
    """Shared memory, the default of worker processes, hands out fresh vectors."""
    vector = vectorised([make, make])
    single = make()
    try:
        observations, infos = vector.reset(seed=21)
        expected, info = single.reset(seed=21)
        for _ in range(4):
            assert np.array_equal(observations[0], expected)
            assert np.array_equal(infos["action_mask"][0], info["action_mask"])
            actions = np.array([np.flatnonzero(mask)[0] for mask in infos["action_mask"]])
            observations, _, _, _, infos = vector.step(actions)
            expected, _, _, _, info = single.step(actions[0])
    finally:
        vector.close()
        single.close()


def test_the_spec_is_json_and_makes_the_same_again(env: NumericObservation) -> None:
    assert env.spec is not None
    text = env.spec.to_json()
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
    assert again.spec is not None and again.spec.to_json() == text
    assert again.reset(seed=8)[0].tobytes() == env.reset(seed=8)[0].tobytes()
    again.close()


def test_a_copy_and_a_pickle_go_on_from_the_same_point(env: NumericObservation) -> None:
    """The copy's encoder is the copy's menu, not the original's."""
    env.reset(seed=31)
    env.step(RefundMenu.names.index("ask_identity"))
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        found, *_ = other.step(RefundMenu.names.index("find_by_email"))
        assert dict(zip(env.names, found, strict=True))["customer_found"] == 1
        still, *_ = env.step(RefundMenu.names.index("resolve_refunded"))
        assert dict(zip(env.names, still, strict=True))["customer_found"] == 0
        other.close()


@pytest.mark.parametrize("encoder", [Length, "agent_envs.envs.refund.menu:RefundMenu"])
def test_an_encoder_of_its_own_is_fed_with_every_observation(encoder: Any) -> None:
    env = NumericObservation(gymnasium.make(ENV_ID, split="train"), encoder)
    first, _ = env.reset(seed=1)
    second, *_ = env.step({"tool": "read_policy", "arguments": {}})
    assert not np.array_equal(first, second)
    env.close()


@pytest.mark.parametrize("encoder", [TooMany, NotANumber, OutOfBounds])
def test_a_bad_vector_is_an_error_and_never_passed_on(encoder: Any) -> None:
    env = NumericObservation(gymnasium.make(ENV_ID, split="train"), encoder)
    with pytest.raises(MenuError):
        env.reset(seed=1)
    env.close()


def test_without_a_menu_or_encoder_it_says_what_to_do() -> None:
    with pytest.raises(MenuError, match="DiscreteActions"):
        NumericObservation(gymnasium.make(ENV_ID))
    with pytest.raises(MenuError, match="no encoder"):
        NumericObservation(gymnasium.make(ENV_ID), "builtins:dict")
