"""The short form of refund tasks: what it expands to, and what it refuses with file, line and field."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_envs.contract import AgentTask, TaskError, load_tasks, read_yaml, validate
from agent_envs.contract.outcome import ChangesAssertion, ExpectedChange
from agent_envs.envs.refund.fixture import DIGEST, fixture
from agent_envs.envs.refund.scenario import ASKABLE, TOOL_NAMES, FormError, expand, expand_data
from agent_envs.envs.refund.tools import TOOLS
from agent_envs.state import Database

Data = dict[str, Any]

FORM = """\
task_id: refund/kettle-for-nina
slice_labels: {kind: full, difficulty: easy, length: short}
clock: "2026-03-10T10:00:00Z"
customers:
- customer_id: C9001
  name: Nina Okafor
  email: nina@post.example
  phone: 555-100-2000
  postcode: "20418"
  birth_date: "1984-05-02"
orders:
- order_id: W9001
  customer: C9001
  status: delivered
  placed: "2026-03-01T09:00:00Z"
  delivered: "2026-03-04T15:00:00Z"
  currency: USD
  shipping: "4.90"
  lines:
  - {sku: KI-601, name: Steel kettle, category: kitchen, quantity: 2, price: "39.90"}
  - {sku: BK-101, name: Bird guide, category: books, quantity: 1, price: "18.50", final_sale: true}
  payments:
  - {payment_id: P9001, tender: gift_card, detail: gift card 100200, amount: "30.00"}
  - {payment_id: P9002, tender: card, detail: ending 4242, amount: "67.34", currency: EUR, rate: "0.92"}
  returned:
  - {line: 1, quantity: 1, condition: unopened, at: "2026-03-06T10:00:00Z"}
  refunds:
  - {payment: P9002, amount: "36.71", reason: changed_mind, at: "2026-03-06T10:00:00Z"}
- order_id: W9002
  customer: C9001
  status: processing
  placed: "2026-03-09T09:00:00Z"
  currency: JPY
  lines:
  - {sku: TO-803, name: Kite, category: toys, quantity: 1, price: "3460"}
  payments:
  - {payment_id: P9003, tender: card, detail: ending 4242, amount: "3460"}
ticket: {ticket_id: T9001, subject: Two orders}
user:
  facts: {order_id: {value: W9001}}
  wishes:
  - opening: I want to return the other kettle.
    accepts:
    - proposal: {action: refund, order_id: W9001, amount: {money: "30.63"}, currency: EUR, payment_id: P9002}
  - opening: And cancel W9002, please.
    accepts:
    - proposal: {action: cancel, order_id: W9002}
outcome:
  returns:
  - {order: W9001, line: 1, quantity: 1, condition: unopened}
  refunds:
  - {order: W9001, payment: P9002, amount: "30.63", reason: changed_mind}
  - {order: W9001, payment: P9001, amount: "6.61", reason: changed_mind}
  cancelled:
  - {order: W9002, reason: changed_mind}
  ticket: {decision: refunded, reason: changed_mind}
