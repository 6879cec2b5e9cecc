"""The certificate: what an audit found, tied by digests to the code and tasks it was found of.

Changing a task, its references, the family's code or the core's changes a digest, and the certificate no longer holds.
"""

import importlib.metadata
import inspect
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import gymnasium
from pydantic import Field, ValidationError

from agent_envs.audit.finding import Finding
from agent_envs.audit.reviews import Label
from agent_envs.audit.subject import AuditError, Subject, core_of
from agent_envs.contract import AgentRun, Model, Status, digest, parse_json
from agent_envs.contract.sources import code_digest, subject_digest
from agent_envs.episode.env import AgentEnv

_NOT_CODE = ("tasks", "references", "reviews", "README.md")
"""Parts of a family's folder that the tasks' own digests cover, or that nothing runs."""
_CORE = ("contract", "state", "sandbox", "episode", "evaluator", "wrappers", "users")
_PACKAGES = ("gymnasium", "numpy", "orjson", "pydantic", "sqlalchemy")


class Person(Model):
    """A person's attempt at a task, under the agent's tools, permissions and limits."""

    run_id: str
    success: bool
    steps: int
    limit_steps: int
    task_digest: str
    """The task as it was attempted."""


class TaskCertificate(Model):
    """One task's part of a certificate."""

    task_digest: str
    references_digest: str
    grader_revision: int
    checks: dict[str, Status]
    """Check to what it says of this task."""
    mutants: dict[str, int] = Field(default_factory=dict)
    """Counts of the mutation test; empty when there was none."""
    grader_manifest: tuple[str, ...] = ()
    """Tests that this task's grader has passed."""
    people: tuple[Person, ...] = ()
    review: Label | None = None
    """The worst that any reviewer said of the present task; null when nobody has ever reviewed it."""


class Certificate(Model):
    """The result of an audit."""

    env_id: str
    seed: int
    sampled: bool
    """Only some tasks or mutants were tried; such a certificate admits nothing."""
    identity: dict[str, str]
    """Part of the code, fixture and tools to its digest."""
    versions: dict[str, str]
    """Interpreter and packages the audit ran with, for information."""
    tasks: dict[str, TaskCertificate]
    findings: tuple[Finding, ...]
    """All results of all checks, in the checks' order."""
    agreement: dict[str, float | None] = Field(default_factory=dict)
    """Krippendorff's alpha (ordinal) of the reviewers by label; null where it is undefined."""

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What failed or could not be told."""
        return tuple(item for item in self.findings if item.status is not Status.PASS)

    @property
    def good(self) -> bool:
        """Whether there were findings and every one passed."""
        return bool(self.findings) and not self.faults

    def totals(self) -> dict[str, dict[str, int]]:
        """Check to how many findings have each status, in the checks' order."""
        counts: dict[str, dict[str, int]] = {}
        for item in self.findings:
            row = counts.setdefault(item.check, {status.value: 0 for status in Status})
            row[item.status.value] += 1
        return counts

    def earned(self) -> dict[str, dict[str, tuple[int, int]]]:
        """What each cheap policy earned: kind of task to policy to (passed, runs)."""
        table: dict[str, dict[str, tuple[int, int]]] = {}
        for item in self.findings:
            for policy, row in item.evidence.get("earned", {}).items():
                cells = table.setdefault(item.evidence.get("kind") or "all", {})
                passed, runs = cells.get(policy, (0, 0))
                cells[policy] = passed + row["passed"], runs + row["runs"]
        return dict(sorted(table.items()))

    def tightest(self) -> tuple[str, int, int] | None:
        """The reference that comes closest to its task's limit: task, steps, limit; None where none was played."""
        found = [
            (item.task_id, run["steps"], item.evidence["limit_steps"])
            for item in self.findings
            for run in item.evidence.get("references", ())
        ]
        return max(found, key=lambda one: one[1] / one[2], default=None)

    def mutants(self) -> dict[str, int]:
        """Sums of the mutation counts over all tasks."""
        sums: dict[str, int] = {}
        for task in self.tasks.values():
            for name, count in task.mutants.items():
                sums[name] = sums.get(name, 0) + count
        return sums

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a certificate.

        Raises:
            AuditError: The file can't be read, or isn't a whole, unchanged certificate.
        """
        try:
            data = parse_json(path.read_bytes())
            certificate = cls.model_validate(data["certificate"])
            if digest(certificate.as_json()) != data["digest"]:
                raise AuditError(f"{path}: the certificate was changed after it was written; audit again")
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise AuditError(f"{path}: no certificate: {str(error)[:300]}") from None
        return certificate


def read_certificate(path: Path) -> Certificate:
    """Read a certificate.

    Raises:
        AuditError: The file can't be read, or isn't a whole, unchanged certificate.
    """
    return Certificate.from_file(path)


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate with its own digest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"certificate": certificate.as_json(), "digest": certificate.digest}
    part = path.with_name(f".{path.name}.part")  # a kill in the middle leaves the earlier certificate as it was
    part.write_text(json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def identity(env: gymnasium.Env[Any, Any]) -> dict[str, str]:
    """Digests of everything beside the tasks that can move a verdict, by part."""
    core = core_of(env)
    families = []
    for base in inspect.getmro(type(core)):
        if base is AgentEnv:
            break
        families.append(subject_digest(base, _NOT_CODE))
    suite = core.suite
    fixtures = sorted({suite.task(task_id).initial_state.fixture_digest for task_id in suite.eval_ids})
    return {
        "family": digest(families),
        "core": code_digest(*_CORE),
        "tools": digest([[tool.name, tool.implementation_digest] for tool in core.tools]),
        "fixture": digest(fixtures),
    }


def versions() -> dict[str, str]:
    """Interpreter and packages."""
    found = {"python": f"{platform.python_implementation()} {platform.python_version()}", "audit": code_digest("audit")}
    for name in _PACKAGES:
        found[name] = importlib.metadata.version(name)
    return found


def valid_certificate(path: Path, env: gymnasium.Env[Any, Any]) -> list[str]:
    """Reasons why a certificate doesn't admit an environment's curated tasks as they are now; empty when it does.

    Args:
        path: The certificate's file.
        env: The environment, in its standard dress.
    """
    try:
        certificate = Certificate.from_file(path)
    except AuditError as error:
        return [str(error)]
    reasons = []
    env_id = env.spec.id if env.spec is not None else ""
    if certificate.env_id.rpartition(":")[2] != env_id:
        reasons.append(f"it is of {certificate.env_id}, not of {env_id}")
    if certificate.sampled:
        reasons.append("it is of a sample; audit all tasks and mutants")
    for part, now in identity(env).items():
        if certificate.identity.get(part) != now:
            reasons.append(f"the {part} has changed since the audit")
    suite = core_of(env).suite
    for task_id in suite.eval_ids:
        part_of = certificate.tasks.get(task_id)
        if part_of is None:
            reasons.append(f"{task_id}: was not audited")
        elif part_of.task_digest != suite.task(task_id).digest:
            reasons.append(f"{task_id}: the task has changed since the audit")
        elif part_of.references_digest != suite.references(task_id).digest:
            reasons.append(f"{task_id}: its references have changed since the audit")
    for check, task_id in missing_checks(certificate):
        reasons.append(f"{task_id or 'the family'}: the check {check!r} was not made")
    reasons += [f"{item.task_id or 'the family'}: {item.check}: {item.summary}" for item in certificate.faults]
    return reasons


def missing_checks(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Checks of the present list that the certificate has nothing of, each with its task or, for the family, empty."""
    from agent_envs.audit.checks import CHECKS  # the checks play episodes, which reading a certificate doesn't need

    made = {(item.check, item.task_id) for item in certificate.findings}
    for check in CHECKS:
        for task_id in certificate.tasks if check.task else ("",):
            if (check.name, task_id) not in made:
                yield check.name, task_id
    for task_id in certificate.tasks:
        if ("mutation", task_id) not in made:
            yield "mutation", task_id


