"""Regression cases as files: ``<cases>/<name>/case.yaml``, a grader case with ``evidence/`` beside it."""

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from agent_envs.contract import (
    AgentEvalError,
    Evidence,
    Model,
    ReferenceRun,
    Status,
    TaskError,
    WrongRun,
    read_yaml,
    write_evidence,
)
from agent_envs.contract.archive import sync_folder

CASE_NAME = "case.yaml"
EVIDENCE_FOLDER = "evidence"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}"
_Text = Annotated[str, Field(pattern=r"\S")]


class RegressionError(AgentEvalError):
    """A regression case can't be kept or read; the message says what to do."""


class _Case(Model):
    """What both kinds state."""

    env_id: str
    task_id: str
    task_digest: str
    """The task's digest when the case was kept."""
    source_run: str
    """Run it was made of."""
    confirmed_by: _Text
    """Who confirmed that this is what must happen."""
    reason: _Text
    """What went wrong, and why this is right."""


class GraderCase(_Case):
    """Evidence, and what each check must say of it."""

    kind: Literal["grader"] = "grader"
    evidence_digest: str
    expected: dict[str, Status] = Field(min_length=1)
    """Check to status."""
    played: str
    """Digest of all that the episode depended on: while it stays, the present checks can judge the evidence."""


class TaskCase(_Case):
    """A run's calls, and whether they solve the task."""

    kind: Literal["task"] = "task"
    seed: int
    right: ReferenceRun | None = None
    """It must pass."""
    wrong: WrongRun | None = None
    """It must fail by the check that it names."""

    @property
    def script(self) -> ReferenceRun | WrongRun:
        """The run to play."""
        script = self.right or self.wrong
        assert script is not None  # validated
        return script

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.right is None) == (self.wrong is None):
            raise ValueError("a task case has either a 'right' or a 'wrong' run")
        return self


Case = GraderCase | TaskCase
_ADAPTER: TypeAdapter[Case] = TypeAdapter(Annotated[Case, Field(discriminator="kind")])


def write_case(cases: Path, name: str, case: Case, evidence: Evidence | None) -> Path:
    """Write a case into a folder of its own, whole or not at all.

    Raises:
        RegressionError: There is such a case, its name is unfit, or it can't be written as it is.
    """
    if not re.fullmatch(_NAME, name):
        raise RegressionError(f"name {name!r}: use letters, digits and ._- (at most 120), letter or digit first")
    target = cases / name
    if target.exists():
        raise RegressionError(f"{target}: there is such a case; name this one differently")
    try:
        cases.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=cases))
        try:
            part.chmod(0o755)
            text = yaml.dump(
                case.model_dump(mode="json", exclude_none=True), Dumper=_Dumper, sort_keys=False, width=110
            )
            with (part / CASE_NAME).open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if evidence is not None:
                write_evidence(evidence, part / EVIDENCE_FOLDER)
            if read_case(part) != case:
                raise RegressionError(f"{name}: the run holds text that a case file can't keep as it is")
            part.rename(target)
            sync_folder(cases)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RegressionError(f"{target}: the case can't be written: {error}"[:500]) from None
    return target


class _Dumper(yaml.SafeDumper):
    """Quotes every text that isn't plain letters: YAML readers disagree on what ``1e5`` or ``12:30`` is."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    plain = re.fullmatch(r"[A-Za-z][A-Za-z_]*", value)
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def read_case(folder: Path) -> Case:
    """Read a case.

    Raises:
        RegressionError: There is none, or it is damaged.
    """
    try:
        document = read_yaml(folder / CASE_NAME)
        return _ADAPTER.validate_python(document.data)
    except TaskError as error:
        raise RegressionError(str(error)) from None
    except ValidationError as error:
        raise RegressionError(f"{folder / CASE_NAME}: {first_fault(error)}") from None


def case_folders(cases: Path) -> list[Path]:
    """The folders of all cases, sorted by name; a folder without a case file too, which is a fault.

    Raises:
        RegressionError: The folder can't be read or holds no case: nothing checked isn't all right.
    """
    try:
        found = sorted(entry for entry in cases.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise RegressionError(f"{cases}: the cases can't be read: {error}") from None
    if not found:
        raise RegressionError(
            f"{cases}: no regression case here; 'agenteval regression add RUN --out {cases}' keeps one"
        )
    return found


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong, with its place."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
