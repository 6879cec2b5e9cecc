"""The ledger of a sealed suite: how often it was opened, for which campaigns. It only grows, and shows when it didn't.

Each line names the digest of the line before it, so an edited, removed or reordered line breaks the chain. The sealed
file itself names the number and digest of the last line, so a cut-off end shows too. Entries carry a signature that
only the passphrase's holder can make and check.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from agent_envs.campaign.lines import Lines, ResultsError
from agent_envs.campaign.sealing import Keys, SuiteError
from agent_envs.contract import Model

SUFFIX = ".ledger.jsonl"


class Entry(Model):
    """One line of the ledger."""

    number: int = Field(ge=0)
    """0 is the locking; each opening adds one."""
    kind: Literal["locked", "opened"]
    previous: str
    """Digest of the line before; empty in the first."""
    commitment: str
    """Public digest of the task set and its salt."""
    file: str
    """Digest of the sealed file's unchanging part."""
    campaign: str = ""
    """Digest of the lock of the campaign it was opened for."""
    name: str = ""
    """That campaign's name."""
    date: str = ""
    """As given by whoever did it; nothing here reads a clock."""
    seal: str = ""
    """Signature over all other fields."""

    def signed(self, keys: Keys) -> "Entry":
        """The entry with its signature."""
        return self.model_copy(update={"seal": keys.seal(self._unsigned())})

    def is_signed(self, keys: Keys) -> bool:
        """Whether the signature is right."""
        return keys.sealed(self._unsigned(), self.seal)

    def _unsigned(self) -> dict[str, object]:
        return {name: value for name, value in self.as_json().items() if name != "seal"}


class Head(Model):
    """The ledger's end as the sealed file knows it."""

    entries: int = Field(ge=1)
    last: str
    """Digest of the last entry."""
    seal: str = ""
    """Signature over both."""

    @classmethod
    def of(cls, entries: Sequence[Entry], keys: Keys) -> "Head":
        """The head of a ledger, signed."""
        head = cls(entries=len(entries), last=entries[-1].digest)
        return head.model_copy(update={"seal": keys.seal([head.entries, head.last])})

    def is_signed(self, keys: Keys) -> bool:
        """Whether the signature is right."""
        return keys.sealed([self.entries, self.last], self.seal)


def ledger_of(path: Path) -> Lines[Entry]:
    """The ledger that stands beside a sealed file."""
    return Lines(path.with_name(path.name + SUFFIX), Entry, "the opening that it was to record did not happen")


def read_entries(path: Path) -> list[Entry]:
    """Every entry of a sealed file's ledger.

    Raises:
        SuiteError: It is missing, or a line isn't an entry.
    """
    lines = ledger_of(path)
    try:
        entries = list(lines)
    except ResultsError as error:
        raise SuiteError(f"the ledger was tampered with or damaged: {error}") from None
    if not entries:
        raise SuiteError(
            f"{lines.path}: the ledger is missing or empty; without it nobody knows how often it was opened"
        )
    return entries


def chain_faults(entries: Sequence[Entry]) -> list[str]:
    """What is wrong with the entries among themselves; empty when nothing is."""
    faults: list[str] = []
    before = ""
    for number, entry in enumerate(entries):
        if entry.number != number:
            faults.append(f"line {number + 1} is entry {entry.number}: a line was removed, added or moved")
        if entry.previous != before:
            faults.append(f"line {number + 1} doesn't follow from the line before: one of them was changed or moved")
        if (entry.kind == "locked") != (number == 0):
            faults.append(
                f"line {number + 1} is of the kind {entry.kind!r}; the first line, and only it, is the locking"
            )
        if (entry.commitment, entry.file) != (entries[0].commitment, entries[0].file):
            faults.append(f"line {number + 1} is about another suite than the first line")
        before = entry.digest
    return faults


def head_faults(entries: Sequence[Entry], head: Head) -> list[str]:
    """What is wrong between the ledger and the head that the sealed file states.

    A ledger that goes on after the head is right: the program was killed before it could note the new end.
    """
    if len(entries) < head.entries:
        return [f"the ledger has {len(entries)} lines, the sealed file knows of {head.entries}: its end was cut off"]
    if entries[head.entries - 1].digest != head.last:
        return [f"line {head.entries} isn't the one that the sealed file knows: the ledger was rewritten"]
    return []
