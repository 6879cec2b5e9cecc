"""Policies in a process of their own: untrusted code shares no memory with the environment, its task or its grader.

The program is a fresh process for each episode, with a scrubbed environment, and is killed with all its descendants
when the episode is over. It speaks JSON, one object a line, over its standard input and output; anything that reads and
writes lines can be a policy:

=====================================================  =====================================================
it gets                                                it answers
=====================================================  =====================================================
``{"describe": true}``                                 ``{"policy": {"name"}, "model": {...}, "harness": {...}}``
``{"begin": {"task", "tools", "seed", "protocol"}}``   ``{"ready": true}``
``{"observation": {...}, "info": {...}}``              ``{"action": ..., "usage": {"tokens", "cost"}}``
=====================================================  =====================================================

``usage`` may be left out, and so may each of its figures. Instead of an action it may answer ``{"stop": reason}``,
which gives up, or ``{"error": message}``, which ends the episode as ``policy_error``; so does an answer that is none of
these, isn't JSON or is longer than `MOST_BYTES`. A program that ends before its answer is a ``policy_crash``.

What this does not do: keep the program from reading files. It is a boundary of memory and life span, not a sandbox.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import agent_envs
from agent_envs.baselines.keeper import Kept
from agent_envs.baselines.policy import GaveUp, Policy, PolicyCrash, PolicyError
from agent_envs.contract import PublicTask, canonical_json, parse_json

PROTOCOL = 1
MOST_BYTES = 2**20
"""Longest answer, in bytes."""
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Names of the environment variables that the program gets; nothing else of ours reaches it."""
START_SECONDS = 60.0
_TAIL = 4096


