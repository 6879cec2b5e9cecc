"""The files of a report: same bytes from the same records, nothing foreign obeyed, bounded, checked by verify."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from agent_envs.campaign.results import Results
from agent_envs.campaign.store import CampaignStore
from agent_envs.contract import AgentEvalError, AgentRun, OutcomeClass, Terminal, read_evidence
from agent_envs.report.analysis import analyse
from agent_envs.report.compare import compare
from agent_envs.report.export import csv_text, files, write_parquet, write_report
from agent_envs.report.html import MOST_PAGE, report_html, trajectory_html
from agent_envs.report.records import ReportError, load
from agent_envs.report.terminal import print_analysis, print_comparison
from agent_envs.report.verify import verify
from agent_envs.report.words import visible

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</style><svg onload=alert(1)>",
    "\u202egnp.exe\u2066 \x1b[2J\x00 \ud835",
    "{{ 7 * 7 }}{% raw %}",
    "=cmd|' /C calc'!A0",
    "x" * 300_000,
)


class Page(html.parser.HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def harmless(text: str) -> Page:
    """Assert that a page runs nothing and fetches nothing."""
    page = Page(text)
    assert not {"script", "iframe", "object", "embed", "link", "img", "form", "base", "image", "use"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on"), name
        if name in ("href", "src", "action", "xlink:href"):
            assert re.fullmatch(r"#[a-z]+|trajectories/[0-9a-f]{20}\.html|\.\./report\.html#failures", value), value
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "default-src 'none'" in text
    return page


@pytest.fixture
def campaign(played: Path, tmp_path: Path) -> Path:
    """A copy of the played campaign, with its report."""
    folder = tmp_path / "campaign"
    shutil.copytree(played, folder)
    write_report(folder)
    return folder


def test_a_report_stands_on_its_own(campaign: Path) -> None:
    text = (campaign / "report" / "report.html").read_text(encoding="utf-8")
    page = harmless(text)
    assert len(text) < 5_000_000
    for name in ("noop", "hasty", "rulebook", "reference"):
        assert any(name in part for part in page.text)
    assert page.tags.count("svg") >= 4
    assert page.tags.count("title") > page.tags.count("svg")
    assert page.tags.count("desc") == page.tags.count("svg")
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in page.attributes:
        if name == "aria-labelledby":
            assert set(value.split()) <= set(ids)
        if name == "href" and value.startswith("#"):
            assert value[1:] in ids
        if name == "href" and value.startswith("trajectories/"):
            assert (campaign / "report" / value).is_file()
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_every_failure_links_to_its_trajectory(campaign: Path) -> None:
    found = analyse(campaign)
    assert found.failures.total > 0
    for note in found.failures.shown:
        page = (campaign / "report" / note.page).read_text(encoding="utf-8")
        harmless(page)
        assert note.task_id in page
        assert note.run_id in page


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_agent_text_is_shown_and_never_obeyed(folders: ModuleType, tmp_path: Path, text: str) -> None:
    made = folders.Made(text=text, terminal=Terminal(phase="act", origin="agent", kind="finished", detail=text))
    planned = folders.tasks(2, labels=lambda number: {text[:200]: text[:200]})
    systems = {"agent": {"model": {"name": text[:2000]}, "harness": {"prompt": text[:2000]}}, "other": {}}
    said = text[:2000].replace("\ud835", "")  # a manifest is a text file, which can't hold half a character
    locked = folders.lock(planned, systems, decision=f"{said} x", population=f"{said} y")
    folder = folders.write(tmp_path, locked, lambda item: made)
    found = write_report(folder)
    raw = (folder / "report" / "report.html").read_bytes()
    page = harmless(raw.decode("utf-8"))
    assert len(raw) < 5_000_000
    whole = "".join(page.text)
    assert not set("\u202e\u2066\x1b\x00\ud835") & set(whole)
    assert visible(text[:20]) in whole
    console = Console(file=io.StringIO(), width=80)
    print_analysis(console, found)
    assert "\x1b[2J" not in console.file.getvalue()  # type: ignore[attr-defined]
    assert verify(folder).ok


def test_a_trajectory_page_is_bounded_and_says_so(campaign: Path) -> None:
    run = next(run for run in Results(campaign).read() if run.policy == "hasty")
    evidence = read_evidence(campaign / run.evidence)
    entry = evidence.events[1] | {"arguments": {"text": "<b>" * 200_000}, "result": {"text": "\U0001f600" * 100_000}}
    huge = evidence.model_copy(update={"events": (evidence.events[0], *[entry] * 5000)})
    text = trajectory_html(run, huge, "")
    harmless(text)
    assert len(text) < 8 * MOST_PAGE
    left = re.search(r"(\d+) more calls aren't shown", text)
    assert left is not None
    assert int(left[1]) + text.count('class="step ') == 5000


def test_evidence_that_is_gone_is_told_without_a_path(campaign: Path) -> None:
    note = analyse(campaign).failures.shown[0]
    shutil.rmtree(campaign / note.evidence)
    write_report(campaign)
    page = (campaign / "report" / note.page).read_text(encoding="utf-8")
    assert "The evidence is gone." in page
    assert str(campaign) not in page


def test_reports_are_equal_wherever_and_whenever_they_are_made(campaign: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "moved"
    shutil.copytree(campaign, other)
    one = {name: content for name, content in files(load(campaign), analyse(campaign))}
    two = {name: content for name, content in files(load(other), analyse(other))}
    assert one == two
    assert all(str(tmp_path).encode() not in content for content in one.values())
    assert json.loads(one["report.json"])["campaign"] == load(campaign).lock.digest


def test_verify_makes_everything_again(campaign: Path) -> None:
    found = verify(campaign)
    assert found.ok
    assert found.judged == len(Results(campaign).read())
    assert found.not_judged == 0
    assert found.files == 3 + len(list((campaign / "report" / "trajectories").iterdir()))


@pytest.mark.parametrize("name", ["report.json", "report.html", "attempts.csv"])
def test_verify_sees_a_changed_byte(campaign: Path, name: str) -> None:
    path = campaign / "report" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"0.625", b"0.725", 1) if b"0.625" in content else content[:-2] + b" \n")
    assert any(name in problem for problem in verify(campaign, judge=False).problems)
    path.unlink()
    assert any("missing" in problem for problem in verify(campaign, judge=False).problems)


def test_verify_sees_a_stray_page(campaign: Path) -> None:
    (campaign / "report" / "trajectories" / "extra.html").write_text("x", encoding="utf-8")
    assert any("extra.html" in problem for problem in verify(campaign, judge=False).problems)
    write_report(campaign)
    assert verify(campaign, judge=False).ok


def test_verify_lists_the_first_of_many_problems(campaign: Path) -> None:
    for number in range(30):
        (campaign / "report" / "trajectories" / f"extra{number}.html").write_text("x", encoding="utf-8")
    problems = verify(campaign, judge=False).problems
    assert (len(problems), problems[-1]) == (21, "and 10 more files")


def _rewrite(campaign: Path, change: object) -> None:
    """Change the records and report on them, as somebody would who wants other numbers."""
    store, runs = CampaignStore(campaign), Results(campaign).read()
    store.runs.path.unlink()
    for run in runs:
        store.runs.append(change(run), sync=False)  # type: ignore[operator]
    write_report(campaign)


def test_verify_sees_a_forged_class(campaign: Path) -> None:
    def forged(run: AgentRun) -> AgentRun:
        return run.model_copy(update={"outcome_class": OutcomeClass.SUCCESS}) if run.policy == "noop" else run

    _rewrite(campaign, forged)
    assert analyse(campaign).systems[0].successes > 0
    found = verify(campaign)
    assert any("agent_failure" in problem for problem in found.problems)


def test_verify_sees_a_forged_verdict(campaign: Path) -> None:
    """A record whose verdict and class agree is still held against its evidence."""
    good = next(run for run in Results(campaign).read() if run.policy == "reference")
    assert good.verdict is not None

    def forged(run: AgentRun) -> AgentRun:
        if run.policy != "noop" or run.task_id != good.task_id:
            return run
        verdict = good.verdict.model_copy(update={"evidence_digest": run.evidence_digest})  # type: ignore[union-attr]
        return run.model_copy(update={"outcome_class": good.outcome_class, "verdict": verdict})

    _rewrite(campaign, forged)
    found = verify(campaign)
    assert [problem for problem in found.problems if "recorded pass, judged again fail" in problem]


def test_verify_sees_changed_evidence(campaign: Path) -> None:
    run = Results(campaign).read()[0]
    path = campaign / run.evidence / "evidence.json"
    path.write_bytes(path.read_bytes().replace(b'"seed":', b'"seed":1', 1))
    write_report(campaign)
    assert any(run.run_id in problem for problem in verify(campaign).problems)


def test_tasks_that_are_gone_are_told_as_not_judged(folders: ModuleType, tmp_path: Path) -> None:
    folder = folders.write(tmp_path, folders.lock(folders.tasks(3), ["agent"]), lambda item: folders.PASS)
    write_report(folder)
    found = verify(folder)
    assert found.ok
    assert (found.judged, found.not_judged) == (0, 3)
    assert found.remarks == ("not re-judged: no evidence was kept (3 records)",)


def test_the_flat_table_has_a_row_an_attempt(folders: ModuleType, tmp_path: Path) -> None:
    planned = folders.tasks(4, labels=lambda number: {"kind": "=SUM(A1)"})
    outcomes = iter([folders.Made(good=True, cost=0.5), folders.FAIL, folders.LOST, None])
    folder = folders.write(tmp_path, folders.lock(planned, ["agent"]), lambda item: next(outcomes))
    rows = list(csv.DictReader(io.StringIO(csv_text(load(folder)))))
    assert [row["status"] for row in rows] == ["valid", "valid", "invalid", "missing"]
    assert [row["success"] for row in rows] == ["1", "0", "", ""]
    assert [row["cost"] for row in rows] == ["0.5", "", "", ""]
    assert rows[0]["label_kind"] == "'=SUM(A1)"  # no spreadsheet takes it for a formula
    assert list(rows[0])[:6] == ["run_id", "system", "env_id", "task_id", "task_digest", "attempt"]


def test_the_flat_table_as_parquet(folders: ModuleType, tmp_path: Path) -> None:
    """B162: statuses filter alike in a data frame."""
    import pyarrow.parquet as pq

    outcomes = iter([folders.Made(good=True, cost=0.5), folders.FAIL, folders.LOST, None])
    folder = folders.write(tmp_path, folders.lock(folders.tasks(4), ["agent"]), lambda item: next(outcomes))
    assert write_parquet(folder, tmp_path / "attempts.parquet") == 4
    table = pq.read_table(tmp_path / "attempts.parquet").to_pylist()
    assert [row["outcome"] for row in table] == ["success", "agent_failure", "environment_failure", None]
    assert [row["cost"] for row in table] == [0.5, None, None, None]
    assert [row["seed"] for row in table] == [item.seed for item in load(folder).lock.planned]


def test_parquet_without_pyarrow_says_what_to_install(
    folders: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folders.write(tmp_path, folders.lock(folders.tasks(1), ["agent"]), lambda item: folders.PASS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AgentEvalError, match=r"agent-envs\[parquet\]"):
        write_parquet(folder, tmp_path / "x.parquet")


def test_the_terminal_summary_fits_eighty_columns(folders: ModuleType, tmp_path: Path) -> None:
    names = ["a-system-with-a-name-of-forty-characters", "b", "c"]
    locked = folders.lock(folders.tasks(4), names, attempts=6, minimum_coverage=0.9)
    folder = folders.write(
        tmp_path, locked, lambda item: folders.LOST if item.system == "b" else folders.Made(good=True, cost=1234.5)
    )
    console = Console(file=io.StringIO(), width=80)
    print_analysis(console, analyse(folder))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert "withheld" in text
    assert "0/24" in text


def test_a_withheld_headline_appears_nowhere(folders: ModuleType, tmp_path: Path) -> None:
    """B152: not in the plot, not in the cards, not in a comparison."""
    locked = folders.lock(folders.tasks(4), ["agent", "other"], minimum_coverage=0.9)
    folder = folders.write(tmp_path, locked, lambda item: folders.LOST if item.task_id != "made/t0" else folders.PASS)
    found = analyse(folder)
    page = Page(report_html(found))
    assert "withheld" in page.text
    assert not any("100.0 %, 95 % interval" in part for part in page.text)
    assert [pair.p for pair in found.comparisons] == [None]
    for system in found.systems:
        assert system.macro.value is system.micro.value is None
        assert all(point.estimate.value is None for point in (*system.pass_at, *system.pass_hat))
        assert (system.over_valid, system.over_planned, system.successes, system.valid) == (1.0, 0.25, 1, 1)


def test_campaigns_are_compared_on_equal_tasks_only(folders: ModuleType, tmp_path: Path) -> None:
    first = folders.lock(folders.tasks(8), {"a": {"model": {"name": "m1"}}}, name="first")
    changed = [*folders.tasks(7)]
    changed[6] = changed[6].model_copy(update={"task_digest": "f" * 64})
    second = folders.lock(changed, {"a": {"model": {"name": "m2"}}}, name="second")
    one = folders.write(tmp_path / "one", first, lambda item: folders.FAIL)
    two = folders.write(tmp_path / "two", second, lambda item: folders.PASS)
    found = compare([one, two])
    assert (found.common, found.left_out_total) == (6, 2)
    assert {item.task_id: item.why for item in found.left_out} == {
        "made/t6": "another version of the task",
        "made/t7": "not in second",
    }
    (pair,) = found.comparisons
    assert (pair.a, pair.b, pair.kind) == ("a in first", "a in second", "model comparison")
    assert pair.difference.value == 1.0
    assert pair.p == pytest.approx(2 / 2**6)
    console = Console(file=io.StringIO(), width=80)
    print_comparison(console, found)
    assert "left out: made/t6" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_campaign_is_not_compared_with_itself_or_with_nothing_in_common(folders: ModuleType, tmp_path: Path) -> None:
    folder = folders.write(tmp_path / "a", folders.lock(folders.tasks(2), ["agent"]), lambda item: folders.PASS)
    with pytest.raises(ReportError, match="two different campaigns"):
        compare([folder, folder])
    other = [task.model_copy(update={"task_digest": "f" * 64}) for task in folders.tasks(2)]
    strange = folders.write(tmp_path / "b", folders.lock(other, ["agent"], name="b"), lambda item: folders.PASS)
    with pytest.raises(ReportError, match="no task in common"):
        compare([folder, strange])
