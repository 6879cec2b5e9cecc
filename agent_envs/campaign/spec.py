"""Capture what is under test, and say in words how two systems differ."""

import functools
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from agent_envs.baselines.identity import policy_subject, system_spec
from agent_envs.baselines.policy import Policy
from agent_envs.contract import SECTIONS, SpecError, SystemSpec
from agent_envs.contract.sources import source_file

_GIT_SECONDS = 5.0
_ABSENT = object()


class Difference(NamedTuple):
    """One place in which two JSON values differ."""

    path: str
    """Keys joined by dots, such as ``model.decoding.temperature``."""
    before: Any
    """None where there was nothing."""
    after: Any
    """None where there is nothing any more."""


def capture(env: gymnasium.Env[Any, Any], policy: Policy, *, limits: Mapping[str, Any] | None = None) -> SystemSpec:
    """Everything under test, with the commit that the policy's file comes from.

    Its digest is the ``system_spec_hash`` that `agent_envs.baselines.rollout` puts into records.

    Args:
        env: An agenteval environment in its standard dress; it need not be reset.
        policy: Who plays.
        limits: Limits that the environment doesn't enforce itself; None values are left out.

    Raises:
        SpecError: A secret or a path of this machine stands in what the policy says of itself.
        PolicyError: The policy's ``spec()`` fails.
    """
    spec = system_spec(env, policy)
    update: dict[str, Any] = {"provenance": _provenance(source_file(policy_subject(policy)))}
    if given := {name: value for name, value in (limits or {}).items() if value is not None}:
        update["budgets"] = {**spec.budgets, "limits": {**spec.budgets["limits"], **given}}
    return SystemSpec.model_validate({**spec.as_json(), **update})


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every place in which two JSON values differ, sorted. Lists of objects are compared by name, or else by place.

    Nothing is given exactly when both have one canonical JSON form.
    """
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        before, after = _by_name(before), _by_name(after)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            if list(before) != list(after) and sorted(before) == sorted(after):
                yield Difference(path, list(before), list(after))  # the same ones in another order
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            inner = f"{path}.{key}" if path else key
            yield from differences(before.get(key, _ABSENT), after.get(key, _ABSENT), inner)
    # 1, 1.0 and True are equal in Python but not in JSON, and so not in a hash.
    elif type(before) is not type(after) or json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
        yield Difference(path, None if before is _ABSENT else before, None if after is _ABSENT else after)


def diff(a: SystemSpec, b: SystemSpec) -> list[Difference]:
    """How two systems differ, sorted by path; empty when their hashes are equal."""
    before, after = ({name: getattr(spec, name) for name in SECTIONS} for spec in (a, b))
    return list(differences(before, after))


def only_model(found: Sequence[Difference]) -> bool:
    """Whether nothing but the model part differs, so that a comparison may be called one of models.

    The policy's name is a label: it may differ too.
    """
    parts = {item.path.partition(".")[0] for item in found if item.path != "policy.name"}
    return parts == {"model"}


def describe(found: Sequence[Difference]) -> list[str]:
    """One line a difference, long values cut."""
    return [f"{item.path}: {_shown(item.before)} -> {_shown(item.after)}" for item in found]


def load_spec(place: str) -> SystemSpec:
    """Read a spec from a file, or from a campaign.

    Args:
        place: A file that ``agenteval spec show --out`` wrote; or a campaign's folder or lock file, followed by
            ``:SYSTEM`` where the campaign has several systems.

    Raises:
        SpecError: There is none, or it is no spec.
        LockError: The campaign's lock is damaged.
    """
    from agent_envs.campaign.lock import LOCK_NAME, read_lock

    path, name = Path(place), ""
    if not path.exists() and ":" in place:
        head, _, name = place.rpartition(":")
        path = Path(head)
    if path.is_dir() or path.name == LOCK_NAME:
        systems = read_lock(path).systems
        if not name and len(systems) == 1:
            return next(iter(systems.values()))
        if name not in systems:
            what = f"no system {name!r}" if name else "several systems"
            raise SpecError(f"{path} has {what}; name one: {path}:SYSTEM with SYSTEM out of {', '.join(systems)}")
        return systems[name]
    try:
        return SystemSpec.parse(path.read_bytes())
    except OSError as error:
        raise SpecError(f"{place}: can't be read: {error}") from None
    except ValueError as error:
        raise SpecError(f"{place}: not a system spec: {_first_fault(error)}") from None


def show_spec(env_id: str, policy: str, limits: Mapping[str, Any] | None = None) -> SystemSpec:
    """The spec of a policy in an environment, both by name, as ``agenteval spec show`` prints it.

    Raises:
        AgentEvalError: There is no such environment or policy, or it can't be described.
    """
    from agent_envs.baselines import load
    from agent_envs.campaign.expansion import make_env

    env = make_env(env_id, {name: value for name, value in (limits or {}).items() if value is not None})
    try:
        return capture(env, load(policy))
    finally:
        env.close()


def spec_text(spec: SystemSpec) -> str:
    """A spec as JSON for people, which `load_spec` reads back."""
    return json.dumps(spec.as_json(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _by_name(value: Any) -> Any:
    """A list of objects as an object of them."""
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, Mapping) for item in value):
        return value
    names = [item.get("name") for item in value]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        names = [str(number) for number in range(len(value))]
    return dict(zip(names, value, strict=True))


def _shown(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return "nothing" if value is None else text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def _first_fault(error: ValueError) -> str:
    items = error.errors() if hasattr(error, "errors") else []
    return "; ".join(f"{'.'.join(map(str, item['loc'])) or 'the spec'}: {item['msg']}" for item in items[:3]) or str(
        error
    )


@functools.cache
def _provenance(path: Path | None) -> dict[str, Any]:
    """Commit of a file's checkout, and whether the file's folder has changes on top; nulls where git knows nothing."""
    nothing: dict[str, Any] = {"commit": None, "dirty": None}
    if path is None:
        return nothing
    commit = _git(path.parent, "rev-parse", "--verify", "HEAD")
    if commit is None or _git(path.parent, "ls-files", "--error-unmatch", "--", path.name) is None:
        return nothing | ({} if commit is None else {"commit": commit.strip(), "dirty": True})
    status = _git(path.parent, "status", "--porcelain", "--", ".")
    return {"commit": commit.strip(), "dirty": None if status is None else bool(status.strip())}


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of git, None when it is absent, slow or fails. A repository's own hooks and helpers are not run."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_GIT_SECONDS, stdin=subprocess.DEVNULL, encoding="utf-8", check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout
