"""A checkout imports like the wheel because three links stand in for the mapped directories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["envs", "wrappers", "baselines"])
def test_link_resolves_to_the_directory_beside_the_package(name: str) -> None:
    link = ROOT / "agent_envs" / name
    assert link.is_symlink(), f"{link} is not a link: check out with symbolic links on (git config core.symlinks true)"
    assert link.readlink() == Path("..", name)
    assert link.resolve() == ROOT / name
    assert (ROOT / name / "__init__.py").is_file()


def test_git_keeps_the_links_as_links() -> None:
    names = [f"agent_envs/{name}" for name in ("envs", "wrappers", "baselines")]
    if not (ROOT / ".git").exists():
        assert all((ROOT / name).is_symlink() for name in names)
        return
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--stage", "--", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    modes = {line.split("\t")[1]: line.split()[0] for line in listing.splitlines()}
    assert modes == dict.fromkeys(names, "120000")
