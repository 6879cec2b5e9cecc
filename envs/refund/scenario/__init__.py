"""Refund tasks in short form: what an author states, expanded to the whole contract.

The author gives customers, orders, the user and the outcome in a few lines; rows, ledger entries, the exact change set
and the policy's constraints follow from them. `expand` serves task files, `expand_data` tasks made by programs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from agent_envs.contract import Document, Limits, RubricItem, validate
from agent_envs.contract.expected import Exact, Identifier
from agent_envs.envs.refund import fixture
from agent_envs.envs.refund.scenario.effects import assertions
from agent_envs.envs.refund.scenario.form import FormError, Scenario
from agent_envs.envs.refund.scenario.process import family_constraints
from agent_envs.envs.refund.scenario.start import Fail, Location, start_patch

__all__ = ["ASKABLE", "TOOL_NAMES", "FormError", "Scenario", "expand", "expand_data", "request"]

TOOL_NAMES = (
    "find_customer",
    "get_customer",
    "list_orders",
    "get_order",
    "get_payments",
    "get_history",
    "get_ledger",
    "get_ticket",
    "check_risk",
    "read_policy",
    "verify_identity",
    "register_return",
    "request_approval",
    "issue_refund",
    "issue_store_credit",
    "cancel_order",
    "add_note",
    "hand_over",
    "resolve_ticket",
    "wait",
    "send_message",
    "finish",
)
"""Every tool of the family: what all its tasks offer."""

ASKABLE = (
    "name",
    "email",
    "phone",
    "postcode",
    "birth_date",
    "order_id",
    "items",
    "condition",
    "reason",
    "payment_method",
    "other",
)
"""Facts that ``send_message`` can ask the customer for."""


def request(ticket_id: str) -> str:
    """The instruction every task gives; it says nothing of the right outcome."""
    return (
        f"You work in the back office of an online retailer. A customer is on the line about ticket {ticket_id}. Read "
        "the refund policy (read_policy) and keep to it. Find out what the customer wants, settle it with the tools, "
        "close the ticket, tell the customer the outcome, then call finish."
    )


def expand(document: Document) -> dict[str, Any]:
    """Expand a task file; made for `agent_envs.contract.load_tasks`.

    Raises:
        TaskError: Names file, line, field and what was expected.
    """
    return _expand(validate(document, Scenario), document.error)


def expand_data(data: Mapping[str, Any], error: Fail | None = None) -> dict[str, Any]:
    """Expand a task in short form given as plain data.

    Args:
        data: The short form.
        error: Makes the error for a location and a message; the default makes `FormError`.

    Raises:
        Exception: What ``error`` makes.
    """
    fail = error or _form_error
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as fault:
        first = fault.errors()[0]
        raise fail(first["loc"], f"{first['msg']} (got {first['input']!r:.80})") from None
    return _expand(scenario, fail)


def _form_error(location: Location, message: str) -> FormError:
    return FormError(f"{'.'.join(str(part) for part in location) or 'the scenario'}: {message}")


def _expand(scenario: Scenario, fail: Fail) -> dict[str, Any]:
    patch = start_patch(scenario, fail)
    _check_user(scenario, fail)
    outcome = assertions(scenario, fail)
    constraints = (*family_constraints(scenario), *scenario.constraints)
    generated = scenario.source == "generated"
    return {
        "task_id": scenario.task_id,
        "task_revision": scenario.task_revision,
        "source": scenario.source,
        "slice_labels": scenario.slice_labels,
        "initial_state": {
            "fixture": fixture.NAME,
            "fixture_digest": "" if generated else fixture.DIGEST,
            "clock": scenario.clock,
            "patch": patch,
        },
        "reset_check": scenario.reset_check,
        "user_request": request(scenario.ticket.ticket_id),
        "user": scenario.user,
        "available_tools": TOOL_NAMES,
        "permissions": scenario.permissions,
        "constraints": constraints,
        "limits": Limits(**dict(scenario.limits)),
        "outcome": outcome,
        "rubric": scenario.rubric
        or (
            RubricItem(check="changes", weight=len(constraints)),
            *(RubricItem(check=item.name, weight=1) for item in constraints),
        ),
        "grader_revision": scenario.grader_revision,
        "grader_manifest": scenario.grader_manifest,
    }


def _check_user(scenario: Scenario, fail: Fail) -> None:
    for name in scenario.user.facts:
        if name not in ASKABLE:
            raise fail(("user", "facts", name), f"{name!r} can't be asked for; facts are {', '.join(ASKABLE)}")
    known = {
        "order_id": {order.order_id for order in scenario.orders},
        "payment_id": {payment.payment_id for order in scenario.orders for payment in order.payments},
    }
    for location, proposal in _proposals(scenario):
        for name, ids in known.items():
            expected = proposal.get(name)
            value = expected.exact if isinstance(expected, Exact) else getattr(expected, "id", None)
            if isinstance(expected, Exact | Identifier) and value not in ids:
                raise fail((*location, name), f"{value!r} is no {name} of the task's orders")


def _proposals(scenario: Scenario) -> Iterator[tuple[Location, dict[str, Any]]]:
    user = scenario.user
    wishes: list[tuple[Location, Any]] = [(("user", "wishes", index), wish) for index, wish in enumerate(user.wishes)]
    if user.turn is not None:
        wishes.append((("user", "turn", "becomes"), user.turn.becomes))
    for location, wish in wishes:
        for name in ("accepts", "declines"):
            for index, terms in enumerate(getattr(wish, name)):
                yield (*location, name, index, "proposal"), terms.proposal