"""


def form() -> Data:
    data: Data = yaml.safe_load(FORM)
    return data


def task_of(data: Data) -> AgentTask:
    return AgentTask.model_validate(expand_data(data))


def changes_of(task: AgentTask) -> ChangesAssertion:
    assertion = task.outcome[0]
    assert isinstance(assertion, ChangesAssertion)
    return assertion


def shown(item: ExpectedChange) -> str:
    """An expected row in one line: ``insert refunds (amount=25)``."""
    values = item.model_dump(mode="json", exclude_defaults=True)
    parts = {**values.get("key", {}), **values.get("values", {})}
    text = ", ".join(f"{column}={next(iter(value.values()))}" for column, value in parts.items())
    return f"{item.kind} {item.table} ({text})"


def written(task: AgentTask) -> list[str]:
    return [shown(item) for item in changes_of(task).expect]


def load(tmp_path: Path, data: Data) -> AgentTask:
    path = tmp_path / "kettle-for-nina.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    document = read_yaml(path)
    return validate(document, AgentTask, expand(document))


def test_a_file_expands_to_a_task(tmp_path: Path) -> None:
    (tmp_path / "kettle-for-nina.yaml").write_text(FORM, encoding="utf-8")
    task = load_tasks(tmp_path, expand)["refund/kettle-for-nina"]
    assert task.source == "curated"
    assert task.initial_state.fixture_digest == DIGEST
    assert (task.limits.steps, task.limits.wall_seconds) == (40, 600)
    assert task.available_tools == TOOL_NAMES
    assert task == task_of(form())


def test_names_are_those_of_the_tools() -> None:
    assert sorted(TOOL_NAMES) == sorted(tool.name for tool in TOOLS)
    schema = next(tool for tool in TOOLS if tool.name == "send_message").schema
    assert all(f'"{name}"' in str(schema).replace("'", '"') for name in ASKABLE)


def test_exact_changes() -> None:
    """Each effect is every row the tools write: totals are the new ones, entries come in pairs."""
    assert written(task_of(form())) == [
        "insert returns (order_id=W9001, line_no=1, condition=unopened, quantity=1)",
        "update order_lines (order_id=W9001, line_no=1, returned_quantity=2)",
        "insert refunds (order_id=W9001, payment_id=P9002, currency=EUR, amount=30.63, reason=changed_mind, "
        "authorisation_id=None)",
        "insert ledger (account=sales_returns, currency=EUR, debit=30.63, credit=0)",
        "insert ledger (account=card, currency=EUR, debit=0, credit=30.63)",
        "insert refunds (order_id=W9001, payment_id=P9001, currency=USD, amount=6.61, reason=changed_mind, "
        "authorisation_id=None)",
        "insert ledger (account=sales_returns, currency=USD, debit=6.61, credit=0)",
        "insert ledger (account=gift_card, currency=USD, debit=0, credit=6.61)",
        "update payments (payment_id=P9002, refunded=67.34)",
        "update payments (payment_id=P9001, refunded=6.61)",
        "update orders (order_id=W9002, status=cancelled)",
        "update payments (payment_id=P9003, status=voided)",
        "insert ledger (account=sales, currency=JPY, debit=3460, credit=0)",
        "insert ledger (account=card, currency=JPY, debit=0, credit=3460)",
        "update tickets (ticket_id=T9001, status=resolved, decision=refunded, reason_code=changed_mind, team=None, "
        "customer_id=C9001)",
    ]


def test_frame() -> None:
    """Beside the outcome only checks and notes of this ticket may appear, and of the ticket only its closing time."""
    assertion = changes_of(task_of(form()))
    assert [shown(item) for item in assertion.allow] == [
        "insert identity_checks (ticket_id=T9001)",
        "insert ticket_notes (ticket_id=T9001)",
    ]
    assert {item.table: item.free for item in assertion.expect if item.free} == {"tickets": ("closed_at",)}


def test_equal_rows_are_counted() -> None:
    data = form()
    data["outcome"]["refunds"] = [data["outcome"]["refunds"][1]] * 2
    data["outcome"]["refunds"][0]["amount"] = "6.50"
    counts = {shown(item): item.count for item in changes_of(task_of(data)).expect if item.count > 1}
    assert sorted(counts.values()) == [2, 2, 2]
    assert "update payments (payment_id=P9001, refunded=13)" in written(task_of(data))


def test_start_can_be_restored() -> None:
    """The patch fits the schema, with past refunds and their entries, and leaves the ledger balanced."""
    task = task_of(form())
    database = Database(fixture())
    database.restore(task.initial_state.patch)
    rows = [patch.insert or {} for patch in task.initial_state.patch if patch.table == "ledger"]
    assert [(row["account"], row["document"]) for row in rows] == [
        ("sales_returns", "refund:900001"),
        ("card", "refund:900001"),
    ]
    payments = [patch.insert or {} for patch in task.initial_state.patch if patch.table == "payments"]
    assert [row["refunded"] for row in payments] == [{"$decimal": "0"}, {"$decimal": "36.71"}, {"$decimal": "0"}]
    shipments = [patch.insert or {} for patch in task.initial_state.patch if patch.table == "shipments"]
    assert [(row["order_id"], row["status"]) for row in shipments] == [("W9001", "delivered")]
    database.close()


def test_constraints() -> None:
    data = form()
    assert [item.name for item in task_of(data).constraints] == [
        "identity",
        "registration",
        "confirm_refund",
        "confirm_credit",
        "confirm_cancel",
        "refusal",
        "failed_check",
    ]
    data["orders"][1]["risk"] = "hold"
    del data["outcome"]["cancelled"]
    data["orders"][0]["lines"][0]["price"] = "339.90"
    data["orders"][0]["payments"][1]["amount"] = "619.34"
    data["outcome"]["refunds"] = [{"order": "W9001", "payment": "P9002", "amount": "312.71", "reason": "changed_mind"}]
    data["outcome"]["authorisations"] = [{"order": "W9001", "amount": "339.90", "decision": "approved"}]
    task = task_of(data)
    assert [item.name for item in task.constraints[7:]] == ["hold", "approval"]
    assert [item.check for item in task.rubric] == ["changes", *(item.name for item in task.constraints)]
    refund = next(item for item in changes_of(task).expect if item.table == "refunds")
    assert "authorisation_id" not in refund.values


def test_request_does_not_tell_the_outcome() -> None:
    """Same words for every task but the ticket's number."""
    request = task_of(form()).public().user_request
    assert "T9001" in request
    assert not re.search(r"W9001|Nina|kettle|refunded|cancel|30\.63", request)


