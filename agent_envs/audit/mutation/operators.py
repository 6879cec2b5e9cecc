"""Mutation operators on scripts, generic over families: each makes scripts that differ from a right one in one way.

Every script has its saved results written out (`agent_envs.audit.mutation.play.concrete`), so any list of its calls is
a valid script.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from agent_envs.audit.mutation.mutant import Calls, Family, Named
from agent_envs.contract import AgentTask, Call
from agent_envs.episode.tools import Tool
from agent_envs.episode.world import World

_MOST_OTHERS = 3
"""How many other values are tried in one place."""


def mutants(
    task: AgentTask, calls: Calls, tools: Mapping[str, Tool], family: Family, others: Mapping[str, Sequence[Any]]
) -> Iterator[Named]:
    """All mutants of a script; no two have the same calls, and none has the script's own.

    Args:
        task: The task.
        calls: The script, with saved results written out.
        tools: The task's tools by name.
        family: What the family says of them.
        others: Kind of thing to ids that may be named in place of the right one; see `other_ids`.
    """
    seen = {_key(calls)}
    made: tuple[Iterable[Named], ...] = (
        _positions(calls, tools),
        _wholesale(calls, tools),
        _values(calls, tools, family, others),
        _everywhere(calls, family, others),
        family.mutants(task, calls, others),
    )
    for source in made:
        for operator, what, mutated in source:
            if (key := _key(mutated)) not in seen:
                seen.add(key)
                yield operator, what, mutated


def _key(calls: Calls) -> tuple[bytes, ...]:
    return tuple(call.canonical() for call in calls)


def _positions(calls: Calls, tools: Mapping[str, Tool]) -> Iterator[Named]:
    """Calls dropped, doubled and moved."""
    last = len(calls) - 1
    for place, call in enumerate(calls):
        where = f"call {place + 1} ({call.tool})"
        rest = calls[:place] + calls[place + 1 :]
        yield "drop", where, rest
        yield "double", where, (*calls[: place + 1], *calls[place:])
        if place < last:
            swapped = (*calls[:place], calls[place + 1], call, *calls[place + 2 :])
            yield "reorder", f"{where} and call {place + 2} ({calls[place + 1].tool})", swapped
            yield "stop_early", f"after {where}", (*calls[: place + 1], calls[last])
            yield "hurry", f"{where} comes first", (call, *rest)
            yield "delay", f"{where} comes last but one", (*rest[:-1], call, rest[-1])
        for later in range(place + 1, last):
            if calls[later].tool in tools and tools[calls[later].tool].writes:
                moved = (*calls[:place], *calls[place + 1 : later + 1], call, *calls[later + 1 :])
                yield "postpone", f"{where} comes after call {later + 1} ({calls[later].tool})", moved


def _wholesale(calls: Calls, tools: Mapping[str, Tool]) -> Iterator[Named]:
    """Everything of one sort dropped: claims without deeds, deeds without words."""
    writes = {name for name, tool in tools.items() if tool.writes}
    yield "claim_only", "only what doesn't write is done", tuple(call for call in calls if call.tool not in writes)
    yield "writes_only", "only what writes is done", tuple(call for call in calls if call.tool in writes)
    for name in dict.fromkeys(call.tool for call in calls):
        yield "drop_tool", f"every {name} is dropped", tuple(call for call in calls if call.tool != name)


def _values(
    calls: Calls, tools: Mapping[str, Tool], family: Family, others: Mapping[str, Sequence[Any]]
) -> Iterator[Named]:
    """One argument of one call changed."""
    for place, call in enumerate(calls):
        for path, value in _leaves(call.arguments):
            where = f"call {place + 1} ({call.tool}), {'.'.join(map(str, path))}"
            for operator, other in _instead(path, value, _schema(tools, call, path), family, others):
                changed = call.model_copy(update={"arguments": _put(call.arguments, path, other)})
                yield operator, f"{where}: {value!r} -> {other!r}", (*calls[:place], changed, *calls[place + 1 :])
        required = tools[call.tool].required if call.tool in tools else ()
        for name in call.arguments:
            if name not in required:
                kept = {key: value for key, value in call.arguments.items() if key != name}
                changed = call.model_copy(update={"arguments": kept})
                where = f"call {place + 1} ({call.tool}) without {name}"
                yield "omit", where, (*calls[:place], changed, *calls[place + 1 :])


def _everywhere(calls: Calls, family: Family, others: Mapping[str, Sequence[Any]]) -> Iterator[Named]:
    """One value changed in every call alike: the run is coherent, and about the wrong thing."""
    found: dict[tuple[str, str], Any] = {}
    for call in calls:
        for path, value in _leaves(call.arguments):
            if path[-1] in family.ENTITIES or path[-1] in family.AMOUNTS:
                found.setdefault((str(path[-1]), repr(value)), value)
    for (name, _), value in found.items():
        for operator, other in _instead((name,), value, {}, family, others):
            changed = tuple(
                call.model_copy(update={"arguments": _replaced(call.arguments, name, value, other)}) for call in calls
            )
            yield f"{operator}_everywhere", f"{name}: {value!r} -> {other!r}", changed


def _instead(
    path: Sequence[Any], value: Any, schema: Mapping[str, Any], family: Family, others: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, Any]]:
    """Other values for one place, each with the operator's name."""
    name = path[-1]
    if name in family.AMOUNTS:
        for kind, amount in family.amounts(str(value)):
            yield f"amount_{kind}", amount
    elif name in family.ENTITIES:
        for other in _first(others.get(family.ENTITIES[name], ()), value):
            yield "entity", other
    elif choices := schema.get("enum"):
        for other in _first(choices, value):
            yield "choice", other
    elif type(value) is int:
        yield "number", value + 1
        yield "number", value - 1
    elif type(value) is bool:
        yield "flag", not value


