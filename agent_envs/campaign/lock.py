"""The lock: a campaign frozen at its start. Its digest is the campaign's name on every record.

A manifest can be edited, a policy's file rewritten, a task revised while a campaign runs or waits to be resumed. The
lock says what was planned: a manifest that differs is refused by the name of the changed field, and code or tasks that
differ are reported by name. Nothing of that is accepted in silence.
"""

import functools
import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from pydantic import Field, ValidationError, model_validator

from agent_envs.baselines import load
from agent_envs.baselines.process import policy_of
from agent_envs.campaign.expansion import PlannedAttempt, PlannedTask, choose, expand, make_env
from agent_envs.campaign.manifest import Fault, Manifest, System
from agent_envs.campaign.spec import capture, describe, diff, differences
from agent_envs.contract import OUTCOME_TABLE_VERSION, AgentEvalError, Model, SystemSpec, canonical_json, digest
from agent_envs.contract.archive import sync_folder
from agent_envs.contract.outcomes import Table
from agent_envs.contract.sources import code_digest
from agent_envs.episode.env import AgentEnv

LOCK_NAME = "campaign.lock.json"
_FLOORS = (
    "contract", "statistics", "state", "sandbox", "episode", "evaluator", "wrappers", "users", "envs", "baselines",
    "audit", "campaign", "diagnosis", "report", "bridges",
)  # fmt: skip


class LockError(AgentEvalError):
    """A campaign can't be locked, or isn't the one that was; the message names the changed field."""


class TableVersion(Model):
    """Which outcome table holds."""

    version: int
    rows: str
    """Digest of all rows, the campaign's own ones too."""


class Lock(Model):
    """A campaign at its start: the manifest, everything under test by digest, and the tasks."""

    manifest: Manifest
    manifest_digest: str
    systems: dict[str, SystemSpec]
    """By name, in the environment of the suite's first part."""
    other_environments: dict[str, dict[str, SystemSpec]] = Field(default_factory=dict)
    """The same for each further environment of the suite."""
    tasks: tuple[PlannedTask, ...] = Field(min_length=1)
    """The suite, in its order."""
    outcome_table: TableVersion
    code: str
    """Digest of this package's source."""
    plan_digest: str
    """Digest of the planned attempts, which follow from the rest."""

    @functools.cached_property
    def planned(self) -> tuple[PlannedAttempt, ...]:
        """Every planned attempt, in the order in which they start."""
        hashes = {(name, task.env_id): "" for task in self.tasks for name in self.systems}
        hashes = {key: self.spec(*key).digest for key in hashes}
        return expand(self.manifest, self.tasks, hashes)

    @property
    def oracles(self) -> tuple[str, ...]:
        """Systems that play with the reference solution: shown as such, never ranked."""
        return tuple(name for name, spec in self.systems.items() if spec.policy.get("oracle"))

    @property
    def rows(self) -> Table:
        """The outcome table with this campaign's overrides."""
        return self.manifest.outcome_table

    def spec(self, system: str, env_id: str) -> SystemSpec:
        """What is under test when a system plays in an environment."""
        return self.other_environments.get(env_id, self.systems)[system]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.manifest_digest != self.manifest.digest:
            raise ValueError("manifest_digest isn't that of the manifest: the file was changed")
        names = [system.name for system in self.manifest.systems]
        for specs in (self.systems, *self.other_environments.values()):
            if sorted(specs) != sorted(names):
                raise ValueError(f"systems: specs of {sorted(specs)}, but the manifest has {sorted(names)}")
        if self.plan_digest != plan_digest(self.planned):
            raise ValueError(
                "plan_digest isn't that of the planned attempts: the file, or how attempts are planned, changed"
            )
        return self


def plan_digest(planned: tuple[PlannedAttempt, ...]) -> str:
    """Digest of planned attempts: their ids, which are digests of the rest, in their order."""
    return digest([item.run_id for item in planned])


def make_lock(manifest: Manifest, fault: Fault | None = None) -> Lock:
    """Freeze a campaign: load every policy, describe every system, choose the tasks. Nothing is run or written.

    Args:
        manifest: The campaign.
        fault: Makes the error of a place in the manifest, as `read_manifest` gives it; else the system is named.

    Raises:
        AgentEvalError: A policy can't be loaded or described, an environment doesn't take its arguments, or tasks,
            labels or canaries don't exist.
    """
    for name in ("known_pass", "known_fail"):
        try:
            load(getattr(manifest.canaries, name).policy)
        except AgentEvalError as error:
            raise fault(("canaries", name, "policy"), str(error)) if fault else error from None
    return assemble(manifest, _capture_all(manifest, fault), choose(manifest, fault))


def assemble(manifest: Manifest, specs: dict[str, dict[str, SystemSpec]], tasks: tuple[PlannedTask, ...]) -> Lock:
    """Make a lock of its parts.

    Args:
        manifest: The campaign.
        specs: Environment id to system's name to spec.
        tasks: The suite.
    """
    first = manifest.suite[0].env
    others = {env_id: found for env_id, found in specs.items() if env_id != first}
    hashes = {(name, env_id): spec.digest for env_id, found in specs.items() for name, spec in found.items()}
    return Lock(
        manifest=manifest,
        manifest_digest=manifest.digest,
        systems=specs[first],
        other_environments=others,
        tasks=tasks,
        outcome_table=_table_version(manifest.outcome_table),
        code=code_digest(*_FLOORS),
        plan_digest=plan_digest(expand(manifest, tasks, hashes)),
    )


