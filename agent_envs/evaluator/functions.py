"""The Python escape hatch: a task names a pure function, and a function that misbehaves decides nothing."""

import importlib
from typing import Any

from agent_envs.contract.verdict import Status


def call_function(name: str, argument: Any) -> tuple[Status, str]:
    """Call ``package.module:function`` with evidence or events.

    Returns:
        Status and explanation. A function that can't be found, raises, or returns anything but a status with an
        explanation leaves the check undetermined.
    """
    module, _, attribute = name.partition(":")
    try:
        status, explanation = getattr(importlib.import_module(module), attribute)(argument)
        return Status(status), str(explanation)
    except (Exception, SystemExit) as error:
        return Status.UNDETERMINED, f"the check {name} failed itself: {type(error).__name__}: {error}"[:500]
