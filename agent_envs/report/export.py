"""Writing a report: ``report.json``, ``report.html``, trajectory pages, and the attempts as a flat table.

The flat table has one row a planned attempt, in the plan's order, with these columns:

=====================  =====================================================================================
``run_id``             id of the planned attempt
``system``             its system's name
``env_id``             environment
``task_id``            task
``task_digest``        digest of the task as it was locked
``attempt``            number of the attempt, from 0
``seed``               seed of its episode
``weight``             weight of the task
``status``             ``valid``, ``invalid`` or ``missing``
``outcome``            outcome class; empty when missing
``ending``             terminal reason, as ``phase/origin/kind``
``success``            1 or 0; empty unless valid
``broke_rule``         1 when the outcome was right and a rule was broken
``false_claim``        1 when success was claimed and the state says otherwise
``steps``              steps taken
``tokens``             tokens; empty when unknown
``cost``               US dollars of this try; empty when unknown
``cost_all_tries``     US dollars of all tries; empty unless all are known
``seconds``            wall seconds
``environment_seconds``  part of it spent in the environment
``tries``              tries on record
``start_order``        place in the order of starts
``worker``             worker that ran it
``label_<name>``       the task's labels, sorted by name; empty where it has none
=====================  =====================================================================================

New columns come last; none changes its meaning.
"""

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_envs.campaign.results import Results
from agent_envs.contract import AgentEvalError, AgentRun, Evidence, EvidenceError
from agent_envs.report.analysis import analysis_of
from agent_envs.report.content import Analysis
from agent_envs.report.html import report_html, trajectory_html
from agent_envs.report.listings import page_name
from agent_envs.report.records import CLASSES, MISSING, Records, load

REPORT = "report"
"""Folder of the report in a campaign's folder."""
_BATCH = 20_000


def write_report(folder: Path) -> Analysis:
    """Write a campaign's whole report into ``report/``.

    Args:
        folder: The campaign's folder.

    Returns:
        What it says.

    Raises:
        AgentEvalError: The records can't be read, or the report can't be written.
    """
    records = load(folder)
    analysis = analysis_of(records)
    try:
        wanted = set()
        for name, content in files(records, analysis):
            _write(folder / REPORT / name, content)
            wanted.add(name)
        for old in sorted((folder / REPORT / "trajectories").glob("*.html")):
            if f"trajectories/{old.name}" not in wanted:
                old.unlink()
    except OSError as error:
        raise AgentEvalError(f"{folder / REPORT}: the report can't be written: {error}") from None
    return analysis


def files(records: Records, analysis: Analysis) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file of a report, one at a time; the same records give the same bytes."""
    yield "report.json", analysis.canonical() + b"\n"
    yield "report.html", report_html(analysis).encode("utf-8")
    yield "attempts.csv", csv_text(records).encode("utf-8")
    for run in _shown(records, analysis):
        page = trajectory_html(run, *_evidence(records.folder, run))
        yield f"trajectories/{page_name(run)}", page.encode("utf-8")


def _shown(records: Records, analysis: Analysis) -> Iterator[AgentRun]:
    """The tries that have a trajectory page."""
    places = {run_id: place for place, run_id in enumerate(records.run_ids)}
    pages = {note.page for note in (*analysis.failures.shown, *analysis.invalid.shown) if note.page}
    failed = (records.run(places[note.run_id]) for note in analysis.failures.shown)
    for run in itertools.chain(failed, (record.run for record in records.invalid)):
        page = f"trajectories/{page_name(run)}"
        if page in pages:
            pages.remove(page)
            yield run


def _evidence(folder: Path, run: AgentRun) -> tuple[Evidence | None, str]:
    """A try's evidence, or a sentence that says why there is none: without a path, which differs between machines."""
    results = Results(folder)
    try:
        return results.evidence(run), ""
    except EvidenceError:
        here = (folder / run.evidence).is_dir()
        return None, "The evidence is damaged, or another run's." if here else "The evidence is gone."


def rows(records: Records) -> Iterator[dict[str, Any]]:
    """The flat table's rows; what isn't known is None."""
    table, lock = records.columns, records.lock
    labels = sorted({name for task in records.labels for name in task})
    for place, item in enumerate(lock.planned):
        recorded, valid = bool(table.place[place] >= 0), bool(table.valid[place])
        outcome = int(table.outcome[place])
        yield {
            "run_id": item.run_id,
            "system": item.system,
            "env_id": item.env_id,
            "task_id": item.task_id,
            "task_digest": item.task_digest,
            "attempt": item.attempt,
            "seed": item.seed,
            "weight": item.weight,
            "status": "valid" if valid else "invalid" if recorded else "missing",
            "outcome": None if outcome == MISSING else CLASSES[outcome].value,
            "ending": records.endings[table.ending[place]] if recorded else None,
            "success": int(table.success[place]) if valid else None,
            "broke_rule": int(table.broke_rule[place]) if recorded else None,
            "false_claim": int(table.false_claim[place]) if recorded else None,
            "steps": int(table.steps[place]) if recorded else None,
            "tokens": _known(table.tokens[place], whole=True),
            "cost": _known(table.cost[place]),
            "cost_all_tries": _known(table.spent[place]) if table.tries[place] else None,
            "seconds": _known(table.seconds[place]),
            "environment_seconds": _known(table.environment_seconds[place]),
            "tries": int(table.tries[place]),
            "start_order": int(table.order[place]) if recorded else None,
            "worker": records.workers[table.worker[place]] if recorded else None,
            **{f"label_{name}": item.labels.get(name) for name in labels},
        }


def csv_text(records: Records) -> str:
    """The flat table as CSV (RFC 4180 with bare line feeds, UTF-8).

    Text that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    out = io.StringIO()
    writer: Any = None
    for row in rows(records):
        if writer is None:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow([_cell(name) for name in row])
        writer.writerow([_cell(value) for value in row.values()])
    return out.getvalue()


def write_parquet(folder: Path, path: Path) -> int:
    """Write the flat table as Parquet.

    Args:
        folder: The campaign's folder.
        path: The file to write.

    Returns:
        Number of rows.

    Raises:
        AgentEvalError: pyarrow isn't installed, the records can't be read or the file can't be written.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise AgentEvalError("Parquet needs pyarrow; install it with: pip install 'agent-envs[parquet]'") from None
    records = load(folder)
    source, total = rows(records), 0
    schema = pa.schema([(name, getattr(pa, _TYPES.get(name, "string"))()) for name in next(rows(records))])
    try:
        with pq.ParquetWriter(path, schema) as writer:
            while batch := list(itertools.islice(source, _BATCH)):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                total += len(batch)
    except OSError as error:
        raise AgentEvalError(f"{path}: the table can't be written: {error}") from None
    return total


_TYPES = {
    **dict.fromkeys(("attempt", "seed", "steps", "tokens", "tries", "start_order"), "int64"),
    **dict.fromkeys(("success", "broke_rule", "false_claim"), "int8"),
    **dict.fromkeys(("weight", "cost", "cost_all_tries", "seconds", "environment_seconds"), "float64"),
}


def _known(value: Any, whole: bool = False) -> float | int | None:
    number = float(value)
    return None if number != number else int(number) if whole else number


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        safe = value.encode("utf-8", "backslashreplace").decode("utf-8")
        return f"'{safe}" if safe[:1] in tuple("=+-@\t\r") else safe
    return "" if value is None else value


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
