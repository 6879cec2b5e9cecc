"""What every test shares: optional components, the rule that CI skips nothing, and Hypothesis profiles.

A test that needs something a machine may lack (a PostgreSQL server, benchmark data) asks `require` for it. On a
developer's machine it is skipped and named in the summary; in CI the same gap is a failure, and so is any other skip
that does not carry `@pytest.mark.may_skip(reason)`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Mapping
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
MISSING = "missing component "


def in_ci(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether every component has to be there: CI or AGENTEVAL_REQUIRE_ALL is set to something but 0 or false."""
    values = (environment.get(name, "") for name in ("CI", "AGENTEVAL_REQUIRE_ALL"))
    return any(value.strip().lower() not in {"", "0", "false", "no"} for value in values)


hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if in_ci() else "default")


def require(component: str, available: bool, how: str) -> None:
    """Skip the test where a component is missing, or fail it in CI.

    Args:
        component: What the test needs, such as "PostgreSQL".
        available: Whether it is there.
        how: How to get it, as a sentence.
    """
    if available:
        return
    reason = f"{MISSING}{component}: {how}"
    if in_ci():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgresql_url() -> str:
    """SQLAlchemy URL of a PostgreSQL server on which the tests may make schemas."""
    url = os.environ.get("AGENTEVAL_POSTGRESQL_URL", "")
    require(
        "PostgreSQL",
        bool(url),
        "set AGENTEVAL_POSTGRESQL_URL to postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE; .ci/run starts one.",
    )
    return url


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """Folder with the public benchmarks' data, one sub-folder a benchmark."""
    folder = Path(os.environ.get("AGENTEVAL_DATA") or ROOT / ".." / "shared" / "data").resolve()
    require("benchmark data", folder.is_dir(), f"set AGENTEVAL_DATA to its folder; {folder} is none.")
    return folder


def _forbid(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Turn the report of a skip into one of a failure that says why."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason}\n(nothing may be skipped in CI unless it is marked may_skip with a reason)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail in CI what would be skipped there."""
    report = yield
    if in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        marker = item.get_closest_marker("may_skip")
        if marker is None or not (marker.args and str(marker.args[0]).strip()):
            _forbid(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail in CI a module that skips itself while it is collected."""
    report = yield
    if in_ci() and report.skipped:
        _forbid(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the components that were missing and how many tests each one cost."""
    reasons = (
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    counts = Counter(reasons)
    if counts:
        terminalreporter.section("not run on this machine")
        for reason, count in sorted(counts.items()):
            terminalreporter.line(f"{count} skipped: {reason}")
