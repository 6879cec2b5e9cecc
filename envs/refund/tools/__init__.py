"""The tools of the back office: everything an agent can do there."""

from agent_envs.envs.refund.tools.cases import add_note, hand_over, register_return, resolve_ticket, verify_identity
from agent_envs.envs.refund.tools.lookup import (
    check_risk,
    find_customer,
    get_customer,
    get_history,
    get_ledger,
    get_order,
    get_payments,
    get_ticket,
    list_orders,
)
from agent_envs.envs.refund.tools.money import cancel_order, issue_refund, issue_store_credit, request_approval
from agent_envs.envs.refund.tools.policy import read_policy
from agent_envs.envs.refund.tools.talk import finish, send_message, wait
from agent_envs.episode.tools import Tool

TOOLS: tuple[Tool, ...] = (
    read_policy,
    get_ticket,
    find_customer,
    get_customer,
    list_orders,
    get_order,
    get_payments,
    get_history,
    get_ledger,
    check_risk,
    verify_identity,
    register_return,
    request_approval,
    issue_refund,
    issue_store_credit,
    cancel_order,
    add_note,
    hand_over,
    resolve_ticket,
    send_message,
    wait,
    finish,
)
"""Every tool, in the order agents see them."""

__all__ = ["TOOLS"]
