"""An audit's certificate on the terminal: what was checked, what cheap policies earn, and every fault."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_envs.audit import Certificate
from agent_envs.contract import Status
from agent_envs.report.words import plain

_STYLE = {Status.PASS: "green", Status.FAIL: "red", Status.UNDETERMINED: "yellow"}
_MOST_FAULTS = 40


def print_certificate(console: Console, certificate: Certificate) -> None:
    """Everything in at most 80 columns; the evidence stays in the file."""
    tasks = len(certificate.tasks)
    note = " (a sample: it admits nothing)" if certificate.sampled else ""
    console.print(plain(f"Audit of {certificate.env_id}: {tasks} tasks, seed {certificate.seed}{note}"))
    console.print(_checks(certificate))
    if earned := certificate.earned():
        console.print(_earned(earned))
    if mutants := certificate.mutants():
        console.print(_mutants(mutants))
    _people(console, certificate)
    for item in certificate.faults[:_MOST_FAULTS]:
        where = item.task_id or "the family"
        console.print(Text.assemble((f"{item.status.value}: ", _STYLE[item.status]), plain(f"{item.check}, {where}")))
        console.print(plain(f"  {item.summary}"))
    if (more := len(certificate.faults) - _MOST_FAULTS) > 0:
        console.print(f"... and {more} more")
    good = certificate.good
    verdict = "Every check passed." if good else f"{len(certificate.faults)} findings stand against it."
    console.print(Text(verdict, style="green" if good else "bold red"))


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
        table = Table(title="People", box=box.SIMPLE_HEAD)
        table.add_column("task", overflow="fold")
        for name in ("solved", "steps", "reviews", "clarity", "narrow", "wide", "hard"):
            table.add_column(name, justify="right", no_wrap=True)
        for task_id, task in certificate.tasks.items():
            if not task.people and task.review is None:
                continue
            solved = f"{sum(person.success for person in task.people)}/{len(task.people)}" if task.people else "-"
            steps = ",".join(str(person.steps) for person in task.people[:3]) or "-"
            review = task.review
            worst = ["0", "-", "-", "-", "-"]
            if review is not None:
                found = review.reviewers, review.clarity, review.too_narrow, review.too_wide, review.difficulty
                worst = [str(number) for number in found]
            table.add_row(plain(task_id.partition("/")[2]), solved, steps, *worst)
        console.print(table)
    if certificate.agreement:
        shown = ", ".join(
            f"{name} {'undefined' if alpha is None else format(alpha, '.2f')}"
            for name, alpha in certificate.agreement.items()
        )
        console.print(plain(f"Agreement of the reviewers (Krippendorff's alpha, ordinal): {shown}"))
