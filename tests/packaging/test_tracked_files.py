"""The tree holds nothing of one machine: no home directory, no checkout path, no package registry."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN = Path(__file__).relative_to(ROOT).as_posix()

# Sandboxes have users of their own; their homes are part of tasks, not of a developer's machine.
SANDBOX_USERS = ("agent", "user")
PATTERNS = {
    "a home directory": re.compile(rf"/(?:home/(?!(?:{'|'.join(SANDBOX_USERS)})\b)|Users/)\w+/|[A-Z]:\\Users\\"),
    "the superuser's tools": re.compile(r"/root/\.(?:cache|config|local|pyenv|venv)\b"),
    "this checkout's path": re.compile(rf"{re.escape(str(ROOT))}(?![\w-])"),
    "a package registry": re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs\.org|crates\.io|proxy\.golang\.org)\b|--?(?:extra-)?index-url"
    ),
}


def text_files() -> list[str]:
    """Names of the tree's text files: those git knows or would add, or all of them in an unpacked archive."""
    if (ROOT / ".git").exists():
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
    kept = (name for name in sorted(set(names)) if name and name != OWN)
    return [name for name in kept if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def findings(text: str) -> list[str]:
    return [
        f"line {number}: {what}: {line.strip()[:120]}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in PATTERNS.items()
        if pattern.search(line)
    ]


def test_no_file_names_a_machine_or_a_registry() -> None:
    names = text_files()
    assert "pyproject.toml" in names
    found: list[str] = []
    for name in names:
        data = (ROOT / name).read_bytes()
        if b"\0" in data:
            continue
        found.extend(f"{name}: {finding}" for finding in findings(data.decode("utf-8", errors="replace")))
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "x = '/home/jo/data'",
        "/Users/jo/x",
        "C:\\Users\\jo",
        f"open('{ROOT}/x')",
        "/root/.pyenv/shims",
        "pip --index-url x",
    ],
)
def test_the_patterns_find(line: str) -> None:
    assert findings(line)


@pytest.mark.parametrize("line", ["/home/agent/notes.txt", "/homework/x/", f"{ROOT}-other/x", "an index of urls"])
def test_the_patterns_leave_alone(line: str) -> None:
    assert not findings(line)
