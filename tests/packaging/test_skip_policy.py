"""CI skips nothing silently: the rules in tests/conftest.py, seen from outside on small suites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
CONFIG = """\
[pytest]
markers = may_skip(reason): may be skipped in CI too
"""
NEEDS_SERVER = "def test_it(postgresql_url): pass\n"
SKIPS_ITSELF = "import pytest\ndef test_it(): pytest.skip('no reason to run')\n"
SKIPS_MODULE = "import pytest\npytest.skip('not today', allow_module_level=True)\n"
MARKED = (
    "import pytest\n@pytest.mark.may_skip('Windows only')\n@pytest.mark.skip(reason='elsewhere')\ndef test_it(): pass\n"
)
MARKED_BARE = "import pytest\n@pytest.mark.may_skip\n@pytest.mark.skip(reason='elsewhere')\ndef test_it(): pass\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert False\n"
NOTHING = "def helper(): pass\n"


def run_suite(folder: Path, source: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on one test file under the real conftest, in an environment without CI's own variables."""
    (folder / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_small.py").write_text(source, encoding="utf-8")
    dropped = ("CI", "AGENTEVAL_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)} | variables
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), "test_small.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_missing_component_is_skipped_and_named_locally(tmp_path: Path) -> None:
    result = run_suite(tmp_path, NEEDS_SERVER)
    assert result.returncode == 0, result.stdout
    assert "not run on this machine" in result.stdout
    assert "1 skipped: missing component PostgreSQL: set AGENTEVAL_POSTGRESQL_URL" in result.stdout


@pytest.mark.parametrize("variables", [{"CI": "true"}, {"AGENTEVAL_REQUIRE_ALL": "1"}])
def test_a_missing_component_fails_in_ci(variables: dict[str, str], tmp_path: Path) -> None:
    result = run_suite(tmp_path, NEEDS_SERVER, **variables)
    assert result.returncode == 1, result.stdout
    assert "missing component PostgreSQL" in result.stdout


def test_a_component_that_is_there_is_used(tmp_path: Path) -> None:
    result = run_suite(tmp_path, NEEDS_SERVER, CI="true", AGENTEVAL_POSTGRESQL_URL="postgresql+psycopg://x@127.0.0.1/y")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("source", [SKIPS_ITSELF, SKIPS_MODULE, MARKED_BARE])
def test_any_other_skip_fails_in_ci_only(source: str, tmp_path: Path) -> None:
    assert run_suite(tmp_path, source).returncode in {0, 5}  # 5: the module skipped itself, nothing was left
    result = run_suite(tmp_path, source, CI="true")
    assert result.returncode in {1, 2}, result.stdout  # 2: failed while collecting
    assert "nothing may be skipped in CI" in result.stdout


@pytest.mark.parametrize("source", [MARKED, EXPECTED_FAILURE])
def test_a_marked_skip_and_an_expected_failure_pass_in_ci(source: str, tmp_path: Path) -> None:
    result = run_suite(tmp_path, source, CI="true")
    assert result.returncode == 0, result.stdout


def test_collecting_nothing_is_a_failure(tmp_path: Path) -> None:
    assert run_suite(tmp_path, NOTHING, CI="true").returncode == 5


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_ci_switched_off_is_off(value: str, tmp_path: Path) -> None:
    assert run_suite(tmp_path, NEEDS_SERVER, CI=value).returncode == 0
