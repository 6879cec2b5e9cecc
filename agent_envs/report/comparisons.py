"""Systems against each other, paired by task, and models crossed with harnesses."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_envs import statistics
from agent_envs.campaign.spec import diff, only_model
from agent_envs.contract import digest
from agent_envs.contract.system import SystemSpec
from agent_envs.report import estimates
from agent_envs.report.content import Comparison, Difference, Estimate, Factorial, Role, SystemNumbers
from agent_envs.report.records import Floats, Records

MOST_DIFFERENCES = 40
_REPLICATES = 2000


def compare_all(records: Records, systems: Sequence[SystemNumbers], seed: int) -> tuple[Comparison, ...]:
    """Every pair in which at least one is a candidate and none an oracle, with Holm's adjustment over all of them.

    A pair with a withheld headline is listed without numbers: what may not be read alone may not be read as a
    difference either.
    """
    roles: Mapping[str, Role] = {system.name: system.role for system in systems}
    withheld = {system.name for system in systems if system.headline.withheld}
    pairs = [
        pair
        for pair in itertools.combinations(records.systems, 2)
        if "system" in (roles[pair[0]], roles[pair[1]]) and "oracle" not in (roles[pair[0]], roles[pair[1]])
    ]
    rates = {name: _rates(records, name) for name in records.systems}
    weight = np.where(
        records.lock.manifest.headline.average == "weighted", records.weights, np.ones(len(records.tasks))
    )
    found = []
    for a, b in pairs:
        hidden = sorted({a, b} & withheld)
        note = f"withheld, as is the headline of {' and '.join(hidden)}" if hidden else ""
        specs = records.lock.systems[a], records.lock.systems[b]
        found.append(pair((a, rates[a], specs[0]), (b, rates[b], specs[1]), weight, seed, note))
    return adjusted(found)


def pair(
    first: tuple[str, Floats, SystemSpec],
    second: tuple[str, Floats, SystemSpec],
    weight: Floats,
    seed: int,
    withheld: str = "",
) -> Comparison:
    """Compare two systems on the same tasks.

    Args:
        first: Name, figure of each task (NaN where undefined), and spec.
        second: The same of the other, tasks in the same order.
        weight: Weight of each task.
        seed: Seed of the permutation test where it can't be exact.
        withheld: Why no numbers may be given; empty when they may.
    """
    (a, one, spec), (b, two, other) = first, second
    parts = diff(spec, other)
    both = ~np.isnan(one) & ~np.isnan(two) & (weight > 0)
    kind = "model comparison" if parts and only_model(parts) else "system comparison"
    differences = tuple(Difference(path=part.path, before=part.before, after=part.after) for part in parts)
    common: dict[str, Any] = {
        "a": a,
        "b": b,
        "kind": kind if parts else "same system twice",
        "differs": tuple(sorted({part.path.partition(".")[0] for part in parts})),
        "differences": differences[:MOST_DIFFERENCES],
        "differences_total": len(differences),
        "left_out": int((~both).sum()),
    }
    if withheld or not both.any():
        empty = Estimate(value=None, note=withheld or "no task has a valid attempt of both")
        return Comparison(**common, difference=empty, p=None, exact=False, p_holm=None, won=0, lost=0, tied=0)
    gap = (two - one)[both]
    found = statistics.paired_difference(one[both], two[both], weight[both])
    test = statistics.sign_flip_test(gap, weight[both], seed=seed)
    return Comparison(
        **common,
        difference=estimates.estimate(found),
        p=estimates.known(test.p_value),
        exact=test.method == "exact",
        p_holm=None,
        won=int((gap > 1e-12).sum()),
        lost=int((gap < -1e-12).sum()),
        tied=int((np.abs(gap) <= 1e-12).sum()),
    )


def adjusted(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The same comparisons with Holm's adjustment over all of them."""
    raw = [math.nan if item.p is None else item.p for item in found]
    adjusted = statistics.holm(raw).tolist() if raw else []
    return tuple(
        item.model_copy(update={"p_holm": estimates.known(p)}) for item, p in zip(found, adjusted, strict=True)
    )


def _rates(records: Records, name: str) -> Floats:
    """The declared figure of each task; NaN where it's undefined."""
    declared = records.lock.manifest.headline
    counts = estimates.count(records, records.columns.system == records.systems.index(name))
    return statistics.per_task(counts.valid, counts.passed, [declared.k], estimates.KINDS[declared.metric])[:, 0]


