import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_envs.contract import AgentTask, Change, TaskError, ToolError, decimal_text, untyped
from agent_envs.envs.refund import schema
from agent_envs.envs.refund.tools import TOOLS, policy
from agent_envs.envs.refund.world import Office
from agent_envs.state import Fixture

NOW = "2026-03-10T10:00:00Z"
BEFORE = "2026-03-01T10:00:00Z"
BY_NAME = {tool.name: tool for tool in TOOLS}


def customer(number: str, name: str, email: str, postcode: str, born: str) -> dict[str, Any]:
    return {
        "customer_id": number,
        "name": name,
        "name_key": name.casefold(),
        "email": email,
        "phone": "+1 555 0100-" + number[1:],
        "postcode": postcode,
        "birth_date": born,
        "tier": "standard",
    }


def order(
    number: str, status: str, currency: str, total: str, *, owner: str = "C1", risk: str = "clear"
) -> dict[str, Any]:
    return {
        "order_id": number,
        "customer_id": owner,
        "status": status,
        "risk": risk,
        "currency": currency,
        "shipping_fee": Decimal(0),
        "total": Decimal(total),
        "placed_at": BEFORE,
        "delivered_at": BEFORE if status == "delivered" else None,
    }


def line(number: str, no: int, quantity: int, price: str) -> dict[str, Any]:
    return {
        "order_id": number,
        "line_no": no,
        "sku": f"K-{no}",
        "name": "Kettle",
        "category": "kitchen",
        "quantity": quantity,
        "unit_price": Decimal(price),
        "final_sale": False,
        "returned_quantity": 0,
    }


def payment(
    number: str, order_id: str, tender: str, currency: str, amount: str, *, rate: str = "1", status: str = "captured"
) -> dict[str, Any]:
    return {
        "payment_id": number,
        "order_id": order_id,
        "tender": tender,
        "detail": "ending 4242",
        "status": status,
        "currency": currency,
        "amount": Decimal(amount),
        "rate": Decimal(rate),
        "refunded": Decimal(0),
        "captured_at": BEFORE,
    }


def ticket(number: str, status: str = "open") -> dict[str, Any]:
    return {"ticket_id": number, "subject": "A question", "status": status, "opened_at": BEFORE}


def rows() -> dict[str, list[dict[str, Any]]]:
    return {
        "customers": [
            customer("C1", "Nina Okafor", "nina@post.example", "AB1 2CD", "1984-05-02"),
            customer("C2", "Nina Okafor", "n.okafor@inbox.example", "EF3 4GH", "1990-11-23"),
            *(customer(f"C{n}", "Max Many", f"max{n}@post.example", "ZZ1 1ZZ", "1970-01-01") for n in range(100, 160)),
        ],
        "orders": [
            order("W1", "delivered", "USD", "100.60"),
            order("W2", "placed", "USD", "70.00"),
            order("W3", "delivered", "USD", "60.00", owner="C2", risk="hold"),
            order("W4", "delivered", "JPY", "9000"),
            order("W5", "delivered", "USD", "9000.00"),
        ],
        "order_lines": [line("W1", 1, 2, "50.30"), line("W2", 1, 1, "70.00"), line("W4", 1, 3, "3000")],
        "payments": [
            payment("P1", "W1", "card", "USD", "0.60"),
            payment("P2", "W1", "gift_card", "USD", "100.00"),
            payment("P3", "W2", "card", "USD", "20.00"),
            payment("P4", "W2", "paypal", "JPY", "7500", rate="150"),
            payment("P5", "W3", "card", "USD", "60.00"),
            payment("P6", "W4", "card", "JPY", "9000"),
            payment("P7", "W5", "card", "USD", "9000.00"),
            payment("P8", "W1", "card", "USD", "5.00", status="voided"),
        ],
        "tickets": [ticket("T1"), ticket("T2"), ticket("T3", "resolved")],
    }


SMALL = Fixture("small", schema.metadata, rows)
TASK = AgentTask.model_validate(
    {
        "task_id": "refund/small",
        "source": "curated",
        "initial_state": {"fixture": "small", "clock": NOW},
        "user_request": "Help the customer.",
        "user": {
            "facts": {"order_id": {"value": "W1"}},
            "wishes": [
                {
                    "opening": "I want my money back.",
                    "accepts": [{"proposal": {"action": "refund", "amount": {"money": "0.60"}}}],
                }
            ],
        },
        "available_tools": ["finish"],
        "outcome": [{"check": "changes", "expect": [{"table": "refunds"}]}],
    }
)


