"""The exact change set: against a matcher that tries everything, and case by case."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_envs.contract import Change, Status
from agent_envs.contract.outcome import ChangesAssertion
from agent_envs.evaluator.changes import check_changes, describe, match


def assertion(**fields):
    return ChangesAssertion.model_validate({"check": "changes"} | fields)


def insert(table, key, channel="database", **columns):
    row = {"id": key, **columns}
    return Change(channel=channel, table=table, key={"id": key}, before=None, after=row)


def update(table, key, before, after, channel="database"):
    return Change(
        channel=channel, table=table, key={"id": key}, before={"id": key, **before}, after={"id": key, **after}
    )


def delete(table, key, channel="database", **columns):
    return Change(channel=channel, table=table, key={"id": key}, before={"id": key, **columns}, after=None)


CANCEL = {
    "table": "orders",
    "kind": "update",
    "key": {"id": "A"},
    "values": {"status": "cancelled"},
}
REFUND = {
    "table": "refunds",
    "kind": "insert",
    "values": {"order": "A", "amount": {"money": "25.00", "currency": "USD"}},
}
CANCELLED = update("orders", "A", {"status": "open", "note": None}, {"status": "cancelled", "note": None})
REFUNDED = insert("refunds", 11, order="A", amount={"$decimal": "25"})
BOTH = assertion(expect=[CANCEL, REFUND])


def test_the_exact_set_passes_in_any_order():
    """B082: how it was reached plays no part."""
    for changes in ([CANCELLED, REFUNDED], [REFUNDED, CANCELLED]):
        result = check_changes(BOTH, changes)
        assert result.status is Status.PASS
        assert "nothing else" in result.explanation


def test_a_new_rows_own_number_plays_no_part():
    """B080: the wrong row was added and deleted before, so the right one has the number 12."""
    row = insert("refunds", 12, order="A", amount={"$decimal": "25"})
    assert check_changes(BOTH, [CANCELLED, row]).status is Status.PASS


WRONG = {
    "nothing done": ([], "missing: update orders"),
    "one row missing": ([CANCELLED], "missing: insert refunds"),
    "collateral update": (
        [CANCELLED, REFUNDED, update("orders", "B", {"status": "open"}, {"status": "cancelled"})],
        "unexpected change: update orders/B",
    ),
    "collateral deletion": ([CANCELLED, REFUNDED, delete("orders", "B", status="open")], "orders/B"),
    "second refund": (
        [CANCELLED, REFUNDED, insert("refunds", 12, order="A", amount={"$decimal": "25"})],
        "unexpected change: insert refunds/1",
    ),
    "wrong amount": (
        [CANCELLED, insert("refunds", 11, order="A", amount={"$decimal": "999"})],
        "nearest: refunds/11",
    ),
    "amount beyond the cents": (
        [CANCELLED, insert("refunds", 11, order="A", amount={"$decimal": "25.0001"})],
        "25.0001",
    ),
    "wrong order": ([CANCELLED, insert("refunds", 11, order="B", amount={"$decimal": "25"})], "refunds/11"),
    "wrong table": ([CANCELLED, insert("credits", 11, order="A", amount={"$decimal": "25"})], "credits/11"),
    "wrong channel": (
        [CANCELLED, insert("refunds", 11, channel="cache", order="A", amount={"$decimal": "25"})],
        "refunds/11",
    ),
    "column missing": ([CANCELLED, insert("refunds", 11, order="A")], "refunds/11"),
    "unnamed column changed": (
        [update("orders", "A", {"status": "open", "note": None}, {"status": "cancelled", "note": "x"}), REFUNDED],
        "note changed too",
    ),
    "deleted instead": ([delete("orders", "A", status="cancelled"), REFUNDED], "unexpected change: delete orders/A"),
    "another row": (
        [update("orders", "B", {"status": "open"}, {"status": "cancelled"}), REFUNDED],
        "unexpected change: update orders/B",
    ),
    "text for the number": ([CANCELLED, insert("refunds", 11, order=7, amount={"$decimal": "25"})], "refunds/11"),
}


@pytest.mark.parametrize(("changes", "named"), WRONG.values(), ids=WRONG)
def test_any_other_set_fails_and_names_the_row(changes, named):
    """B018, B021, B022; law 3."""
    for order in (changes, changes[::-1]):
        result = check_changes(BOTH, order)
        assert result.status is Status.FAIL
        assert named in result.explanation


def test_a_row_may_be_asked_for_more_than_once():
    """B016, B022: rows are counted."""
    two = assertion(expect=[{**REFUND, "count": 2}])
    rows = [insert("refunds", number, order="A", amount={"$decimal": "25"}) for number in (1, 2, 3)]
    assert [check_changes(two, rows[:n]).status.value for n in range(4)] == ["fail", "fail", "pass", "fail"]


def test_count_zero_forbids_even_what_is_allowed():
    """B012: the key is read."""
    rule = assertion(
        expect=[CANCEL, {"table": "notes", "kind": "insert", "values": {"public": True}, "count": 0}],
        allow=[{"table": "notes"}],
    )
    private, public = insert("notes", 1, public=False), insert("notes", 2, public=True)
    assert check_changes(rule, [CANCELLED, private]).status is Status.PASS
    result = check_changes(rule, [CANCELLED, private, public])
    assert result.status is Status.FAIL
    assert "unexpected change: insert notes/2" in result.explanation


def test_allowed_rows_may_change_in_any_number_but_ask_for_nothing():
    rule = assertion(expect=[CANCEL], allow=[{"table": "notes", "kind": "insert"}])
    notes = [insert("notes", number) for number in range(5)]
    assert check_changes(rule, [CANCELLED, *notes]).status is Status.PASS
    assert check_changes(rule, [CANCELLED]).status is Status.PASS
    assert check_changes(rule, notes).status is Status.FAIL
    assert check_changes(rule, [CANCELLED, delete("notes", 9)]).status is Status.FAIL


def test_exactly_one_alternative_holds():
    """B031, B082."""
    credit = {"table": "credits", "kind": "insert", "values": {"order": "A"}}
    rule = assertion(expect=[CANCEL], either=[[REFUND], [credit]])
    credited = insert("credits", 1, order="A")
    assert check_changes(rule, [CANCELLED, REFUNDED]).status is Status.PASS
    assert check_changes(rule, [CANCELLED, credited]).status is Status.PASS
    assert check_changes(rule, [CANCELLED, REFUNDED, credited]).status is Status.FAIL
    assert check_changes(rule, [CANCELLED]).status is Status.FAIL
    assert check_changes(rule, [REFUNDED]).status is Status.FAIL


def test_a_free_column_may_change_to_anything():
    changed = update("orders", "A", {"status": "open", "note": None}, {"status": "cancelled", "note": "x"})
    assert check_changes(assertion(expect=[{**CANCEL, "free": ["note"]}]), [changed]).status is Status.PASS
    any_kind = {"table": "orders", "key": {"id": "A"}, "free": ["note"]}
    assert check_changes(assertion(expect=[any_kind]), [changed]).status is Status.FAIL


def test_an_expected_update_has_to_happen():
    """Law 2: a row that already was as wanted, or was put back, is no change and no success."""
    assert check_changes(assertion(expect=[CANCEL]), []).status is Status.FAIL


def test_greedy_pairing_would_be_wrong():
    loose = {"table": "refunds", "kind": "insert", "values": {"amount": {"number": 10, "tolerance": 5}}}
    tight = {"table": "refunds", "kind": "insert", "values": {"amount": {"number": 10}}}
    ten, twelve = (insert("refunds", n, amount={"$decimal": str(n)}) for n in (10, 12))
    for expect in ([loose, tight], [tight, loose]):
        for changes in ([ten, twelve], [twelve, ten]):
            assert check_changes(assertion(expect=expect), changes).status is Status.PASS


def test_what_can_not_be_compared_stays_open_in_every_role(monkeypatch):
    """Law 1, with the comparison itself made to say that it can't tell."""
    monkeypatch.setattr("agent_envs.evaluator.changes.match", _match_with_a_gap)
    unknown = insert("refunds", 1, order="?")
    expected = assertion(expect=[REFUND])
    assert check_changes(expected, [unknown]).status is Status.UNDETERMINED
    assert check_changes(expected, [unknown, REFUNDED]).status is Status.FAIL
    assert check_changes(expected, []).status is Status.FAIL
    allowed = assertion(expect=[CANCEL], allow=[REFUND])
    assert check_changes(allowed, [CANCELLED, unknown]).status is Status.UNDETERMINED
    assert check_changes(allowed, [unknown]).status is Status.FAIL
    forbidden = assertion(expect=[CANCEL, {**REFUND, "count": 0}], allow=[{"table": "refunds"}])
    assert check_changes(forbidden, [CANCELLED, unknown]).status is Status.UNDETERMINED
    assert check_changes(forbidden, [CANCELLED, REFUNDED]).status is Status.FAIL
    either = assertion(either=[[REFUND], [CANCEL, {"table": "refunds", "values": {"order": "?"}}]])
    assert check_changes(either, [CANCELLED, unknown]).status is Status.PASS


def _match_with_a_gap(item, change):
    if (change.after or {}).get("order") == "?" and "amount" in item.values:
        return Status.UNDETERMINED
    return match(item, change)


# A brute-force matcher over small worlds ---------------------------------------------------------------------------

columns = st.sampled_from(["x", "y"])
rows = st.fixed_dictionaries({"a": columns, "b": columns})
keys = st.sampled_from(["1", "2"])


@st.composite
def net_sets(draw):
    changes = []
    for table, key in draw(st.lists(st.tuples(st.sampled_from(["t", "u"]), keys), max_size=4, unique=True)):
        kind = draw(st.sampled_from(["insert", "update", "delete"]))
        before, after = draw(rows), draw(rows)
        if kind == "insert":
            changes.append(insert(table, key, **after))
        elif kind == "delete":
            changes.append(delete(table, key, **before))
        elif before != after:
            changes.append(update(table, key, before, after))
    return changes


patterns = st.fixed_dictionaries(
    {"table": st.sampled_from(["t", "u"])},
    optional={
        "kind": st.sampled_from(["insert", "update", "delete", "any"]),
        "key": st.fixed_dictionaries({"id": keys}),
        "values": st.dictionaries(st.sampled_from(["a", "b"]), columns, max_size=2),
        "free": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
    },
)


