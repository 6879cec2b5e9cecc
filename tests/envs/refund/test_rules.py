import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_envs.envs.refund import rules
from agent_envs.envs.refund.rules import Returned

NOW = dt.datetime(2026, 3, 10, 10, tzinfo=dt.UTC)
CENTS = st.integers(1, 500_000).map(lambda cents: Decimal(cents).scaleb(-2))
RATES = st.integers(1_000, 2_000_000).map(lambda rate: Decimal(rate).scaleb(-4))
CONDITIONS = st.sampled_from(["unopened", "opened", "defective", "never_arrived"])


def payment(number: str, amount: str, *, refunded: str = "0", rate: str = "1", **values: str) -> dict[str, Any]:
    return {
        "payment_id": number,
        "tender": "card",
        "status": "captured",
        "currency": "USD",
        **values,
        "amount": Decimal(amount),
        "refunded": Decimal(refunded),
        "rate": Decimal(rate),
    }


@pytest.mark.parametrize(
    ("category", "tier", "condition", "days"),
    [
        ("kitchen", "standard", "unopened", 30),
        ("kitchen", "gold", "opened", 45),
        ("electronics", "standard", "opened", 14),
        ("electronics", "gold", "unopened", 29),
        ("electronics", "standard", "defective", 365),
        ("kitchen", "gold", "never_arrived", 365),
    ],
)
def test_days_of_the_window(category: str, tier: str, condition: rules.Condition, days: int) -> None:
    assert rules.return_window_days(category, tier, condition) == days


@pytest.mark.parametrize(
    ("since_delivery", "state"),
    [
        (dt.timedelta(days=30), "refundable"),
        (dt.timedelta(days=30, seconds=1), "credit_only"),
        (dt.timedelta(days=60, seconds=-1), "credit_only"),
        (dt.timedelta(days=60), "closed"),
        (dt.timedelta(), "refundable"),
    ],
)
def test_the_last_instant_of_the_window_counts_and_that_of_credit_does_not(
    since_delivery: dt.timedelta, state: str
) -> None:
    delivered = NOW - since_delivery
    placed = delivered - dt.timedelta(days=3)
    found = rules.window_state(
        NOW, delivered=delivered, placed=placed, category="kitchen", tier="standard", condition="opened"
    )
    assert found == state


def test_a_day_has_24_hours_across_a_change_of_clocks_elsewhere() -> None:
    delivered = dt.datetime(2026, 3, 8, 0, 30, tzinfo=dt.timezone(dt.timedelta(hours=-8)))
    last = dt.datetime(2026, 4, 7, 8, 30, tzinfo=dt.UTC)
    common: dict[str, Any] = {
        "delivered": delivered,
        "placed": delivered,
        "category": "kitchen",
        "tier": "standard",
        "condition": "opened",
    }
    assert rules.window_state(last, **common) == "refundable"
    assert rules.window_state(last + dt.timedelta(seconds=1), **common) == "credit_only"


def test_what_was_never_delivered_is_claimed_from_the_day_of_the_order() -> None:
    placed = NOW - dt.timedelta(days=365)
    common: dict[str, Any] = {"delivered": None, "placed": placed, "category": "garden", "tier": "standard"}
    assert rules.window_state(NOW, **common, condition="never_arrived") == "refundable"
    assert rules.window_state(NOW + dt.timedelta(seconds=1), **common, condition="never_arrived") == "credit_only"
    with pytest.raises(ValueError, match="nothing was delivered"):
        rules.window_state(NOW, **common, condition="unopened")


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from(["electronics", "kitchen"]), CONDITIONS)
def test_a_window_never_opens_again(first: int, more: int, category: str, condition: rules.Condition) -> None:
    order = ["refundable", "credit_only", "closed"]
    states = [
        rules.window_state(
            NOW + dt.timedelta(days=days),
            delivered=NOW,
            placed=NOW,
            category=category,
            tier="standard",
            condition=condition,
        )
        for days in (first, first + more)
    ]
    assert order.index(states[0]) <= order.index(states[1])


@pytest.mark.parametrize(
    ("amount", "currency", "rounded"),
    [
        ("0.125", "USD", "0.13"),
        ("0.135", "EUR", "0.14"),
        ("0.1349999", "GBP", "0.13"),
        ("1500.5", "JPY", "1501"),
        ("1500.4999", "JPY", "1500"),
        ("25", "USD", "25.00"),
    ],
)
def test_rounding_is_half_up_to_the_unit_of_the_currency(amount: str, currency: str, rounded: str) -> None:
    """B065: exact decimals, never doubles."""
    exact = Decimal(amount)
    assert str(rules.round_half_up(exact, currency)) == rounded
    assert str(rules.round_half_up(Fraction(exact), currency)) == rounded
    assert rules.money_text(rules.round_half_up(exact, currency), currency) == rounded


@given(st.decimals(0, 10**6, places=6), st.sampled_from(rules.CURRENCIES))
def test_rounding_moves_at_most_half_a_unit(amount: Decimal, currency: str) -> None:
    unit = rules.smallest_unit(currency)
    rounded = rules.round_half_up(amount, currency)
    assert rounded % unit == 0
    assert -unit / 2 < rounded - amount <= unit / 2
    assert rounded == rules.round_half_up(Fraction(amount), currency) == rules.round_half_up(rounded, currency)


@pytest.mark.parametrize("function", [rules.smallest_unit, rules.approval_threshold, rules.approval_limit])
def test_an_unknown_currency_is_named(function: Any) -> None:
    with pytest.raises(ValueError, match=r"'XXX'.*EUR, GBP, JPY, USD"):
        function("XXX")


def test_thresholds() -> None:
    found = {currency: rules.approval_threshold(currency) for currency in rules.CURRENCIES}
    assert found == {"EUR": 200, "GBP": 180, "JPY": 30000, "USD": 200}
    assert all(rules.approval_limit(currency) > rules.approval_threshold(currency) for currency in rules.CURRENCIES)


def test_only_opened_working_electronics_carry_the_fee_and_it_is_rounded_with_the_sum() -> None:
    lines = [
        Returned("electronics", Decimal("33.30"), 1, "opened"),
        Returned("electronics", Decimal("10.00"), 2, "defective"),
        Returned("kitchen", Decimal("5.05"), 1, "opened"),
    ]
    assert rules.goods_amount(lines) == Decimal("58.35")
    assert rules.restocking_fee(lines) == Decimal("4.995")
    # 53.355 rounds to 53.36; rounding the fee first would give 53.35.
    assert rules.refund_amount(lines, "USD") == Decimal("53.36")
    assert rules.credit_amount(lines, "USD") == Decimal("58.35")
    assert rules.refund_amount(lines, "USD", shipping_fee=Decimal("4.90")) == Decimal("58.26")


def test_shipping_is_due_only_when_every_piece_is_claimed() -> None:
    broken = Returned("kitchen", Decimal(1), 2, "defective")
    lost = Returned("kitchen", Decimal(1), 1, "never_arrived")
    unwanted = Returned("kitchen", Decimal(1), 1, "unopened")
    assert rules.shipping_is_due([broken, lost], 3)
    assert not rules.shipping_is_due([broken], 3)
    assert not rules.shipping_is_due([broken, unwanted], 3)
    assert not rules.shipping_is_due([], 0)


def test_split_goes_to_cards_then_gift_cards_then_store_credit_in_order_of_number() -> None:
    payments = [
        payment("P9", "10.00", tender="store_credit"),
        payment("P8", "10.00", tender="gift_card"),
        payment("P10", "10.00", tender="paypal"),
        payment("P7", "99.00", status="voided"),
        payment("P9001", "10.00", refunded="10.00"),
        payment("P6", "10.00", refunded="4.00"),
    ]
    assert rules.split_over_tenders(Decimal("26.50"), payments) == [
        ("P6", Decimal("6.00")),
        ("P10", Decimal("10.00")),
        ("P8", Decimal("10.00")),
        ("P9", Decimal("0.50")),
    ]


def test_three_refunds_of_tenths_fit_exactly_and_a_cent_more_does_not() -> None:
    """B065: 0.10 + 0.20 + 0.30 on 0.60."""
    used = Decimal("0.10") + Decimal("0.20")
    assert rules.split_over_tenders(Decimal("0.30"), [payment("P1", "0.60", refunded=str(used))]) == [
        ("P1", Decimal("0.30"))
    ]
    with pytest.raises(ValueError, match=r"less left than 0\.61"):
        rules.split_over_tenders(Decimal("0.61"), [payment("P1", "0.60")])


def test_foreign_payments_get_their_own_currency_rounded_once() -> None:
    yen = payment("P1", "3000", currency="JPY", rate="149.3700")
    assert rules.split_over_tenders(Decimal("10.00"), [yen]) == [("P1", Decimal("1494"))]
    both = [yen, payment("P2", "50.00")]
    # 3000 JPY are worth 20.0843... USD; the rest goes to the second card.
    assert rules.split_over_tenders(Decimal("30.00"), both) == [("P1", Decimal("3000")), ("P2", Decimal("9.92"))]


@given(
    st.lists(st.tuples(CENTS, st.sampled_from(["card", "gift_card", "store_credit"])), min_size=1, max_size=4), CENTS
)
def test_split_in_one_currency_adds_up_exactly_or_is_refused(parts: list[tuple[Decimal, str]], amount: Decimal) -> None:
    """B065."""
    payments = [payment(f"P{index}", str(left), tender=tender) for index, (left, tender) in enumerate(parts)]
    total = sum(left for left, _ in parts)
    if amount > total:
        with pytest.raises(ValueError, match="less left"):
            rules.split_over_tenders(amount, payments)
        return
    split = dict(rules.split_over_tenders(amount, payments))
    assert sum(split.values()) == amount
    assert all(0 < part <= parts[int(number[1:])][0] for number, part in split.items())


@given(st.lists(st.tuples(CENTS, st.sampled_from(rules.CURRENCIES), RATES), min_size=1, max_size=4))
def test_everything_captured_can_be_given_back_whatever_the_rates(shares: list[tuple[Decimal, str, Decimal]]) -> None:
    payments = []
    for index, (share, currency, free_rate) in enumerate(shares):
        rate = Decimal(1) if currency == "USD" else free_rate
        amount = rules.round_half_up(share * rate, currency)
        assume(amount > 0)
        payments.append(payment(f"P{index}", str(amount), currency=currency, rate=str(rate)))
    split = rules.split_over_tenders(sum((share for share, _, _ in shares), Decimal(0)), payments)
    by_number = {row["payment_id"]: row for row in payments}
    for number, part in split:
        assert 0 < part <= by_number[number]["amount"]
        assert part % rules.smallest_unit(by_number[number]["currency"]) == 0
