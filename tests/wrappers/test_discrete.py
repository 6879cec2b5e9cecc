"""Discrete actions: the mask, illegal choices, conformity, and that the refund family can be solved by its menu."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import agent_envs  # noqa: F401  (registers the ids)
from agent_envs.envs.refund.generator import KINDS, seed_for
from agent_envs.envs.refund.menu import RefundMenu
from agent_envs.wrappers import DiscreteActions, NumericObservation
from agent_envs.wrappers.discrete import Menu, MenuError

ENV_ID = "agenteval/refund-v1"
GIVE_UP = RefundMenu.names.index("finish_unable")
Known = dict[str, float]
Rule = tuple[str, Callable[[Known], Any]]


class Silent(Menu):
    """A menu that offers nothing, which is against the contract."""

    names = ("nothing",)

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        return None

    def observe(self, choice: int | None, observation: Any, info: dict[str, Any]) -> None:
        return None

    def calls(self, index: int) -> list[dict[str, Any]] | None:
        return None


def make(**arguments: Any) -> DiscreteActions:
    return DiscreteActions(gymnasium.make(ENV_ID, split="train", **arguments))


@pytest.fixture
def env() -> Iterator[DiscreteActions]:
    made = make()
    yield made
    made.close()


def index(name: str) -> int:
    return RefundMenu.names.index(name)


def offered(info: dict[str, Any]) -> list[str]:
    return [RefundMenu.names[place] for place in np.flatnonzero(info["action_mask"])]


def play(env: DiscreteActions, seed: int, *names: str) -> tuple[float, bool, dict[str, Any]]:
    """Play options by name, each of which must be on offer; give the last reward, whether it ended, and the info."""
    _, info = env.reset(seed=seed)
    reward, ended = 0.0, False
    for name in names:
        assert not ended, f"the episode ended before {name}"
        assert name in offered(info), f"{name} isn't on offer, but {offered(info)} are"
        _, given, terminated, truncated, info = env.step(index(name))
        reward, ended = float(given), terminated or truncated
    return reward, ended, info


def unpaid(known: Known) -> bool:
    return not (known["refunded"] or known["credited"] or known["cancelled"])


def claimed(known: Known) -> float:
    return known["condition_defective"] or known["condition_never_arrived"]


def always(known: Known) -> bool:
    return True


def registering(agreed: str) -> list[Rule]:
    conditions = ("unopened", "opened", "defective", "never_arrived")
    return [(f"register_{name}", lambda k, name=name: k[f"condition_{name}"] and k[agreed]) for name in conditions]


POLICY: list[Rule] = [
    ("ask_identity", always),
    ("ask_request", always),
    ("get_ticket", always),
    ("find_by_email", always),
    ("verify_email_postcode", lambda k: not k["check_failed"]),
    ("get_customer", lambda k: k["verified"]),
    ("refuse_identity_failed", lambda k: k["check_failed"]),
    ("get_order_mentioned", always),
    ("list_orders", lambda k: not k["order_mentioned"]),
    ("get_order_listed", lambda k: not k["order_seen"]),
    ("get_payments", always),
    ("get_history", always),
    ("check_risk", always),
    ("hand_over_risk", lambda k: k["on_hold"]),
    ("refuse_not_owner", lambda k: k["owner_is_another"]),
    ("propose_cancel", lambda k: (k["order_placed"] or k["order_processing"]) and not k["agreed_cancel"]),
    ("cancel_order", lambda k: k["agreed_cancel"]),
    ("resolve_cancelled", always),
    ("refuse_not_delivered", lambda k: k["order_shipped"] and not k["parcel_lost"]),
    ("refuse_already_refunded", lambda k: k["returned_before"] and unpaid(k)),
    ("refuse_final_sale", lambda k: k["some_final_sale"] and not claimed(k)),
    ("refuse_out_of_window", lambda k: k["window_closed"] and unpaid(k)),
    ("request_approval_refund", lambda k: k["needs_approval"]),
    ("hand_over_supervisors", lambda k: k["approval_denied"]),
    ("propose_credit", lambda k: k["window_credit_only"] and not k["agreed_credit"]),
    *registering("agreed_credit"),
    ("issue_credit", lambda k: k["agreed_credit"] and not k["paid_this_order"]),
    ("resolve_credited", always),
    ("propose_refund_policy", lambda k: k["window_refundable"] and not k["agreed_policy"] and not k["paid_this_order"]),
    *registering("agreed_policy"),
    ("issue_refund_as_proposed", lambda k: k["last_refund_is_policy"] and not k["paid_this_order"]),
    ("report_done", lambda k: k["paid_this_order"] and not k["reported_done"]),
    ("resolve_refunded", always),
    ("report_refused", unpaid),
    ("report_done", always),
    ("finish_completed", lambda k: not unpaid(k)),
    ("finish_refused", lambda k: k["ticket_closed"]),
]
"""A policy that keeps the rules: the first option that is on offer and whose condition holds. It sees features only."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(3))
def test_a_rule_following_policy_of_features_solves_every_kind(kind: str, number: int) -> None:
    inner = make()
    env = NumericObservation(inner)
    vector, info = env.reset(seed=seed_for(number, kinds=[kind]))
    ended = False
    while not ended:
        known = dict(zip(env.names, map(float, vector), strict=True))
        on_offer = offered(info)
        name = next((name for name, holds in POLICY if name in on_offer and holds(known)), "finish_unable")
        vector, reward, terminated, truncated, info = env.step(index(name))
        ended = terminated or truncated
    env.close()
    assert (reward, info["verdict"]) == (1.0, "pass")


