"""Pairing expected items with actual ones where order doesn't count.

Greedy pairing is wrong once an actual item fits several expected ones (tolerances, alternatives): the pairing that
counts is a largest one.
"""

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from typing import Any

from agent_envs.contract import expected as want


def largest_pairing(edges: Sequence[Sequence[int]], right: int) -> int:
    """Size of a largest one-to-one pairing, by augmenting paths.

    Args:
        edges: For each left item, the right items it may be paired with, as indices.
        right: Number of right items.

    Returns:
        How many left items can be paired at once.

    >>> largest_pairing([[0, 1], [0]], 2)
    2
    """
    return len(paired_items(edges, right))


def paired_items(edges: Sequence[Sequence[int]], right: int) -> set[int]:
    """Which left items a largest one-to-one pairing covers; arguments as in `largest_pairing`."""
    left_of: list[int | None] = [None] * right
    return {start for start in range(len(edges)) if _augment(edges, left_of, start)}


def _augment(edges: Sequence[Sequence[int]], left_of: list[int | None], start: int) -> bool:
    """Pair one more left item, moving others where needed; breadth first, so depth costs no stack."""
    came_from: dict[int, int] = {}
    right_of: dict[int, int] = {}
    queue = deque([start])
    while queue:
        left = queue.popleft()
        for right in edges[left]:
            if right in came_from:
                continue
            came_from[right] = left
            owner = left_of[right]
            if owner is not None:
                right_of[owner] = right
                queue.append(owner)
                continue
            # A free item: hand every item on the path to the one that reached it.
            step: int | None = right
            while step is not None:
                left = came_from[step]
                left_of[step] = left
                step = right_of.get(left)
            return True
    return False


def without_literals(expected: Sequence[want.Expected], actual: Sequence[Any]) -> tuple[list[want.Expected], list[Any]]:
    """Cancel items that fit one value only against that value, so that large tables cost no square of their rows."""
    needed = Counter(key for key in map(_literal, expected) if key is not None)
    left = []
    for found in actual:
        key = _key(found)
        if key is not None and needed[key] > 0:
            needed[key] -= 1
        else:
            left.append(found)
    rest = []
    for wanted in expected:
        key = _literal(wanted)
        if key is None or needed[key] > 0:
            rest.append(wanted)
            needed[key] -= 1
    return rest, left


def _literal(expected: want.Expected) -> Hashable:
    """The key of the only value that fits, or None where several may."""
    if isinstance(expected, want.Exact):
        return _key(expected.exact)
    if isinstance(expected, want.Fields) and not expected.open:
        values = expected.fields
        exact = {name: value.exact for name, value in values.items() if isinstance(value, want.Exact)}
        return _key(exact) if len(exact) == len(values) else None
    return None


def _key(value: Any) -> Hashable:
    """A scalar, or a record of scalars, with types; None for anything else."""
    if value is None or isinstance(value, bool | int | float | str):
        return type(value).__name__, value
    if isinstance(value, dict):
        items = [(name, _key(item)) for name, item in value.items() if not isinstance(item, dict)]
        if len(items) == len(value) and all(key is not None for _, key in items):
            return frozenset(items)
    return None
