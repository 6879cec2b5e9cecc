"""A user played by rules.

It keeps a talk measurable: it answers what it is asked, agrees to what its script agrees to, and does nothing else.
So a good outcome is the agent's work, and the same events always get the same answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from agent_envs.contract import Change, EnvironmentFault, ScriptedUserSpec, Wish, digest
from agent_envs.contract.user import Report
from agent_envs.state.channel import StateChannel
from agent_envs.state.random import Rng
from agent_envs.users import phrases
from agent_envs.users.proposals import Answer, answer, fingerprint
from agent_envs.users.questions import Questions, makes_an_offer
from agent_envs.users.talk import Reply, Talk, UserStatus

MESSAGES_AFTER_END: Final = 2
"""How many messages an agent may send after the end, say for a farewell, before it has overstayed."""

REMEMBERED_YES: Final = 16
"""How many distinct accepted proposals a user remembers for one wish."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a message carries, before anything about it is decided."""

    facts: tuple[str, ...]
    unknown: bool
    offers: bool
    turns: bool
    answer: Answer | None
    mark: str
    report: str | None
    useful: bool


class ScriptedUser(StateChannel):
    """A simulated user that follows a ``ScriptedUserSpec`` by the rules below. They are a public contract.

    **Opening.** The first message is the first wish's ``opening``, word for word. A message sent before it was
    delivered is answered with the opening and nothing else. No opening is ever said twice.

    **Questions.** Each known fact named in ``ask`` is told: its ``says``, or a standard sentence. An entry matches a
    fact's name, or its name or one of its ``words`` whatever the case and punctuation. Anything else is answered with
    "I don't know". Only when neither ``ask`` nor a proposal is given, the first 4000 characters of the text are
    searched: a fact is asked for when its name (underscores as spaces) or one of its ``words`` occurs as whole words
    in a sentence that ends in ``?`` or begins like a request (``questions.REQUESTS``). A statement is no question:
    the user neither confirms nor corrects what the agent states, and supplies nothing it wasn't asked for.

    **Proposals.** Only ``propose`` can be agreed to, never words. The current wish's ``declines`` are looked at
    first, then its ``accepts``; a field missing in the proposal doesn't match. Everything else is declined with a
    sentence that gives no hint. A yes never ends the talk. A text that talks about doing something without proposing
    it is answered with the wish for a concrete proposal.

    **Reports.** ``done``, ``refused`` and ``handed_over`` tell the outcome. The user can't see the database and
    believes them. If the outcome is among the current wish's ``settled_by``, the next wish is opened; after the last
    one the user says thanks and the status is ``finished``. A report in a message that also proposes something is not
    counted. The status is the only sign of the end: no word or token of either side means anything.

    **Change of mind.** While the wish that ``turn`` names is the current one: ``facts_given`` happens in the first
    reply that tells a fact, ``first_proposal`` instead of answering the first proposal, which is not accepted. The
    new wish's opening is said and the new wish replaces the old; a proposal or report in the same message is not
    counted.

    **Patience.** A message costs one unless it carries something new: a known fact not told before, a proposal not
    made before for this wish, or a report not made before for this wish. After ``patience`` distinct declined
    proposals for one wish (or 16 distinct accepted ones) further ones cost too, since guessing is not free. With the
    last of its patience the user leaves: it says so once, answers nothing else, and the status is ``left``. An agent
    that only says goodbye is thus left after ``patience`` messages.

    **After the end** every message gets the same sentence and changes nothing. More than two such messages, and
    ``overstayed`` is true: the environment then ends the episode with reason ``user_stop``.

    Persona, openings to come, untold facts and the terms of a wish are never said. The generator is used only to pick
    among phrasings that mean the same. Memory is bounded by the script; no text of the agent is kept.
    """

    name = "user"

    def __init__(self, rng: Rng) -> None:
        """Make a user without a script.

        Args:
            rng: The episode's generator, a channel of its own: it is restored, frozen and thawed beside this one.
        """
        self._rng = rng
        self._spec: ScriptedUserSpec | None = None
        self._spec_digest = ""
        self._questions = Questions({})
        self._talk = Talk(patience=0)
        self._digest = ""

    def restore(self, spec: ScriptedUserSpec) -> None:
        """Start a talk by a script, nothing said yet.

        Args:
            spec: The script.
        """
        if spec is not self._spec:
            self._spec, self._spec_digest, self._questions = spec, spec.digest, Questions(spec.facts)
        self._become(Talk(patience=spec.patience))

    @property
    def status(self) -> UserStatus:
        """``active``, ``finished`` or ``left``."""
        return self._talk.status

    @property
    def overstayed(self) -> bool:
        """Whether the agent has sent more than ``MESSAGES_AFTER_END`` messages after the end."""
        return self._talk.since_end > MESSAGES_AFTER_END

    def opening(self) -> str:
        """The first message, delivered once.

        Raises:
            EnvironmentFault: There is no script, or the opening was delivered before.
        """
        spec = self._script()
        if self._talk.opened:
            raise EnvironmentFault("the user's opening was asked for twice; keep the first one, or restore the user")
        self._become(replace(self._talk, opened=True))
        return spec.wishes[0].opening

    def hear(
        self,
        text: str,
        *,
        ask: Sequence[str] = (),
        propose: Mapping[str, Any] | None = None,
        report: str | None = None,
    ) -> Reply:
        """Answer one message of the agent. Nothing in it can make this raise.

        Args:
            text: The message. Searched for questions when ``ask`` is empty and nothing is proposed.
            ask: Names of facts asked for; the first 64 count.
            propose: Something to agree to, field by field.
            report: The outcome reached: ``done``, ``refused`` or ``handed_over``; anything else counts as no report.

        Raises:
            EnvironmentFault: There is no script.
        """
        spec, talk = self._script(), self._talk
        accepted = None if propose is None else False
        if talk.status != "active":
            self._become(replace(talk, since_end=min(talk.since_end + 1, MESSAGES_AFTER_END + 1)))
            return Reply(phrases.GONE, talk.status, accepted, ())
        if not talk.opened:
            return Reply(self.opening(), "active", accepted, ())
        heard = self._understand(text, ask, propose, report)
        if not heard.useful:
            talk = replace(talk, patience=talk.patience - 1)
            if talk.patience == 0:
                self._become(replace(talk, status="left"))
                return Reply(self._rng.choice(phrases.LEAVING), "left", accepted, ())
        said = [self._fact(spec, fact) for fact in heard.facts]
        if heard.unknown:
            said.append(self._rng.choice(phrases.UNKNOWN))
        talk = replace(talk, told=talk.with_told(heard.facts))
        if heard.turns:
            talk = replace(_next_wish(talk, talk.wish), turned=True)
            said.append(self._wish(talk).opening)
        elif heard.answer is not None:
            accepted = heard.answer.accepted
            talk = self._remember(talk, heard.answer, heard.mark)
            said.append(heard.answer.says or self._rng.choice(phrases.YES if accepted else phrases.NO))
            if heard.report is not None:
                said.append(self._rng.choice(phrases.ONE_THING))
        elif heard.report is not None:
            talk, words = self._settle(talk, heard.report)
            said.append(words)
        if not said:
            said.append(self._rng.choice(phrases.CONCRETE if heard.offers else phrases.WAITING))
        self._become(talk)
        return Reply("\n".join(said), talk.status, accepted, heard.facts)

    def _understand(
        self, text: str, ask: Sequence[str], propose: Mapping[str, Any] | None, report: str | None
    ) -> _Heard:
        spec, talk = self._script(), self._talk
        searched = not ask and propose is None
        asked = self._questions.in_text(text) if searched else self._questions.by_name(ask)
        known_report = report if report in get_args(Report) else None
        offers = searched and not asked.facts and known_report is None and makes_an_offer(text)
        turns = (
            spec.turn is not None
            and not talk.turned
            and talk.wish == spec.turn.wish
            and (bool(asked.facts) if spec.turn.after == "facts_given" else propose is not None)
        )
        # A question beside a report ("Anything else?") needs no answer of its own when it names no fact.
        unknown = asked.unknown and not offers and not (searched and known_report is not None)
        answered = None if propose is None else answer(self._wish(talk), propose)
        mark = "" if propose is None else fingerprint(propose)
        useful = (
            turns
            or any(talk.times_told(name) == 0 for name in asked.facts)
            or (answered is not None and self._remember(talk, answered, mark) != talk)
            or (answered is None and known_report is not None and known_report not in talk.reported)
        )
        return _Heard(asked.facts, unknown, offers, turns, answered, mark, known_report, useful)

    def _remember(self, talk: Talk, answered: Answer, mark: str) -> Talk:
        """The talk with a proposal noted; the same talk when it was made before or no more are remembered."""
        earlier = talk.accepted if answered.accepted else talk.declined
        room = REMEMBERED_YES if answered.accepted else self._script().patience
        if mark in earlier or len(earlier) >= room:
            return talk
        noted = (*earlier, mark)
        return replace(talk, accepted=noted) if answered.accepted else replace(talk, declined=noted)

    def _settle(self, talk: Talk, report: str) -> tuple[Talk, str]:
        if report not in self._wish(talk).settled_by:
            if report not in talk.reported:
                talk = replace(talk, reported=(*talk.reported, report))
            return talk, self._rng.choice(phrases.UNSETTLED)
        if talk.wish + 1 == len(self._script().wishes):
            return replace(talk, status="finished"), self._rng.choice(phrases.THANKS)
        talk = _next_wish(talk, talk.wish + 1)
        return talk, self._wish(talk).opening

    def _wish(self, talk: Talk) -> Wish:
        spec = self._script()
        if spec.turn is not None and talk.turned and talk.wish == spec.turn.wish:
            return spec.turn.becomes
        return spec.wishes[talk.wish]

    def _fact(self, spec: ScriptedUserSpec, name: str) -> str:
        fact = spec.facts[name]
        return fact.says or self._rng.choice(phrases.FACT).format(name=name.replace("_", " "), value=fact.value)

    def _script(self) -> ScriptedUserSpec:
        if self._spec is None:
            raise EnvironmentFault("the user has no script; call restore(spec) first")
        return self._spec

    def _become(self, talk: Talk) -> None:
        self._talk, self._digest = talk, ""

    def digest(self) -> str:
        """Digest of the script and everything remembered."""
        self._script()
        if not self._digest:
            self._digest = digest(self.freeze())
        return self._digest

    def changes(self) -> list[Change]:
        """Always empty: a talk has no rows. It is recorded in the event log."""
        return []

    def freeze(self) -> dict[str, Any]:
        """Everything remembered, with the script's digest; the generator is frozen on its own."""
        self._script()
        return {"script": self._spec_digest, "talk": self._talk.as_json()}

    def thaw(self, frozen: Any) -> None:
        """Go back to a frozen point of a talk by the same script.

        Raises:
            ValueError: The point belongs to another script, or isn't one.
            EnvironmentFault: There is no script.
        """
        self._script()
        if not isinstance(frozen, Mapping) or set(frozen) != {"script", "talk"}:
            raise ValueError(f"{type(frozen).__name__} value is no frozen user; give what freeze() returned")
        if frozen["script"] != self._spec_digest:
            raise ValueError(
                f"the frozen talk follows script {frozen['script']!r}, this user follows {self._spec_digest!r}; "
                "restore that script first"
            )
        self._become(Talk.from_json(frozen["talk"]))

    def probe(self) -> None:
        """Check that there is a script to play.

        Raises:
            EnvironmentFault: There is none.
        """
        self._script()

    def close(self) -> None:
        """Forget the script and the talk. Calling it twice is harmless."""
        self._spec = None
        self._become(Talk(patience=0))


def _next_wish(talk: Talk, index: int) -> Talk:
    """The talk with another wish at hand; what was proposed and reported for the old one is forgotten."""
    return replace(talk, wish=index, accepted=(), declined=(), reported=())
