"""Families with one fault each, planted on purpose: copies of the refund family that an audit must not let pass.

Importing this module registers them as ``planted/<fault>-v1``, so that probe processes find them by
``planted:planted/<fault>-v1``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

import gymnasium
from pydantic import Field

from agent_envs.contract import AgentTask, TaskReferences
from agent_envs.envs.refund.env import SUITE, RefundEnv
from agent_envs.envs.refund.schema import metadata
from agent_envs.envs.refund.world import Office
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.tools import tool
from agent_envs.wrappers import compose

TASK = "refund/lamp-in-trieste"
SUMS = {"amount", "quantity", "returned_quantity", "debit", "credit", "refunded"}
Edit = Callable[[dict[str, Any]], None]


class EditedSuite:
    """The refund suite with edits to every task and its references."""

    def __init__(self, edit: Edit | None = None, edit_references: Edit | None = None) -> None:
        self._edit, self._edit_references = edit, edit_references
        self._tasks: dict[str, AgentTask] = {}

    def task(self, task_id: str) -> AgentTask:
        if task_id not in self._tasks:
            data = SUITE.task(task_id).as_json()
            if self._edit is not None:
                self._edit(data)
            self._tasks[task_id] = AgentTask.model_validate(data)
        return self._tasks[task_id]

    def draw(self, split: str, seed: int) -> AgentTask:
        return self.task(SUITE.draw(split, seed).task_id)

    def references(self, task_id: str) -> TaskReferences:
        data = SUITE.references(task_id).as_json()
        if self._edit_references is not None:
            self._edit_references(data)
        return TaskReferences.model_validate(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(SUITE, name)


def loosened(task: dict[str, Any]) -> None:
    """Any amount will do."""
    for item in task["outcome"]:
        for change in item["expect"] if item["check"] == "changes" else ():
            for column in change["values"]:
                if column in SUMS:
                    change["values"][column] = {"any": True}


def no_frame(task: dict[str, Any]) -> None:
    """More may be added than was asked for: a row of any table."""
    for item in task["outcome"]:
        if item["check"] == "changes":
            item["allow"] += [{"table": table, "kind": "insert"} for table in sorted(metadata.tables)]


def always_true(task: dict[str, Any]) -> None:
    """The identity constraint watches a call that nobody makes."""
    for item in task["constraints"]:
        if item["name"] == "identity":
            item["then"] = {"tool": "read_policy", "arguments": {"section": {"exact": "no such section"}}}


def free_for_all(task: dict[str, Any]) -> None:
    """Success for saying so."""
    task["outcome"] = [
        {"check": "answer", "name": "changes", "field": "outcome", "expect": {"exact": "completed"}},
    ]
    task["constraints"], task["rubric"] = [], []


def failing_reference(references: dict[str, Any]) -> None:
    """The first reference forgets to close the ticket."""
    calls = references["references"][0]["calls"]
    references["references"][0]["calls"] = [call for call in calls if call["tool"] != "resolve_ticket"]


def raising_reference(references: dict[str, Any]) -> None:
    """The first reference asks for an order that isn't there."""
    references["references"][0]["calls"].insert(0, {"tool": "get_order", "arguments": {"order_id": "W0"}})


def misnamed_reason(references: dict[str, Any]) -> None:
    """Every wrong run is said to fail a check that holds in it."""
    for run in references["wrong"]:
        run["fails"] = "confirm_credit"


class Plain(RefundEnv):
    """The refund family without a fault of its own."""


class Leaking(RefundEnv):
    """Counts its episodes where no channel sees it, and lets the agent see the count."""

    episodes = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        type(self).episodes += 1
        return {"text": f"{observation['text']}\nepisode {self.episodes}"}, info


class HalfReset(RefundEnv):
    """Doesn't restore the rate limits."""

    def make_world(self) -> Office:
        office = super().make_world()
        restore, limits = office.rate_limits.restore, office.rate_limits
        done: list[bool] = []

        def once() -> None:
            if not done:
                restore()
            done.append(True)

        limits.restore = once  # type: ignore[method-assign]
        return office


