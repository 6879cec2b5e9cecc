"""What an agent has seen and done in one episode: the only thing that options and features are made from.

It is filled from the texts of the observations, the way any agent gets them. What was never shown is not in it.
"""

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_envs.envs.refund.menu.words import fact_value
from agent_envs.envs.refund.rules import instant

Row = dict[str, Any]

APPROVAL_HOURS = 2
"""How long an approval takes, as the policy's tool says."""
REMARKS = 40
"""How many of the customer's sentences are kept; the latest matter."""


@dataclasses.dataclass
class Memory:
    """Everything shown so far."""

    ticket_id: str = ""
    """The ticket the request names."""
    opened: dt.datetime | None = None
    """When the ticket was opened, once it was looked at."""
    hours: int = 0
    """Hours spent waiting for approvals."""
    steps: int = 0
    refused: bool = False
    """Whether the last option brought an error."""
    policy_read: bool = False
    user: str = "active"

    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    """Facts the customer told."""
    asked: dict[str, None] = dataclasses.field(default_factory=dict)
    """Facts the customer was asked for."""
    remarks: list[str] = dataclasses.field(default_factory=list)
    """What else the customer said about the matter, oldest first."""
    mentioned: str = ""
    """The order the customer mentioned last."""
    proposals: list[tuple[Row, bool]] = dataclasses.field(default_factory=list)
    """What was proposed, and whether the customer agreed."""
    last_refund: list[Row] = dataclasses.field(default_factory=list)
    """The refunds that were proposed together last."""
    reports: list[str] = dataclasses.field(default_factory=list)

    searched: dict[str, None] = dataclasses.field(default_factory=dict)
    """By what customers were searched."""
    found: list[str] = dataclasses.field(default_factory=list)
    """Customers of the last search that found any."""
    tiers: dict[str, str] = dataclasses.field(default_factory=dict)
    checks: list[tuple[str, bool]] = dataclasses.field(default_factory=list)
    """Identity checks: of whom, and whether they passed."""

    listed: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """Orders of a customer, latest first."""
    orders: dict[str, Row] = dataclasses.field(default_factory=dict)
    order_id: str = ""
    """The order looked at last: the one that options are about."""
    payments: dict[str, list[Row]] = dataclasses.field(default_factory=dict)
    histories: dict[str, Row] = dataclasses.field(default_factory=dict)
    risks: dict[str, str] = dataclasses.field(default_factory=dict)

    registered: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict)
    """Pieces registered in this episode, by order and line."""
    conditions: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """The conditions they were registered with."""
    approvals: dict[str, list[Row]] = dataclasses.field(default_factory=dict)
    refunds: list[Row] = dataclasses.field(default_factory=list)
    credits: list[Row] = dataclasses.field(default_factory=list)
    cancelled: list[str] = dataclasses.field(default_factory=list)
    closed: str = ""
    """Decision with which the ticket was closed."""
    finished: bool = False

    @property
    def now(self) -> dt.datetime | None:
        """The office clock to within the minutes that a talk takes; None before the ticket was looked at."""
        return None if self.opened is None else self.opened + dt.timedelta(hours=self.hours)

    def start(self, text: str, info: Mapping[str, Any]) -> None:
        """Take in the request and the customer's first words."""
        request, _, opening = text.partition("\n\n")
        if found := re.search(r"\bT\d+\b", request):
            self.ticket_id = found[0]
        self.user = str(info.get("user", "active"))
        said = _answers(opening)
        if said and isinstance(customer := said[0].get("customer"), dict):
            self._hear(str(customer.get("says", "")))

    def take(self, calls: Sequence[Mapping[str, Any]], text: str, info: Mapping[str, Any]) -> None:
        """Take in the answers to calls; a text that was cut or is no JSON teaches nothing."""
        self.steps += 1
        self.user = str(info.get("user", self.user))
        answers = _answers(text)
        self.refused = len(answers) != len(calls) or any(answer.get("status") != "ok" for answer in answers)
        if len(answers) != len(calls):
            return
        refunds = [call["arguments"]["propose"] for call in calls if _proposes_refund(call)]
        self.last_refund = refunds or self.last_refund
        for call, answer in zip(calls, answers, strict=True):
            if answer.get("status") == "ok" and isinstance(result := answer.get("result"), dict):
                getattr(self, f"_{call['tool']}")(call["arguments"], result)

    def refuse(self) -> None:
        """Count a step whose choice was not on offer."""
        self.steps += 1
        self.refused = True

    # What each tool's answer teaches

    def _read_policy(self, arguments: Row, result: Row) -> None:
        self.policy_read = True

    def _get_ticket(self, arguments: Row, result: Row) -> None:
        self.opened = instant(result["opened_at"])

    def _find_customer(self, arguments: Row, result: Row) -> None:
        self.searched |= dict.fromkeys(arguments)
        self.found = [row["customer_id"] for row in result["customers"]] or self.found

    def _get_customer(self, arguments: Row, result: Row) -> None:
        self.tiers[result["customer_id"]] = result["tier"]

    def _verify_identity(self, arguments: Row, result: Row) -> None:
        self.checks.append((result["customer_id"], result["passed"]))

    def _list_orders(self, arguments: Row, result: Row) -> None:
        self.listed[result["customer_id"]] = [row["order_id"] for row in result["orders"]]

    def _get_order(self, arguments: Row, result: Row) -> None:
        self.order_id = result["order_id"]
        self.orders[self.order_id] = result

    def _get_payments(self, arguments: Row, result: Row) -> None:
        self.payments[result["order_id"]] = result["payments"]

    def _get_history(self, arguments: Row, result: Row) -> None:
        self.histories[result["order_id"]] = result

    def _check_risk(self, arguments: Row, result: Row) -> None:
        self.risks[result["order_id"]] = result["risk"]

    def _register_return(self, arguments: Row, result: Row) -> None:
        pieces = self.registered.setdefault(result["order_id"], {})
        pieces[result["line_no"]] = pieces.get(result["line_no"], 0) + result["quantity"]
        self.conditions.setdefault(result["order_id"], []).append(arguments["condition"])

    def _request_approval(self, arguments: Row, result: Row) -> None:
        self.approvals.setdefault(result["order_id"], []).append(result)
        self.hours += APPROVAL_HOURS

    def _issue_refund(self, arguments: Row, result: Row) -> None:
        self.refunds.append(result)

    def _issue_store_credit(self, arguments: Row, result: Row) -> None:
        self.credits.append(result)

    def _cancel_order(self, arguments: Row, result: Row) -> None:
        number = result["order_id"]
        self.cancelled.append(number)
        if number in self.orders:
            self.orders[number] = self.orders[number] | {"status": result["status"]}

    def _resolve_ticket(self, arguments: Row, result: Row) -> None:
        self.closed = result["decision"]

    _hand_over = _resolve_ticket

    def _send_message(self, arguments: Row, result: Row) -> None:
        reply = result["customer"]
        self.asked |= dict.fromkeys(arguments.get("ask") or ())
        if "propose" in arguments:
            self.proposals.append((arguments["propose"], reply["accepted"] is True))
        if "report" in arguments:
            self.reports.append(arguments["report"])
        self._hear(reply["says"], reply["told"])

    def _finish(self, arguments: Row, result: Row) -> None:
        self.finished = True

    def _hear(self, says: str, told: Sequence[str] = ()) -> None:
        """Facts come first, one line each, in the order they are named."""
        lines = says.split("\n")
        for name, line in zip(told, lines, strict=False):
            value = fact_value(name, line)
            if value:
                self.facts[name] = value
        self.remarks = (self.remarks + lines)[-REMARKS:]
        for line in lines:
            if numbers := re.findall(r"\bW\d+\b", line):
                self.mentioned = numbers[-1]


def _proposes_refund(call: Mapping[str, Any]) -> bool:
    proposal = call["arguments"].get("propose")
    return isinstance(proposal, dict) and proposal.get("action") == "refund"


def _answers(text: str) -> list[Row]:
    """The JSON objects of an observation; none if the text isn't JSON or holds anything else."""
    try:
        value = json.loads(text)
    except ValueError:
        return []
    rows = value if isinstance(value, list) else [value]
    return rows if all(isinstance(row, dict) for row in rows) else []