def _first(values: Iterable[Any], but: Any) -> list[Any]:
    return [value for value in values if value != but][:_MOST_OTHERS]


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Paths to the scalars of named arguments; items of plain lists are left alone."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif not isinstance(value, list):
        yield path, value


def _put(value: Any, path: Sequence[Any], new: Any) -> Any:
    return {**value, path[0]: _put(value[path[0]], path[1:], new)} if path else new


def _replaced(value: Any, name: str, old: Any, new: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: new if key == name and type(item) is type(old) and item == old else _replaced(item, name, old, new)
            for key, item in value.items()
        }
    return value


def _schema(tools: Mapping[str, Tool], call: Call, path: Sequence[str]) -> Mapping[str, Any]:
    """The JSON Schema of one argument, with ``... | None`` and references followed; empty when there is none."""
    if call.tool not in tools:
        return {}
    root = tools[call.tool].schema
    node: Mapping[str, Any] = root
    for name in path:
        node = _plain(node.get("properties", {}).get(name, {}), root)
    return node


def _plain(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            node = option
            break
    if "$ref" in node:
        found: Mapping[str, Any] = root.get("$defs", {}).get(node["$ref"].rpartition("/")[2], {})
        return found
    return node


def other_ids(
    world: World, task: AgentTask, events: Sequence[Mapping[str, Any]], family: Family
) -> dict[str, list[Any]]:
    """Ids by kind: those the run saw, those of the task's own rows, and some that have nothing to do with it.

    Args:
        world: The world at the task's start or later.
        task: The task.
        events: Log of a right run.
        family: Which names hold ids of which kind.
    """
    found: dict[str, dict[Any, None]] = {kind: {} for kind in family.ENTITIES.values()}
    _collect([[event.get("arguments"), event.get("result")] for event in events], family, found)
    _collect([patch.insert for patch in task.initial_state.patch], family, found)
    if world.database is not None:
        for name, kind in sorted(family.ENTITIES.items()):
            for statement in _first_ids(world.database.fixture.metadata, name):
                for row in world.database.all(statement):
                    found[kind][row[name]] = None
    return {kind: list(values) for kind, values in found.items()}


def _collect(value: Any, family: Family, found: dict[str, dict[Any, None]]) -> None:
    if isinstance(value, dict):
        for key in sorted(value):
            item = value[key]
            if key in family.ENTITIES and isinstance(item, str | int) and not isinstance(item, bool):
                found[family.ENTITIES[key]][item] = None
            else:
                _collect(item, family, found)
    elif isinstance(value, list):
        for item in value:
            _collect(item, family, found)


@functools.cache
def _first_ids(metadata: sa.MetaData, name: str) -> tuple[sa.Select[Any], ...]:
    """Statements for the first two ids of a table of which ``name`` is the key."""
    tables = (table for table in metadata.sorted_tables if [column.name for column in table.primary_key] == [name])
    return tuple(sa.select(table.c[name]).order_by(table.c[name]).limit(2) for table in tables)