@pytest.mark.parametrize(
    ("closing", "linked"),
    [
        ({"decision": "refused", "reason": "out_of_window"}, {"exact": "C9001"}),
        ({"decision": "refused", "reason": "identity_failed"}, {"exact": None}),
        ({"decision": "handed_over", "reason": "fraud_hold", "team": "risk"}, {"exact": "C9001"}),
        (
            {"decision": "handed_over", "reason": "other", "team": "shipping"},
            {"one_of": [{"exact": "C9001"}, {"exact": None}]},
        ),
    ],
)
def test_link_of_a_ticket_without_payment(closing: Data, linked: Data) -> None:
    """The policy demands a verified caller for refusals and holds; a failed check leaves the ticket unlinked."""
    data = form()
    data["outcome"] = {"ticket": closing}
    (ticket,) = changes_of(task_of(data)).expect
    assert ticket.as_json()["values"]["customer_id"] == linked


def test_alternatives_are_whole_change_sets() -> None:
    """A payment's new total depends on the whole outcome, so each alternative states everything."""
    data = form()
    outcome = data["outcome"]
    first, second = outcome["refunds"]
    outcome["refunds"] = [first]
    outcome["either"] = [{"refunds": [second]}, {"credits": [_credit("6.61")]}]
    assertion = changes_of(task_of(data))
    assert assertion.expect == ()
    tables = [[item.table for item in group] for group in assertion.either]
    assert tables[0].count("refunds") == 2
    assert tables[1].count("refunds") == 1
    assert "store_credits" in tables[1]
    assert all(names.count("tickets") == 1 for names in tables)


def _credit(amount: str) -> Data:
    return {"order": "W9001", "customer": "C9001", "amount": amount, "currency": "USD", "reason": "changed_mind"}


def test_answer_fields_become_assertions() -> None:
    data = form()
    data["outcome"]["answer"] = {"summary": {"text": "done", "normaliser": "prose"}}
    assert [item.name for item in task_of(data).outcome] == ["changes", "answer_summary"]


PLACES: list[tuple[str | int, ...]] = [
    (),
    ("customers", 0),
    ("orders", 0),
    ("orders", 0, "lines", 0),
    ("orders", 0, "payments", 0),
    ("orders", 0, "returned", 0),
    ("orders", 0, "refunds", 0),
    ("ticket",),
    ("user",),
    ("user", "facts", "order_id"),
    ("user", "wishes", 0),
    ("user", "wishes", 0, "accepts", 0),
    ("outcome",),
    ("outcome", "returns", 0),
    ("outcome", "refunds", 0),
    ("outcome", "cancelled", 0),
    ("outcome", "ticket"),
]


def at(data: Data, place: tuple[str | int, ...]) -> Any:
    found: Any = data
    for part in place:
        found = found[part]
    return found


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)) or "top")
def test_unknown_keys_are_refused_everywhere(tmp_path: Path, place: tuple[str | int, ...]) -> None:
    data = form()
    at(data, place)["amounts"] = "1.00"
    field = ".".join(map(str, (*place, "amounts")))
    with pytest.raises(TaskError, match=rf"kettle-for-nina\.yaml, line \d+, {re.escape(field)}: Extra inputs") as error:
        load(tmp_path, data)
    line = int(re.search(r"line (\d+)", str(error.value))[1])  # type: ignore[index]
    assert "amounts" in (tmp_path / "kettle-for-nina.yaml").read_text(encoding="utf-8").splitlines()[line - 1]


