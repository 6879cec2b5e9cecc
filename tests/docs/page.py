"""Code blocks of a documentation page: found by `steps`, executed in order by running this module as a script.

A page runs in a process and an empty working directory of its own. Its Python blocks share one namespace; a console or
bash block that holds a `$ agenteval` line is run too, each `$ ` line in a shell that must exit with status 0. Console
blocks without such a line tell how to set up a machine and are left alone. `<!-- not run: reason -->` before a block
leaves it out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Literal, NamedTuple

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>[^`]*)$")
NOT_RUN = re.compile(r"^ *<!-- *not run:(?P<reason>.*?)-->\s*$")
PYTHON_MISSPELT = {"py", "python3", "pycon", "ipython", "{python}"}
SHELLS = {"console", "bash"}


class Step(NamedTuple):
    """One thing to run: Python source or a shell command, with the page's line it starts on (1-based)."""

    kind: Literal["python", "shell"]
    line: int
    text: str


class PageError(Exception):
    """The page cannot be read as its author meant it."""


def steps(name: str, text: str) -> list[Step]:
    """Everything on the page that has to run, in order.

    Args:
        name: The page's name, for messages.
        text: Its Markdown.

    Raises:
        PageError: for a block that never ends, an exclusion without a reason or without a block, or a Python block
            whose language is spelt in a way that would leave it out silently.
    """
    found: list[Step] = []
    lines = text.splitlines()
    excluded_at = 0
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        exclusion = NOT_RUN.match(line)
        if exclusion:
            if not exclusion["reason"].strip():
                raise PageError(f"{name}:{number}: say why the block is not run: <!-- not run: reason -->")
            excluded_at = number
            continue
        opening = FENCE.match(line)
        if not opening:
            if line.strip() and excluded_at:
                raise PageError(f"{name}:{excluded_at}: no code block follows this exclusion")
            continue
        start = number + 1
        closing = re.compile(rf"^ *{re.escape(opening['fence'][0])}{{{len(opening['fence'])},}} *$")
        body: list[str] = []
        while number < len(lines) and not closing.match(lines[number]):
            body.append(lines[number])
            number += 1
        if number == len(lines):
            raise PageError(f"{name}:{start - 1}: this code block is never closed")
        number += 1
        if not excluded_at:
            found.extend(_block(name, opening["info"].strip(), start, body))
        excluded_at = 0
    if excluded_at:
        raise PageError(f"{name}:{excluded_at}: no code block follows this exclusion")
    return found


def _block(name: str, info: str, start: int, body: list[str]) -> list[Step]:
    language = info.split(maxsplit=1)[0] if info else ""
    if language in PYTHON_MISSPELT or (language != "python" and language.lower() == "python"):
        raise PageError(f"{name}:{start - 1}: write ```python instead of {language!r}, so that the block is run")
    if language == "python":
        return [Step("python", start, textwrap.dedent("\n".join(body)) + "\n")]
    if language not in SHELLS or not any(line.lstrip().startswith("$ agenteval") for line in body):
        return []
    commands: list[Step] = []
    continued = False
    for offset, line in enumerate(body):
        text = line.strip()
        if continued:
            last = commands.pop()
            commands.append(last._replace(text=f"{last.text}\n{text}"))
        elif text.startswith("$ "):
            commands.append(Step("shell", start + offset, text[2:]))
        else:
            continue  # what the command prints
        continued = text.endswith("\\")
    return commands


def run(name: str, todo: list[Step]) -> None:
    """Execute the steps here: this process, this working directory.

    Raises:
        Exception: whatever a Python block raises, with the page's line in its traceback.
        SystemExit: for a command whose exit status is not 0.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for step in todo:
        sys.stdout.flush()
        if step.kind == "python":
            # Blank lines in front make the traceback's line numbers those of the page.
            exec(compile("\n" * (step.line - 1) + step.text, name, "exec"), namespace)
            continue
        status = subprocess.run(["bash", "-o", "pipefail", "-c", step.text], stdin=subprocess.DEVNULL).returncode
        if status:
            raise SystemExit(f"{name}:{step.line}: exit status {status} from: {step.text}")


if __name__ == "__main__":
    run(sys.argv[1], [Step(*step) for step in json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))])