class Peer:
    """A program that answers lines with lines.

    Args:
        command: Program and arguments.
        environment: Its whole environment.
        name: What messages call it.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], name: str) -> None:
        """Start it."""
        self._name = name
        pipe = subprocess.PIPE
        self._kept = Kept(command, environment, stdin=pipe, stdout=pipe, stderr=pipe)
        process = self._kept.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._in, self._out, self._err = process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()
        os.set_blocking(self._in, False)
        self._open = [self._out, self._err]
        self._buffer, self._tail = bytearray(), b""

    def ask(self, message: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """Send a message and wait for the answer.

        Raises:
            PolicyError: The answer is no JSON object, too long or late.
            PolicyCrash: The program ended before it answered.
        """
        until = None if seconds is None else time.monotonic() + seconds
        rest = memoryview(canonical_json(dict(message)) + b"\n")
        while (end := self._buffer.find(b"\n")) < 0:
            if self._out not in self._open:
                said = self._said()
                raise PolicyCrash(f"{self._name} ended before it answered (exit status {self._kept.end()}){said}")
            if len(self._buffer) > MOST_BYTES:
                raise PolicyError(
                    f"{self._name} answered more than {MOST_BYTES} bytes without a line end{self._said()}"
                )
            left = None if until is None else max(until - time.monotonic(), 0.0)
            reading, writing, _ = select.select(self._open, [self._in] if rest else [], [], left)
            if not reading and not writing:
                raise PolicyError(f"{self._name} gave no answer within {seconds:g} s{self._said()}")
            for descriptor in reading:
                self._read(descriptor)
            if writing:
                rest = self._write(rest)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        if len(line) > MOST_BYTES:
            raise PolicyError(f"{self._name} answered {len(line)} bytes; at most {MOST_BYTES} are taken")
        try:
            answer = parse_json(line)
            if not isinstance(answer, dict):
                raise ValueError("an object is needed")
        except (ValueError, RecursionError) as error:
            raise PolicyError(f"{self._name} answered {line[:200]!r}: {error}{self._said()}"[:1000]) from None
        return answer

    def end(self) -> None:
        """Kill it with all its descendants."""
        self._kept.end()

    def _read(self, descriptor: int) -> None:
        data = os.read(descriptor, 65536)
        if not data:
            self._open.remove(descriptor)
        elif descriptor == self._err:
            self._tail = (self._tail + data)[-_TAIL:]
        else:
            self._buffer += data

    def _write(self, rest: memoryview) -> memoryview:
        try:
            return rest[os.write(self._in, rest) :]
        except BlockingIOError:
            return rest
        except BrokenPipeError:  # it will be seen to have ended, after its last words
            return rest[len(rest) :]

    def _said(self) -> str:
        while self._err in self._open and select.select([self._err], [], [], 0)[0]:
            self._read(self._err)
        text = self._tail.decode("utf-8", "replace").strip()
        return f"; it last wrote: {text[-1000:]}" if text else ""


class ProcessPolicy:
    """A policy that runs in its own process, a fresh one for each episode.

    Args:
        spec: Any policy's name, as `agent_envs.baselines.load` takes it.
        seconds: Longest wait for one answer; None leaves that to the episode's limits.

    Raises:
        PolicyError: The policy can't be loaded, in a process of its own, or says nothing of itself.
    """

    def __init__(self, spec: str, seconds: float | None = None) -> None:
        """Ask a first process who the policy is; it ends at once."""
        self._command = [sys.executable, "-m", "agent_envs.baselines.host", spec]
        self._seconds = seconds
        self._peer: Peer | None = None
        self._used: tuple[Any, Any] = (None, None)
        said = self._describe(spec)
        self.name: str = said["policy"]["name"]
        self.oracle: bool = said["policy"].get("oracle") is True
        self.settings: Any = {"isolation": "process", "policy": said.pop("policy")}
        self._spec = said

    def spec(self) -> dict[str, Any]:
        """What the policy says of its model, harness and budgets."""
        return self._spec

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        """Start the episode's process."""
        self.end()
        self._peer = Peer(self._command, scrubbed(), f"policy {self.name!r}")
        message = {"task": task.as_json(), "tools": tools, "seed": seed, "protocol": PROTOCOL}
        answer = self._ask({"begin": message}, START_SECONDS)
        if answer.get("ready") is not True:
            raise PolicyError(f"policy {self.name!r} answered {_short(answer)} to 'begin'; {{'ready': true}} is needed")

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        """The process's next action.

        Raises:
            GaveUp: It stops.
            PolicyError: Its answer is no action.
            PolicyCrash: It has ended.
        """
        answer = self._ask({"observation": observation, "info": info}, self._seconds)
        if "action" not in answer:
            raise PolicyError(f"policy {self.name!r} answered {_short(answer)}; an 'action' is needed")
        usage = answer.get("usage") or {}
        if not isinstance(usage, dict):
            raise PolicyError(f"policy {self.name!r} answered the usage {_short(usage)}; an object is needed")
        self._used = (usage.get("tokens"), usage.get("cost"))
        return answer["action"]

    def usage(self) -> tuple[Any, Any]:
        """Tokens and cost of the last action, as the process told them."""
        return self._used

    def end(self) -> None:
        """Kill the episode's process with all its descendants."""
        if self._peer is not None:
            peer, self._peer = self._peer, None
            peer.end()

    def _ask(self, message: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        if self._peer is None:
            raise PolicyError(f"policy {self.name!r} has no process: call begin() first")
        return _checked(self._peer.ask(message, seconds))

    def _describe(self, spec: str) -> dict[str, Any]:
        peer = Peer(self._command, scrubbed(), f"policy {spec!r}")
        try:
            said = _checked(peer.ask({"describe": True}, START_SECONDS))
            policy = said.get("policy")
            if not (isinstance(policy, dict) and isinstance(policy.get("name"), str)):
                raise PolicyError(f"policy {spec!r} answered {_short(said)} to 'describe'; a policy's name is needed")
            return said
        except PolicyCrash as error:
            raise PolicyError(str(error)) from None
        finally:
            peer.end()


def policy_of(spec: str, isolation: str = "none") -> Policy:
    """A policy by name, in this process or in one of its own.

    Args:
        spec: As `agent_envs.baselines.load` takes it.
        isolation: ``none`` or ``process``.

    Raises:
        PolicyError: There is no such policy or isolation.
    """
    from agent_envs.baselines import load  # the package imports this module

    if isolation == "none":
        return load(spec)
    if isolation == "process":
        return ProcessPolicy(spec)
    raise PolicyError(f"isolation={isolation!r}: there are none and process")


def scrubbed() -> dict[str, str]:
    """The environment of a process that must not see ours: names on the list, and where this package is found."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return kept | {"PYTHONPATH": package_path(""), "PYTHONDONTWRITEBYTECODE": "1"}


def package_path(inherited: str) -> str:
    """A ``PYTHONPATH`` on which a new interpreter finds this package as it was found here."""
    root = Path(agent_envs.__file__).resolve().parents[1]
    parts = [] if root.name in ("site-packages", "dist-packages") else [str(root)]
    return os.pathsep.join([*parts, *filter(None, inherited.split(os.pathsep))])


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "stop" in answer:
        raise GaveUp(_short(answer["stop"]))
    if "error" in answer:
        raise PolicyError(_short(answer["error"]))
    return answer


def _short(value: Any) -> str:
    return (value if isinstance(value, str) else repr(value))[:1000]