class Desk:
    """An office, with each call made as an episode makes it."""

    def __init__(self, url: str = "sqlite://") -> None:
        self.office = Office(SMALL, url)

    def restore(self) -> "Desk":
        self.office.restore(TASK, 7)
        return self

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result, _ = self.observe(name, **arguments)
        return result

    def observe(self, name: str, /, **arguments: Any) -> tuple[dict[str, Any], list[Change]]:
        """Result and changes of a call; whatever it changed must be declared, and an error must change nothing."""
        tool = BY_NAME[name]
        try:
            with self.office.database.savepoint():
                result = tool.call(self.office, arguments)
        except ToolError:
            assert self.office.database.take_changes() == []
            raise
        changes = self.office.database.take_changes()
        assert {change.table for change in changes} <= set(tool.writes)
        assert json.loads(json.dumps(result, allow_nan=False)) == result
        return result, changes

    def refused(self, name: str, /, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            self.observe(name, **arguments)
        return str(caught.value)

    def table(self, table: sa.Table) -> list[dict[str, Any]]:
        return self.office.database.all(sa.select(table).order_by(*table.primary_key))


@pytest.fixture(scope="module")
def opened() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.office.close()


@pytest.fixture
def desk(opened: Desk) -> Desk:
    return opened.restore()


REFUND = {"ticket_id": "T1", "order_id": "W1", "payment_id": "P1", "amount": "0.30", "reason": "defective"}
CREDIT = {"ticket_id": "T1", "order_id": "W4", "amount": "1500", "reason": "changed_mind"}


def test_a_refund_changes_exactly_refund_payment_and_two_ledger_entries(desk: Desk) -> None:
    result, changes = desk.observe("issue_refund", **REFUND)
    assert result == {
        "refund_id": 1,
        "order_id": "W1",
        "payment_id": "P1",
        "customer_id": "C1",
        "amount": "0.30",
        "currency": "USD",
        "repeated": False,
    }
    assert [(change.table, change.before is None) for change in changes] == [
        ("ledger", True),
        ("ledger", True),
        ("payments", False),
        ("refunds", True),
    ]
    debit, credit, paid, refund = (change.after or {} for change in changes)
    assert (debit["account"], untyped(debit["debit"]), untyped(debit["credit"])) == ("sales_returns", Decimal("0.3"), 0)
    assert (credit["account"], untyped(credit["debit"]), untyped(credit["credit"])) == ("card", 0, Decimal("0.3"))
    assert debit["document"] == credit["document"] == "refund:1"
    assert untyped(paid["refunded"]) == Decimal("0.3")
    assert refund["created_at"] == NOW and refund["authorisation_id"] is None
    assert desk.call("get_ledger", order_id="W1")["entries_total"] == 2


def test_a_credit_changes_exactly_the_credit_and_two_ledger_entries(desk: Desk) -> None:
    result, changes = desk.observe("issue_store_credit", **CREDIT)
    assert result == {
        "credit_id": 1,
        "order_id": "W4",
        "customer_id": "C1",
        "amount": "1500",
        "currency": "JPY",
        "repeated": False,
    }
    assert [change.table for change in changes] == ["ledger", "ledger", "store_credits"]
    assert [(change.after or {})["account"] for change in changes[:2]] == ["sales_returns", "store_credit"]


def test_a_cancellation_voids_every_payment_in_its_own_currency(desk: Desk) -> None:
    result, changes = desk.observe("cancel_order", ticket_id="T1", order_id="W2", reason="changed_mind")
    assert result == {
        "order_id": "W2",
        "customer_id": "C1",
        "status": "cancelled",
        "reason": "changed_mind",
        "voided": ["P3", "P4"],
    }
    assert [change.table for change in changes] == ["ledger"] * 4 + ["orders"] + ["payments"] * 2
    posted = [
        (row["document"], row["account"], row["currency"], decimal_text(row["debit"]), decimal_text(row["credit"]))
        for row in desk.table(schema.ledger)
    ]
    assert posted == [
        ("void:P3", "sales", "USD", "20", "0"),
        ("void:P3", "card", "USD", "0", "20"),
        ("void:P4", "sales", "JPY", "7500", "0"),
        ("void:P4", "paypal", "JPY", "0", "7500"),
    ]
    assert "cancelled" in desk.refused("cancel_order", ticket_id="T1", order_id="W2", reason="changed_mind")
    assert "voided" in desk.refused("issue_refund", **{**REFUND, "order_id": "W2", "payment_id": "P3"})


def test_what_was_refunded_before_a_cancellation_is_not_voided_again(desk: Desk) -> None:
    desk.call("issue_refund", **{**REFUND, "order_id": "W2", "payment_id": "P3", "amount": "20.00"})
    desk.call("issue_refund", **{**REFUND, "order_id": "W2", "payment_id": "P4", "amount": 500})
    assert desk.call("cancel_order", ticket_id="T1", order_id="W2", reason="defective")["voided"] == ["P3", "P4"]
    posted = [row for row in desk.table(schema.ledger) if row["document"].startswith("void:")]
    assert [(row["document"], row["debit"] + row["credit"]) for row in posted] == [("void:P4", 7000)] * 2


def test_three_tenths_fill_a_payment_exactly_and_nothing_more_fits(desk: Desk) -> None:
    """B065: 0.10 + 0.20 + 0.30 on 0.60 are allowed, 0.61 is not."""
    assert "more than the 0.60 left" in desk.refused("issue_refund", **{**REFUND, "amount": "0.61"})
    for amount in (0.1, "0.20", 0.3):
        desk.call("issue_refund", **{**REFUND, "amount": amount})
    left = desk.call("get_payments", order_id="W1")["payments"][0]
    assert (left["captured"], left["refunded"], left["left"]) == ("0.60", "0.60", "0.00")
    assert "more than the 0.00 left" in desk.refused("issue_refund", **{**REFUND, "amount": "0.01"})


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("issue_refund", {**REFUND, "ticket_id": "T9"}, "ticket 'T9' doesn't exist"),
        ("issue_refund", {**REFUND, "ticket_id": "T3"}, "ticket 'T3' is resolved"),
        ("issue_refund", {**REFUND, "order_id": "W99"}, "order 'W99' doesn't exist"),
        ("issue_refund", {**REFUND, "payment_id": "P5"}, "order 'W1' has no payment 'P5'"),
        ("issue_refund", {**REFUND, "payment_id": "P99"}, "order 'W1' has no payment 'P99'"),
        ("issue_refund", {**REFUND, "payment_id": "P8"}, "payment 'P8' is voided"),
        ("issue_refund", {**REFUND, "amount": "0.005"}, "finer than 0.01 USD"),
        ("issue_refund", {**REFUND, "amount": "0.00"}, "above zero"),
        ("issue_refund", {**REFUND, "amount": -0.0}, "above zero"),
        ("issue_refund", {**REFUND, "authorisation_id": 5}, "no authorisation 5"),
        ("issue_store_credit", {**CREDIT, "amount": "1500.5"}, "finer than 1 JPY"),
        ("issue_store_credit", {**CREDIT, "ticket_id": "T3"}, "ticket 'T3' is resolved"),
        ("issue_store_credit", {**CREDIT, "authorisation_id": 5}, "no authorisation 5"),
        ("cancel_order", {"ticket_id": "T1", "order_id": "W1", "reason": "defective"}, "order 'W1' is delivered"),
        ("cancel_order", {"ticket_id": "T3", "order_id": "W2", "reason": "defective"}, "ticket 'T3' is resolved"),
        ("add_note", {"ticket_id": "T3", "text": "late"}, "ticket 'T3' is resolved"),
        ("hand_over", {"ticket_id": "T3", "team": "risk", "reason": "other"}, "ticket 'T3' is resolved"),
        (
            "resolve_ticket",
            {"ticket_id": "T3", "decision": "refused", "reason": "not_owner"},
            "ticket 'T3' is resolved",
        ),
        ("get_order", {"order_id": "w1"}, "order 'w1' doesn't exist"),
        ("get_customer", {"customer_id": "C3"}, "customer 'C3' doesn't exist"),
        ("list_orders", {"customer_id": "C3"}, "customer 'C3' doesn't exist"),
        ("request_approval", {"order_id": "W1", "amount": "0", "reason": "x"}, "above zero"),
    ],
)
def test_refusals_say_why_and_change_nothing(desk: Desk, name: str, arguments: dict[str, Any], said: str) -> None:
    before = desk.office.clock.iso
    assert said in desk.refused(name, **arguments)
    assert desk.office.clock.iso == before


def test_an_authorisation_of_another_order_is_refused(desk: Desk) -> None:
    number = desk.call("request_approval", order_id="W4", amount=100, reason="x")["authorisation_id"]
    assert "no authorisation" in desk.refused("issue_refund", **REFUND, authorisation_id=number)
    credit = desk.call("issue_store_credit", **CREDIT, authorisation_id=number)
    assert desk.table(schema.store_credits)[-1]["authorisation_id"] == number
    assert credit["credit_id"] == 1


def test_the_tools_do_not_enforce_the_policy(desk: Desk) -> None:
    """No identity, no confirmation, an order on hold: whether the agent pays is what is measured."""
    desk.call("issue_refund", **{**REFUND, "order_id": "W3", "payment_id": "P5", "amount": "60.00"})
    desk.call("issue_store_credit", **{**CREDIT, "order_id": "W3", "amount": "5000.00"})
    assert desk.table(schema.refunds)[-1]["order_id"] == "W3"
    assert desk.table(schema.store_credits)[-1]["order_id"] == "W3"


@pytest.mark.parametrize(
    ("order_id", "amount", "decision", "note"),
    [
        ("W1", "100.60", "approved", "within the limit"),
        ("W1", "100.61", "denied", "more than is left on the payments"),
        ("W2", "70.00", "approved", "within the limit"),
        ("W2", "70.01", "denied", "more than is left on the payments"),
        ("W3", "1.00", "denied", "the order is on hold"),
        ("W4", "9000", "approved", "within the limit"),
        ("W5", "5000.00", "approved", "within the limit"),
        ("W5", "5000.01", "denied", "more than a supervisor may approve"),
    ],
)
def test_approval_takes_two_hours_and_is_decided_by_rule(
    desk: Desk, order_id: str, amount: str, decision: str, note: str
) -> None:
    result, changes = desk.observe("request_approval", order_id=order_id, amount=amount, reason="ignore your limits")
    assert (result["decision"], result["note"], result["amount"]) == (decision, note, amount)
    assert desk.office.clock.iso == "2026-03-10T12:00:00Z"
    [change] = changes
    assert (change.after or {})["decided_at"] == "2026-03-10T12:00:00Z"
    assert "ignore" not in json.dumps(change.after)


def test_approval_counts_what_was_refunded_already(desk: Desk) -> None:
    desk.call("issue_refund", **{**REFUND, "payment_id": "P2", "amount": "90.00"})
    assert desk.call("request_approval", order_id="W1", amount="10.61", reason="x")["decision"] == "denied"
    assert desk.call("request_approval", order_id="W1", amount="10.60", reason="x")["decision"] == "approved"


def test_the_same_key_pays_once(desk: Desk) -> None:
    first = desk.call("issue_refund", **REFUND, idempotency_key="k1")
    again, changes = desk.observe("issue_refund", **{**REFUND, "amount": 0.3}, idempotency_key="k1")
    assert changes == []
    assert again == {**first, "repeated": True}
    assert "used for another payment" in desk.refused(
        "issue_refund", **{**REFUND, "amount": "0.10"}, idempotency_key="k1"
    )
    other = {**REFUND, "payment_id": "P2"}
    assert "used for another payment" in desk.refused("issue_refund", **other, idempotency_key="k1")
    assert "used for another payment" in desk.refused("issue_store_credit", **CREDIT, idempotency_key="k1")
    desk.call("resolve_ticket", ticket_id="T1", decision="refunded", reason="defective")
    assert desk.call("issue_refund", **REFUND, idempotency_key="k1")["repeated"]
    assert "is resolved" in desk.refused("issue_refund", **REFUND, idempotency_key="k2")


def test_the_same_key_credits_once(desk: Desk) -> None:
    first = desk.call("issue_store_credit", **CREDIT, idempotency_key="k1")
    assert desk.call("issue_store_credit", **CREDIT, idempotency_key="k1") == {**first, "repeated": True}
    assert len(desk.table(schema.store_credits)) == 1
    assert desk.call("issue_store_credit", **CREDIT)["credit_id"] == 2


def test_identity_needs_two_matching_facts_and_links_the_ticket(desk: Desk) -> None:
    claim = {"ticket_id": "T1", "customer_id": "C1"}
    assert "at least two" in desk.refused("verify_identity", **claim, email="nina@post.example")
    assert "at least two" in desk.refused("verify_identity", **claim, email="nina@post.example", postcode="  ")
    assert "YYYY-MM-DD" in desk.refused("verify_identity", **claim, email="nina@post.example", birth_date="2.5.1984")
    assert desk.table(schema.identity_checks) == []
    result, changes = desk.observe("verify_identity", **claim, email=" NINA@post.example", postcode="ab12cd")
    assert result == {"passed": True, "ticket_id": "T1", "customer_id": "C1"}
    assert [change.table for change in changes] == ["identity_checks", "tickets"]
    assert desk.call("get_ticket", ticket_id="T1")["customer_id"] == "C1"


def test_one_wrong_fact_fails_the_check_without_saying_which(desk: Desk) -> None:
    facts = {"email": "nina@post.example", "postcode": "AB1 2CD", "birth_date": "1984-05-03"}
    result, changes = desk.observe("verify_identity", ticket_id="T1", customer_id="C1", **facts)
    assert result == {"passed": False, "ticket_id": "T1", "customer_id": "C1"}
    assert [change.table for change in changes] == ["identity_checks"]
    assert desk.call("get_ticket", ticket_id="T1")["customer_id"] is None


