"""`python -m benchmarks [--smoke] [--json FILE] [--list] [NAME ...]`: run the benchmarks and judge their budgets.

A benchmark is a module in this folder with `run(smoke: bool) -> list[Result]`. The exit status is 1 when a budget is
exceeded, except in smoke mode: a handful of rounds on a busy machine proves that the benchmarks run, not how fast.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._timing import Result, as_json, table


def discover() -> dict[str, Callable[[bool], list[Result]]]:
    """The `run` function of each benchmark, by module name, sorted.

    Raises:
        TypeError: for a public module without `run`, which would otherwise be left out in silence.
    """
    found: dict[str, Callable[[bool], list[Result]]] = {}
    names = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    for name in sorted(name for name in names if not name.startswith("_")):
        run = getattr(importlib.import_module(f"benchmarks.{name}"), "run", None)
        if not callable(run):
            raise TypeError(f"benchmarks/{name}.py has no function run(smoke): add it, or name the module _{name}.py")
        found[name] = run
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names, print a table, and return the exit status."""
    available = discover()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed against floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(available)}; all of them by default")
    parser.add_argument("--smoke", action="store_true", help="few rounds: show that the benchmarks run, judge nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--list", action="store_true", help="print the benchmarks' names and stop")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in available]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are: {', '.join(available)}")
    if options.list:
        print("\n".join(available))
        return 0
    results: list[Result] = []
    for name in options.names or available:
        measured = available[name](options.smoke)
        if not measured:
            print(f"benchmarks/{name}.py measured nothing", file=sys.stderr)
            return 1
        results.extend(measured)
    print(table(results))
    if options.json:
        options.json.write_text(as_json(results), encoding="utf-8")
    exceeded = [result.name for result in results if result.within_budget is False]
    if exceeded and not options.smoke:
        print(f"over budget: {', '.join(exceeded)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
