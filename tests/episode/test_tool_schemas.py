"""Tools: what an agent is told about them, and what it may send, both come from the signature."""

# ruff: noqa: D205, D417 (a docstring as agents read it)

from __future__ import annotations

import pickle
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from agent_envs.contract import ToolError
from agent_envs.episode.spaces import ToolCall
from agent_envs.episode.tools import Tool, tool


@tool(reads=("orders",), writes=("notes",))
def example(
    world: Any,
    order_id: Annotated[str, Field(max_length=5)],
    kind: Literal["a", "b"] = "a",
    amounts: Annotated[list[float], Field(max_length=3)] | None = None,
    count: int = 1,
) -> dict[str, Any]:
    """Do something
    to an order.

    More about it.

    Args:
        order_id: Number of the order,
            such as "W1".
        count: How often.
    """
    return {"order_id": order_id, "kind": kind, "amounts": amounts, "count": count}


def test_name_descriptions_and_schema_come_from_the_function() -> None:
    assert (example.name, example.reads, example.writes) == ("example", ("orders",), ("notes",))
    assert example.description == "Do something to an order. More about it."
    properties = example.schema["properties"]
    assert list(properties) == ["order_id", "kind", "amounts", "count"]
    assert properties["order_id"]["description"] == 'Number of the order, such as "W1".'
    assert example.schema["required"] == ["order_id"] == list(example.required)
    assert example.schema["additionalProperties"] is False and "title" not in str(example.schema)


def test_defaults_are_filled_in_and_the_arguments_kept() -> None:
    given = {"order_id": "W1"}
    assert example.call(None, given) == {"order_id": "W1", "kind": "a", "amounts": None, "count": 1}
    assert given == {"order_id": "W1"}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "order_id"),
        ({"order_id": "toolong"}, "order_id"),
        ({"order_id": b"W1"}, "order_id"),
        ({"order_id": "W1", "kind": "c"}, "kind"),
        ({"order_id": "W1", "kind": "A"}, "kind"),
        ({"order_id": "W1", "amounts": [1.0] * 4}, "amounts"),
        ({"order_id": "W1", "amounts": [float("nan")]}, "amounts"),
        ({"order_id": "W1", "amounts": ["1"]}, "amounts"),
        ({"order_id": "W1", "count": True}, "count"),
        ({"order_id": "W1", "count": 1.0}, "count"),
        ({"order_id": "W1", "count": 2**63}, "count"),
        ({"order_id": "W1", "count": -(2**63) - 1}, "count"),
        ({"order_id": "W1", "count": 10**5000}, "count"),
        ({"order_id": "a\x00b"}, "order_id"),
        ({"order_id": "\ud835"}, "order_id"),
        ({"order_id": "W1", "world": 1}, "world"),
    ],
    ids=range(16),
)
def test_what_does_not_fit_is_refused_by_name(arguments: dict[str, Any], field: str) -> None:
    """B182, B018."""
    with pytest.raises(ToolError, match=field) as caught:
        example.validate(arguments)
    assert len(str(caught.value)) < 2000
    assert not example.accepts(arguments)


def test_the_largest_storable_numbers_pass() -> None:
    for number in (2**63 - 1, -(2**63)):
        assert example.validate({"order_id": "W1", "count": number})["count"] == number


def test_a_flood_of_bad_arguments_gets_a_short_answer() -> None:
    """B122."""
    with pytest.raises(ToolError) as caught:
        example.validate({f"key {number}": "x" * 10_000 for number in range(1000)})
    assert len(str(caught.value)) < 2000 and "more" in str(caught.value)


def test_tools_are_pickled_by_name(tiny: Any) -> None:
    assert pickle.loads(pickle.dumps(tiny.look)) is tiny.look
    assert isinstance(example, Tool) and example.implementation_digest != tiny.look.implementation_digest


def test_samples_fit_the_schema() -> None:
    space = ToolCall([example], seed=1)
    samples = [space.sample() for _ in range(200)]
    assert all(space.contains(sample) for sample in samples)
    assert {len(sample["arguments"]) for sample in samples} == {1, 2, 3, 4}
    with pytest.raises(ValueError, match="mask"):
        space.sample(mask=[1])