def test_after_three_failed_checks_even_right_facts_are_refused_for_a_day(desk: Desk) -> None:
    right = {"ticket_id": "T1", "customer_id": "C1", "email": "nina@post.example", "postcode": "AB1 2CD"}
    for customer_id in ("C2", "C1", "C2"):
        assert not desk.call("verify_identity", **{**right, "customer_id": customer_id, "postcode": "X"})["passed"]
        desk.call("wait", hours=1)
    assert "2026-03-11T10:00:00Z" in desk.refused("verify_identity", **right)
    assert desk.call("verify_identity", **{**right, "ticket_id": "T2"})["passed"]
    desk.call("wait", hours=20)
    assert "2026-03-11T10:00:00Z" in desk.refused("verify_identity", **right)
    desk.call("wait", hours=1)
    assert desk.call("verify_identity", **right)["passed"]


def test_passed_checks_do_not_count_against_the_ticket(desk: Desk) -> None:
    right = {"ticket_id": "T1", "customer_id": "C1", "email": "nina@post.example", "postcode": "AB1 2CD"}
    for _ in range(5):
        assert desk.call("verify_identity", **right)["passed"]


def test_no_more_pieces_come_back_than_were_bought(desk: Desk) -> None:
    pieces = {"ticket_id": "T1", "order_id": "W1", "line_no": 1, "condition": "opened"}
    assert "more than the 2" in desk.refused("register_return", **pieces, quantity=3)
    result, changes = desk.observe("register_return", **pieces, quantity=1)
    assert result == {"return_id": 1, "order_id": "W1", "line_no": 1, "quantity": 1, "customer_id": "C1"}
    assert [change.table for change in changes] == ["order_lines", "returns"]
    assert "more than the 1" in desk.refused("register_return", **pieces, quantity=2)
    desk.call("register_return", **pieces, quantity=1)
    assert "more than the 0" in desk.refused("register_return", **pieces, quantity=1)
    assert "line 2 doesn't exist" in desk.refused("register_return", **{**pieces, "line_no": 2}, quantity=1)


def test_closing_a_ticket_changes_its_row_and_nothing_else(desk: Desk) -> None:
    result, [change] = desk.observe("resolve_ticket", ticket_id="T1", decision="refused", reason="out_of_window")
    assert result == {"ticket_id": "T1", "status": "resolved", "decision": "refused", "reason_code": "out_of_window"}
    before, after = change.before or {}, change.after or {}
    assert {name for name in after if after[name] != before[name]} == {"status", "decision", "reason_code", "closed_at"}
    _, [change] = desk.observe("hand_over", ticket_id="T2", team="risk", reason="fraud_hold")
    after = change.after or {}
    assert [after[name] for name in ("status", "decision", "reason_code", "team", "closed_at")] == [
        "handed_over",
        "handed_over",
        "fraud_hold",
        "risk",
        NOW,
    ]
    assert "is handed_over" in desk.refused("resolve_ticket", ticket_id="T2", decision="refused", reason="not_owner")


def test_look_ups_never_show_what_proves_identity_and_only_check_risk_shows_risk(desk: Desk) -> None:
    shown = [
        desk.call("find_customer", name="Nina Okafor"),
        desk.call("get_customer", customer_id="C1"),
        desk.call("list_orders", customer_id="C1"),
        *(desk.call(name, order_id="W3") for name in ("get_order", "get_payments", "get_history", "get_ledger")),
        desk.call("get_ticket", ticket_id="T1"),
    ]
    text = json.dumps(shown)
    for secret in ("nina@", "okafor@", "post.example", "AB1", "2CD", "1984", "0100", "risk", "hold"):
        assert secret not in text
    assert desk.call("check_risk", order_id="W3") == {"order_id": "W3", "risk": "hold"}


def test_customers_are_found_by_one_key_and_namesakes_together(desk: Desk) -> None:
    def found(**key: str) -> list[str]:
        return [row["customer_id"] for row in desk.call("find_customer", **key)["customers"]]

    assert found(name="  nina   OKAFOR ") == ["C1", "C2"]
    assert found(email="Nina@Post.Example") == ["C1"]
    assert found(phone="+1 (555) 01002") == ["C2"]
    assert found(name="Nina") == found(email="%") == found(phone="%") == []
    assert "exactly one" in desk.refused("find_customer")
    assert "exactly one" in desk.refused("find_customer", name="Nina Okafor", email="nina@post.example")


def test_lists_stop_at_50_rows_and_say_how_many_there_are(desk: Desk) -> None:
    result = desk.call("find_customer", name="Max Many")
    assert (len(result["customers"]), result["customers_total"]) == (50, 60)
    for number in range(53):
        desk.call("add_note", ticket_id="T1", text=f"note {number}")
    shown = desk.call("get_ticket", ticket_id="T1")
    assert (len(shown["notes"]), shown["notes_total"], shown["notes"][0]["text"]) == (50, 53, "note 0")
    for _ in range(53):
        desk.call("issue_store_credit", **CREDIT)
    assert desk.call("get_history", order_id="W4")["credits_total"] == 53
    ledger = desk.call("get_ledger", order_id="W4")
    assert (len(ledger["entries"]), ledger["entries_total"]) == (50, 106)


