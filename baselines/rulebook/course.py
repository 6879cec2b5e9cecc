"""The course of a call, from the first question to ``finish``.

Written as generators: ``answer = yield call`` hands a call to the environment and goes on with what came back, so the
course reads from top to bottom although it is played one step at a time.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import Any, TypeVar

from agent_envs.baselines.rulebook import words
from agent_envs.baselines.rulebook.decision import Decision, File, Pieces, Row, decide
from agent_envs.envs.refund.rules import approval_threshold, money_text

T = TypeVar("T")
Course = Generator[Row, Row, T]
"""Yields calls, is sent their answers, returns what was found out."""
MOVES = {"refund": "refunded", "store_credit": "credited", "cancel": "cancelled"}
UNMOVED = {
    "handed_over": ("handed_over", "handed_over"),
    "refused": ("refused", "refused"),
    "open": ("refused", "unable"),
}
"""Ends without money: what the customer and what ``finish`` is told; ``open`` is where the rules know no way on."""
MOST = 4
"""How many requests are taken up, how often each is thought over, and how many orders are looked through."""


class Refused(Exception):
    """A call was answered with anything but success."""


@dataclass(frozen=True)
class Wish:
    """One request: the customer's words about it, latest first, and what was told when asked."""

    spoken: tuple[str, ...]
    facts: Mapping[str, str]
    later: bool = False
    """It came up after another one, so the facts may be about that one."""

    def about(self, *names: str) -> list[str]:
        """Words to search, most telling first: later words, then the facts, then the opening."""
        told = [self.facts[name] for name in names if name in self.facts]
        return [*self.spoken, *told] if self.later else [*self.spoken[:-1], *told, self.spoken[-1]]


def call(tool: str, **arguments: Any) -> Course[Row]:
    """Make a call.

    Raises:
        Refused: It didn't succeed.
    """
    answer = yield {"tool": tool, "arguments": arguments}
    if answer.get("status") != "ok":
        raise Refused(f"{tool}: {answer.get('error')}")
    result: Row = answer["result"]
    return result


def look_up(order_id: str) -> Course[Row | None]:
    """An order, or None if there is none of that number: customers misremember."""
    try:
        return (yield from call("get_order", order_id=order_id))
    except Refused:
        return None


class Clerk:
    """Plays one episode."""

    def __init__(self, ticket: str) -> None:
        """Take a ticket."""
        self.ticket, self.now, self.active = ticket, "", True
        self.customer: Row = {}
        self.seen: list[str] = []
        self.paid: dict[str, Decimal] = {}

    def play(self, opening: str) -> Course[None]:
        """The whole course, from the customer's first words on."""
        results: list[tuple[str, str]] = []
        try:
            facts, changes = yield from self._ask()
            known = yield from self._identify(facts, opening)
            wish = Wish((*changes, opening), facts)
            for _ in range(MOST):
                results.append((yield from self._settle(wish)) if known else ("refused", "identity_failed"))
                # Told before the ticket is closed: a further request may come up, and belongs to the same ticket.
                told = UNMOVED.get(results[-1][0], ("done", "completed"))[0]
                said = (yield from self._say("This is how it stands.", report=told))["says"] if self.active else ""
                if not (known and self.active and words.wants_something(said)):
                    break
                wish = Wish((said,), facts, later=True)
            yield from self._close(results)
        except Refused as refusal:
            yield {"tool": "finish", "arguments": {"outcome": "unable", "reason": str(refusal)[:500]}}

    def _say(self, text: str, **arguments: Any) -> Course[Row]:
        reply: Row = (yield from call("send_message", text=text, **arguments))["customer"]
        self.active = reply["status"] == "active"
        return reply

    def _ask(self) -> Course[tuple[dict[str, str], list[str]]]:
        """Ask for everything at once; returns the facts, and requests made beside them."""
        reply = yield from self._say("Thank you for calling. I need a few details.", ask=list(words.FACTS))
        told, lines = reply["told"], reply["says"].split("\n")
        facts = {name: words.fact(name, line) for name, line in zip(told, lines, strict=False)}
        changes = [line for line in lines[len(told) :] if words.wants_something(line)]
        return {name: value for name, value in facts.items() if value}, changes

    def _identify(self, facts: Mapping[str, str], opening: str) -> Course[bool]:
        """Check the facts against the accounts they may belong to, two at a time, until two match."""
        accounts: list[str] = []
        for name in ("email", "name"):
            if name in facts and not accounts:
                found = yield from call("find_customer", **{name: facts[name]})
                accounts = [row["customer_id"] for row in found["customers"]]
        number = facts.get("order_id") or words.fact("order_id", opening)
        if len(accounts) != 1 and number and (order := (yield from look_up(number))):
            # Of several namesakes the order's owner is the likeliest; with nobody found the owner is who to disprove.
            accounts = sorted(accounts, key=order["customer_id"].__ne__) or [order["customer_id"]]
        proofs = [(name, facts[name]) for name in ("email", "postcode", "birth_date") if name in facts]
        if len(proofs) == 1:
            # Bound to fail; the policy wants the failed check on record.
            proofs.append(("postcode" if "postcode" not in facts else "email", "not given"))
        try:
            for account in accounts:
                for pair in combinations(proofs, 2):
                    target = {"ticket_id": self.ticket, "customer_id": account}
                    if (yield from call("verify_identity", **target, **dict(pair)))["passed"]:
                        self.customer = yield from call("get_customer", customer_id=account)
                        return True
        except Refused:
            pass  # too many failed checks
        return False

    def _settle(self, wish: Wish) -> Course[tuple[str, str]]:
        """Do what the policy says to a wish, anew when the customer's answer changes it; gives decision and reason."""
        files: dict[str, File] = {}
        for _ in range(MOST):
            order = yield from self._order(wish)
            if order is None:
                break
            if order["customer_id"] != self.customer["customer_id"]:
                return "refused", "not_owner"
            if order["order_id"] not in files:
                files[order["order_id"]] = yield from self._study(order)
            decision = self._decide(wish, files[order["order_id"]])
            if decision.action in ("refuse", "hand_over"):
                return "refused" if decision.action == "refuse" else "handed_over", decision.reason
            said = yield from self._propose(decision)
            if said is None:
                return (yield from self._carry_out(order, decision))
            if not words.wants_something(said) or said in wish.spoken:
                late = decision.proposals[0]["action"] == "store_credit"
                return ("refused", "out_of_window") if late else ("open", "")
            wish = replace(wish, spoken=(said, *wish.spoken))
        return "open", ""

    def _order(self, wish: Wish) -> Course[Row | None]:
        """The order a wish is about: by its number, else the customer's latest one with such goods."""
        for text in (*wish.spoken, wish.facts.get("order_id", "")):
            if (number := words.fact("order_id", text)) and (order := (yield from look_up(number))):
                return order
        listed = yield from call("list_orders", customer_id=self.customer["customer_id"])
        numbers = [row["order_id"] for row in listed["orders"] if row["order_id"] not in self.seen]
        orders: list[Row] = []
        for number in numbers[:MOST]:
            orders.append((yield from call("get_order", order_id=number)))
            if words.goods(wish.about("items"), orders[-1]["lines"]):
                return orders[-1]
        return orders[0] if orders else None

    def _study(self, order: Row) -> Course[File]:
        number = order["order_id"]
        self.seen.append(number)
        payments = yield from call("get_payments", order_id=number)
        history = yield from call("get_history", order_id=number)
        risk = yield from call("check_risk", order_id=number)
        if not self.now:
            self.now = (yield from call("get_ticket", ticket_id=self.ticket))["now"]
        return File(order, payments["payments"], history, risk["risk"], self.customer["tier"], self.now)

    def _decide(self, wish: Wish, file: File) -> Decision:
        lines = file.order["lines"]
        named = words.goods(wish.about("items", "reason", "condition"), lines)
        wanted = []
        for line in lines:
            if line["line_no"] in named or not named:
                left = max(line["quantity"] - line["returned_quantity"], 1)
                state = words.condition_of(line, lines, wish.about("condition", "reason", "items"))
                wanted.append(Pieces(line["line_no"], min(named.get(line["line_no"]) or left, left), state))
        return decide(file, wanted, as_credit=words.wants_credit(wish.spoken))

    def _propose(self, decision: Decision) -> Course[str | None]:
        """Get a yes to each step; returns the customer's words at the first no, None when all are agreed to."""
        for proposal in decision.proposals:
            reply = yield from self._say("This is what I can do for you. Do you agree?", propose=proposal)
            if not reply["accepted"]:
                return str(reply["says"])
        return None

    def _carry_out(self, order: Row, decision: Decision) -> Course[tuple[str, str]]:
        number, reason = order["order_id"], decision.reason
        target = {"ticket_id": self.ticket, "order_id": number}
        if decision.action == "cancel":
            yield from call("cancel_order", **target, reason=reason)
            return "cancelled", reason
        authorised: Row = {}
        self.paid[number] = self.paid.get(number, Decimal(0)) + decision.total
        if self.paid[number] > approval_threshold(order["currency"]):
            amount = money_text(self.paid[number], order["currency"])
            answer = yield from call("request_approval", order_id=number, amount=amount, reason="return of goods")
            if answer["decision"] != "approved":
                return "handed_over", "approval_denied"
            authorised = {"authorisation_id": answer["authorisation_id"]}
        for part in decision.pieces:
            yield from call("register_return", **target, **part._asdict())
        for proposal in decision.proposals:
            money = {"amount": proposal["amount"], "reason": reason, **authorised}
            if proposal["action"] == "refund":
                yield from call("issue_refund", **target, payment_id=proposal["payment_id"], **money)
            else:
                yield from call("issue_store_credit", **target, **money)
        return MOVES[decision.proposals[0]["action"]], reason

    def _close(self, results: list[tuple[str, str]]) -> Course[None]:
        """Close the ticket with what moved money, else with a hand-over, else with the first refusal; then finish."""
        rank = list(UNMOVED)
        decision, reason = min(results, key=lambda result: rank.index(result[0]) if result[0] in rank else -1)
        if decision == "handed_over":
            team = "risk" if reason == "fraud_hold" else "supervisors"
            yield from call("hand_over", ticket_id=self.ticket, team=team, reason=reason)
        elif decision != "open":
            yield from call("resolve_ticket", ticket_id=self.ticket, decision=decision, reason=reason)
        yield from call("finish", outcome=UNMOVED.get(decision, ("done", "completed"))[1], reason=reason)


class HastyClerk(Clerk):
    """Does the same, but never asks the customer for a yes."""

    def _propose(self, decision: Decision) -> Course[str | None]:
        """Take the yes for granted."""
        yield from ()
        return None
