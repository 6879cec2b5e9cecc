"""Records read for their numbers: as strict about those as the whole record, and deaf to the rest."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType

import pytest

from agent_envs.campaign.lines import ResultsError
from agent_envs.campaign.standing import void
from agent_envs.campaign.store import CampaignStore, TryRecord
from agent_envs.contract import AgentEvalError, AgentRun
from agent_envs.report import reading
from agent_envs.report.records import load
from agent_envs.report.verify import verify


@pytest.fixture
def line(folders: ModuleType, tmp_path: Path) -> bytes:
    """A line of ``runs.jsonl``."""
    folder = folders.write(tmp_path / "one", folders.lock(folders.tasks(1), ["agent"]), lambda item: folders.PASS)
    return bytes((folder / "runs.jsonl").read_bytes().splitlines()[0])


def test_a_part_has_the_fields_of_the_record_with_its_defaults() -> None:
    for part, whole in ((reading.RunPart, AgentRun), (reading.TryPart, TryRecord)):
        for field in dataclasses.fields(part):
            assert field.name in whole.model_fields
            required = field.default is dataclasses.MISSING
            assert required == whole.model_fields[field.name].is_required()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("counts", "perhaps"),
        ("outcome_class", "victory"),
        ("verdict", {"G": "pass"}),
        ("verdict", {"G": "yes", "C": "pass"}),
        ("usage", {"steps": -1}),
        ("usage", {"steps": 1, "cost": "dear"}),
        ("terminal", {"phase": "act", "origin": "nobody", "kind": "finished"}),
        ("seconds", None),
        ("order", -1),
        ("run_id", 7),
    ],
)
def test_a_damaged_number_is_named_with_its_line(line: bytes, field: str, value: object) -> None:
    damaged = json.dumps({**json.loads(line), field: value}).encode()
    with pytest.raises(ValueError, match=field):
        AgentRun.parse(damaged)
    with pytest.raises(ResultsError, match=rf"runs\.jsonl, line 12: damaged: (.|\n)*{field}"):
        reading.read_run(Path("runs.jsonl"), 12, damaged)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b'{"run_id": NaN}'])
def test_what_is_no_record_is_an_error_with_its_line(text: bytes) -> None:
    for read in (reading.read_run, reading.read_try):
        with pytest.raises(ResultsError, match=r"x\.jsonl, line 3"):
            read(Path("x.jsonl"), 3, text)


def test_lone_surrogates_are_read(line: bytes) -> None:
    odd = json.dumps({**json.loads(line), "worker": "w\ud835"}).encode()
    assert reading.read_run(Path("runs.jsonl"), 1, odd).worker == "w\ud835"


def test_damage_that_no_number_rests_on_is_verifys_to_find(folders: ModuleType, tmp_path: Path) -> None:
    folder = folders.write(tmp_path, folders.lock(folders.tasks(3), ["agent"]), lambda item: folders.PASS)
    path = folder / "runs.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"limits":{"calls"', b'"limits":{"kalls"', 1))
    assert load(folder).columns.success.all()
    with pytest.raises(AgentEvalError, match=r"runs\.jsonl"):
        verify(folder)


@pytest.mark.parametrize(("share", "is_void"), [(0.05, True), (0.2, False)])
def test_the_standing_is_the_runners_own(folders: ModuleType, tmp_path: Path, share: float, is_void: bool) -> None:
    locked = folders.lock(folders.tasks(40), ["agent"], invalid_runs={"maximum_share": share, "after": 1})
    retried = dataclasses.replace(folders.PASS, retried=1)
    folder = folders.write(tmp_path, locked, lambda item: retried if item.task_id.endswith("1") else folders.PASS)
    found = load(folder).void
    assert found == void(locked.manifest, CampaignStore(folder).progress(), 40)
    assert bool(found) is is_void
