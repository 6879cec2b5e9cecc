"""AgentEnv: the transitions of a tool environment. Permissions, limits, recording and judging are wrappers round it."""

import contextlib
import copy
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
from gymnasium.error import ResetNeeded

from agent_envs.contract import (
    AgentTask,
    Change,
    EnvironmentFault,
    PublicTask,
    TaskError,
    Terminal,
    ToolError,
    state_hash,
)
from agent_envs.episode.calls import Call, parse_action
from agent_envs.episode.deadline import DeadlineExceeded, run_until
from agent_envs.episode.faults import Fault, boundary
from agent_envs.episode.record import Episode, Snapshot
from agent_envs.episode.spaces import ToolCall, Unicode
from agent_envs.episode.suite import SPLITS, Suite
from agent_envs.episode.text import cut, joined, json_text
from agent_envs.episode.tools import Tool
from agent_envs.episode.world import World

OBSERVATION_CHARACTERS = 65_536
_SEED_MASK = 2**63 - 1
_NOTHING = contextlib.nullcontext()
_TOOL = boundary("act", "environment", "tool_fault")
_CHANNEL = boundary("act", "environment", "channel_fault")
_ANSWERED = ("id", "status", "result", "error")
"""Parts of a log entry that the agent sees, where there are any."""

Observation = dict[str, Any]
Step = tuple[Observation, float, bool, bool, dict[str, Any]]