def task_certificate(
    subject: Subject, task_id: str, findings: Iterable[Finding], people: Iterable[Person], review: Label | None
) -> TaskCertificate:
    """Put one task's part together."""
    task = subject.task(task_id)
    mine = [item for item in findings if item.task_id == task_id]
    mutants: dict[str, int] = {}
    for item in mine:
        mutants |= item.evidence.get("counts", {}) if item.check == "mutation" else {}
    passed = tuple(item.check for item in mine if item.status is Status.PASS)
    return TaskCertificate(
        task_digest=task.digest,
        references_digest=subject.references(task_id).digest,
        grader_revision=task.grader_revision,
        checks={item.check: item.status for item in mine},
        mutants=mutants,
        grader_manifest=passed,
        people=tuple(people),
        review=review,
    )


def human_attempts(folder: Path) -> dict[str, list[Person]]:
    """Attempts of the policy ``human`` in a results folder, by task.

    Raises:
        AuditError: There are no records, or one in the middle is damaged.
    """
    path = folder / "runs.jsonl"
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise AuditError(f"{path}: can't be read ({error.strerror}); give the folder of 'agenteval play'") from None
    found: dict[str, list[Person]] = {}
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line.endswith(b"\n"):
            break  # a kill tore the last line; its attempt isn't recorded
        try:
            run = AgentRun.parse(line)
        except ValueError as error:
            raise AuditError(f"{path}, line {number}: no record: {str(error)[:200]}") from None
        if run.policy == "human" and run.counts:
            found.setdefault(run.task_id, []).append(_person(run))
    return found


def _person(run: AgentRun) -> Person:
    return Person(
        run_id=run.run_id,
        success=run.verdict is not None and run.verdict.Y is Status.PASS,
        steps=run.usage.steps,
        limit_steps=run.limits.steps,
        task_digest=run.task_digest,
    )


def people_of(task_id: str, task_digest: str, attempts: Mapping[str, Iterable[Person]]) -> list[Person]:
    """Attempts at the task as it is now; those at an earlier version say nothing of it."""
    return [person for person in attempts.get(task_id, ()) if person.task_digest == task_digest]
