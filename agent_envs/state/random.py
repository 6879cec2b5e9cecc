"""Random numbers that are the same everywhere: they depend on the seed alone, not on a library's version.

Block number n of a seed is SHA-256 of ``agenteval random 1``, a zero byte, the seed in decimal, a zero byte and n in
decimal. A number below b takes the first bits of a block, as many as b - 1 has; a block whose number isn't below b is
passed over, so every number is equally likely. The generator's whole state is the number of the next block.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

from agent_envs.contract import Change, EnvironmentFault, digest
from agent_envs.state.channel import StateChannel

T = TypeVar("T")

_BLOCK_BITS = 256


class Rng(StateChannel):
    """A counter-based generator, seeded by `restore`."""

    name = "rng"

    def __init__(self) -> None:
        """Make a generator that has no seed yet."""
        self._seed: int | None = None
        self._counter = 0
        self._digest = ""
        self._digested: tuple[int | None, int] = (None, -1)

    def restore(self, seed: int) -> None:
        """Start the stream of a seed.

        Raises:
            ValueError: The seed is negative or not a whole number.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f"seed {seed!r} is not a whole number from 0")
        self._seed = int(seed)
        self._counter = 0

    def integer(self, below: int) -> int:
        """A number from 0 to ``below - 1``, each equally likely.

        Raises:
            ValueError: ``below`` isn't from 1 to 2**256.
        """
        if isinstance(below, bool) or not isinstance(below, int) or not 1 <= below <= 2**_BLOCK_BITS:
            raise ValueError(f"integer(below={below!r}): the bound must be a whole number from 1 to 2**256")
        unused = _BLOCK_BITS - (below - 1).bit_length()
        while True:
            number = self._block() >> unused
            if number < below:
                return number

    def choice(self, sequence: Sequence[T]) -> T:
        """One of the elements, each equally likely.

        Raises:
            ValueError: There is none.
        """
        if not sequence:
            raise ValueError("choice() from an empty sequence; check that there is something to choose")
        return sequence[self.integer(len(sequence))]

    def shuffled(self, sequence: Sequence[T]) -> list[T]:
        """The elements in a new order, each order equally likely."""
        elements = list(sequence)
        for last in range(len(elements) - 1, 0, -1):
            other = self.integer(last + 1)
            elements[last], elements[other] = elements[other], elements[last]
        return elements

    def fraction(self) -> float:
        """A number of 53 bits from 0 (included) to 1 (not included)."""
        return self.integer(2**53) / 2**53

    def digest(self) -> str:
        """Digest of seed and position."""
        if self._digested != (self._seed, self._counter):
            self._digest, self._digested = digest(self.freeze()), (self._seed, self._counter)
        return self._digest

    def changes(self) -> list[Change]:
        """One change when numbers were drawn."""
        if not self._counter:
            return []
        before, after = {"blocks": 0}, {"blocks": self._counter}
        return [Change(channel=self.name, table="rng", key={}, before=before, after=after)]

    def freeze(self) -> dict[str, Any]:
        """Seed and position."""
        return {"seed": self._seeded(), "blocks": self._counter}

    def thaw(self, frozen: Any) -> None:
        """Go back to a frozen point; see `StateChannel.thaw`."""
        blocks = frozen.get("blocks") if isinstance(frozen, dict) else None
        if type(blocks) is not int or blocks < 0 or frozen.get("seed") != self._seeded():
            raise ValueError(f"{frozen!r} is no frozen point of a generator with seed {self._seeded()}")
        self._counter = blocks

    def probe(self) -> None:
        """A generator works once it is seeded."""
        self._seeded()

    def close(self) -> None:
        """Nothing is held."""

    def _block(self) -> int:
        name = b"agenteval random 1\0%d\0%d" % (self._seeded(), self._counter)
        self._counter += 1
        return int.from_bytes(hashlib.sha256(name).digest(), "big")

    def _seeded(self) -> int:
        if self._seed is None:
            raise EnvironmentFault("the random generator has no seed; call restore() first")
        return self._seed
