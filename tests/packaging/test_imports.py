"""Importing the package registers names and loads nothing that only some users need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "docker",
    "httpx",
    "hypothesis",
    "matplotlib",
    "mcp",
    "openai",
    "playwright",
    "psycopg",
    "pydantic",
    "pytest",
    "ray",
    "rich",
    "scipy",
    "sqlalchemy",
    "sqlite3",
    "starlette",
    "torch",
    "yaml",
    "zstandard",
}


def loaded_by(statement: str) -> set[str]:
    """Top-level names of all modules a fresh interpreter holds after the statement."""
    code = f"{statement}; import json, sys; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout))


def test_import_loads_no_heavy_library() -> None:
    # Gymnasium's own imports are the measure: what it loads anyway costs nobody anything.
    assert loaded_by("import gymnasium, agent_envs") & HEAVY - loaded_by("import gymnasium") == set()


def test_the_measurement_sees_a_heavy_library() -> None:
    assert "yaml" in loaded_by("import yaml")


def test_import_registers_the_environments() -> None:
    code = (
        "import gymnasium, agent_envs; found = [i for i in gymnasium.registry if i.startswith('agenteval/')]; "
        "assert 'agenteval/refund-v1' in found, found"
    )
    assert "agent_envs" in loaded_by(code)


@pytest.mark.parametrize("name", ["envs", "wrappers", "baselines"])
def test_a_linked_package_is_one_module(name: str) -> None:
    code = f"import sys, agent_envs.{name}; assert {name!r} not in sys.modules; assert agent_envs.{name}.__doc__"
    assert "agent_envs" in loaded_by(code)