def write_lock(lock: Lock, folder: Path) -> None:
    """Write a lock durably and at once, or do nothing where the very same one stands already.

    Raises:
        LockError: The folder holds another campaign, or can't be written.
    """
    path = folder / LOCK_NAME
    part = folder / f".{LOCK_NAME}.{secrets.token_hex(8)}"  # its own, since two may start at once
    if path.exists():
        if (there := read_lock(folder)).digest != lock.digest:
            changed = describe(list(differences(there.as_json(), lock.as_json())))
            raise LockError(f"{path}: another campaign is locked here ({'; '.join(changed[:3])}); use another folder")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                file.write(lock.canonical() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(part, path)  # unlike a rename this never replaces a lock that somebody else has just written
        finally:
            part.unlink(missing_ok=True)
        sync_folder(folder)
    except FileExistsError:
        write_lock(lock, folder)
    except OSError as error:
        raise LockError(f"{path}: the lock can't be written: {error}") from None


def read_lock(place: Path) -> Lock:
    """Read the lock of a campaign.

    Args:
        place: The campaign's folder, or the lock file itself.

    Raises:
        LockError: There is none, or it is damaged.
    """
    path = place / LOCK_NAME if place.is_dir() else place
    try:
        return Lock.parse(path.read_bytes())
    except FileNotFoundError:
        raise LockError(
            f"{path}: no campaign is locked here; 'agenteval campaign run MANIFEST --out DIR' starts one"
        ) from None
    except OSError as error:
        raise LockError(f"{path}: the lock can't be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the lock"
        raise LockError(f"{path}, {field}: the lock is damaged: {first['msg']}"[:500]) from None
    except ValueError as error:
        raise LockError(f"{path}: the lock is damaged: {error}"[:500]) from None


def refuse_edits(lock: Lock, manifest: Manifest) -> None:
    """Refuse a manifest that isn't the locked one.

    Raises:
        LockError: Names each changed field with both values.
    """
    changed = [
        f"{path}: locked {_value(before)}, manifest says {_value(after)}"
        for path, before, after in differences(lock.manifest.as_json(), manifest.as_json())
    ]
    if changed:
        more = f"; and {len(changed) - 5} more" if len(changed) > 5 else ""
        raise LockError(f"{'; '.join(changed[:5])}{more}; start a new campaign in another folder")


class Drift(NamedTuple):
    """Something that isn't what was locked."""

    kind: str
    """``system``, ``task``, ``outcome_table`` or ``code`` (this package; what matters shows in the systems too)."""
    name: str
    """Name of the system (with its environment where there are several) or id of the task."""
    path: str
    """Place in the system's spec, such as ``grader.source``; else ``digest`` or ``version``."""
    before: Any
    after: Any
    """None when it is gone."""

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.kind} {self.name}, {self.path}: {_value(self.before)} -> {_value(self.after)}"


def drift(lock: Lock) -> list[Drift]:
    """How the present code, tasks and policies differ from the locked ones; empty when nothing does.

    Raises:
        AgentEvalError: A policy can't be loaded or described any more.
    """
    found: list[Drift] = []
    now = _capture_all(lock.manifest)
    for env_id, specs in now.items():
        for name, spec in specs.items():
            label = f"{name} in {env_id}" if len(now) > 1 else name
            found += [Drift("system", label, *item) for item in diff(lock.spec(name, env_id), spec)]
    tasks = {task.task_id: task for task in _present_tasks(lock)}
    for task in lock.tasks:
        present = tasks.get(task.task_id)
        if present is None or present.task_digest != task.task_digest:
            found.append(Drift("task", task.task_id, "digest", task.task_digest, present and present.task_digest))
    table = _table_version(lock.manifest.outcome_table)
    found += [Drift("outcome_table", "", *item) for item in differences(lock.outcome_table.as_json(), table.as_json())]
    if (code := code_digest(*_FLOORS)) != lock.code:
        found.append(Drift("code", "agent_envs", "digest", lock.code, code))
    return found


def _present_tasks(lock: Lock) -> list[PlannedTask]:
    """The locked tasks as they are now; those that are gone or can't be loaded are left out."""
    suites = {
        env_id: cast(AgentEnv, make_env(env_id).unwrapped).suite
        for env_id in dict.fromkeys(task.env_id for task in lock.tasks)
    }
    present = []
    for task in lock.tasks:
        try:
            found = suites[task.env_id].task(task.task_id)
        except AgentEvalError:
            continue
        present.append(task.model_copy(update={"task_digest": found.digest}))
    return present


def _capture_all(manifest: Manifest, fault: Fault | None = None) -> dict[str, dict[str, SystemSpec]]:
    env_ids = dict.fromkeys(part.env for part in manifest.suite)
    return {
        env_id: {
            system.name: _captured(env_id, system, number, fault) for number, system in enumerate(manifest.systems)
        }
        for env_id in env_ids
    }


def _captured(env_id: str, system: System, number: int, fault: Fault | None) -> SystemSpec:
    field = "env_arguments"
    try:
        env = make_env(env_id, {**system.env_arguments, **system.limits.given()})
        field = "policy"
        try:
            return capture(env, policy_of(system.policy, system.isolation))
        finally:
            env.close()
    except AgentEvalError as error:
        if fault:
            raise fault(("systems", number, field), str(error)) from None
        raise LockError(f"system {system.name!r}: {error}") from None


def _table_version(table: Table) -> TableVersion:
    rows = sorted([*key, *row] for key, row in table.items())
    return TableVersion(version=OUTCOME_TABLE_VERSION, rows=digest([[str(item) for item in row] for row in rows]))


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = canonical_json(value).decode()
    return text if len(text) <= 80 else f"{text[:60]}..."
