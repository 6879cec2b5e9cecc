"""Task files: YAML in, validated models out; a bad file is refused with file, line, field and what was expected."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import ValidationError

from agent_envs.contract.errors import TaskError
from agent_envs.contract.model import Model
from agent_envs.contract.task import AgentTask

M = TypeVar("M", bound=Model)
Location = tuple[str | int, ...]
MAX_BYTES = 1_000_000
_MOST_LEVELS = 40
_MOST_DIGITS = 100


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML whose plain scalars are JSON's: dates, times, ``yes``, ``007`` and ``.nan`` stay text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


class Document(NamedTuple):
    """A YAML file's content, and the line of each place in it."""

    path: Path
    data: Any
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """Line (from 1) of a place, or of the nearest place around it."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]

    def error(self, location: Location, message: str) -> TaskError:
        """An error that names file, line and field."""
        field = ".".join(str(part) for part in location) or "the document"
        return TaskError(f"{self.path}, line {self.line(location)}, {field}: {message}")


def read_yaml(path: Path) -> Document:
    """Read one YAML document, a mapping.

    Raises:
        TaskError: The file can't be read, isn't a YAML mapping of plain data, has a key twice, an alias, a tag or a
            number that isn't finite, is nested deeper than 40 levels, or is larger than 1 MB.
    """
    try:
        if path.exists() and not path.is_file():
            raise TaskError(f"{path}: not a file")
        if path.stat().st_size > MAX_BYTES:
            raise TaskError(f"{path}: {path.stat().st_size} bytes; a task file holds at most {MAX_BYTES}")
        text = path.read_text(encoding="utf-8-sig")
        loader = _Loader(text)
        try:
            _plain_only(path, text)
            node = loader.get_single_node()
            lines: dict[Location, int] = {(): 1}
            if not isinstance(node, yaml.MappingNode):
                found = "the file is empty" if node is None else f"the document is a {node.id}"
                raise TaskError(f"{path}, line 1: {found}; a mapping was expected")
            _walk(path, node, (), lines)
            return Document(path, loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise TaskError(f"{path}{where}: not YAML: {error.problem}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise TaskError(f"{path}: can't be read: {error}") from None


def _plain_only(path: Path, text: str) -> None:
    """Refuse aliases, tags and deep nesting while the document is still a flat list of events."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        where = f"{path}, line {event.start_mark.line + 1 if event.start_mark else 1}"
        if isinstance(event, yaml.AliasEvent):
            raise TaskError(f"{where}: the alias *{event.anchor}: aliases aren't allowed in task files")
        if tag := getattr(event, "tag", None):
            raise TaskError(f"{where}: the tag {tag}: tags aren't allowed in task files")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_LEVELS:
            raise TaskError(f"{where}: nested deeper than {_MOST_LEVELS} levels")


def _walk(path: Path, node: yaml.Node, location: Location, lines: dict[Location, int]) -> None:
    line = node.start_mark.line + 1
    lines[location] = line
    field = ".".join(str(part) for part in location) or "the document"
    if node.tag.endswith(":float") and not math.isfinite(float(node.value)):
        raise TaskError(f"{path}, line {line}, {field}: {node.value[:40]} is not a finite number")
    if node.tag.endswith(":int") and len(node.value) > _MOST_DIGITS:
        raise TaskError(f"{path}, line {line}, {field}: a number of {len(node.value)} digits")
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(path, item, (*location, index), lines)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise TaskError(f"{path}, line {line}, {field}: a key must be plain text")
            if key.value in seen:
                again = ".".join(str(part) for part in (*location, key.value))
                raise TaskError(f"{path}, line {line}, {again}: the key stands here a second time")
            seen.add(key.value)
            _walk(path, value, (*location, key.value), lines)
            lines[(*location, key.value)] = line


def validate(document: Document, model: type[M], data: Any = None) -> M:
    """Make a model of a document's data (or of data derived from it).

    Raises:
        TaskError: Names file, line, field and what was expected, for the first few faults.
    """
    try:
        return model.model_validate(document.data if data is None else data)
    except ValidationError as error:
        faults = [_describe(document, item["loc"], item["msg"], item["input"]) for item in error.errors()[:5]]
        more = f" (and {error.error_count() - 5} more)" if error.error_count() > 5 else ""
        raise TaskError("; ".join(faults) + more) from None


def _describe(document: Document, location: Location, message: str, value: Any) -> str:
    # Union members and validators put names of models into the location; only real places have lines.
    place: Location = ()
    for part in location:
        if (*place, part) in document.lines:
            place = (*place, part)
        elif part == location[-1] and "required" in message:
            place = (*place, part)
    shown = "" if isinstance(value, dict | list) else f" (got {value!r:.80})"
    return str(document.error(place, message.removeprefix("Value error, ") + shown))


def load_tasks(folder: Path, expand: Callable[[Document], Mapping[str, Any]] | None = None) -> dict[str, AgentTask]:
    """Load every ``*.yaml`` of a folder as a task, sorted by file name.

    Args:
        folder: Where the task files stand.
        expand: Turns a family's short form into the data of an `AgentTask`; may raise ``document.error(...)``.

    Raises:
        TaskError: A file is bad, or two tasks have one id (also when only case differs).
    """
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise TaskError(f"{folder}: no task files (*.yaml) here")
    documents = [read_yaml(path) for path in paths]
    tasks = [validate(document, AgentTask, expand(document) if expand else None) for document in documents]
    return unique(zip(tasks, (str(path) for path in paths), strict=True))


def unique(tasks: Iterable[tuple[AgentTask, str]]) -> dict[str, AgentTask]:
    """Map id to task.

    Args:
        tasks: Tasks with the place each comes from.

    Raises:
        TaskError: Two tasks have one id (also when only case differs).
    """
    places: dict[str, str] = {}
    result: dict[str, AgentTask] = {}
    for task, place in tasks:
        folded = task.task_id.casefold()
        if folded in places:
            raise TaskError(
                f"{place}, task_id: {task.task_id!r} is already the id of the task in {places[folded]}; ids are unique"
            )
        places[folded] = place
        result[task.task_id] = task
    return result