class WallClock(RefundEnv):
    """Tells the time of the machine."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        return {"text": f"{observation['text']}\n{int(time.time()) // 86400} days"}, info


class CalendarClock(RefundEnv):
    """Tells the date of the machine, in UTC and to the day, so that no time zone and no delay gives it away."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        return {"text": f"{observation['text']}\n{datetime.now(UTC).date()}"}, info


class HashOrder(RefundEnv):
    """Tells the tables in the order of a set."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        names = {"orders", "payments", "refunds", "tickets", "customers", "credits", "returns"}
        return {"text": f"{observation['text']}\n{' '.join(names)}"}, info


class GoldInInfo(RefundEnv):
    """Tells in ``info`` what kind of task it is."""

    def _info(self) -> dict[str, Any]:
        return super()._info() | {"kind": self.episode.task.slice_labels.get("kind", "")}


class ReferenceInInfo(RefundEnv):
    """Tells in ``info`` what the reference does next."""

    def _info(self) -> dict[str, Any]:
        calls = self.suite.references(self.episode.task.task_id).references[0].calls
        return super()._info() | {"hint": str(calls[min(self.episode.step, len(calls) - 1)].arguments)}


@tool(reads=("ledger",))
def get_ledger(world: Office, order_id: Annotated[str, Field(max_length=200)]) -> dict[str, Any]:
    """An order's ledger entries, where the order is written without quotes."""
    if "'" in order_id:
        raise ValueError('syntax error near "\'"')
    return {"entries": []}


class Fragile(RefundEnv):
    """Has a tool that breaks at a quote, as one that pastes text into a query does."""

    tools = (*(item for item in RefundEnv.tools if item.name != "get_ledger"), get_ledger)


class Dying(RefundEnv):
    """Takes its worker process along, as the kernel does when memory runs out."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        if multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().reset(seed=seed, options=options)


class Sharing(RefundEnv):
    """Hands out one ``info`` again and again, so that what a policy writes into it stays."""

    shared: ClassVar[dict[str, Any]] = {}

    def _info(self) -> dict[str, Any]:
        known = super()._info()
        if known["step"] == 0:
            self.shared.clear()
        for key, value in known.items():
            self.shared[key] = value if key != "user" else self.shared.get(key, value)
        return self.shared


class Telling(gymnasium.Wrapper[Observation, Any, Observation, Any]):
    """Offers what the reference does as an attribute."""

    @property
    def hint(self) -> str:
        core = self.unwrapped
        assert isinstance(core, AgentEnv)
        return str(core.suite.references(core.task.task_id).references[0].calls)


FAMILIES: Mapping[str, tuple[type[AgentEnv], EditedSuite | None]] = {
    "sound": (Plain, None),
    "loosened": (Plain, EditedSuite(loosened)),
    "noframe": (Plain, EditedSuite(no_frame)),
    "alwaystrue": (Plain, EditedSuite(always_true)),
    "freeforall": (Plain, EditedSuite(free_for_all)),
    "failingreference": (Plain, EditedSuite(None, failing_reference)),
    "raisingreference": (Plain, EditedSuite(None, raising_reference)),
    "misnamed": (Plain, EditedSuite(None, misnamed_reason)),
    "leaking": (Leaking, None),
    "halfreset": (HalfReset, None),
    "wallclock": (WallClock, None),
    "calendarclock": (CalendarClock, None),
    "hashorder": (HashOrder, None),
    "dying": (Dying, None),
    "fragile": (Fragile, None),
    "sharing": (Sharing, None),
    "goldininfo": (GoldInInfo, None),
    "referenceininfo": (ReferenceInInfo, None),
    "referenceinwrapper": (Plain, None),
}


def make(*, fault: str, render_mode: str | None = None) -> gymnasium.Env[Observation, Any]:
    """Make a family by its fault."""
    kind, suite = FAMILIES[fault]
    made = type(f"{kind.__name__}_{fault}", (kind,), {} if suite is None else {"suite": suite})
    env = compose(made(render_mode=render_mode))
    return Telling(env) if fault == "referenceinwrapper" else env


make.metadata = RefundEnv.metadata  # type: ignore[attr-defined]

for _fault in FAMILIES:
    if f"planted/{_fault}-v1" not in gymnasium.registry:
        gymnasium.register(f"planted/{_fault}-v1", entry_point="planted:make", kwargs={"fault": _fault})
