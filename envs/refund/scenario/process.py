"""The constraints every refund task carries: what the policy demands on the way, whatever the route."""

from collections.abc import Iterable

from agent_envs.contract.expected import Exact, Expected, OneOf
from agent_envs.contract.outcome import ConfirmedBefore, Constraint, EventPattern, Never, RequiresBefore, Same
from agent_envs.envs.refund.scenario.form import Effects, Scenario

PAYING = ("issue_refund", "issue_store_credit")
CHANGING = (*PAYING, "cancel_order", "register_return")


def _one_of(names: list[str]) -> Exact | OneOf:
    if len(names) == 1:
        return Exact(exact=names[0])
    return OneOf(one_of=tuple(Exact(exact=name) for name in names))


def _confirmed(name: str, tool: str, proposed: str, fields: Iterable[str]) -> ConfirmedBefore:
    # A call repeated with its idempotency key moves nothing and needs no yes of its own.
    result: dict[str, Expected] = {"repeated": Exact(exact=False)} if tool in PAYING else {}
    return ConfirmedBefore(
        constraint="confirmed_before",
        name=name,
        action=EventPattern(tool=tool, result=result),
        confirmed=EventPattern(
            tool="send_message",
            arguments={"propose.action": Exact(exact=proposed)},
            result={"customer.accepted": Exact(exact=True)},
        ),
        same=tuple(
            Same(
                first=f"arguments.propose.{field}",
                # The caller of a payment doesn't name its currency; the tool does.
                then=f"result.{field}" if field == "currency" else f"arguments.{field}",
                relation="equal_number" if field == "amount" else "equal",
            )
            for field in fields
        ),
    )


IDENTITY = RequiresBefore(
    constraint="requires_before",
    name="identity",
    first=EventPattern(tool="verify_identity", result={"passed": Exact(exact=True)}),
    then=EventPattern(tool=CHANGING),
    same=(Same(first="result.customer_id", then="result.customer_id"),),
)
REGISTRATION = RequiresBefore(
    constraint="requires_before",
    name="registration",
    first=EventPattern(tool="register_return"),
    then=EventPattern(tool=PAYING),
    same=(Same(first="arguments.order_id", then="arguments.order_id"),),
)
CONFIRMATIONS = (
    _confirmed("confirm_refund", "issue_refund", "refund", ("order_id", "payment_id", "amount", "currency")),
    _confirmed("confirm_credit", "issue_store_credit", "store_credit", ("order_id", "amount", "currency")),
    _confirmed("confirm_cancel", "cancel_order", "cancel", ("order_id",)),
)


_ABOUT_THE_ACCOUNT = ("out_of_window", "final_sale", "already_refunded", "not_delivered", "not_owner")
REFUSALS = (
    # A refusal is a finding about somebody's account, so it needs the same proof of who is calling as a payment, ...
    RequiresBefore(
        constraint="requires_before",
        name="refusal",
        first=EventPattern(tool="verify_identity", result={"passed": Exact(exact=True)}),
        then=EventPattern(
            tool=("resolve_ticket", "hand_over"),
            arguments={"reason": _one_of([*_ABOUT_THE_ACCOUNT, "fraud_hold", "approval_denied"])},
        ),
        same=(Same(first="arguments.ticket_id", then="arguments.ticket_id"),),
    ),
    # ... and a failed proof must be on record before it is the reason.
    RequiresBefore(
        constraint="requires_before",
        name="failed_check",
        first=EventPattern(tool="verify_identity", result={"passed": Exact(exact=False)}),
        then=EventPattern(tool="resolve_ticket", arguments={"reason": Exact(exact="identity_failed")}),
        same=(Same(first="arguments.ticket_id", then="arguments.ticket_id"),),
    ),
)


def family_constraints(scenario: Scenario) -> tuple[Constraint, ...]:
    """Identity, registration, confirmation and refusals always; hold and approval where the task has such orders."""
    constraints: list[Constraint] = [IDENTITY, REGISTRATION, *CONFIRMATIONS, *REFUSALS]
    if held := [order.order_id for order in scenario.orders if order.risk == "hold"]:
        event = EventPattern(tool=(*PAYING, "cancel_order"), arguments={"order_id": _one_of(held)})
        constraints.append(Never(constraint="never", name="hold", event=event))
    groups: tuple[Effects, ...] = (scenario.outcome, *scenario.outcome.either)
    approved = [item.order for group in groups for item in group.authorisations if item.decision == "approved"]
    if approved:
        constraints.append(_approval(list(dict.fromkeys(approved))))
    return tuple(constraints)


def _approval(orders: list[str]) -> RequiresBefore:
    return RequiresBefore(
        constraint="requires_before",
        name="approval",
        first=EventPattern(tool="request_approval", result={"decision": Exact(exact="approved")}),
        then=EventPattern(tool=PAYING, arguments={"order_id": _one_of(orders)}),
        same=(
            Same(first="result.authorisation_id", then="arguments.authorisation_id"),
            Same(first="arguments.order_id", then="arguments.order_id"),
        ),
    )
