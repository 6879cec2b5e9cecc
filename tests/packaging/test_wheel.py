"""What a user installs: one import package, whole, with its data and its command, from a checkout or from the sdist."""

from __future__ import annotations

import configparser
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAPPED = ("envs", "wrappers", "baselines")
BUILT_BY_PYTHON = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def build(source: Path, target: str, folder: Path) -> Path:
    """Build with the declared back end, without a network, and return the one file it made."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (built,) = folder.iterdir()
    return built


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def files_below(folder: Path) -> set[Path]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path for path in found if not BUILT_BY_PYTHON.intersection(path.parts)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_top_level_is_the_package_and_its_metadata_only(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in contents(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"agent_envs"}
    assert len(tops) == 2


def test_every_file_of_the_four_folders_is_in_it_once(wheel: Path) -> None:
    own = {path for path in files_below(ROOT / "agent_envs") if path.parts[0] not in MAPPED}
    expected = {f"agent_envs/{path.as_posix()}" for path in own}
    for name in MAPPED:
        expected |= {f"agent_envs/{name}/{path.as_posix()}" for path in files_below(ROOT / name)}
    inside = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("agent_envs/")]
    assert set(inside) == expected
    assert len(inside) == len(expected)
    assert {
        "agent_envs/__init__.py",
        "agent_envs/py.typed",
        *(f"agent_envs/{name}/__init__.py" for name in MAPPED),
    } <= expected


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        # Python 3.11 before 3.11.4 has no filters, and 3.12 warns without one.
        archive.extractall(tmp_path / "source", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (source,) = (tmp_path / "source").iterdir()
    assert contents(build(source, "wheel", tmp_path / "again")) == contents(wheel)


def test_the_command_is_declared_and_resolves(unpacked: Path) -> None:
    (declared,) = unpacked.glob("*.dist-info/entry_points.txt")
    parser = configparser.ConfigParser()
    parser.read(declared, encoding="utf-8")
    assert dict(parser["console_scripts"]) == {"agenteval": "agent_envs.cli:main"}
    result = run_installed(unpacked, "from agent_envs.cli import main; sys.exit(not callable(main))")
    assert result.returncode == 0, result.stderr


def test_licence_and_types_are_announced(unpacked: Path) -> None:
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    lines = metadata.read_text(encoding="utf-8").splitlines()
    assert "License-Expression: MIT" in lines
    assert "Classifier: Typing :: Typed" in lines
    (licence,) = unpacked.glob("*.dist-info/licenses/LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", ["agent_envs", *(f"agent_envs.{name}" for name in MAPPED)])
def test_the_installed_package_imports_without_the_checkout(name: str, unpacked: Path) -> None:
    code = f"import importlib; print(importlib.import_module({name!r}).__file__)"
    result = run_installed(unpacked, code)
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()).is_relative_to(unpacked)


def run_installed(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code with the unpacked wheel first on the path and the checkout nowhere else than behind it."""
    program = f"import sys; sys.path.insert(0, {str(site)!r}); {code}"
    return subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program], cwd=site, capture_output=True, text=True, check=False
    )
