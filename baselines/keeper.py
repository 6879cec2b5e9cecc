"""Keeps a program and all its descendants, so that ending it leaves nothing behind.

A killed parent, a descendant that made itself a daemon, a program that ignores SIGTERM: none may outlive the attempt
they belong to. So the program is started by a small process of its own, the keeper, which adopts orphaned descendants,
and kills the whole tree when the program ends, when its owner says so, or when its owner is gone. The keeper runs
nothing but this file and the standard library, by path, in isolated mode: no import of ours delays it or breaks it.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

_PDEATHSIG, _SUBREAPER = 1, 36
_MOST_SECONDS = 4.0
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Kept:
    """A running program with its keeper.

    Args:
        command: Program and arguments.
        environment: Its whole environment.
        descriptors: File descriptors it inherits under the same numbers.
        stdin: As for `subprocess.Popen`; likewise ``stdout`` and ``stderr``.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        descriptors: Sequence[int] = (),
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> None:
        """Start it."""
        reading, self._lifeline = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(reading), str(os.getpid()), *command],
                env=dict(environment),
                pass_fds=(reading, *descriptors),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except BaseException:
            self.let_go()
            raise
        finally:
            os.close(reading)

    def let_go(self) -> None:
        """Begin the end: the keeper kills the whole tree. Returns at once; safe to call twice."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def end(self, patience: float = _MOST_SECONDS + 1.0) -> int:
        """End the whole tree and wait for that, bounded.

        Returns:
            The program's exit status, negative for the signal that ended it.
        """
        self.let_go()
        try:
            status = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()  # the program is bound to its keeper's life
            status = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return status


def main(lifeline: int, owner: int, command: list[str]) -> None:
    """Run ``command`` until it ends or the lifeline is cut, kill its tree, and end as it did."""
    _prctl(_SUBREAPER, 1)
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    for number in _ENDINGS:  # only the owner ends a keeper
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    os.set_inheritable(lifeline, False)
    keeper = os.getpid()
    program = os.fork()
    if program == 0:
        _become(command, keeper)
    _forget_descriptors({lifeline, waking, woken})
    status: int | None = None
    while status is None and os.getppid() == owner:
        ready, _, _ = select.select([lifeline, waking], [], [], 1.0)
        if lifeline in ready:
            break
        with contextlib.suppress(BlockingIOError):
            os.read(waking, 4096)
        status = _reap(program)
    status = _kill_tree(program, status)
    _end_as(status)


def _become(command: list[str], keeper: int) -> None:
    """Turn into the program, in a process group of its own, bound to the keeper's life."""
    try:
        os.setpgid(0, 0)
        _prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (*_ENDINGS, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: can't be started: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _forget_descriptors(keep: set[int]) -> None:
    """Close what the program inherits too: a pipe must end when the program does, not when its keeper does."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    top = max(keep) + 1
    for number in range(3, top):
        if number not in keep:
            with contextlib.suppress(OSError):
                os.close(number)
    os.closerange(top, 4096)


def _reap(program: int) -> int | None:
    """Collect dead descendants. The program's exit status once it is among them."""
    found: int | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == program:
                found = os.waitstatus_to_exitcode(status)
    return found


def _kill_tree(program: int, status: int | None) -> int:
    """Kill children until there are none: what a dead child leaves behind becomes a child here."""
    limit = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < limit:
        children = _children()
        if status is None:
            children.add(program)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(program, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        found = _reap(program)
        status = found if found is not None else status
        if status is not None and not _children():
            return status
        time.sleep(0.005)
    return 1 if status is None else status


def _children() -> set[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return {int(word) for word in file.read().split()}
    except OSError:  # not Linux: only the program's own process group can be ended
        return set()


def _end_as(status: int) -> None:
    """Exit with a status, or by the signal that it names."""
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
