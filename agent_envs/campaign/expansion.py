"""From a manifest to its planned attempts: which tasks, which seeds, and in which order they start."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import gymnasium

import agent_envs
from agent_envs.campaign.manifest import Canary, Fault, Manifest, SuitePart
from agent_envs.campaign.runner import attempt_seed, choose_tasks
from agent_envs.contract import AgentEvalError, Model, TaskError, digest
from agent_envs.episode.env import AgentEnv
from agent_envs.episode.suite import Suite


class PlannedTask(Model):
    """A task of the suite, as the lock keeps it."""

    env_id: str
    task_id: str
    task_digest: str
    weight: float
    labels: dict[str, str]


class PlannedAttempt(NamedTuple):
    """One attempt to make; the campaign owes exactly one result for it."""

    run_id: str
    """Readable name and a digest of task, system, seed and attempt."""
    system: str
    env_id: str
    task_id: str
    task_digest: str
    weight: float
    labels: dict[str, str]
    attempt: int
    seed: int


def make_env(env_id: str, arguments: Mapping[str, Any] | None = None) -> gymnasium.Env[Any, Any]:
    """An environment in its standard dress; nothing live is made before its first reset.

    Raises:
        TaskError: There is no such environment, or it doesn't take these arguments.
    """
    agent_envs.register_envs()
    name = env_id.removeprefix("agent_envs:")
    spec = gymnasium.registry.get(name)
    if spec is None or not name.startswith("agenteval/"):
        known = ", ".join(sorted(known for known in gymnasium.registry if known.startswith("agenteval/")))
        raise TaskError(f"there is no environment {env_id!r}; there are: {known}")
    try:
        return gymnasium.make(name, **(arguments or {}))
    except (TypeError, ValueError, gymnasium.error.Error) as error:
        why = str(error).partition(" was raised from the environment creator")[0]  # Gymnasium repeats all of it
        raise TaskError(f"{env_id} doesn't take {dict(arguments or {})!r}: {why}"[:500]) from None


def choose(manifest: Manifest, fault: Fault | None = None) -> tuple[PlannedTask, ...]:
    """The suite's tasks, in the suite's order, and everything of the manifest that depends on them checked.

    Args:
        manifest: The campaign.
        fault: Makes the error of a place in the manifest; the loader's names file and line.

    Raises:
        TaskError: There is no such environment or task, a part or a label matches nothing, a task stands in two parts,
            or a smoke task or canary doesn't exist.
    """
    fault = fault or _plain_fault
    suites: dict[str, Suite] = {}
    chosen: dict[str, PlannedTask] = {}
    for number, part in enumerate(manifest.suite):
        place = ("suite", number)
        suite = suites[part.env] = suites.get(part.env) or _suite(part.env, (*place, "env"), fault)
        for task in _part(part, suite, place, fault):
            if task.task_id in chosen:
                raise fault(place, f"{task.task_id} is in an earlier part too; a task has one weight, so name it once")
            chosen[task.task_id] = task
    for number, label in enumerate(manifest.slices):
        if not any(label in task.labels for task in chosen.values()):
            known = sorted({name for task in chosen.values() for name in task.labels})
            raise fault(
                ("slices", number), f"no task has the label {label!r}; the labels are {', '.join(known) or 'none'}"
            )
    for number, task_id in enumerate(manifest.smoke):
        if task_id not in chosen:
            raise fault(("smoke", number), f"{task_id!r} is no task of the suite")
    for name in ("known_pass", "known_fail"):
        canary: Canary = getattr(manifest.canaries, name)
        env_id = canary.env or manifest.suite[0].env
        suite = suites.get(env_id) or _suite(env_id, ("canaries", name, "env"), fault)
        _checked(lambda: suite.task(canary.task), ("canaries", name, "task"), fault)  # noqa: B023 (called at once)
    return tuple(chosen.values())


def expand(
    manifest: Manifest, tasks: Sequence[PlannedTask], hashes: Mapping[tuple[str, str], str]
) -> tuple[PlannedAttempt, ...]:
    """Every planned attempt, in the order in which they start.

    All first attempts come before all second ones. Within such a round systems and tasks are mixed by the base seed, so
    that no system has the early hours for itself.

    Args:
        manifest: The campaign.
        tasks: Its tasks, as `choose` gives them.
        hashes: System spec hash by system's name and environment id.
    """
    planned = []
    for attempt in range(manifest.attempts):
        lot = []
        for task in tasks:
            seed = attempt_seed(manifest.seed, task.task_id, attempt)
            for system in manifest.systems:
                identity = digest([task.task_digest, hashes[system.name, task.env_id], seed, attempt])[:12]
                run_id = f"{task.task_id.partition('/')[2]}.{system.name}.{attempt}.{identity}"
                made = PlannedAttempt(run_id, system.name, *_row(task), attempt, seed)
                key = f"order:{manifest.seed}:{attempt}:{system.name}:{task.task_id}".encode()
                lot.append((hashlib.sha256(key).digest(), made))
        lot.sort(key=lambda pair: pair[0])
        planned += [made for _, made in lot]
    return tuple(planned)


def _row(task: PlannedTask) -> tuple[str, str, str, float, dict[str, str]]:
    return task.env_id, task.task_id, task.task_digest, task.weight, task.labels


def _plain_fault(place: tuple[str | int, ...], message: str) -> Exception:
    return TaskError(f"{'.'.join(map(str, place))}: {message}")


def _checked(ask: Callable[[], Any], place: tuple[str | int, ...], fault: Fault) -> Any:
    """The answer, or its error with the place in the manifest."""
    try:
        return ask()
    except AgentEvalError as error:
        raise fault(place, str(error)) from None


def _suite(env_id: str, place: tuple[str | int, ...], fault: Fault) -> Suite:
    env = _checked(lambda: make_env(env_id), place, fault)
    try:
        return cast(AgentEnv, env.unwrapped).suite
    finally:
        env.close()


def _part(part: SuitePart, suite: Suite, place: tuple[str | int, ...], fault: Fault) -> Iterable[PlannedTask]:
    ids = _checked(lambda: choose_tasks(suite, part.tasks, part.train), (*place, "tasks"), fault)
    tasks = [_checked(lambda task_id=task_id: suite.task(task_id), (*place, "tasks"), fault) for task_id in ids]  # type: ignore[misc]
    for field, wanted in (("labels", part.labels), ("weights", part.weights)):
        for label, values in wanted.items():
            known = {task.slice_labels[label] for task in tasks if label in task.slice_labels}
            if missing := sorted(set(values) - known):
                what = f"no task of this part has {label}={missing[0]!r}; "
                known_text = (
                    f"the values are {', '.join(sorted(known))}" if known else f"no task has the label {label!r}"
                )
                raise fault((*place, field, label), what + known_text)
    kept = [
        task for task in tasks if all(task.slice_labels.get(name) in values for name, values in part.labels.items())
    ]
    if not kept:
        raise fault((*place, "labels"), f"none of {len(tasks)} tasks has all of these labels")
    for task in kept:
        weight = part.weight
        for label, factors in part.weights.items():
            weight *= factors.get(task.slice_labels.get(label, ""), 1.0)
        yield PlannedTask(
            env_id=part.env, task_id=task.task_id, task_digest=task.digest, weight=weight, labels=task.slice_labels
        )
