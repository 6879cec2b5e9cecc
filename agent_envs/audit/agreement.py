"""Krippendorff's alpha for ordinal labels: how far reviewers agree beyond chance, missing labels allowed."""

from collections import Counter
from collections.abc import Iterable, Sequence


def ordinal_alpha(units: Iterable[Sequence[int]]) -> float | None:
    """Alpha over units, each with the labels it got; 1 is perfect agreement, 0 what chance gives.

    The difference of two labels is the number of labels ranked between them, halves for the two themselves, squared
    (Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011).

    Args:
        units: For each unit the labels of its reviewers, in any order. A unit with fewer than two is not comparable
            and left out.

    Returns:
        Alpha; None where it is undefined: no comparable unit, or only one label in use.
    """
    pairs: Counter[tuple[int, int]] = Counter()
    weights: dict[tuple[int, int], float] = {}
    for labels in units:
        if len(labels) < 2:
            continue
        for position, one in enumerate(labels):
            for other_position, two in enumerate(labels):
                if position != other_position:
                    pairs[one, two] += 1
                    weights[one, two] = weights.get((one, two), 0.0) + 1 / (len(labels) - 1)
    values = sorted({one for one, _ in pairs})
    if len(values) < 2:
        return None
    totals = {value: sum(weights.get((value, other), 0.0) for other in values) for value in values}
    everything = sum(totals.values())
    observed = expected = 0.0
    for low in values:
        for high in values:
            between = sum(totals[value] for value in values if min(low, high) <= value <= max(low, high))
            distance = 0.0 if low == high else (between - (totals[low] + totals[high]) / 2) ** 2
            observed += weights.get((low, high), 0.0) * distance
            expected += totals[low] * totals[high] * distance
    return 1.0 - (everything - 1) * observed / expected