def factorial(records: Records, systems: Sequence[SystemNumbers], seed: int) -> Factorial | None:
    """Models by harnesses, where the campaign has every combination of two or more of each, once, and none withheld."""
    withheld = {system.name for system in systems if system.headline.withheld}
    cells: dict[tuple[str, str], str] = {}
    models: dict[str, str] = {}
    harnesses: dict[str, str] = {}
    for name in records.systems:
        spec = records.lock.systems[name]
        if not spec.model or not spec.harness or spec.policy.get("oracle"):
            continue
        key = digest(spec.model), digest(spec.harness)
        if key in cells or name in withheld:
            return None  # two systems in one cell differ in something else: no two-way layout
        cells[key] = name
        models.setdefault(key[0], estimates.named(spec.model))
        harnesses.setdefault(key[1], estimates.named(spec.harness))
    if len(models) < 2 or len(harnesses) < 2 or len(cells) != len(models) * len(harnesses):
        return None
    counts = [
        [estimates.count(records, records.columns.system == records.systems.index(cells[m, h])) for h in harnesses]
        for m in models
    ]
    means = np.array(
        [[np.where(cell.valid > 0, cell.passed / np.maximum(cell.valid, 1), np.nan) for cell in row] for row in counts]
    ).transpose(2, 0, 1)
    complete = ~np.isnan(means).any(axis=(1, 2))
    if not complete.any():
        return None
    found = statistics.layout(
        means, estimates.weights(records, counts[0][0]), seed=seed, replicates=_REPLICATES, partial=True
    )
    rows, columns = _unique(models), _unique(harnesses)
    n = [[int(cell.valid[complete].sum()) for cell in row] for row in counts]
    table = tuple(
        tuple(_effect(found.cells, (i, j), found.tasks, n[i][j]) for j in range(len(columns))) for i in range(len(rows))
    )
    effects = [(f"model {name}", _effect(found.models, (i,), found.tasks)) for i, name in enumerate(rows)]
    effects += [(f"harness {name}", _effect(found.harnesses, (j,), found.tasks)) for j, name in enumerate(columns)]
    effects += [
        (f"{model} in {harness}, beyond both", _effect(found.interaction, (i, j), found.tasks))
        for i, model in enumerate(rows)
        for j, harness in enumerate(columns)
    ]
    shares, note = _shares(records, [[cells[m, h] for h in harnesses] for m in models])
    return Factorial(
        models=rows,
        harnesses=columns,
        cells=table,
        effects=tuple(effects),
        shares=shares,
        tasks=found.tasks,
        note=note,
    )


def _shares(records: Records, names: Sequence[Sequence[str]]) -> tuple[tuple[tuple[str, float], ...], str]:
    """Variance shares from the tasks with every planned attempt valid in every cell."""
    table, attempts = records.columns, records.lock.manifest.attempts
    outcomes = np.full((len(records.tasks), len(names), len(names[0]), attempts), np.nan)
    for i, row in enumerate(names):
        for j, name in enumerate(row):
            chosen = (table.system == records.systems.index(name)) & table.valid
            outcomes[table.task[chosen], i, j, table.attempt[chosen]] = table.success[chosen]
    whole = outcomes[~np.isnan(outcomes).any(axis=(1, 2, 3))]
    if len(whole) < 2:
        return (), "Variance shares need two tasks with every attempt valid."
    found = statistics.components(whole)
    named = ((name, estimates.known(value)) for name, value in found.share.items())
    shares = tuple((name, share) for name, share in named if share is not None)
    note = f"Variance shares from {len(whole)} tasks with every attempt valid."
    if found.truncated:
        note += f" Estimated below zero and set to zero: {', '.join(found.truncated)}."
    return shares, note


def _effect(effect: statistics.Effect, place: tuple[int, ...], tasks: int, n: int = 0) -> Estimate:
    value, low, high = (estimates.known(float(array[place])) for array in (effect.value, effect.low, effect.high))
    return Estimate(value=value, low=low, high=high, n=n, tasks=tasks)


def _unique(named: Mapping[str, str]) -> tuple[str, ...]:
    """Names that tell apart what has one name."""
    names = list(named.values())
    return tuple(name if names.count(name) == 1 else f"{name} {key[:8]}" for key, name in named.items())
