"""Gold: nothing hidden in a task can be seen by a policy.

Searched is whatever a policy is handed or may ask for: observations, infos, the task's public view, the tools' schemas,
the environment's spec and rendering, the wrappers' public attributes, and the environment variables. Objects of a live
environment are not: a policy in the same Python process can reach them all, and is to be kept in a process of its own
where it isn't trusted.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import gymnasium

from agent_envs.audit.canaries import Canaries, PlantedSuite
from agent_envs.audit.finding import Finding, finding
from agent_envs.audit.playing import Sight, Witness, play
from agent_envs.audit.subject import Subject, core_of
from agent_envs.baselines.cheap import Noop, RandomCalls
from agent_envs.baselines.reference import scripted
from agent_envs.contract import ReferenceRun, Status, canonical_json
from agent_envs.episode.spaces import ToolCall

NAME = "gold"
_NOT_OFFERED = ("env", "unwrapped", "np_random", "np_random_seed")
"""What leads on to the live environment, or draws from it."""


def check_gold(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Play on a copy with canaries in its hidden parts, and search all that is shown for them."""
    references = subject.references(task_id)
    canaries = Canaries(subject.task(task_id), references, subject.seed)
    faults: list[str] = []
    looked = 0

    def search(where: str, *things: Any) -> None:
        nonlocal looked
        looked += 1
        text = "\n".join(repr(thing) for thing in things)
        if "canary" in text:
            for canary, place in canaries.places.items():
                if canary in text:
                    faults.append(f"{where} shows {place}")

    with subject.make(render_mode="ansi") as env:
        witness = Witness(env)
        core = core_of(witness)
        setattr(core, "suite", PlantedSuite(core.suite, canaries))  # noqa: B010 (a class variable, for this one only)

        def look(sight: Sight) -> None:
            ended = sight.get("terminated") or sight.get("truncated")
            when = f"{policy.name!r}, step {sight['info'].get('step')}"
            search(f"what {when} sees", sight)
            search(f"the rendering at {when}", witness.render())
            if not ended:
                search(f"the public task at {when}", core.task)
                for name, value in _offered(witness):
                    search(f"{name} at {when}", value)
                faults.extend(f"{when}: {name} is there before the end" for name in _early(witness))

        space = core.action_space
        assert isinstance(space, ToolCall)
        search("the tools' schemas", space.schemas(), space, core.observation_space)
        search("the environment's spec", witness.spec, core.arguments)
        witness.look = look
        policy: Any
        drawn = [RandomCalls() for _ in range(subject.repetitions)]
        for number, policy in enumerate([Noop(), *drawn, scripted(references.references[0])]):
            played = play(witness, policy, task_id, subject.seed + number)
        if played.status is not Status.PASS:
            where = played.broken or ", ".join(played.failed)
            faults.append(f"the reference doesn't pass on the copy with canaries, which so prove nothing: {where}")
        faults += _calls_seen(references.references[0], played.sights)
        search("the environment variables", dict(os.environ))
    unique = list(dict.fromkeys(faults))
    good = f"none of {len(canaries.places)} canaries in {looked} things that a policy can see"
    yield finding(NAME, task_id, unique[:20], good, canaries=len(canaries.places), searched=looked)


def _offered(witness: Witness) -> Iterator[tuple[str, Any]]:
    """Public attributes of the wrappers, which an environment hands out to whoever asks for them by name."""
    env = witness.env
    while isinstance(env, gymnasium.Wrapper):
        for name in dir(env):
            if not name.startswith("_") and name not in _NOT_OFFERED:
                with contextlib.suppress(Exception):  # not there before the end
                    yield f"{type(env).__name__}.{name}", getattr(env, name)
        env = env.env


def _early(witness: Witness) -> Iterator[str]:
    """What is only known at the end and stands there before it."""
    for name in ("verdict", "evidence"):
        if witness.get_wrapper_attr(name) is not None:
            yield name


def _calls_seen(reference: ReferenceRun, sights: list[Sight]) -> Iterator[str]:
    """Arguments of a call, word for word, in something shown before the call was made."""
    shown = b""
    for number, (call, sight) in enumerate(zip(reference.calls, sights, strict=False)):
        text = sight["observation"]["text"] if isinstance(sight["observation"], dict) else repr(sight["observation"])
        shown += text.replace(" ", "").encode("utf-8", "replace") + repr(sight["info"]).replace(" ", "").encode()
        wanted = canonical_json(call.arguments).replace(b" ", b"")
        if len(call.arguments) > 1 and wanted in shown:
            yield f"the arguments of the reference's call {number + 1} ({call.tool}) were shown before it"
