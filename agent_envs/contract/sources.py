"""Digests of source: the same files give the same digest, wherever they stand."""

import functools
import hashlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from types import CodeType
from typing import Any

from agent_envs.contract.canonical import digest

_SKIPPED = frozenset(("__pycache__", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache"))
_WHOLE = 16 * 2**20
"""Files above this many bytes (weights, recordings) count by name and size."""


def folder_digest(folder: Path, skip: Iterable[str] = ()) -> str:
    """SHA-256 over the relative names and contents of a folder's files.

    Args:
        folder: The folder; links to folders are not followed.
        skip: Names of files and folders left out, at every level.

    Raises:
        OSError: A file can't be read.
    """
    left_out = _SKIPPED | set(skip)
    files: dict[str, str] = {}

    def walk(place: Path, prefix: str) -> None:
        for item in sorted(place.iterdir()):
            if item.name in left_out or item.suffix in (".pyc", ".pyo"):
                continue
            if item.is_dir():
                if not item.is_symlink():
                    walk(item, f"{prefix}{item.name}/")
            elif item.is_file():
                files[prefix + item.name] = _file_digest(item)

    walk(folder, "")
    return digest(files)


@functools.cache
def code_digest(*floors: str) -> str:
    """Digest of folders of this package, such as ``("contract", "evaluator")``; one that is missing is left out."""
    return digest({floor: folder_digest(place) for floor in floors if (place := _ROOT / floor).is_dir()})


_ROOT = Path(__file__).resolve().parent.parent


def subject_digest(subject: Any, skip: Iterable[str] = ()) -> str:
    """Digest of what a class or function is made of: its whole package, or its file where that stands alone.

    Code typed at a prompt has no file; then its byte code counts.

    Args:
        subject: A class or function.
        skip: Names left out of the package.

    Raises:
        OSError: A source file can't be read.
    """
    if (path := source_file(subject)) is None:
        methods = vars(subject).values() if inspect.isclass(subject) else (subject,)
        codes = [method.__code__ for method in methods if hasattr(method, "__code__")]
        return digest([[code.co_name, code.co_code.hex(), repr(code.co_names), _constants(code)] for code in codes])
    if (path.parent / "__init__.py").is_file() and getattr(inspect.getmodule(subject), "__package__", None):
        return folder_digest(path.parent, skip)
    return _file_digest(path)


def source_file(subject: Any) -> Path | None:
    """The file that a class or function stands in; None where there is none."""
    try:
        path = inspect.getsourcefile(subject)
    except (OSError, TypeError):
        return None
    return Path(path).resolve() if path and Path(path).is_file() else None


def _file_digest(path: Path) -> str:
    size = path.stat().st_size
    if size > _WHOLE:
        return f"{size} bytes"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _constants(code: CodeType) -> list[Any]:
    return [_constants(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