def _kind(change):
    return "insert" if change.before is None else "delete" if change.after is None else "update"


def _fits(pattern, change):
    """The rule of one pattern, said once more and differently."""
    kind, wanted = pattern.get("kind", "any"), pattern.get("values", {})
    row = change.after or change.before
    if pattern["table"] != change.table or kind not in ("any", _kind(change)):
        return False
    if any(change.key.get(name) != value for name, value in pattern.get("key", {}).items()):
        return False
    if any(row.get(name) != value for name, value in wanted.items()):
        return False
    if _kind(change) != "update" or (kind == "any" and not wanted and not pattern.get("free")):
        return True
    named = {*wanted, *pattern.get("free", ())}
    return all(change.before[name] == change.after[name] for name in row if name not in named)


def _brute_force(expect, allow, changes):
    """Whether some way to give every pattern a change of its own leaves only allowed changes."""
    if len(expect) > len(changes):
        return False
    return any(
        all(_fits(pattern, changes[place]) for pattern, place in zip(expect, places, strict=True))
        and all(
            any(_fits(pattern, change) for pattern in allow)
            for place, change in enumerate(changes)
            if place not in places
        )
        for places in itertools.permutations(range(len(changes)), len(expect))
    )


@settings(max_examples=400)
@given(st.lists(patterns, min_size=1, max_size=3), st.lists(patterns, max_size=2), net_sets())
def test_the_verdict_is_the_brute_force_matchers(expect, allow, changes):
    """B016, B021, B022; law 3."""
    result = check_changes(assertion(expect=expect, allow=allow), changes)
    assert (result.status is Status.PASS) == _brute_force(expect, allow, changes)
    assert result.status is not Status.UNDETERMINED


@settings(max_examples=200)
@given(
    st.lists(st.lists(patterns, min_size=1, max_size=2), min_size=1, max_size=3),
    st.lists(patterns, max_size=1),
    net_sets(),
)
def test_alternatives_are_the_brute_force_matchers_too(groups, allow, changes):
    result = check_changes(assertion(either=groups, allow=allow), changes)
    assert (result.status is Status.PASS) == any(_brute_force(group, allow, changes) for group in groups)


@given(st.lists(patterns, min_size=1, max_size=3), net_sets(), st.randoms())
def test_order_plays_no_part(expect, changes, random):
    """Law 5: neither the author's order nor the database's."""
    status = check_changes(assertion(expect=expect), changes).status
    random.shuffle(expect)
    random.shuffle(changes)
    assert check_changes(assertion(expect=expect), changes).status is status


@given(net_sets())
def test_every_failure_names_a_row(changes):
    result = check_changes(assertion(expect=[{"table": "none", "kind": "insert"}]), changes)
    assert result.status is Status.FAIL
    assert all(change.label in result.explanation for change in changes)
    assert all(describe(change) for change in changes)


def test_a_long_list_is_cut_and_counted():
    many = [insert("notes", number, text="x" * 5000) for number in range(100)]
    result = check_changes(BOTH, many)
    assert len(result.explanation) < 20_000
    assert result.actual[-1] == "... 88 more"
