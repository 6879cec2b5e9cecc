"""``agenteval audit``: prove, without any model, that a family's tasks and graders measure what they say."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from agent_envs.cli.common import Command, console, natural, positive

_MUTANTS = 40
"""Mutants a task in a sampled audit."""


def add(command: Command) -> None:
    """Add the command."""
    made = command("audit", _audit, "Audit a family's tasks, resets and graders without any model.")
    made.add_argument("env", help="environment id, such as agenteval/refund-v1")
    made.add_argument("--task", action="append", default=[], metavar="T", help="audit this task only; may be repeated")
    made.add_argument("--sample", type=positive, metavar="N", help=f"only N tasks, as if --mutants {_MUTANTS}")
    made.add_argument("--mutants", type=positive, metavar="N", help="a task's N mutants, N variations, N states")
    made.add_argument("--check", action="append", default=[], metavar="C", help="make this check only; may be repeated")
    made.add_argument("--workers", type=positive, default=1, metavar="N", help="processes (default 1)")
    made.add_argument("--seed", type=natural, default=0, help="seed of what is drawn (default 0)")
    made.add_argument("--out", type=Path, metavar="FILE", help="write the certificate here")
    made.add_argument("--human", type=Path, metavar="DIR", help="results folder with people's attempts")
    made.add_argument("--reviews", type=Path, metavar="DIR", help="reviews (default: the family's own)")
    made.add_argument("--verified", type=Path, metavar="FILE", help="write the slice of verified tasks here")
    made.add_argument("--valid", type=Path, metavar="FILE", help="only say whether this certificate still holds")


def _audit(options: argparse.Namespace) -> int:
    from agent_envs.audit import run_audit, subject, valid_certificate, write_certificate
    from agent_envs.audit.verified import write_slice
    from agent_envs.report.audit import print_certificate

    if options.valid is not None:
        with subject(options.env).make() as env:
            reasons = valid_certificate(options.valid, env)
        print("\n".join(reasons) or f"{options.valid}: the certificate holds")
        return 1 if reasons else 0
    for path in (options.out, options.verified):
        if path is not None:
            _writable(path)
    chosen = subject(options.env, tuple(options.task), sample=options.sample, seed=options.seed)
    mutants = options.mutants or (_MUTANTS if options.sample else None)
    try:
        with _bars() as tell:
            certificate = run_audit(
                chosen,
                checks=options.check,
                workers=options.workers,
                mutants=mutants,
                human=options.human,
                reviews=options.reviews,
                progress=tell,
            )
    except KeyboardInterrupt:
        print("\nagenteval: stopped; an audit keeps nothing of what was not finished", file=sys.stderr)
        return 130
    print_certificate(console(), certificate)
    if options.out is not None:
        write_certificate(certificate, options.out)
        print(f"certificate: {options.out} ({certificate.digest[:16]})")
    if options.verified is not None:
        note = " (a sample verifies nothing)" if certificate.sampled else ""
        print(f"verified tasks: {len(write_slice(certificate, options.verified))} in {options.verified}{note}")
    return 0 if certificate.good else 1


def _writable(path: Path) -> None:
    """See that a file can be written before the work is done that is to stand in it.

    Raises:
        AuditError: It can't.
    """
    from agent_envs.audit import AuditError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(path.parent, os.W_OK) and not path.is_dir()
    except OSError:
        writable = False
    if not writable:
        raise AuditError(f"{path}: no file can be written there; give a file in a folder that can be written to")


class _bars:
    """Progress on standard error, one bar for each part."""

    def __enter__(self) -> Any:
        """Show it."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._progress.start()
        bars: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = self._progress.add_task(what, total=total)
            self._progress.update(bars[what], completed=done)

        return tell

    def __exit__(self, *_: object) -> None:
        """Leave the last state standing."""
        self._progress.stop()
