"""An audit's certificate on the terminal: what was checked, what cheap policies earn, and every fault."""

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent_envs.audit import Certificate, Finding
from agent_envs.audit.certificate import missing_checks
from agent_envs.contract import Status
from agent_envs.report.words import plain

_STYLE = {Status.PASS: "green", Status.FAIL: "red", Status.UNDETERMINED: "yellow"}
_MOST_FAULTS = 40
_MOST_SURVIVORS = 3
"""Of one task's mutation test; the certificate has them all."""
_MOST_LINES = 12


def print_certificate(console: Console, certificate: Certificate) -> None:
    """Everything in at most 80 columns; the evidence stays in the file."""
    note = " (a sample: it admits nothing)" if certificate.sampled else ""
    size = _counted(len(certificate.tasks), "task")
    console.print(plain(f"Audit of {certificate.env_id}: {size}, seed {certificate.seed}{note}"))
    if not certificate.findings:
        console.print(
            Text("None of these checks says anything of these tasks alone: nothing is proven.", style="bold red")
        )
        return
    console.print(_checks(certificate))
    if (tightest := certificate.tightest()) is not None:
        task_id, steps, limit = tightest
        console.print(plain(f"The reference closest to its limit takes {steps} of {limit} steps ({task_id})."))
    if earned := certificate.earned():
        console.print(_earned(earned))
    if mutants := certificate.mutants():
        console.print(_mutants(mutants))
    _people(console, certificate)
    for item in certificate.faults[:_MOST_FAULTS]:
        where = item.task_id or "the family"
        console.print(Text.assemble((f"{item.status.value}: ", _STYLE[item.status]), plain(f"{item.check}, {where}")))
        console.print(_indented(2, item.summary))
        _survivors(console, item)
    if (more := len(certificate.faults) - _MOST_FAULTS) > 0:
        console.print(f"... and {more} more")
    good = certificate.good
    faults = len(certificate.faults)
    verdict = f"{_counted(faults, 'finding')} {'stands' if faults == 1 else 'stand'} against it."
    if good:
        verdict = "Every check passed." if not any(missing_checks(certificate)) else "Every check made passed."
    console.print(Text(verdict, style="green" if good else "bold red"))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _indented(spaces: int, text: str) -> Padding:
    return Padding(plain(text), (0, 0, 0, spaces))


def _survivors(console: Console, item: Finding) -> None:
    """The first runs on which grader and second opinion differ, each with what was changed in the script."""
    found = item.evidence.get("disagreements", [])
    for one in found[:_MOST_SURVIVORS]:
        direction = one["direction"].replace("_", " ")
        console.print(_indented(2, f"{direction}: {one['operator']}: {one['what']}"))
        for line in one["script"][:_MOST_LINES]:
            console.print(_indented(4, line))
        if (more := len(one["script"]) - _MOST_LINES) > 0:
            console.print(f"    ... and {_counted(more, 'line')} more")
    if (more := len(found) - _MOST_SURVIVORS) > 0:
        console.print(f"  ... and {more} more in the certificate (--out FILE)")


def _checks(certificate: Certificate) -> Table:
    table = Table(title="Checks", box=box.SIMPLE_HEAD)
    table.add_column("check", no_wrap=True)
    for status in Status:
        table.add_column(status.value, justify="right", no_wrap=True)
    for check, row in certificate.totals().items():
        table.add_row(plain(check), *(str(row[status.value]) for status in Status))
    return table


def _earned(earned: dict[str, dict[str, tuple[int, int]]]) -> Table:
    policies = list(dict.fromkeys(policy for row in earned.values() for policy in row))
    caption = "successes / runs; anything but 0 is a fault"
    table = Table(title="What cheap policies earn, by kind", caption=caption, box=box.SIMPLE_HEAD, padding=(0, 0))
    table.add_column("kind", overflow="fold")
    for policy in policies:
        table.add_column(plain(policy), justify="right", no_wrap=True)
    for kind, row in earned.items():
        cells = [row.get(policy, (0, 0)) for policy in policies]
        table.add_row(plain(kind), *(Text(f"{passed}/{runs}", "red" if passed else "") for passed, runs in cells))
    return table


def _mutants(counts: dict[str, int]) -> Table:
    table = Table(title="Mutation of the graders", box=box.SIMPLE_HEAD)
    for name in counts:
        table.add_column(name.replace("_", "\n"), justify="right", no_wrap=True)
    table.add_row(*map(str, counts.values()))
    return table


def _people(console: Console, certificate: Certificate) -> None:
    """Attempts by people, reviews, and how far the reviewers agree; nothing where there are none."""
    if any(task.people or task.review for task in certificate.tasks.values()):
        table = Table(title="People", box=box.SIMPLE_HEAD, padding=(0, 0))
        table.add_column("task", overflow="fold")
        for name in ("solved", "steps", "reviews", "stale", "clarity", "narrow", "wide", "hard"):
            table.add_column(name, justify="right", no_wrap=True)
        for task_id, task in certificate.tasks.items():
            if not task.people and task.review is None:
                continue
            solved = f"{sum(person.success for person in task.people)}/{len(task.people)}" if task.people else "-"
            steps = ",".join(str(person.steps) for person in task.people[:3]) or "-"
            review = task.review
            worst = ["0", "0", "-", "-", "-", "-"]
            if review is not None:
                labels = review.clarity, review.too_narrow, review.too_wide, review.difficulty
                counts = str(review.reviewers), str(review.stale)
                worst = [*counts, *("-" if value is None else str(value) for value in labels)]
            table.add_row(plain(task_id.partition("/")[2]), solved, steps, *worst)
        console.print(table)
    if certificate.agreement:
        shown = ", ".join(
            f"{name} {'undefined' if alpha is None else format(alpha, '.2f')}"
            for name, alpha in certificate.agreement.items()
        )
        console.print(plain(f"Agreement of the reviewers (Krippendorff's alpha, ordinal): {shown}"))
