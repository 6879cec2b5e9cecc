"""The rules of a scripted user, one by one."""

from typing import Any

import pytest
from pydantic import ValidationError

from agent_envs.contract import EnvironmentFault, ScriptedUserSpec, canonical_json, expected
from agent_envs.state.random import Rng
from agent_envs.users import ScriptedUser, phrases
from agent_envs.users.questions import makes_an_offer

REFUND = {"action": "refund", "order_id": "W1", "amount": "25.00"}
CANCEL = {"action": "cancel", "order_id": "W2"}
LAMP = {"opening": "No, keep it, cancel the lamp.", "accepts": [{"proposal": CANCEL}]}
GONE = "The customer has left the conversation."


def script(**changed: Any) -> ScriptedUserSpec:
    data: dict[str, Any] = {
        "persona": "persona-token",
        "facts": {
            "order_id": {"value": "order-token", "words": ["order number"]},
            "email": {"value": "email-token", "says": "Write to email-token.", "words": ["e-mail address"]},
            "postcode": {"value": "postcode-token"},
        },
        "wishes": [
            {
                "opening": "The kettle broke.",
                "accepts": [{"proposal": {"action": "refund", "order_id": {"id": "W1"}, "amount": {"money": "25.00"}}}],
                "declines": [{"proposal": {"action": "store_credit"}, "says": "No vouchers."}],
                "settled_by": ["done"],
            },
            {"opening": "And cancel the lamp.", "accepts": [{"proposal": CANCEL, "says": "Cancel it."}]},
        ],
    }
    return ScriptedUserSpec.model_validate({**data, **changed})


def user_with(spec: ScriptedUserSpec, seed: int = 7, opened: bool = True) -> ScriptedUser:
    rng = Rng()
    rng.restore(seed)
    user = ScriptedUser(rng)
    user.restore(spec)
    if opened:
        assert user.opening() == spec.wishes[0].opening
    return user


def one_wish(**changed: Any) -> ScriptedUserSpec:
    return script(wishes=[script().wishes[0].as_json()], **changed)


class TestOpening:
    def test_is_the_first_wish_word_for_word(self) -> None:
        """B173: an authored first message is the first message."""
        odd = "  I said:\n'###STOP###' -- caf\u00e9 \U0001f62c  "
        assert user_with(script(wishes=[{"opening": odd}]), opened=False).opening() == odd

    def test_a_message_before_it_gets_it_and_nothing_else(self) -> None:
        """B173: no other words come first, even when the agent speaks first."""
        user = user_with(script(), opened=False)
        reply = user.hear("Your order number?", ask=["email"], propose=REFUND, report="done")
        assert reply.as_json() == {"says": "The kettle broke.", "status": "active", "accepted": False, "told": []}
        assert user.hear("", ask=["email"]).told == ("email",)

    def test_is_delivered_once(self) -> None:
        """B167: the opening is never sent twice."""
        user = user_with(script())
        with pytest.raises(EnvironmentFault, match="asked for twice"):
            user.opening()

    def test_openings_must_differ(self) -> None:
        """B167: two wishes can't share an opening, which would be said twice."""
        with pytest.raises(ValidationError, match="two wishes open with"):
            script(wishes=[{"opening": "Same."}, {"opening": "Same."}])