class AgentEnv(gymnasium.Env[Observation, Any]):
    """Base of every family's environment: runs tool calls on a world, logs them, and proves the start state.

    A family sets ``suite`` and ``tools`` and makes its world; nothing else. The reward of this class is always 0.0:
    `agent_envs.wrappers.Evaluation` gives the verdict.

    Args:
        task: Id of the task that every reset starts; empty: drawn from ``split`` by the episode's seed.
        split: ``eval`` (curated) or ``train`` (generated).
        render_mode: ``ansi`` or None.

    Attributes:
        arguments: The constructor's keywords; a copy is made with them.
        deadline: `time.monotonic` moment at which a running call is broken off; set by
            `agent_envs.wrappers.EpisodeLimits`.
        watch: Called with each log entry; a returned terminal ends the episode at once.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (Gymnasium declares it so)
    suite: ClassVar[Suite]
    tools: ClassVar[tuple[Tool, ...]]
    status_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the world's ``status()``."""

    def __init__(self, *, task: str = "", split: str = "eval", render_mode: str | None = None) -> None:
        """Check the arguments; nothing live is made before the first reset."""
        if split not in SPLITS:
            raise TaskError(f"split={split!r}: there are {', '.join(SPLITS)}")
        if render_mode not in (None, "ansi"):
            raise ValueError(f"render_mode={render_mode!r}: this environment renders as 'ansi' text, or None")
        self.arguments: dict[str, Any] = {"task": task, "split": split, "render_mode": render_mode}
        if _task_id("task", task):
            self.suite.task(task)
        self.render_mode = render_mode
        self.action_space = ToolCall(self.tools)
        self.observation_space = gymnasium.spaces.Dict({"text": Unicode(OBSERVATION_CHARACTERS)})
        self.deadline = math.inf
        self.watch: Callable[[dict[str, Any]], Terminal | None] | None = None
        self._tools = {tool.name: tool for tool in self.tools}
        self._world: World | None = None
        self._episode: Episode | None = None

    # What a family provides ------------------------------------------------------------------------------------

    def make_world(self) -> World:
        """A new world; called at the first reset and after one had to be thrown away."""
        raise NotImplementedError

    # What anybody may read -------------------------------------------------------------------------------------

    @property
    def task(self) -> PublicTask:
        """The public view of the current task."""
        return self.episode.task.public()

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            ResetNeeded: There is none.
        """
        if self._episode is None:
            raise ResetNeeded("call reset() first: there is no episode yet, or the environment was closed")
        return self._episode

    @property
    def world(self) -> World:
        """The live world.

        Raises:
            ResetNeeded: There is none.
        """
        if self._world is None:
            raise ResetNeeded("call reset() first: there is no world yet, or the environment was closed")
        return self._world

    # Gymnasium -------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode from a proven state.

        Args:
            seed: Seed of the episode; without it the next one of the environment's own stream.
            options: ``{"task": id}`` chooses the task of this episode.

        Raises:
            TaskError: There is no such task or its file is bad.
        """
        super().reset(seed=seed)
        # Raw bits are the part of NumPy's streams that is stable across its versions.
        episode_seed = seed if seed is not None else int(self.np_random.bit_generator.random_raw()) & _SEED_MASK
        if not isinstance(options, Mapping | None):
            raise TaskError(f"options={options!r}: an object such as {{'task': id}} is needed, or None")
        chosen = _task_id("options['task']", (options or {}).get("task") or "") or self.arguments["task"]
        task = self.suite.task(chosen) if chosen else self.suite.draw(self.arguments["split"], episode_seed)
        started = time.monotonic()
        if self._episode is not None and self._episode.spoiled:
            self._discard_world()
        episode = self._episode = Episode(task, episode_seed, started=started)
        text = task.user_request
        try:
            with boundary("reset", "environment", "reset_fault"):
                world = self._start(task, episode_seed)
                opening = world.opening()
                if opening:
                    text += "\n\n" + json_text(opening)
        except Fault as fault:
            self._discard_world()
            episode.end(fault.terminal)
            text = "The environment could not be started; the episode is void. Any step ends it."
            opening = {}
        episode.log.append(
            {
                "step": 0,
                "tool": "",
                "task": task.task_id,
                "revision": task.task_revision,
                "seed": episode_seed,
                "opening": opening,
                "state": episode.state_hash,
            }
        )
        episode.environment_seconds = time.monotonic() - started
        return _observation(episode, text), self._info()

    def step(self, action: Any) -> Step:
        """Run the action's calls in order and answer each.

        Raises:
            ResetNeeded: There is no episode, or it has ended.
        """
        started = time.monotonic()
        episode = self.episode
        if episode.terminal is not None and not (episode.step == 0 and episode.terminal.phase == "reset"):
            raise ResetNeeded("the episode has ended; call reset() to start another")
        episode.step += 1
        answers = [self._answer(episode, call) for call in parse_action(action)]
        text = answers[0] if len(answers) == 1 else joined(answers, episode.task.limits.observation_characters)
        episode.environment_seconds += time.monotonic() - started
        return _observation(episode, text), 0.0, episode.terminated, episode.truncated, self._info()

    def render(self) -> str | None:
        """The last log entry as readable text (mode ``ansi``).

        Raises:
            ResetNeeded: There is no episode.
        """
        if self.render_mode is None:
            return None
        entry = self.episode.log.entries[-1]
        return f"step {self.episode.step}: {json_text(entry)}"

    def close(self) -> None:
        """Let go of every resource. Afterwards only ``reset`` works; closing twice is fine."""
        self._discard_world()
        self._episode = None

    # Branching -------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The present point of the episode, as plain data that can be pickled and restored any number of times.

        Raises:
            EnvironmentFault: Something in the world broke, or a call was broken off: there is nothing to go on from.
        """
        episode = self.episode
        if episode.spoiled:
            raise EnvironmentFault(
                f"the episode ended by {episode.terminal!r}: nothing can go on from here; reset first"
            )
        channels = {name: channel.freeze() for name, channel in self.world.channels.items()}
        # Not the episode's own: the opening words, said after the start was proven, are part of this point.
        reached = self._state_hash(self.world)
        return Snapshot(episode.copy(), channels, reached, time.monotonic() - episode.started)

    def restore(self, snapshot: Snapshot) -> None:
        """Go (back) to a point of an episode of this family, perhaps of another environment or process.

        Raises:
            EnvironmentFault: The state reached isn't the one the snapshot was taken at; a reset is needed.
        """
        episode = snapshot.episode.copy()
        episode.started = time.monotonic() - snapshot.elapsed
        try:
            self._thaw(snapshot, self.start_world(episode.task, episode.seed))
        except BaseException:
            self.close()  # half restored is no state to go on from
            raise
        self._episode = episode

    def _thaw(self, snapshot: Snapshot, world: World) -> None:
        if world.channels.keys() != snapshot.channels.keys():
            raise EnvironmentFault(
                f"the snapshot has the channels {list(snapshot.channels)}, not {list(world.channels)}"
            )
        for name, channel in world.channels.items():
            channel.thaw(snapshot.channels[name])
        if world.database is not None:
            world.database.take_changes()
        if (reached := self._state_hash(world)) != snapshot.state_hash:
            raise EnvironmentFault(
                f"restoring led to state {reached[:12]}, not to the snapshot's {snapshot.state_hash[:12]}"
            )

    def fork(self) -> "AgentEnv":
        """A second, independent environment at the same point; its wrappers are the caller's to add."""
        other = type(self)(**self.arguments)
        other.spec = self.spec
        other.restore(self.snapshot())
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "AgentEnv":
        """A fork where there is an episode, a fresh environment where there is none; the spec is kept."""
        if self._can_go_on:
            other = self.fork()
        else:
            other = type(self)(**self.arguments)
        other.spec = copy.deepcopy(self.spec, memo)
        other._np_random, other._np_random_seed = copy.deepcopy(self._np_random, memo), self._np_random_seed
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Arguments and spec, and the point of a running episode."""
        return {
            "arguments": self.arguments,
            "spec": self.spec,
            "random": (self._np_random, self._np_random_seed),
            "snapshot": self.snapshot() if self._can_go_on else None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the environment anew and go to the point it was pickled at."""
        self.__init__(**state["arguments"])  # type: ignore[misc]
        self.spec = state["spec"]
        self._np_random, self._np_random_seed = state["random"]
        if state["snapshot"] is not None:
            self.restore(state["snapshot"])

    @property
    def _can_go_on(self) -> bool:
        return self._episode is not None and self._world is not None and not self._episode.spoiled

    # How it works ----------------------------------------------------------------------------------------------

    def start_world(self, task: AgentTask, seed: int) -> World:
        """Bring the world to a task's start, without an episode."""
        if self._world is None:
            self._world = self.make_world()
        self._world.restore(task, seed)
        return self._world

    def _start(self, task: AgentTask, seed: int) -> World:
        world = self.start_world(task, seed)
        episode = self.episode
        digests = {name: channel.digest() for name, channel in world.channels.items()}
        for name, pinned in task.reset_check.items():
            if digests.get(name) != pinned:
                found = digests.get(name, "no such channel")
                message = (
                    f"{task.task_id} revision {task.task_revision}: channel {name!r} starts as {found[:16]}, but "
                    f"the task pins {pinned[:16]}; if task or fixture were changed on purpose, run 'agenteval pin'"
                )
                raise Fault(
                    message,
                    Terminal(phase="reset", origin="environment", kind="start_state_mismatch", detail=message),
                )
        episode.initial_hash = episode.state_hash = state_hash(digests)
        return world

    def _state_hash(self, world: World) -> str:
        return state_hash({name: channel.digest() for name, channel in world.channels.items()})

    def _discard_world(self) -> None:
        if self._world is not None:
            world, self._world = self._world, None
            world.close()

    def _answer(self, episode: Episode, call: Call) -> str:
        """Run one call, log it, and return the observation's text for it."""
        entry: dict[str, Any] = {
            "step": episode.step,
            "call": episode.calls,
            "id": call.call_id,
            "tool": call.tool,
            "arguments": call.arguments,
        }
        episode.calls += 1
        if episode.terminal is not None:
            entry |= {"status": "skipped", "error": "not run: the episode had already ended"}
        elif call.problem or call.denied:
            entry |= {"status": "invalid" if call.problem else "denied", "error": call.problem or call.denied}
        else:
            self._run(episode, call, entry)
        entry["clock"] = self._world.clock.iso if self._world is not None else ""
        entry["state"] = episode.state_hash
        try:
            with _TOOL:
                episode.log.append(entry)
        except Fault as fault:  # the tool's result is not JSON
            entry.pop("result", None)
            # Whatever else the call was about to end the episode for, it broke before.
            episode.terminal = episode.answer = None
            _void(episode, entry, fault)
            episode.log.append(entry)
        self._count(episode, entry["status"])
        if self.watch is not None and (terminal := self.watch(entry)) is not None:
            episode.end(terminal)
        return json_text({key: entry[key] for key in _ANSWERED if entry.get(key, "") != ""})

    def _run(self, episode: Episode, call: Call, entry: dict[str, Any]) -> None:
        world = self.world
        tool = self._tools.get(call.tool)
        if tool is None or tool.name not in episode.task.available_tools:
            known = ", ".join(episode.task.available_tools)
            entry |= {"status": "invalid", "error": f"there is no tool {call.tool[:60]!r}; the tools are: {known}"}
            return
        try:
            arguments = tool.validate(call.arguments)
        except ToolError as error:
            entry |= {"status": "invalid", "error": str(error)}
            return
        except Exception as error:
            _void(episode, entry, _TOOL.fault(error))
            return
        world.clock.advance(world.seconds_per_call)
        try:
            with _TOOL:
                # A tool that declares no writes has nothing to undo; if it writes all the same, that ends the episode.
                part = world.savepoint() if tool.writes else _NOTHING
                result = run_until(self.deadline, lambda: tool.function(world, **arguments), part, world.close)
                entry["status"], entry["result"] = "ok", result
        except ToolError as error:
            entry["status"], entry["error"] = "error", str(error)
        except Fault as fault:
            _void(episode, entry, fault)
        except DeadlineExceeded as late:
            self._time_is_up(entry, late)
            return
        try:
            with _CHANNEL:
                if world.database is not None and (changed := world.database.take_changes()):
                    self._note_changes(tool, changed, entry)
                episode.state_hash = self._state_hash(world)
        except Fault as fault:
            episode.end(fault.terminal)
        if entry["status"] == "ok" and tool.name in episode.task.terminal_conditions:
            episode.answer = dict(call.arguments)
            episode.end(Terminal(phase="act", origin="agent", kind="finished"))
        elif kind := world.over():
            episode.end(Terminal(phase="act", origin="agent", kind=kind))

    def _note_changes(self, tool: Tool, changed: list[Change], entry: dict[str, Any]) -> None:
        if stray := sorted({change.table for change in changed} - set(tool.writes)):
            detail = f"{tool.name} changed {stray}, but declares that it writes {sorted(tool.writes)}"
            self.episode.end(Terminal(phase="act", origin="environment", kind="undeclared_write", detail=detail))
        self.episode.changes += changed
        entry["changes"] = [change.as_json() for change in changed]

    def _time_is_up(self, entry: dict[str, Any], late: DeadlineExceeded) -> None:
        # The state judged is the one before the call: it was undone, or its thread was left behind with the world.
        entry |= {"status": "timeout", "error": "time is up: the call was broken off and has no effect"}
        if late.abandoned:
            self._world = None
        self.episode.end(
            Terminal(phase="act", origin="agent", kind="wall_time_limit", detail=f"during {entry['tool']}")
        )

    def _count(self, episode: Episode, status: str) -> None:
        limits = episode.task.limits
        episode.invalid_in_a_row = episode.invalid_in_a_row + 1 if status == "invalid" else 0
        episode.errors_in_a_row = episode.errors_in_a_row + 1 if status in ("invalid", "error", "denied") else 0
        if episode.invalid_in_a_row >= limits.invalid_calls:
            detail = f"{episode.invalid_in_a_row} malformed or unknown calls in a row"
            episode.end(Terminal(phase="act", origin="harness", kind="too_many_invalid_calls", detail=detail))
        elif episode.errors_in_a_row >= limits.errors:
            detail = f"{episode.errors_in_a_row} refused calls in a row"
            episode.end(Terminal(phase="act", origin="agent", kind="too_many_errors", detail=detail))

    def _info(self) -> dict[str, Any]:
        episode = self.episode
        info: dict[str, Any] = {
            "task_id": episode.task.task_id,
            "task_revision": episode.task.task_revision,
            "step": episode.step,
            "state_hash": episode.state_hash,
            "terminal_reason": episode.terminal.kind if episode.terminal is not None else "",
        }
        return info | (self._world.status() if self._world is not None else dict.fromkeys(self.status_keys, ""))


def _task_id(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TaskError(f"{name}={value!r}: the id of a task is needed, as text")
    return value


def _void(episode: Episode, entry: dict[str, Any], fault: Fault) -> None:
    entry |= {"status": "fault", "error": "the environment broke; the episode is void"}
    episode.end(fault.terminal)


def _observation(episode: Episode, text: str) -> Observation:
    return {"text": cut(text, min(episode.task.limits.observation_characters, OBSERVATION_CHARACTERS))}