LAWFUL = (
    "ask_identity ask_request find_by_email verify_email_postcode get_order_mentioned get_payments "
    "propose_refund_policy register_unopened issue_refund_as_proposed resolve_refunded report_done finish_completed"
).split()


def without(*names: str) -> list[str]:
    return [name for name in LAWFUL if name not in names]


def instead(**names: str) -> list[str]:
    return [names.get(name, name) for name in LAWFUL]


SEED = seed_for(0, kinds=["full"])


def test_the_shortest_lawful_way_succeeds(env: DiscreteActions) -> None:
    assert play(env, SEED, *LAWFUL)[0] == 1.0


@pytest.mark.parametrize(
    ("names", "broken"),
    [
        (without("verify_email_postcode"), "identity"),
        (
            [
                "issue_refund_policy" if name == "issue_refund_as_proposed" else name
                for name in without("propose_refund_policy")
            ],
            "confirm_refund",
        ),
        (instead(register_unopened="register_opened"), "changes"),
        (without("register_unopened"), "changes"),
        (
            [*LAWFUL[:6], "refuse_final_sale", "report_refused", "finish_refused"],
            "changes",
        ),
        ([*LAWFUL[:4], "finish_unable"], "changes"),
        ([*LAWFUL[:9], "finish_completed"], "changes"),
    ],
    ids=[
        "unverified",
        "refunded before asking",
        "wrong condition",
        "not registered",
        "wrong reason",
        "gave up",
        "finished early",
    ],
)
def test_wrong_ways_are_on_offer_and_fail(env: DiscreteActions, names: list[str], broken: str) -> None:
    reward, ended, info = play(env, SEED, *names)
    assert (reward, ended, info["verdict"]) == (0.0, True, "fail")
    verdict = env.get_wrapper_attr("verdict")
    assert broken in [result.name for result in (*verdict.assertions, *verdict.constraints) if result.status == "fail"]