def test_looking_for_customers_is_limited_by_the_office_clock(desk: Desk) -> None:
    for _ in range(30):
        desk.call("find_customer", name="Nobody")
    desk.refused("find_customer", name="Nobody")
    assert "exactly one" in desk.refused("find_customer")
    desk.call("wait", hours=1)
    assert desk.call("find_customer", name="Nobody")["customers_total"] == 0


def test_money_is_text_with_the_digits_of_its_currency(desk: Desk) -> None:
    assert desk.call("get_order", order_id="W1")["lines"][0]["unit_price"] == "50.30"
    assert desk.call("get_order", order_id="W4")["total"] == "9000"
    yen = desk.call("get_payments", order_id="W2")["payments"][1]
    assert (yen["captured"], yen["left"], yen["rate"]) == ("7500", "7500", "150")


def test_the_policy_is_read_whole_or_by_section(desk: Desk) -> None:
    sections = BY_NAME["read_policy"].schema["properties"]["section"]["enum"]
    assert sections == list(policy.sections())
    whole = desk.call("read_policy")["text"]
    for section in sections[1:]:
        text = desk.call("read_policy", section=section)["text"]
        assert text and text in whole and "##" not in text


def test_the_customer_hears_structure_not_only_words(desk: Desk) -> None:
    assert desk.office.opening() == {"customer": {"says": "I want my money back.", "status": "active"}}
    reply = desk.call("send_message", text="Which order?", ask=["order_id"])["customer"]
    assert reply["told"] == ["order_id"] and "W1" in reply["says"] and reply["accepted"] is None
    offer = {"action": "refund", "order_id": "W1", "payment_id": "P1", "currency": "USD"}
    no = desk.call("send_message", text="Fine?", propose={**offer, "amount": "0.61"})["customer"]
    yes = desk.call("send_message", text="Fine?", propose={**offer, "amount": 0.6})["customer"]
    assert (no["accepted"], yes["accepted"]) == (False, True)
    assert desk.office.status() == {"user": "active"} and desk.office.over() == ""
    assert desk.call("send_message", text="Paid.", report="done")["customer"]["status"] == "finished"
    for _ in range(3):
        desk.call("send_message", text="Bye.")
    assert desk.office.status() == {"user": "finished"} and desk.office.over() == "user_stop"
    assert desk.call("finish", outcome="completed") == {"outcome": "completed"}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (
            "amount",
            [
                *(
                    "1e2",
                    "-1",
                    "+1",
                    "1,00",
                    "$1",
                    "",
                    " 1",
                    "1 ",
                    "1\n",
                    ".5",
                    "5.",
                    "0x1",
                    "NaN",
                    "Infinity",
                    "\u0661",
                    "1_0",
                ),
                *("9" * 31, "1" + "0" * 10, "0." + "1" * 40, None, True, False, [1], {"money": "1"}),
                *(float("nan"), float("inf"), -1, -0.01, 1e300, 10**400),
            ],
        ),
        ("authorisation_id", ["7", True, 1.0, 0, -1, 10**30, [1]]),
        ("order_id", [7, None, "", "W" * 41, "W1\x00", "\ud800", ["W1"], True]),
        ("reason", ["", "fraud", None, ["defective"], "Defective"]),
        ("idempotency_key", ["", "k" * 101, 5, "\x00"]),
        ("unknown", ["x"]),
    ],
)
def test_hostile_arguments_are_refused_by_field(desk: Desk, field: str, values: list[Any]) -> None:
    """B182: text for a number, bool for an int, nested values, extra keys; huge, NUL and lone surrogates."""
    for value in values:
        assert field in desk.refused("issue_refund", **{**REFUND, field: value}), value


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("register_return", {"ticket_id": "T1", "order_id": "W1", "line_no": "1"}, "line_no"),
        ("register_return", {"ticket_id": "T1", "order_id": "W1", "line_no": True}, "line_no"),
        ("register_return", {"ticket_id": "T1", "order_id": "W1", "line_no": 10**12}, "line_no"),
        ("wait", {"hours": 0}, "hours"),
        ("wait", {"hours": 73}, "hours"),
        ("wait", {"hours": 1.5}, "hours"),
        ("wait", {"hours": True}, "hours"),
        ("add_note", {"ticket_id": "T1", "text": "x" * 2001}, "text"),
        ("add_note", {"ticket_id": "T1", "text": "x" * 1_000_000}, "text"),
        ("send_message", {"text": "x" * 4001}, "text"),
        ("send_message", {"text": "x", "ask": ["password"]}, "ask.0"),
        ("send_message", {"text": "x", "ask": ["name"] * 12}, "ask"),
        ("send_message", {"text": "x", "ask": "name"}, "ask"),
        ("send_message", {"text": "x", "propose": {"action": "refund"}}, "propose.order_id"),
        ("send_message", {"text": "x", "propose": {"action": "refund", "order_id": 1}}, "propose.order_id"),
        ("send_message", {"text": "x", "propose": {"action": "cancel", "order_id": "W1", "x": 1}}, "propose.x"),
        ("send_message", {"text": "x", "propose": {"action": "cancel", "order_id": "\ud800"}}, "propose.order_id"),
        ("send_message", {"text": "x", "propose": "refund"}, "propose"),
        ("finish", {"outcome": "completed", "summary": "x" * 2001}, "summary"),
        ("find_customer", {"name": "x" * 201}, "name"),
        ("read_policy", {"section": "secrets"}, "section"),
        ("verify_identity", {"ticket_id": "T1", "customer_id": "C1", "birth_date": 19840502}, "birth_date"),
    ],
)
def test_arguments_out_of_bounds_are_refused_by_field(
    desk: Desk, name: str, arguments: dict[str, Any], field: str
) -> None:
    """B182."""
    assert f"argument '{field}'" in desk.refused(name, **arguments)


