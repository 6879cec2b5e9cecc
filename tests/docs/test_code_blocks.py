"""The documentation's code runs: every Python block, and every command block that calls agenteval."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("page.py")

_spec = importlib.util.spec_from_file_location("documentation_page", SCRIPT)
assert _spec is not None and _spec.loader is not None
page = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
AGENTEVAL = f"""#!{sys.executable}
import sys
from agent_envs.cli import main
sys.exit(main())
"""


def run_page(name: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a process of its own, with the checkout importable and `agenteval` on the path."""
    work, programs = folder / "work", folder / "programs"
    work.mkdir()
    programs.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")  # pages name the ready manifests as a reader in the checkout does
    # The checkout's own command, whether or not the package is installed; the wheel's test covers the installed one.
    command = programs / "agenteval"
    command.write_text(AGENTEVAL, encoding="utf-8")
    command.chmod(0o755)
    plan = folder / "plan.json"
    plan.write_text(json.dumps(page.steps(name, text)), encoding="utf-8")
    environment = os.environ | {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(ROOT),
    }
    command_line = [sys.executable, "-W", "error", str(SCRIPT), name, str(plan)]
    return subprocess.run(command_line, cwd=work, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_pages_code_runs(path: Path, tmp_path: Path) -> None:
    result = run_page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"), tmp_path)
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"


def test_the_readme_shows_code_that_is_run() -> None:
    kinds = {step.kind for step in page.steps("README.md", (ROOT / "README.md").read_text(encoding="utf-8"))}
    assert "python" in kinds


def test_blocks_share_a_namespace_and_a_folder_in_page_order(tmp_path: Path) -> None:
    text = """\
```python
from pathlib import Path
Path("note.txt").write_text("one")
```

```console
$ agenteval --help > help.txt; \\
  cat note.txt > copy.txt
```

- in a list

  ```python
  assert Path("copy.txt").read_text() == "one"
  print("reached")
  ```
"""
    result = run_page("page.md", text, tmp_path)
    assert (result.returncode, result.stdout) == (0, "reached\n"), result.stderr


def test_a_failing_python_block_fails_with_the_pages_line(tmp_path: Path) -> None:
    result = run_page("page.md", "# Title\n\n```python\nx = 1\n1 / 0\n```\n", tmp_path)
    assert result.returncode != 0
    assert 'File "page.md", line 5' in result.stderr


def test_a_failing_command_fails_with_its_status(tmp_path: Path) -> None:
    result = run_page("page.md", "```console\n$ agenteval --help >/dev/null; exit 3\n```\n", tmp_path)
    assert result.returncode != 0
    assert "page.md:2: exit status 3" in result.stderr


def test_setting_up_a_machine_is_not_run() -> None:
    assert page.steps("page.md", "```bash\n$ make demo\n```\n\n```text\n$ agenteval\n```\n") == []


def test_an_excluded_block_is_not_run() -> None:
    text = "<!-- not run: needs a key -->\n\n```python\nraise SystemExit(1)\n```\n\n```python\npass\n```\n"
    assert [step.line for step in page.steps("page.md", text)] == [8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- not run: -->\n```python\n```\n", "page.md:1: say why"),
        ("<!-- not run: because -->\nText.\n```python\n```\n", "page.md:1: no code block follows"),
        ("<!-- not run: because -->\n", "page.md:1: no code block follows"),
        ("```python\npass\n", "page.md:1: this code block is never closed"),
        ("```py\npass\n```\n", "page.md:1: write ```python instead of 'py'"),
        ("```Python\npass\n```\n", "page.md:1: write ```python instead of 'Python'"),
    ],
)
def test_a_page_that_would_silently_run_less_is_refused(text: str, message: str) -> None:
    with pytest.raises(page.PageError) as caught:
        page.steps("page.md", text)
    assert message in str(caught.value)
