"""The second opinion on hand-made cases, and the operators on real scripts."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from agent_envs.audit.mutation import Trial, equivalence, family_of
from agent_envs.audit.subject import make
from agent_envs.contract import Change, ReferenceRun
from agent_envs.envs.refund import mutations
from agent_envs.envs.refund.env import SUITE, RefundEnv

TASK = SUITE.task("refund/boots-for-samuel")
(TICKET,) = [patch.insert for patch in TASK.initial_state.patch if patch.table == "tickets"]
ORDER = next(patch.insert for patch in TASK.initial_state.patch if patch.table == "orders")["order_id"]


def row(table: str, number: str, key: Any, **values: Any) -> Change:
    return Change(channel="database", table=table, key={number: key}, before=None, after={number: key, **values})


def refund(number: int, amount: str, **values: Any) -> list[Change]:
    money = {"$decimal": amount}
    paid = {"order_id": ORDER, "payment_id": "P1", "currency": "EUR", "amount": money, "reason": "defective"}
    link = {"authorisation_id": None, "idempotency_key": None, "created_at": f"2026-01-0{number}T00:00:00Z"}
    entry = {"document": f"refund:{number}", "currency": "EUR", "credit": {"$decimal": "0"}, "posted_at": "x"}
    return [
        row("refunds", "refund_id", number, **(paid | link | values)),
        row("ledger", "entry_id", number * 2, account="sales_returns", debit=money, **entry),
    ]


def approval(number: int, amount: str) -> Change:
    said = {"order_id": ORDER, "currency": "EUR", "amount": {"$decimal": amount}, "decision": "approved"}
    return row("authorisations", "authorisation_id", number, **said, note="n", decided_at="2026-01-01T00:00:00Z")


def pieces(number: int, quantity: int, condition: str = "opened") -> Change:
    place = {"order_id": ORDER, "line_no": 1, "quantity": quantity, "condition": condition}
    return row("returns", "return_id", number, **place, registered_at=f"2026-01-0{number}T00:00:00Z")


def note(number: int, ticket: str) -> Change:
    return row("ticket_notes", "note_id", number, ticket_id=ticket, text=str(number), written_at="x")


def same(first: list[Change], second: list[Change]) -> bool:
    return mutations.form(TASK, first) == mutations.form(TASK, second)


def test_numbers_times_and_order_dont_count() -> None:
    assert same([*refund(1, "5"), *refund(2, "7")], [*refund(8, "7"), *refund(9, "5")])
    assert same(refund(1, "5"), refund(1, "5", idempotency_key="again"))
    assert same([note(1, TICKET["ticket_id"])], [])
    assert same([pieces(1, 2), pieces(2, 1)], [pieces(7, 3)])


def test_what_was_done_counts() -> None:
    assert not same(refund(1, "5"), refund(1, "5.01"))
    assert not same(refund(1, "5"), refund(1, "5", payment_id="P2"))
    assert not same(refund(1, "5"), [*refund(1, "5"), *refund(2, "5")])
    assert not same([note(1, "T1001")], [])
    assert not same([pieces(1, 2), pieces(2, 1)], [pieces(7, 2), pieces(8, 1, "defective")])


def test_numbers_that_tie_rows_together_count_by_what_they_name() -> None:
    tied = [approval(1, "5"), approval(2, "9"), *refund(1, "5", authorisation_id=1)]
    renumbered = [approval(4, "9"), approval(5, "5"), *refund(3, "5", authorisation_id=5)]
    assert same(tied, renumbered)
    assert not same(tied, [approval(1, "5"), approval(2, "9"), *refund(1, "5", authorisation_id=2)])
    crossed = [*refund(1, "5"), *refund(2, "7")]
    entry = crossed[1].model_copy(update={"after": {**(crossed[1].after or {}), "document": "refund:2"}})
    assert not same(crossed, [crossed[0], entry, *crossed[2:]])


def test_updates_are_told_by_the_columns_that_differ() -> None:
    before = {"payment_id": "P1", "refunded": {"$decimal": "0"}, "status": "captured"}

    def update(**after: Any) -> Change:
        return Change(
            channel="database", table="payments", key={"payment_id": "P1"}, before=before, after=before | after
        )

    assert not same([update(refunded={"$decimal": "5"})], [update(refunded={"$decimal": "5"}, status="voided")])
    gone = Change(channel="database", table="payments", key={"payment_id": "P1"}, before=before, after=None)
    assert not same([gone], [])


def event(tool: str, arguments: dict[str, Any], result: dict[str, Any], status: str = "ok") -> dict[str, Any]:
    return {"step": 1, "tool": tool, "status": status, "arguments": arguments, "result": result}


def lawful() -> list[dict[str, Any]]:
    proposal = {"action": "refund", "order_id": ORDER, "payment_id": "P1", "amount": "5.00", "currency": "EUR"}
    ticket = {"ticket_id": TICKET["ticket_id"]}
    paid = {**ticket, "order_id": ORDER, "payment_id": "P1", "amount": 5.0}
    return [
        event("verify_identity", {**ticket, "customer_id": "C1"}, {"passed": True, "customer_id": "C1"}),
        event("send_message", {"propose": proposal}, {"customer": {"accepted": True}}),
        event("register_return", {**ticket, "order_id": ORDER}, {"customer_id": "C1"}),
        event("issue_refund", paid, {"customer_id": "C1", "currency": "EUR", "repeated": False}),
        event("resolve_ticket", {**ticket, "decision": "refunded", "reason": "defective"}, {}),
    ]


def test_a_lawful_course_breaks_no_rule() -> None:
    assert mutations.breaches(TASK, lawful()) == []


@pytest.mark.parametrize(
    ("number", "path", "value", "said"),
    [
        (0, ("result", "passed"), False, "wasn't verified"),
        (0, ("result", "customer_id"), "C2", "wasn't verified"),
        (0, ("status",), "error", "wasn't verified"),
        (1, ("result", "customer", "accepted"), False, "didn't agree"),
        (1, ("arguments", "propose", "amount"), "5.01", "didn't agree"),
        (1, ("arguments", "propose", "currency"), "USD", "didn't agree"),
        (1, ("arguments", "propose", "payment_id"), "P2", "didn't agree"),
        (2, ("arguments", "order_id"), "W1", "nothing was registered"),
        (3, ("arguments", "amount"), 5000, "without approval"),
        (4, ("arguments", "reason"), "identity_failed", "no failed check"),
    ],
)
def test_each_rule_is_seen_broken(number: int, path: tuple[str, ...], value: Any, said: str) -> None:
    events = lawful()
    place: Any = events[number]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert any(said in item for item in mutations.breaches(TASK, events))


def test_a_yes_serves_one_payment_and_must_come_first() -> None:
    events = lawful()
    assert any("didn't agree" in item for item in mutations.breaches(TASK, [*events, events[3]]))
    events[1], events[3] = events[3], events[1]
    assert any("didn't agree" in item for item in mutations.breaches(TASK, events))


@pytest.mark.parametrize("module", [equivalence, mutations])
def test_the_second_opinion_shares_no_code_with_the_first(module: Any) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    assert not [name for name in imported if "evaluator" in name or "scenario" in name or "matching" in name]


@pytest.mark.parametrize("task_id", SUITE.eval_ids[::9])
def test_operators_make_distinct_valid_scripts(task_id: str) -> None:
    with make("agenteval/refund-v1") as env:
        trial = Trial(env, task_id, 0)
        made = list(trial._scripts())
        states = list(trial._states())
    wrong = [mutant for _, mutant in made if not mutant.lawful]
    assert len(wrong) >= 50 and len(states) >= 50
    assert len({tuple(call.canonical() for call in mutant.calls) for mutant in wrong}) == len(wrong)
    for _, mutant in made:
        assert ReferenceRun(name="made", calls=mutant.calls).calls == mutant.calls
    operators = {mutant.operator for mutant in wrong}
    assert operators >= {"drop", "double", "reorder", "entity", "choice", "claim_only", "side_effect", "omit", "hurry"}


def test_a_family_of_another_package_has_its_own_opinion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "elsewhere_family"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "env.py").write_text(
        "from agent_envs.envs.refund.env import RefundEnv\n\n\nclass OtherEnv(RefundEnv):\n    pass\n"
    )
    (folder / "mutations.py").write_text("LOOKUPS = frozenset({'look'})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    env = importlib.import_module("elsewhere_family.env").OtherEnv()
    assert family_of(env).LOOKUPS == {"look"}
    assert "get_order" in family_of(RefundEnv()).LOOKUPS