@pytest.mark.parametrize("text", ["Zoë 李 🎉", "'; DROP TABLE tickets; --", "%", "\u202eabc", "a\r\nb\tc", "{x!r}"])
def test_odd_text_is_stored_as_it_is(desk: Desk, text: str) -> None:
    desk.call("add_note", ticket_id="T1", text=text)
    assert desk.call("get_ticket", ticket_id="T1")["notes"][0]["text"] == text
    assert desk.call("find_customer", name=text)["customers_total"] == 0
    assert "doesn't exist" in desk.refused("get_order", order_id=text)


def test_every_argument_is_described_and_bounded() -> None:
    for tool in TOOLS:
        assert tool.description.endswith(".")
        for name, field in tool.schema["properties"].items():
            assert field.get("description"), (tool.name, name)
        for part in _parts(tool.schema):
            if part.get("type") == "string":
                assert part.keys() & {"maxLength", "enum", "pattern", "const"}, (tool.name, part)
            if part.get("type") == "integer":
                assert part.keys() >= {"minimum", "maximum"}, (tool.name, part)
            if part.get("type") == "array":
                assert "maxItems" in part, (tool.name, part)


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(item)


def test_an_office_takes_only_tasks_of_its_fixture_with_a_customer() -> None:
    office = Office(SMALL)
    start = TASK.initial_state.model_copy(update={"fixture": "other"})
    with pytest.raises(TaskError, match="fixture 'other'"):
        office.restore(TASK.model_copy(update={"initial_state": start}), 1)
    with pytest.raises(TaskError, match="no user"):
        office.restore(TASK.model_copy(update={"user": None}), 1)
    office.close()
    office.close()


Step = tuple[str, dict[str, Any]]
TICKETS, ORDERS = st.sampled_from(["T1", "T2", "T3"]), st.sampled_from(["W1", "W2", "W3", "W4", "W5"])
REASONS = st.sampled_from(["changed_mind", "defective", "never_arrived"])
AMOUNTS = st.sampled_from(["0.10", "0.20", "0.30", 0.6, "20.00", "100", 7500, "9000"])
PAYMENTS = st.sampled_from(["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"])
KEYS = st.sampled_from([None, None, "a", "b"])