def test_wrong_sums_are_on_offer_and_fail(env: DiscreteActions) -> None:
    """With a fee to take off, the price without it is another option, and so is all that was paid."""
    seed = seed_for(0, kinds=["fee"])
    for basis in ("price", "everything"):
        names = [
            {"propose_refund_policy": f"propose_refund_{basis}", "register_unopened": "register_opened"}.get(name, name)
            for name in LAWFUL
        ]
        assert play(env, seed, *names)[0] == 0.0
    assert play(env, seed, *instead(register_unopened="register_opened"))[0] == 1.0


def test_random_play_on_the_mask_earns_nothing() -> None:
    env = make(recheck=0.0)
    rng = np.random.default_rng(0)
    rewards = []
    for number in range(60):
        _, info = env.reset(seed=number)
        ended = False
        while not ended:
            _, reward, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
            ended = terminated or truncated
        rewards.append(float(reward))
    env.close()
    assert sum(rewards) == 0.0


def test_every_option_on_offer_is_run_and_not_invalid(env: DiscreteActions) -> None:
    """An option may be refused by a tool, but is never malformed, unknown or missing an argument."""
    rng = np.random.default_rng(1)
    for number in range(40):
        _, info = env.reset(seed=number)
        ended = False
        while not ended:
            choices = np.flatnonzero(info["action_mask"])
            _, _, terminated, truncated, info = env.step(rng.choice(choices[choices != GIVE_UP]))
            ended = terminated or truncated
        log = env.get_wrapper_attr("episode").log.entries
        assert {entry["status"] for entry in log[1:]} <= {"ok", "error", "skipped"}, log


def test_the_mask_is_int8_and_agrees_with_what_maskable_trainers_ask_for(env: DiscreteActions) -> None:
    _, info = env.reset(seed=2)
    mask = info["action_mask"]
    assert (mask.dtype, mask.shape) == (np.int8, (len(RefundMenu.names),))
    masks = gymnasium.Wrapper(env).get_wrapper_attr("action_masks")()
    assert masks.dtype == np.bool_ and np.array_equal(masks, mask.astype(bool))
    assert mask[GIVE_UP] == 1
    info["action_mask"][:] = 0
    assert env.step(GIVE_UP)[4]["action_mask"] is not mask, "each info has a mask of its own"


@pytest.mark.parametrize("action", [index("issue_refund_policy"), -1, 10**9, "x", None, 1.5, [1], {"tool": "finish"}])
def test_a_choice_that_is_not_on_offer_is_an_invalid_call(env: DiscreteActions, action: Any) -> None:
    env.reset(seed=3)
    observation, reward, terminated, truncated, info = env.step(action)
    answer = json.loads(observation["text"])
    assert answer["status"] == "invalid" and "option" in answer["error"]
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert env.get_wrapper_attr("episode").log.entries[-1]["status"] == "invalid"
    assert info["action_mask"].any()


def test_illegal_choices_alone_end_the_episode_as_the_harness_fault(env: DiscreteActions) -> None:
    env.reset(seed=3)
    ended, steps = False, 0
    while not ended:
        _, _, terminated, truncated, info = env.step(index("cancel_order"))
        ended, steps = terminated or truncated, steps + 1
    assert (info["terminal_reason"], steps) == ("too_many_invalid_calls", 10)


@pytest.mark.parametrize("action", [np.int64(0), np.array(0), np.int32(0), 0])
def test_any_integer_is_an_index(env: DiscreteActions, action: Any) -> None:
    env.reset(seed=3)
    assert json.loads(env.step(action)[0]["text"])["status"] == "ok"


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_it_passes_gymnasiums_checker(env: DiscreteActions) -> None:
    """The checker finds shared objects and drift in info; warnings are errors here, but for being a wrapper."""
    check_env(env, skip_render_check=True)


def test_the_spec_is_json_and_makes_the_same_again(env: DiscreteActions) -> None:
    for made in (env, DiscreteActions(gymnasium.make(ENV_ID), RefundMenu)):
        assert made.spec is not None
        text = made.spec.to_json()
        again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
        assert again.action_space == made.action_space
        assert again.spec is not None and again.spec.to_json() == text
        again.close()
        made.close()


