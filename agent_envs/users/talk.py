"""What is remembered of a talk, and the answer to one message."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

UserStatus: TypeAlias = Literal["active", "finished", "left"]
"""``active``: listening; ``finished``: every wish is settled; ``left``: patience ran out."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The user's answer to one message."""

    says: str
    """The user's words, never empty. They mean nothing to the environment; the other fields do."""
    status: UserStatus
    """The user's status after this reply."""
    accepted: bool | None
    """Whether the message's proposal is agreed to; None when nothing was proposed."""
    told: tuple[str, ...]
    """Names of the facts given in this reply."""

    def as_json(self) -> dict[str, Any]:
        """The reply as plain JSON data."""
        return {"says": self.says, "status": self.status, "accepted": self.accepted, "told": list(self.told)}


@dataclass(frozen=True, slots=True)
class Talk:
    """Everything a user remembers. No text of the agent is kept, so its size is bounded by the script alone."""

    patience: int
    """Useless messages left; the one that takes the last makes the user leave."""
    status: UserStatus = "active"
    """Whether the user is listening."""
    opened: bool = False
    """Whether the opening was delivered."""
    wish: int = 0
    """Index of the current wish."""
    turned: bool = False
    """Whether the change of mind has happened."""
    told: tuple[tuple[str, int], ...] = ()
    """Facts given and how often, by name."""
    accepted: tuple[str, ...] = ()
    """Fingerprints of proposals for the current wish that got a yes, in order."""
    declined: tuple[str, ...] = ()
    """Fingerprints of proposals for the current wish that got a no, in order."""
    reported: tuple[str, ...] = ()
    """Outcomes reported for the current wish that didn't settle it."""
    since_end: int = 0
    """Messages sent after the end; counting stops where nothing depends on it any more."""

    def times_told(self, name: str) -> int:
        """How often a fact was given."""
        return dict(self.told).get(name, 0)

    def with_told(self, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
        """The ``told`` field after these facts were given once more."""
        counts = dict(self.told)
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        return tuple(sorted(counts.items()))

    def as_json(self) -> dict[str, Any]:
        """The talk as plain JSON data."""
        plain = {field.name: getattr(self, field.name) for field in _FIELDS}  # asdict copies deeply, which is slow
        return plain | {
            "told": dict(self.told),
            "accepted": list(self.accepted),
            "declined": list(self.declined),
            "reported": list(self.reported),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Talk":
        """Read a talk back.

        Raises:
            ValueError: The value isn't a talk.
        """
        try:
            talk = cls(
                **{
                    **data,
                    "told": tuple(sorted((str(name), int(count)) for name, count in data["told"].items())),
                    **{name: tuple(map(str, data[name])) for name in ("accepted", "declined", "reported")},
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{data!r} is no frozen talk ({error}); give what freeze() returned") from None
        if talk.status not in get_args(UserStatus):
            raise ValueError(f"a frozen talk has the unknown status {talk.status!r}; give what freeze() returned")
        return talk


_FIELDS = fields(Talk)