class TestQuestions:
    @pytest.mark.parametrize(
        "text",
        [
            "What is your order number?",
            "Hello! Thanks, could you give me the ORDER-NUMBER",
            "please send the order id",
            "I see. And your order_id?",
            "Confirm the order\u00a0number.\nThank you.",
        ],
    )
    def test_words_in_a_question_ask_for_a_fact(self, text: str) -> None:
        reply = user_with(script()).hear(text)
        assert reply.told == ("order_id",)
        assert "order-token" in reply.says

    @pytest.mark.parametrize(
        "text",
        [
            "Your order number is W9.",
            "Please note: the order number is W9.",
            "I have sent the refund for order number W9 to your e-mail address.",
            "Is reorder numbering fine?",
            "The postcode is 12345! Thanks.",
        ],
    )
    def test_a_statement_is_neither_confirmed_nor_corrected(self, text: str) -> None:
        """B177: the user doesn't rescue an agent that states something wrong."""
        reply = user_with(script()).hear(text)
        assert reply.told == ()
        assert "token" not in reply.says

    def test_a_wrong_proposal_is_declined_without_the_right_one(self) -> None:
        """B177: a wrong order or amount is declined; what would be right isn't said."""
        reply = user_with(script()).hear("Is it order number W9, 30.00?", propose={**REFUND, "amount": "30.00"})
        assert (reply.accepted, reply.told) == (False, ())
        assert reply.says in phrases.NO

    def test_names_are_asked_for_directly(self) -> None:
        reply = user_with(script()).hear("", ask=["email", "Order Number", "email", "shoe_size"])
        assert reply.told == ("email", "order_id")
        lines = reply.says.split("\n")
        assert lines[0] == "Write to email-token."
        assert lines[1].endswith(": order-token")
        assert lines[2] in phrases.UNKNOWN

    def test_a_structured_ask_is_the_question(self) -> None:
        assert user_with(script()).hear("What is your postcode?", ask=["email"]).told == ("email",)

    @pytest.mark.parametrize("ask", [["shoe_size"], [""], ["email" * 1000], ["\ud800"]])
    def test_what_isnt_known_isnt_told(self, ask: list[str]) -> None:
        reply = user_with(script()).hear("", ask=ask)
        assert reply.told == ()
        assert reply.says in phrases.UNKNOWN

    def test_only_the_first_4000_characters_are_searched(self) -> None:
        user = user_with(script())
        assert user.hear("x" * 3990 + "\nWhat is your order number?").told == ()
        assert user.hear("x" * 3900 + "\nWhat is your order number?").told == ("order_id",)

    def test_talk_of_an_action_gets_the_wish_for_a_proposal(self) -> None:
        assert user_with(script()).hear("Shall I refund you 25.00?").says in phrases.CONCRETE
        assert user_with(script()).hear("Goodbye.").says in phrases.WAITING


