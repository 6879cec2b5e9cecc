"""Canaries: a copy of a task whose hidden parts carry strings found nowhere else.

The copy means the same (an expected value becomes "this value, or the canary"), so its reference still passes. If a
canary turns up in anything a policy can see, that part of the task has leaked.
"""

from typing import Any

from agent_envs.contract import AgentTask, TaskReferences, digest
from agent_envs.episode.suite import Suite


class Canaries:
    """A task and its references with canaries in them.

    Attributes:
        task: The copy of the task.
        references: The copy of its references; only for finding them, never played.
        places: Canary to the place it stands at.
    """

    def __init__(self, task: AgentTask, references: TaskReferences, seed: int) -> None:
        """Plant canaries in everything that ``task.public()`` and the talk don't show."""
        self._salt = [task.task_id, seed]
        self.places: dict[str, str] = {}
        self.task = AgentTask.model_validate(self._task(task.as_json()))
        self.references = TaskReferences.model_validate(self._references(references.as_json()))

    def new(self, place: str) -> str:
        """A canary for a place."""
        canary = f"canary{digest([*self._salt, place])[:16]}"
        self.places[canary] = place
        return canary

    def _task(self, data: dict[str, Any]) -> dict[str, Any]:
        # The start digests cover the user's script, which the copy changes; the rows stay as they are.
        data["reset_check"] = {}
        data["slice_labels"] = {name: self.new(f"slice_labels.{name}") for name in data["slice_labels"]}
        data["grader_manifest"] = [*data["grader_manifest"], self.new("grader_manifest")]
        data["source"] = self.new("source")
        names = {}
        for part in ("outcome", "constraints"):
            for item in data[part]:
                names[item["name"]] = item["name"] = self.new(f"{part}.{item['name']}")
        for item in data["rubric"]:
            item["check"] = names[item["check"]]
        for item in data["outcome"]:
            self._outcome(item)
        if (user := data.get("user")) is not None:
            user["persona"] = f"{user['persona']} {self.new('user.persona')}"
            turn = [user["turn"]["becomes"]] if user.get("turn") else []
            for number, wish in enumerate([*user["wishes"], *turn]):
                for kind in ("accepts", "declines"):
                    for terms in wish[kind]:
                        self._widen(terms["proposal"], f"user.wishes.{number}.{kind}")
        return data

    def _outcome(self, item: dict[str, Any]) -> None:
        place = f"outcome.{self.places[item['name']].partition('.')[2]}"
        if item["check"] == "changes":
            for group in ("expect", "allow"):
                for change in item[group]:
                    self._widen(change["values"], f"{place}.{group}.{change['table']}")
            for number, changes in enumerate(item["either"]):
                for change in changes:
                    self._widen(change["values"], f"{place}.either.{number}.{change['table']}")
        elif "expect" in item:
            self._widen(item, place, ("expect",))

    def _widen(self, expected: dict[str, Any], place: str, names: tuple[str, ...] = ()) -> None:
        for name in names or tuple(expected):
            canary = self.new(f"{place}.{name} #{len(self.places)}")
            expected[name] = {"one_of": [expected[name], {"exact": canary}]}

    def _references(self, data: dict[str, Any]) -> dict[str, Any]:
        for kind in ("references", "wrong"):
            for run in data[kind]:
                place = f"{kind}.{run['name']}"
                run["name"] = self.new(place)
                if "reason" in run:
                    run["reason"] = self.new(f"{place}.reason")
                for number, call in enumerate(run["calls"]):
                    call["arguments"]["canary"] = self.new(f"{place}.calls.{number}")
        return data


class PlantedSuite:
    """A suite in which one task is the copy; everything else is the suite's own."""

    def __init__(self, suite: Suite, canaries: Canaries) -> None:
        """Stand before ``suite``."""
        self._suite, self._canaries = suite, canaries

    def task(self, task_id: str) -> AgentTask:
        """The copy, or another task."""
        planted = self._canaries.task
        return planted if task_id == planted.task_id else self._suite.task(task_id)

    def references(self, task_id: str) -> TaskReferences:
        """The copy's references, or another task's."""
        planted = self._canaries.references
        return planted if task_id == planted.task_id else self._suite.references(task_id)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a suite has."""
        return getattr(self._suite, name)
