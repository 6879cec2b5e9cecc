"""What `import agent_envs` costs over `import gymnasium`, which every user pays anyway."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks._timing import Result, compare

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 1.3
PROGRAM = "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def importing(module: str) -> float:
    """Seconds the import takes in a fresh interpreter, without the interpreter's own start."""
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def reported(operation: Callable[[], object], number: int) -> float:
    """Median of what the operation itself reports: the time of starting a process is not the import's."""
    return statistics.median(float(str(operation())) for _ in range(number))


def run(smoke: bool) -> list[Result]:
    """Compare the two imports in fresh processes."""
    return [
        compare(
            "import agent_envs",
            lambda: importing("agent_envs"),
            lambda: importing("gymnasium"),
            budget=BUDGET,
            rounds=2 if smoke else 25,
            measure=reported,
            note="floor: import gymnasium, both in fresh processes",
        )
    ]
