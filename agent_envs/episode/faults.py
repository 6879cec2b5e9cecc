"""Boundaries: the innermost boundary an exception crosses first names whose fault it is.

Code that belongs to the environment, the grader, the policy (``agent``) or the harness runs inside a `boundary`. Nobody
attributes a failure by reading an exception's text.
"""

from types import TracebackType

from agent_envs.contract import AgentEvalError, Terminal, ToolError
from agent_envs.contract.evidence import Origin, Phase


class Fault(AgentEvalError):
    """An exception that crossed a boundary, with the way of ending it stands for."""

    def __init__(self, message: str, terminal: Terminal | None = None) -> None:
        """Keep the terminal reason beside the message (None after unpickling)."""
        super().__init__(message)
        self.terminal = terminal or Terminal(phase="act", origin="harness", kind="unknown", detail=message)


class boundary:
    """A context that names whose fault an exception is.

    A `Fault` from a boundary further in and a `ToolError` pass unchanged; so do KeyboardInterrupt and other
    exceptions that aren't errors.

    Raises:
        Fault: Whatever else was raised inside, as its cause.
    """

    __slots__ = ("_kind", "_origin", "_phase")

    def __init__(self, phase: Phase, origin: Origin, kind: str) -> None:
        """Name phase, origin and kind of the ending an exception stands for."""
        self._phase, self._origin, self._kind = phase, origin, kind

    def __enter__(self) -> None:
        """Cross the boundary."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Turn an error into a `Fault`."""
        if isinstance(error, Exception) and not isinstance(error, Fault | ToolError):
            raise self.fault(error) from error

    def fault(self, error: Exception) -> Fault:
        """What an error becomes that crosses this boundary."""
        message = f"{type(error).__name__}: {error}"[:2000]
        return Fault(message, Terminal(phase=self._phase, origin=self._origin, kind=self._kind, detail=message))
