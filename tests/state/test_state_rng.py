"""The random generator: pinned numbers, no bias, exact branching."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.contract import EnvironmentFault
from agent_envs.state import Rng


def seeded(seed: int) -> Rng:
    rng = Rng()
    rng.restore(seed)
    return rng


def test_golden_numbers() -> None:
    """Pinned: a change here changes every seeded episode."""
    rng = seeded(7)
    assert [rng.integer(10) for _ in range(10)] == [4, 3, 3, 6, 0, 9, 8, 6, 8, 0]
    assert seeded(7).integer(2**256) == int(hashlib.sha256(b"agenteval random 1\x007\x000").hexdigest(), 16)
    assert seeded(0).shuffled("abcdef") == ["c", "b", "f", "d", "a", "e"]
    assert seeded(2**70).fraction() == 0.18084151548573557
    assert seeded(1).choice(["x", "y", "z"]) == "x"


@given(st.integers(0, 2**80), st.integers(1, 2**256))
def test_numbers_are_in_range_and_repeat(seed: int, below: int) -> None:
    one, two = seeded(seed), seeded(seed)
    numbers = [one.integer(below) for _ in range(5)]
    assert numbers == [two.integer(below) for _ in range(5)]
    assert all(0 <= number < below for number in numbers)
    assert 0 <= one.fraction() < 1


@given(st.integers(0, 1000), st.lists(st.integers()))
def test_a_shuffle_keeps_the_elements(seed: int, elements: list[int]) -> None:
    assert Counter(seeded(seed).shuffled(elements)) == Counter(elements)


def test_every_number_is_about_equally_likely() -> None:
    rng = seeded(3)
    counts = Counter(rng.integer(5) for _ in range(10_000))
    assert all(1_800 < counts[number] < 2_200 for number in range(5))


def test_freeze_thaw_reset_digest() -> None:
    rng = seeded(5)
    start = rng.digest()
    assert rng.changes() == []
    rng.integer(100)
    frozen, point = rng.freeze(), rng.digest()
    assert point != start and len(rng.changes()) == 1
    later = [rng.integer(100) for _ in range(4)]
    other = seeded(5)
    other.thaw(frozen)
    assert other.digest() == point
    assert [other.integer(100) for _ in range(4)] == later
    rng.restore(5)
    assert rng.digest() == start
    assert seeded(6).digest() != start
    for damaged in (None, {"seed": 6, "blocks": 1}, {"seed": 5, "blocks": -1}):
        with pytest.raises(ValueError, match="no frozen point"):
            rng.thaw(damaged)


def test_misuse_is_named() -> None:
    with pytest.raises(EnvironmentFault, match="restore"):
        Rng().integer(2)
    rng = seeded(1)
    for below in (0, -1, 2**256 + 1, True, 1.5):
        with pytest.raises(ValueError, match="bound"):
            rng.integer(below)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        rng.choice([])
    for seed in (-1, True, "1", 1.0):
        with pytest.raises(ValueError, match="seed"):
            rng.restore(seed)  # type: ignore[arg-type]
