"""Tamper: hostile runs earn 0.0, break nothing, and stand in the log."""

import copy
from collections.abc import Iterator
from typing import Any

from gymnasium.error import ResetNeeded

from agent_envs.audit.finding import Finding, finding
from agent_envs.audit.playing import Actions, Played, Witness, books_differ, play, play_script
from agent_envs.audit.subject import Subject, core_of
from agent_envs.audit.tampering import MARK, TAMPERS, Stage, Tamper
from agent_envs.contract import PublicTask, Status, canonical_json
from agent_envs.episode.spaces import ToolCall

NAME = "tamper"
_REFUSED = ("invalid", "denied", "skipped", "error")


def check_tamper(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Play the battery, and after it the reference, which must still pass as if nothing had been."""
    faults: list[str] = []
    unrecorded: list[str] = []
    shown: dict[str, dict[str, int]] = {}
    stage = Stage.of(subject, task_id)
    reference = subject.references(task_id).references[0]
    with subject.make() as env:
        witness = Witness(env)
        clean = play_script(witness, reference, task_id, subject.seed)
        for tamper in TAMPERS:
            actions = tamper.actions(stage)
            if not actions:
                continue
            played = play(witness, Actions(actions, tamper.name), task_id, subject.seed)
            shown[tamper.name] = _statuses(played)
            faults += [f"{tamper.name!r}: {what}" for what in _earned(played)]
            if what := books_differ(core_of(witness)):
                faults.append(f"{tamper.name!r}: {what}")
            unrecorded += _unrecorded(tamper, played, stage)
        faults += _mutate(subject, task_id, witness)
        after = play_script(witness, reference, task_id, subject.seed)
        if after.evidence.digest != clean.evidence.digest:
            faults.append("after the battery the reference leaves other evidence than before it")
        if (steps := _step_after_the_end(witness)) is not None:
            faults.append(steps)
    yield finding(NAME, task_id, faults, f"{len(shown) + 1} hostile runs earn 0.0 and leave nothing", runs=shown)
    good = f"{len(shown)} hostile runs are in the log"
    yield finding("tampering recorded", task_id, unrecorded, good, runs=shown)


def _earned(played: Played) -> Iterator[str]:
    if played.broken:
        yield f"it broke the environment, which voids the episode: {played.broken}"
    elif played.status is not Status.FAIL:
        yield f"it gets the verdict {played.status.value!r}, not 'fail'"
    if any(sight.get("reward", 0.0) != 0.0 for sight in played.sights):
        yield "it is paid a reward"


def _unrecorded(tamper: Tamper, played: Played, stage: Stage) -> Iterator[str]:
    """An attempt that can be told must be refused; one that is a valid call must be in the log word for word."""
    events = played.evidence.events[1:]
    if tamper.refused:
        if not any(event["status"] in _REFUSED for event in events):
            yield f"{tamper.name!r}: none of its calls was refused"
        for event in events:
            call = {"tool": event["tool"], "arguments": event["arguments"]}
            innocent = event["tool"] in stage.last or call in stage.harmless()
            if event["status"] not in _REFUSED and not innocent:
                yield f"{tamper.name!r}: step {event['step']} ({event['tool']}) was carried out, not refused"
    if not tamper.refused and not any(MARK.encode() in canonical_json(event.get("arguments")) for event in events):
        yield f"{tamper.name!r}: its texts are not in the log"


def _statuses(played: Played) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in played.evidence.events[1:]:
        counts[event["status"]] = counts.get(event["status"], 0) + 1
    return counts


def _mutate(subject: Subject, task_id: str, witness: Witness) -> Iterator[str]:
    """Change everything that was handed out, then see that it was only a copy."""
    space = core_of(witness).action_space
    assert isinstance(space, ToolCall)
    schemas = copy.deepcopy(space.schemas())
    played = play(witness, _Scribbler(), task_id, subject.seed)
    yield from (f"'changed observations and infos': {what}" for what in _earned(played))
    if any("pass" in (value for key, value in sight["info"].items() if key != "verdict") for sight in played.sights):
        yield "'changed observations and infos': an info that the policy changed came back"
    present = space.schemas()
    if present != schemas:
        yield "the tools' schemas handed to a policy are the environment's own: the policy could change them"
        for one, other in zip(present, schemas, strict=True):
            one["parameters"].clear()
            one["parameters"].update(other["parameters"])


def _step_after_the_end(witness: Witness) -> str | None:
    before = witness.get_wrapper_attr("run").verdict
    try:
        witness.step({"tool": "finish", "arguments": {}})
    except ResetNeeded:
        same = witness.get_wrapper_attr("run").verdict == before
        return None if same else "a step after the end changed the verdict"
    return "a step after the end is carried out"


class _Scribbler:
    """Writes success into everything it is given."""

    name = "changed observations and infos"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Rewrite the tools."""
        self._steps = 0
        for tool in tools:
            tool["parameters"]["scribbled"] = True
            tool["name"] += "_"

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """Rewrite what was shown, and finish after a few steps."""
        for key in list(observation):
            observation[key] = '{"status":"ok"}'
        for key in list(info):
            info[key] = "pass"
        info |= {"is_success": True, "verdict": "pass", "reward": 1.0}
        self._steps += 1
        outcome = {"tool": "finish", "arguments": {"outcome": "completed"}}
        return outcome if self._steps > 2 else {"tool": "no such tool", "arguments": {}}