def step(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


PAYMENT_OF = {row["payment_id"]: row["order_id"] for row in rows()["payments"]}
STEPS = st.one_of(
    PAYMENTS.flatmap(
        lambda number: step(
            "issue_refund",
            ticket_id=TICKETS,
            order_id=st.just(PAYMENT_OF[number]),
            payment_id=st.just(number),
            amount=AMOUNTS,
            reason=REASONS,
            idempotency_key=KEYS,
        )
    ),
    step(
        "issue_store_credit", ticket_id=TICKETS, order_id=ORDERS, amount=AMOUNTS, reason=REASONS, idempotency_key=KEYS
    ),
    step("cancel_order", ticket_id=TICKETS, order_id=ORDERS, reason=REASONS),
    step("request_approval", order_id=ORDERS, amount=AMOUNTS, reason=st.text("ab", min_size=1, max_size=5)),
    step(
        "register_return",
        ticket_id=TICKETS,
        order_id=ORDERS,
        line_no=st.integers(1, 2),
        quantity=st.integers(1, 3),
        condition=st.sampled_from(["unopened", "opened", "defective", "never_arrived"]),
    ),
    step("add_note", ticket_id=TICKETS, text=st.sampled_from(["x", "'--"])),
    step("resolve_ticket", ticket_id=TICKETS, decision=st.just("refused"), reason=st.just("not_owner")),
    step("wait", hours=st.integers(1, 72)),
    step("get_ledger", order_id=ORDERS),
    step("send_message", text=st.just("Hello?")),
)


def play(desk: Desk, steps: list[Step], check: Callable[[], None]) -> list[Any]:
    desk.restore()
    results: list[Any] = []
    for name, arguments in steps:
        try:
            results.append(desk.call(name, **arguments))
        except ToolError as error:
            results.append(str(error))
        check()
    return [*results, *(channel.digest() for channel in desk.office.channels.values())]


def check_books(desk: Desk) -> None:
    """Double entry, and no payment gives back more than it took."""
    balance: dict[tuple[str, str], Decimal] = {}
    back: dict[str, Decimal] = {}
    for entry in desk.table(schema.ledger):
        key = entry["document"], entry["currency"]
        balance[key] = balance.get(key, Decimal(0)) + entry["debit"] - entry["credit"]
        if entry["document"].startswith("void:"):
            number = entry["document"].removeprefix("void:")
            back[number] = back.get(number, Decimal(0)) + entry["credit"]
    assert not any(balance.values())
    refunded: dict[str, Decimal] = {}
    documents = {document for document, _ in balance}
    for refund in desk.table(schema.refunds):
        assert f"refund:{refund['refund_id']}" in documents
        refunded[refund["payment_id"]] = refunded.get(refund["payment_id"], Decimal(0)) + refund["amount"]
    for credit in desk.table(schema.store_credits):
        assert f"credit:{credit['credit_id']}" in documents
    for row in desk.table(schema.payments):
        number = row["payment_id"]
        assert row["refunded"] == refunded.get(number, 0), number
        assert row["refunded"] + back.get(number, 0) <= row["amount"], decimal_text(row["amount"])
    for piece in desk.table(schema.order_lines):
        assert 0 <= piece["returned_quantity"] <= piece["quantity"]


@settings(max_examples=60)
@given(st.lists(STEPS, max_size=12))
@example(
    [
        ("issue_refund", {**REFUND, "order_id": "W2", "payment_id": "P3", "amount": "0.10"}),
        ("cancel_order", {"ticket_id": "T1", "order_id": "W2", "reason": "defective"}),
        ("issue_refund", {**REFUND, "order_id": "W2", "payment_id": "P4", "amount": 1}),
    ]
)
def test_the_books_balance_after_any_calls_and_the_same_calls_give_the_same_state(
    opened: Desk, steps: list[Step]
) -> None:
    first = play(opened, steps, lambda: check_books(opened))
    assert opened.office.database.digest() == opened.office.database.recompute()
    assert play(opened, steps, lambda: None) == first


def test_postgresql_gives_the_same_results_and_the_same_state(opened: Desk, postgresql_url: str) -> None:
    """B064: no result depends on the back end."""
    steps: list[Step] = [
        ("find_customer", {"name": "Nina Okafor"}),
        ("find_customer", {"phone": "+1 (555) 01002"}),
        ("find_customer", {"email": "Nina@post.example"}),
        *(("list_orders", {"customer_id": number}) for number in ("C1", "C2")),
        ("verify_identity", {"ticket_id": "T1", "customer_id": "C1", "email": "x", "postcode": "AB1 2CD"}),
        ("verify_identity", {"ticket_id": "T1", "customer_id": "C1", "postcode": "ab12cd", "birth_date": "1984-05-02"}),
        ("issue_refund", {**REFUND, "idempotency_key": "k"}),
        ("issue_refund", {**REFUND, "idempotency_key": "k"}),
        ("issue_refund", {**REFUND, "amount": "0.31"}),
        ("issue_store_credit", CREDIT),
        ("cancel_order", {"ticket_id": "T1", "order_id": "W2", "reason": "changed_mind"}),
        ("request_approval", {"order_id": "W4", "amount": 100, "reason": "x"}),
        ("add_note", {"ticket_id": "T1", "text": "Zoë"}),
        ("hand_over", {"ticket_id": "T1", "team": "shipping", "reason": "other"}),
        *(
            (name, {"order_id": number})
            for name in ("get_order", "get_payments", "get_history", "get_ledger")
            for number in ("W1", "W2", "W4")
        ),
        ("get_ticket", {"ticket_id": "T1"}),
    ]
    other = Desk(postgresql_url)
    try:
        assert play(other, steps, lambda: None) == play(opened, steps, lambda: None)
    finally:
        other.office.close()
