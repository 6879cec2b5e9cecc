"""Campaign folders that the tests of reports share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_spec = importlib.util.spec_from_file_location("report_folders", Path(__file__).with_name("folders.py"))
assert _spec is not None and _spec.loader is not None
_folders = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _folders  # dataclasses look their module up
_spec.loader.exec_module(_folders)


@pytest.fixture(scope="session")
def folders() -> ModuleType:
    """The maker of campaign folders."""
    return _folders


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real campaign: four baselines, three tasks, two attempts. Copy it before changing it."""
    folder: Path = _folders.play(
        tmp_path_factory.mktemp("played") / "campaign",
        ("noop", "hasty", "rulebook", "reference"),
        ("b*",),
    )
    return folder
