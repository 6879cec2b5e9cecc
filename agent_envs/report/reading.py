"""Lines of records, read for their numbers: each line is checked as far as the report's columns go, and no further.

Checking every field of an `AgentRun` takes five times as long, and most of it, the checks' evidence and the limits, has
no part in any number. Who needs the whole record reads it from its place; ``verify`` does so for all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.store import Decision
from agent_envs.contract import Model, OutcomeClass, Status, parse_json
from agent_envs.contract.evidence import Origin, Phase

T = TypeVar("T")
M = TypeVar("M", bound=Model)
_Whole = Annotated[int, Field(ge=0)]
_part: Callable[[type[T]], type[T]] = with_config(ConfigDict(extra="ignore", allow_inf_nan=False))


@_part
@dataclass(frozen=True, slots=True)
class EndingPart:
    """What the report reads of an ending."""

    phase: Phase
    origin: Origin
    kind: str


@_part
@dataclass(frozen=True, slots=True)
class VerdictPart:
    """What it reads of a verdict."""

    G: Status
    C: Status


@_part
@dataclass(frozen=True, slots=True)
class UsagePart:
    """What it reads of the usage."""

    steps: _Whole
    tokens: int | None = None
    cost: float | None = None


@_part
@dataclass(frozen=True, slots=True)
class RunPart:
    """What it reads of an `AgentRun`."""

    run_id: str
    env_id: str
    task_id: str
    oracle: bool
    system_spec_hash: str
    terminal: EndingPart
    outcome_class: OutcomeClass
    counts: bool
    verdict: VerdictPart | None
    declared_success: bool
    usage: UsagePart
    seconds: float
    environment_seconds: float
    order: _Whole = 0
    worker: str = ""


@_part
@dataclass(frozen=True, slots=True)
class TriedPart:
    """What it reads of a try's run."""

    run_id: str
    outcome_class: OutcomeClass
    counts: bool
    usage: UsagePart


@_part
@dataclass(frozen=True, slots=True)
class TryPart:
    """What it reads of a `TryRecord`."""

    run: TriedPart
    decision: Decision
    purpose: Literal["attempt", "smoke", "canary"] = "attempt"


_RUN, _TRY = TypeAdapter(RunPart), TypeAdapter(TryPart)


def read_run(path: Path, number: int, line: bytes) -> RunPart:
    """A line of ``runs.jsonl``.

    Raises:
        ResultsError: It's damaged; the message names file, line and field.
    """
    return _read(_RUN, path, number, line)


def read_try(path: Path, number: int, line: bytes) -> TryPart:
    """A line of ``attempts.jsonl``.

    Raises:
        ResultsError: As for `read_run`.
    """
    return _read(_TRY, path, number, line)


def read_whole(model: type[M], path: Path, number: int, line: bytes) -> M:
    """A whole record, every field checked.

    Raises:
        ResultsError: As for `read_run`.
    """
    try:
        return model.parse(line)
    except ValueError as error:
        raise _damaged(path, number, error) from None


def _read(adapter: TypeAdapter[T], path: Path, number: int, line: bytes) -> T:
    try:
        try:
            return adapter.validate_json(line)
        except ValidationError:
            value: Any = parse_json(line)  # pydantic's own parser refuses lone surrogates
            return adapter.validate_python(value)
    except ValueError as error:
        raise _damaged(path, number, error) from None


def _damaged(path: Path, number: int, error: ValueError) -> ResultsError:
    what = "; ".join(str(error).splitlines()[:3])
    return ResultsError(f"{path}, line {number}: damaged: {what}"[:500])