def test_a_menu_is_named_by_place(env: DiscreteActions) -> None:
    place = "agent_envs.envs.refund.menu:RefundMenu"
    made = DiscreteActions(gymnasium.make(ENV_ID, split="train"), place)
    assert np.array_equal(made.reset(seed=4)[1]["action_mask"], env.reset(seed=4)[1]["action_mask"])
    made.close()


@pytest.mark.parametrize(
    "menu", ["nowhere.at.all:Menu", "agent_envs.envs.refund.menu:Nothing", "json:dumps.__doc__", "agent_envs", "json:"]
)
def test_a_menu_that_is_not_there_is_a_menu_error(menu: str) -> None:
    with pytest.raises(MenuError):
        DiscreteActions(gymnasium.make(ENV_ID), menu)


def test_what_is_no_menu_is_a_menu_error() -> None:
    with pytest.raises(MenuError, match="no menu: it has no names and no reset"):
        DiscreteActions(gymnasium.make(ENV_ID), "builtins:dict")
    with pytest.raises(MenuError, match="no menu of its own"):
        DiscreteActions(gymnasium.make("CartPole-v1"))


def test_a_menu_without_a_way_out_is_a_menu_error() -> None:
    """Sampling with a mask of zeros would give an illegal action and say nothing."""
    env = DiscreteActions(gymnasium.make(ENV_ID, split="train"), Silent)
    with pytest.raises(MenuError, match="give up"):
        env.reset(seed=1)
    env.close()


def test_a_copy_and_a_pickle_go_on_from_the_same_point(env: DiscreteActions) -> None:
    env.reset(seed=SEED)
    for name in LAWFUL[:5]:
        env.step(index(name))
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    for name in LAWFUL[5:7]:
        observation, _, _, _, info = env.step(index(name))
        for other in others:
            found, _, _, _, about = other.step(index(name))
            assert found == observation and about["state_hash"] == info["state_hash"]
            assert np.array_equal(about["action_mask"], info["action_mask"])
    for other in others:
        other.close()


def test_an_episode_leaves_nothing_for_the_next_one(env: DiscreteActions) -> None:
    _, fresh = env.reset(seed=SEED)
    play(env, seed_for(1, kinds=["cancel"]), *LAWFUL[:5])
    _, again = env.reset(seed=SEED)
    assert np.array_equal(fresh["action_mask"], again["action_mask"])
    assert env.menu.memory.facts == {}  # type: ignore[attr-defined]


def test_the_menu_knows_only_what_was_shown(env: DiscreteActions) -> None:
    """The menu fed with the texts alone, without any environment, comes to the same options."""
    alone = RefundMenu()
    observation, info = env.reset(seed=SEED)
    alone.reset(copy.deepcopy(observation), {"user": info["user"]})
    for name in LAWFUL[:-1]:
        assert [alone.calls(place) for place in range(len(alone.names))] == [
            env.menu.calls(place) for place in range(len(alone.names))
        ]
        observation, _, _, _, info = env.step(index(name))
        alone.observe(index(name), copy.deepcopy(observation), {"user": info["user"]})
    assert alone.features() == env.menu.features()  # type: ignore[attr-defined]


@settings(max_examples=60)
@given(
    st.text(max_size=300) | st.sampled_from(["[]", "{}", "null", "[1]", '{"status": "ok"}', '[{"status": "error"}]'])
)
def test_a_text_that_teaches_nothing_does_not_break_the_menu(text: str) -> None:
    """Texts cut in the middle, or not JSON at all, come from long answers and foreign wrappers."""
    menu = RefundMenu()
    menu.reset({"text": text}, {"user": "active"})
    menu.observe(GIVE_UP, {"text": text}, {"user": "active"})
    assert menu.calls(GIVE_UP) is not None
    assert all(0.0 <= value <= 1.0 for value in menu.features())
