"""The project's exceptions, named by the boundary that failed.

Every constructor takes one message, so an exception survives pickling across worker processes.
"""


class AgentEvalError(Exception):
    """Base of every error this project raises on purpose."""


class TaskError(AgentEvalError):
    """A task file, fixture or reference is wrong; the message names file, line, field and what was expected."""


class ToolError(AgentEvalError):
    """A tool refuses a call. The agent reads the message as its observation; the call's effects are undone."""


class EnvironmentFault(AgentEvalError):
    """The environment broke. The episode ends and its record is invalid: neither a success nor a failure."""


class GraderFault(AgentEvalError):
    """The grader broke or disagreed with itself. The verdict is undetermined."""


class EvidenceError(AgentEvalError):
    """Kept evidence is damaged, incomplete or of another task; nothing can be judged from it."""