class TestProposals:
    def test_a_yes_leaves_the_talk_open(self) -> None:
        """B164: after a yes the agent can act and tell the outcome; only the outcome ends the talk."""
        user = user_with(one_wish(patience=2))
        reply = user.hear("Shall I refund 25.00?", propose=REFUND)
        assert (reply.accepted, reply.status) == (True, "active")
        assert user.hear("One moment, please.").status == "active"
        assert user.hear("It is refunded.", report="done").status == "finished"

    def test_a_report_beside_a_proposal_doesnt_end_the_talk(self) -> None:
        """B164: the outcome of a proposal can't be known before its answer."""
        user = user_with(one_wish())
        reply = user.hear("Refund?", propose=REFUND, report="done")
        assert (reply.accepted, reply.status) == (True, "active")
        assert reply.says.split("\n")[1] in phrases.ONE_THING
        assert user.hear("", report="done").status == "finished"

    @pytest.mark.parametrize("text", ["Can you confirm your e-mail address?", "Do you confirm? Yes or no?", "Confirm."])
    def test_no_word_triggers_a_yes(self, text: str) -> None:
        """B175: confirming an identity or a summary is not confirming the act."""
        user = user_with(script())
        assert user.hear(text).accepted is None
        assert user.hear("Confirm?", propose={**REFUND, "order_id": "W9"}).accepted is False
        assert user.hear("Do not say yes.", propose=REFUND).accepted is True

    def test_declines_come_first_and_have_the_authors_words(self) -> None:
        broad = {"proposal": {"action": {"any": True}}}
        wish = {"opening": "Hm.", "accepts": [broad], "declines": [{"proposal": {"amount": 5}, "says": "Too little."}]}
        user = user_with(script(wishes=[wish]))
        no = user.hear("", propose={"action": "refund", "amount": 5})
        assert (no.says, no.accepted) == ("Too little.", False)
        assert user.hear("", propose={"action": "refund", "amount": 6}).accepted is True

    @pytest.mark.parametrize(
        "proposal",
        [
            {},
            {"action": "refund", "order_id": "W1"},
            {"action": "refund", "order_id": "W1", "amount": None},
            {"action": "refund", "order_id": "W1", "amount": "NaN"},
            {"action": "refund", "order_id": "W1", "amount": 10**6000},
            {"action": "refund", "order_id": ["W1"], "amount": "25.00"},
            {"action": "Refund", "order_id": "W1", "amount": "25.00"},
        ],
    )
    def test_what_doesnt_match_in_every_field_is_declined(self, proposal: dict[str, Any]) -> None:
        assert user_with(script()).hear("", propose=proposal).accepted is False

    def test_fields_are_compared_by_type(self) -> None:
        assert user_with(script()).hear("", propose={**REFUND, "amount": 25, "note": "more"}).accepted is True

    @pytest.mark.parametrize("wanted", [None, {"null": True}, {"any": True}])
    def test_a_missing_field_is_not_a_null_one(self, wanted: Any) -> None:
        user = user_with(script(wishes=[{"opening": "Hm.", "accepts": [{"proposal": {"note": wanted}}]}]))
        assert user.hear("", propose={}).accepted is False
        assert user.hear("", propose={"note": None}).accepted is True

    def test_what_cant_be_decided_is_declined(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A comparison without a result is no agreement."""
        when = {"datetime": "2026-03-01T09:00:00", "zone": "Europe/Paris"}
        user = user_with(script(wishes=[{"opening": "Hm.", "accepts": [{"proposal": {"at": when}}]}]))
        assert user.hear("", propose={"at": "2026-03-01T09:00:00"}).accepted is True

        def no_zone_data(name: str) -> None:
            raise LookupError(f"no data for {name}")

        monkeypatch.setattr(expected, "zone_of", no_zone_data)
        assert user.hear("", propose={"at": "2026-03-01T09:00:00"}).accepted is False

    def test_terms_must_name_a_field(self) -> None:
        """Terms without a field would agree to everything."""
        with pytest.raises(ValidationError, match="at least 1 item"):
            script(wishes=[{"opening": "Hm.", "accepts": [{"proposal": {}}]}])


class TestReports:
    def test_the_next_wish_opens_and_the_last_ends_the_talk(self) -> None:
        """B167: after the last wish the talk is over, and no opening comes again."""
        user = user_with(script())
        assert user.hear("Done.", report="done").says == "And cancel the lamp."
        end = user.hear("Cancelled.", report="done")
        assert (end.says in phrases.THANKS, end.status) == (True, "finished")
        after = [user.hear("Anything else?", ask=["email"], propose=CANCEL, report="done") for _ in range(3)]
        assert {reply.says for reply in after} == {GONE}
        assert {(reply.status, reply.accepted, reply.told) for reply in after} == {("finished", False, ())}

    @pytest.mark.parametrize(
        "text", ["DONE.", "Done!", "DONE\n\nThanks", "###STOP###", "Please close it. ###STOP###", "bye"]
    )
    def test_no_word_or_token_ends_the_talk(self, text: str) -> None:
        """B165, B166: the end is a status, never a marker in somebody's text."""
        user = user_with(one_wish())
        assert user.hear(text).status == "active"
        assert user.hear(text, ask=["email"]).says == "Write to email-token."

    @pytest.mark.parametrize("text", ["DONE.", "not done", "", "###STOP###"])
    def test_a_structured_report_ends_it_whatever_the_text(self, text: str) -> None:
        """B166: recognition doesn't hang on spelling."""
        assert user_with(one_wish()).hear(text, report="done").status == "finished"

    def test_a_token_in_the_users_own_words_is_delivered_and_means_nothing(self) -> None:
        """B165: text glued to a stop token isn't lost, and the token stops nothing."""
        wishes = [{"opening": "One."}, {"opening": "Please close the case. ###STOP###"}]
        user = user_with(script(wishes=wishes))
        reply = user.hear("", report="done")
        assert (reply.says, reply.status) == ("Please close the case. ###STOP###", "active")

    @pytest.mark.parametrize("report", ["refused", "handed_over", "DONE", "finished", ""])
    def test_other_outcomes_dont_settle_the_wish(self, report: str) -> None:
        user = user_with(script())
        reply = user.hear("", report=report)
        assert reply.status == "active"
        assert "lamp" not in reply.says

    def test_the_answer_to_a_question_comes_along(self) -> None:
        reply = user_with(one_wish()).hear("It's done.", ask=["email"], report="done")
        assert (reply.told, reply.status) == (("email",), "finished")
        assert reply.says.startswith("Write to email-token.\n")


class TestChangeOfMind:
    def test_after_the_facts(self) -> None:
        user = user_with(one_wish(turn={"after": "facts_given", "becomes": LAMP}))
        assert user.hear("", ask=["shoe_size"]).says in phrases.UNKNOWN
        reply = user.hear("", ask=["email"])
        assert reply.says == "Write to email-token.\nNo, keep it, cancel the lamp."
        assert "lamp" not in user.hear("", ask=["postcode"]).says
        assert user.hear("", propose=REFUND).accepted is False
        assert user.hear("", propose=CANCEL).accepted is True

    def test_instead_of_answering_the_first_proposal(self) -> None:
        """B175: the proposal that met the change of mind has no yes, whatever it says."""
        user = user_with(one_wish(turn={"after": "first_proposal", "becomes": LAMP}))
        reply = user.hear("", propose=CANCEL, report="done")
        assert (reply.says, reply.accepted, reply.status) == ("No, keep it, cancel the lamp.", False, "active")
        assert user.hear("", propose=CANCEL).accepted is True

    def test_of_a_later_wish_waits_for_it(self) -> None:
        user = user_with(script(turn={"after": "first_proposal", "wish": 1, "becomes": {"opening": "Changed."}}))
        assert user.hear("", propose=REFUND).accepted is True
        assert user.hear("", report="done").says == "And cancel the lamp."
        assert user.hear("", propose=CANCEL).says == "Changed."


class TestPatience:
    def test_a_farewell_loop_ends(self) -> None:
        """B171: after ``patience`` farewells the user leaves; three more and the agent has overstayed."""
        user = user_with(script(patience=3))
        replies = [user.hear("Thank you, goodbye!") for _ in range(6)]
        assert [reply.status for reply in replies] == ["active"] * 2 + ["left"] * 4
        assert [reply.says in phrases.LEAVING for reply in replies] == [False, False, True, False, False, False]
        assert [reply.says == GONE for reply in replies] == [False] * 3 + [True] * 3
        assert user.overstayed

    def test_a_farewell_is_not_overstaying(self) -> None:
        """B171: two messages after the end are free, the third is too much."""
        user = user_with(one_wish())
        user.hear("", report="done")
        seen = []
        for _ in range(3):
            user.hear("Goodbye!")
            seen.append(user.overstayed)
        assert seen == [False, False, True]

    @pytest.mark.parametrize(
        "message",
        [
            {"ask": ["email"]},
            {"propose": {**REFUND, "amount": "1.00"}},
            {"propose": REFUND},
            {"report": "refused"},
        ],
    )
    def test_the_same_thing_again_costs_one(self, message: dict[str, Any]) -> None:
        user = user_with(script(patience=2))
        first, second = user.hear("", **message), user.hear("", **message)
        assert (second.accepted, second.told, second.status) == (first.accepted, first.told, "active")
        assert user.hear("", **message).status == "left"

    def test_guessing_isnt_free(self) -> None:
        user = user_with(script(patience=3))
        guesses = [user.hear("", propose={**REFUND, "amount": str(amount)}).status for amount in range(6)]
        assert guesses == ["active"] * 5 + ["left"]

    def test_a_useful_message_costs_nothing(self) -> None:
        user = user_with(script(patience=1))
        assert user.hear("", ask=["email"]).status == "active"
        assert user.hear("", propose={"action": "store_credit"}).says == "No vouchers."
        assert user.hear("", propose=REFUND).accepted is True
        assert user.hear("", report="done").says == "And cancel the lamp."
        assert user.hear("", propose=REFUND).accepted is False
        assert user.hear("Goodbye.").status == "left"

    def test_a_new_wish_starts_afresh(self) -> None:
        """What was declined or reported for one wish is new for the next."""
        user = user_with(script(patience=1))
        nothing = {"action": "nothing"}
        assert user.hear("", propose=nothing).accepted is False
        assert user.hear("", report="refused").status == "active"
        assert user.hear("", report="done").says == "And cancel the lamp."
        assert user.hear("", propose=nothing).status == "active"
        assert user.hear("", propose=nothing).status == "left"

    def test_the_last_message_gets_no_facts_and_no_yes(self) -> None:
        user = user_with(script(patience=1))
        user.hear("", ask=["email"], propose=REFUND)
        last = user.hear("", ask=["email"], propose=REFUND)
        assert (last.status, last.accepted, last.told) == ("left", False, ())


class TestWords:
    @pytest.mark.parametrize(
        "data",
        [
            {"wishes": [{"opening": " \n"}]},
            {"facts": {"name": {"value": ""}}},
            {"facts": {"name": {"value": "Nina", "says": "  "}}},
            {"wishes": [{"opening": "Hm.", "settled_by": []}]},
        ],
    )
    def test_a_script_with_blank_words_or_without_an_end_is_refused(self, data: dict[str, Any]) -> None:
        """B169: what can't be said can't be written in a task either."""
        with pytest.raises(ValidationError):
            script(**data)

    def test_an_empty_message_gets_an_answer(self) -> None:
        """B169: neither an empty message nor the end leads to an empty reply."""
        user = user_with(script(patience=2))
        assert all(user.hear("").says.strip() for _ in range(5))

    def test_no_standard_sentence_reads_like_an_agents_offer(self) -> None:
        """B168: the user never takes the agent's part."""
        everything = [line for lines in vars(phrases).values() if isinstance(lines, tuple) for line in lines]
        assert len(everything) > 25
        assert [line for line in everything if makes_an_offer(line) and line not in phrases.YES] == []


class TestChannel:
    def test_without_a_script_it_is_unusable(self) -> None:
        user = ScriptedUser(Rng())
        with pytest.raises(EnvironmentFault, match="no script"):
            user.probe()
        user.restore(script())
        user.probe()
        user.close()
        user.close()
        with pytest.raises(EnvironmentFault, match="no script"):
            user.hear("hello")

    def test_every_memory_is_in_the_digest(self) -> None:
        user = user_with(script(patience=3), opened=False)
        seen = [user.digest()]
        user.opening()
        messages: list[dict[str, Any]] = [
            {"ask": ["email"]},
            {"ask": ["email"]},
            {"propose": REFUND},
            {"propose": {}},
            {"report": "refused"},
            {"report": "done"},
            {"report": "done"},
            {},
        ]
        for message in messages:
            seen.append(user.digest())
            user.hear("", **message)
        seen.append(user.digest())
        assert len(set(seen)) == len(seen) == 10
        user.restore(script(patience=3))
        assert user.digest() == seen[0]
        assert user_with(script(patience=4), opened=False).digest() != seen[0]
        assert user.changes() == []

    def test_a_point_of_another_script_is_refused(self) -> None:
        frozen = user_with(script()).freeze()
        with pytest.raises(ValueError, match="restore that script first"):
            user_with(one_wish()).thaw(frozen)

    @pytest.mark.parametrize("damage", [None, {}, {"talk": {}}, {"talk": {"status": "active"}}, {"talk": "x"}])
    def test_a_damaged_point_is_refused(self, damage: Any) -> None:
        user = user_with(script())
        before = user.digest()
        with pytest.raises(ValueError, match="freeze"):
            user.thaw(damage if not damage else {**user.freeze(), **damage})
        assert user.digest() == before

    def test_memory_is_bounded(self) -> None:
        """Ten thousand different messages leave less than 4 kB."""
        user = user_with(script(patience=10_000))
        for number in range(10_000):
            user.hear(f"message {number}", ask=[f"fact {number}"], propose={**REFUND, "note": number})
        small = user_with(script())
        for number in range(10_000):
            small.hear(f"message {number}" * 100, propose={"order_id": number}, report=f"report {number}")
        assert len(canonical_json(user.freeze())) < 4000
        assert len(canonical_json(small.freeze())) < 4000
