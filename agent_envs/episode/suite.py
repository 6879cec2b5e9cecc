"""Suite: where a family's tasks come from. Files for the curated splits, a generator for unlimited training tasks."""

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_envs.contract import (
    AgentTask,
    Document,
    TaskError,
    TaskReferences,
    read_yaml,
    validate,
)

SPLITS = ("eval", "train")
TRAIN_SEEDS = 2**63
"""There are as many training tasks; a larger episode seed draws one of them too."""


class Suite:
    """The tasks of one family, each loaded when it is first asked for.

    ``<folder>/tasks/<name>.yaml`` holds the task ``<family>/<name>`` of the split ``eval``;
    ``<folder>/tasks/pins.json`` its pinned start digests; ``<folder>/references/<name>.yaml`` its reference and wrong
    runs, which only the oracle policy and the audit open. Tasks of the split ``train`` are ``<family>/train-<seed>``.
    """

    def __init__(
        self,
        family: str,
        folder: Path,
        *,
        expand: Callable[[Document], Mapping[str, Any]] | None = None,
        expand_references: Callable[[Document], Mapping[str, Any]] | None = None,
        generate: Callable[[int], AgentTask] | None = None,
        generate_references: Callable[[int], TaskReferences] | None = None,
    ) -> None:
        """Describe the family.

        Args:
            family: First part of every task id.
            folder: The family's folder.
            expand: Turns the family's short form of a task file into the data of an `AgentTask`.
            expand_references: The same for reference files.
            generate: Training task of a seed; the same for the same seed for ever.
            generate_references: Its reference runs.
        """
        self.family = family
        self.folder = folder
        self._expand = expand
        self._expand_references = expand_references
        self._generate = generate
        self._generate_references = generate_references
        self._tasks: dict[str, AgentTask] = {}

    @functools.cached_property
    def eval_ids(self) -> tuple[str, ...]:
        """Ids of the curated tasks, sorted.

        Raises:
            TaskError: There are none, or two differ only by case.
        """
        names = sorted(path.stem for path in (self.folder / "tasks").glob("*.yaml"))
        if not names:
            raise TaskError(f"{self.folder / 'tasks'}: no task files (*.yaml) here")
        folded: dict[str, str] = {}
        for name in names:
            if name.casefold() in folded:
                raise TaskError(
                    f"{self.folder / 'tasks'}: {name}.yaml and {folded[name.casefold()]}.yaml differ only by case"
                )
            folded[name.casefold()] = name
        return tuple(f"{self.family}/{name}" for name in names)

    @functools.cached_property
    def pins(self) -> dict[str, dict[str, Any]]:
        """Pinned start digests by task id, as ``agenteval pin`` writes them."""
        path = self.folder / "tasks" / "pins.json"
        data: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return data

    def task(self, task_id: str) -> AgentTask:
        """A task by id.

        Raises:
            TaskError: There is no such task, or its file is bad.
        """
        if (seed := self._train_seed(task_id)) is not None and self._generate is not None:
            return self._generate(seed)
        if task_id not in self._tasks:
            self._tasks[task_id] = self._load(task_id)
        return self._tasks[task_id]

    def draw(self, split: str, seed: int) -> AgentTask:
        """The task of an episode seed: one of the curated tasks, or the generated one."""
        if split == "train":
            if self._generate is None:
                raise TaskError(f"the family {self.family!r} has no training tasks; use split='eval'")
            return self._generate(seed % TRAIN_SEEDS)
        # SHA-256 rather than a modulus of the seed: neighbouring seeds must not walk through the list in order.
        index = int.from_bytes(hashlib.sha256(b"task:%d" % seed).digest()[:8], "big") % len(self.eval_ids)
        return self.task(self.eval_ids[index])

    def references(self, task_id: str) -> TaskReferences:
        """A task's reference and wrong runs: gold.

        Raises:
            TaskError: There are none, or the file is bad.
        """
        if (seed := self._train_seed(task_id)) is not None and self._generate_references is not None:
            return self._generate_references(seed)
        document = read_yaml(self._path("references", task_id))
        data = self._expand_references(document) if self._expand_references else document.data
        references = validate(document, TaskReferences, data)
        if references.task_id != task_id:
            message = f"expected {task_id!r}, as the file is named; got {references.task_id!r}"
            raise document.error(("task_id",), message)
        return references

    def _train_seed(self, task_id: str) -> int | None:
        prefix = f"{self.family}/train-"
        digits = task_id.removeprefix(prefix)
        if not (task_id.startswith(prefix) and digits.isdecimal() and len(digits) < 20):
            return None
        seed = int(digits)
        return seed if str(seed) == digits and seed < TRAIN_SEEDS else None  # one id a task: no leading zeros

    def _path(self, kind: str, task_id: str) -> Path:
        if task_id not in self.eval_ids:
            near = [known for known in self.eval_ids if task_id.rpartition("/")[2] in known][:3]
            hint = (
                f"Did you mean {', '.join(near)}?" if near else f"There are {len(self.eval_ids)}; try agenteval list."
            )
            raise TaskError(f"there is no task {task_id!r} in the family {self.family!r}. {hint}")
        return self.folder / kind / f"{task_id.rpartition('/')[2]}.yaml"

    def _load(self, task_id: str) -> AgentTask:
        document = read_yaml(self._path("tasks", task_id))
        data = dict(self._expand(document) if self._expand else document.data)
        pin = self.pins.get(task_id, {})
        if pin:
            data["initial_state"] = {**data["initial_state"], "fixture_digest": pin["fixture_digest"]}
            data["reset_check"] = pin["channels"]
        task = validate(document, AgentTask, data)
        if task.task_id != task_id:
            raise document.error(("task_id",), f"expected {task_id!r}, as the file is named; got {task.task_id!r}")
        return task
