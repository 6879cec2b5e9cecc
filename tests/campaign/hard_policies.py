"""Policies that misbehave in every way a worker has to survive; named in tests as ``hard_policies.py:Name``."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

from agent_envs.baselines import Reference, Rulebook
from agent_envs.contract import PublicTask

SLEEP = os.environ.get("HARD_POLICIES_SLEEP", "86421")
"""Argument of the ``sleep`` processes that policies leave behind, so that tests find theirs."""


class Mostly(Rulebook):
    """Plays well; attempts whose seed is odd go wrong at the second action."""

    name = "mostly"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        super().begin(task, tools, seed)
        self.bad, self.count = seed % 2 == 1, 0

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        self.count += 1
        if self.bad and self.count == 2:
            self.go_wrong()
        return super().act(observation, info)

    def go_wrong(self) -> None:
        raise NotImplementedError


class Exits(Mostly):
    def go_wrong(self) -> None:
        print("these are my last words", file=sys.stderr, flush=True)
        os._exit(3)


class KillsItself(Mostly):
    def go_wrong(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class KillsItsGroup(Mostly):
    def go_wrong(self) -> None:
        os.kill(0, signal.SIGKILL)


class Segfaults(Mostly):
    def go_wrong(self) -> None:
        ctypes.string_at(0)


class Spins(Mostly):
    def go_wrong(self) -> None:
        while True:
            pass


class SpinsInHandlers(Mostly):
    def go_wrong(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, lambda number, frame: None)
        while True:
            try:
                time.sleep(60)
            except BaseException:
                continue


class BlocksReleasing(Mostly):
    def go_wrong(self) -> None:
        ctypes.CDLL(None).sleep(600)


class BlocksHolding(Mostly):
    def go_wrong(self) -> None:
        ctypes.PyDLL(None).sleep(600)


class Backtracks(Mostly):
    def go_wrong(self) -> None:
        re.match(r"(a+)+$", "a" * 60 + "b")  # one native call that holds the interpreter for years


class Stops(Mostly):
    def go_wrong(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


class BreaksTool(Mostly):
    """Makes the tool it calls next hang in native code, where no signal of the interpreter gets through."""

    def go_wrong(self) -> None:
        from agent_envs.envs.refund.tools import TOOLS

        for tool in TOOLS:
            tool.function = lambda world, **arguments: {"slept": ctypes.PyDLL(None).sleep(600)}


class KillsInTool(Mostly):
    """Makes the tool it calls next end the process."""

    def go_wrong(self) -> None:
        from agent_envs.envs.refund.tools import TOOLS

        for tool in TOOLS:
            tool.function = lambda world, **arguments: os._exit(9)


class ReachesGoalAndHangs(Reference):
    """Does all that the task wants, and never says so."""

    oracle = False

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        action = super().act(observation, info)
        while action["tool"] == "finish":
            pass
        return action


class Floods(Rulebook):
    name = "floods"

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        sys.stdout.write('{"number":1}\n' * 100_000)
        sys.stderr.write("y" * 2_000_000 + " the very end\n")
        return super().act(observation, info)


class LeavesDaemons(Mostly):
    """Starts processes that outlive their parents, in sessions of their own."""

    name = "daemons"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        super().begin(task, tools, seed)
        subprocess.Popen(["/bin/sh", "-c", f"setsid sleep {SLEEP} & setsid setsid sleep {SLEEP} &"]).wait()
        subprocess.Popen(["sleep", SLEEP], start_new_session=True)

    def go_wrong(self) -> None:
        time.sleep(600)


class Slow(Rulebook):
    name = "slow"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        super().begin(task, tools, seed)
        time.sleep(0.7)


class Reports(Rulebook):
    """Tells in an error what its process can see."""

    name = "reports"

    def begin(self, task: PublicTask, tools: list[dict[str, Any]], seed: int) -> None:
        loaded = sorted(name for name in sys.modules if name.startswith("agent_envs.envs"))
        raise RuntimeError(f"{sorted(os.environ)} {loaded}")