Edit = Callable[[Data], object]
FAULTS: dict[str, tuple[Edit, str, str]] = {
    "customer twice": (
        lambda d: d["customers"].append(copy.deepcopy(d["customers"][0])),
        "customers.1.customer_id",
        "'C9001' is already given in customers.0.customer_id",
    ),
    "mail address twice": (
        lambda d: d["customers"].append(d["customers"][0] | {"customer_id": "C9002"}),
        "customers.1.email",
        "already given",
    ),
    "order twice": (lambda d: d["orders"][1].update(order_id="W9001"), "orders.1.order_id", "already given"),
    "payment twice": (
        lambda d: d["orders"][1]["payments"][0].update(payment_id="P9001"),
        "orders.1.payments.0.payment_id",
        "already given in orders.0.payments.0.payment_id",
    ),
    "id of the fixture": (lambda d: d["customers"][0].update(customer_id="C1001"), "customers.0.customer_id", "C9"),
    "no such customer": (lambda d: d["orders"][0].update(customer="C9002"), "orders.0.customer", "none of the task's"),
    "no such order": (
        lambda d: d["outcome"]["returns"][0].update(order="W9009"),
        "outcome.returns.0.order",
        "none of the task's orders",
    ),
    "no such line": (lambda d: d["outcome"]["returns"][0].update(line=3), "outcome.returns.0.line", "no line 3"),
    "too many pieces": (
        lambda d: d["outcome"]["returns"][0].update(quantity=2),
        "outcome.returns.0.quantity",
        "more than what is left",
    ),
    "final sale": (lambda d: d["outcome"]["returns"][0].update(line=2), "outcome.returns.0.line", "final sale"),
    "payment of another order": (
        lambda d: d["outcome"]["refunds"][0].update(payment="P9003"),
        "outcome.refunds.0.payment",
        "no payment of W9001",
    ),
    "more than is left": (
        lambda d: d["outcome"]["refunds"][0].update(amount="30.64"),
        "outcome.refunds.0.amount",
        "more than what is left",
    ),
    "finer than a cent": (
        lambda d: d["outcome"]["refunds"][0].update(amount="30.625"),
        "outcome.refunds.0.amount",
        "finer than",
    ),
    "finer than a yen": (
        lambda d: d["orders"][1]["lines"][0].update(price="3460.5"),
        "orders.1.lines.0.price",
        "finer than",
    ),
    "amount as a float": (lambda d: d["orders"][0].update(shipping=4.9), "orders.0.shipping", "written in quotes"),
    "negative amount": (lambda d: d["orders"][0].update(shipping="-4.90"), "orders.0.shipping", "written in quotes"),
    "digits of another script": (
        lambda d: d["orders"][0].update(shipping="٤"),
        "orders.0.shipping",
        "written in quotes",
    ),
    "flag as a number": (
        lambda d: d["orders"][0]["lines"][0].update(quantity=True),
        "orders.0.lines.0.quantity",
        "not true or false",
    ),
    "payments don't cover": (
        lambda d: d["orders"][0]["payments"][0].update(amount="29.90"),
        "orders.0.payments",
        "don't come to the total of 103.20 USD",
    ),
    "rate without another currency": (
        lambda d: d["orders"][0]["payments"][0].update(rate="0.92"),
        "orders.0.payments.0.rate",
        "can't be the rate",
    ),
    "past refund too large": (
        lambda d: d["orders"][0]["refunds"][0].update(amount="67.35"),
        "orders.0.refunds.0.amount",
        "more than what is left",
    ),
    "past refund elsewhere": (
        lambda d: d["orders"][0]["refunds"][0].update(payment="P9003"),
        "orders.0.refunds.0.payment",
        "no payment of W9001",
    ),
    "past return of nothing": (
        lambda d: d["orders"][0]["returned"][0].update(line=9),
        "orders.0.returned.0.line",
        "no line 9",
    ),
    "history in the future": (
        lambda d: d["orders"][0]["returned"][0].update(at="2026-03-10T10:00:01Z"),
        "orders.0.returned.0.at",
        "lies outside",
    ),
    "order in the future": (
        lambda d: d["orders"][1].update(placed="2026-03-10T10:00:00Z"),
        "orders.1.placed",
        "not before the clock's start",
    ),
    "delivery of a shipped order": (lambda d: d["orders"][0].update(status="shipped"), "orders.0.delivered", "status"),
    "no such day": (lambda d: d.update(clock="2026-02-30T10:00:00Z"), "clock", "day is out of range"),
    "cancelled when delivered": (
        lambda d: d["outcome"]["cancelled"][0].update(order="W9001"),
        "outcome.cancelled.0.order",
        "can't be cancelled",
    ),
    "paid on hold": (lambda d: d["orders"][0].update(risk="hold"), "outcome.refunds.0.order", "on hold"),
    "credit to another": (
        lambda d: d["outcome"].update(credits=[_credit("5.00") | {"customer": "C9002"}]),
        "outcome.credits.0.customer",
        "belongs to C9001",
    ),
    "credit in another currency": (
        lambda d: d["outcome"].update(credits=[_credit("5.00") | {"currency": "EUR"}]),
        "outcome.credits.0.currency",
        "USD",
    ),
    "over the threshold": (
        lambda d: d["outcome"].update(credits=[_credit("190.00")]),
        "outcome",
        "more than 200 USD without an authorisation",
    ),
    "another sum authorised": (
        lambda d: d["outcome"].update(authorisations=[{"order": "W9001", "amount": "40.90", "decision": "approved"}]),
        "outcome",
        "isn't the sum",
    ),
    "paid though denied": (
        lambda d: d["outcome"].update(authorisations=[{"order": "W9001", "amount": "39.90", "decision": "denied"}]),
        "outcome",
        "isn't the sum",
    ),
    "no end": (lambda d: d["outcome"].pop("ticket"), "outcome.ticket", "exactly once"),
    "refused though paid": (
        lambda d: d["outcome"].update(ticket={"decision": "refused", "reason": "final_sale"}),
        "outcome.ticket.decision",
        "can't stand where money moved",
    ),
    "another reason": (
        lambda d: d["outcome"]["ticket"].update(reason="defective"),
        "outcome.ticket.reason",
        "none of outcome.refunds",
    ),
    "reason of another decision": (
        lambda d: d["outcome"]["ticket"].update(reason="final_sale"),
        "outcome.ticket",
        "doesn't go with decision",
    ),
    "hand-over to nobody": (
        lambda d: d["outcome"].update(ticket={"decision": "handed_over", "reason": "other"}),
        "outcome.ticket",
        "names its team",
    ),
    "who is calling": (
        lambda d: d["customers"].append(d["customers"][0] | {"customer_id": "C9002", "email": "b@post.example"}),
        "outcome.ticket.customer",
        "name the caller",
    ),
    "a fact nobody can ask for": (
        lambda d: d["user"]["facts"].update(shoe_size={"value": "43"}),
        "user.facts.shoe_size",
        "can't be asked for",
    ),
    "a wish about another order": (
        lambda d: d["user"]["wishes"][1]["accepts"][0]["proposal"].update(order_id="W9003"),
        "user.wishes.1.accepts.0.proposal.order_id",
        "no order_id of the task's orders",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_file_line_and_field(tmp_path: Path, name: str) -> None:
    edit, field, message = FAULTS[name]
    data = form()
    edit(data)
    with pytest.raises(TaskError) as error:
        load(tmp_path, data)
    found = re.match(r".*?/kettle-for-nina\.yaml, line (\d+), ([^:]+): (.*)", str(error.value), re.DOTALL)
    assert found, str(error.value)
    assert found[2] == field
    assert message in found[3]
    text = (tmp_path / "kettle-for-nina.yaml").read_text(encoding="utf-8").splitlines()[int(found[1]) - 1]
    last = field.rpartition(".")[2]
    assert last in text or last.isdigit() or field == "outcome.ticket.customer" or name == "no end"


@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_data_name_the_field(name: str) -> None:
    edit, field, _ = FAULTS[name]
    data = form()
    edit(data)
    with pytest.raises(FormError, match=re.escape(field)):
        expand_data(data)
