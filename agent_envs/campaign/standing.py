"""How a campaign stands: what is planned, done, invalid and left, and whether its numbers may be used."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent_envs.campaign.lock import Lock, read_lock
from agent_envs.campaign.manifest import Manifest
from agent_envs.campaign.store import CampaignStore, Progress

State = Literal["planned", "running", "stopped", "interrupted", "invalid", "finished"]
EXIT_STATUS: dict[State, int] = {
    "finished": 0,
    "planned": 1,
    "running": 1,
    "stopped": 1,
    "invalid": 1,
    "interrupted": 130,
}
"""Exit status of the command line for each state: only a finished, valid campaign is a success."""


@dataclass(frozen=True)
class Standing:
    """How a campaign stands."""

    state: State
    """``planned``: not begun. ``stopped``: by a budget, a failed check, an error or a kill.
    ``invalid``: too much was lost for any headline."""
    reason: str
    """Why it stopped or is invalid, for people."""
    planned: int
    done: int
    """Attempts that have their record."""
    invalid: int
    """Of those, the ones that don't count."""
    classes: Counter[str] = field(default_factory=Counter)
    """Done attempts by outcome class."""
    tries: int = 0
    """Tries that were ever made, those before an accepted change too."""
    cost: float = 0.0
    """US dollars that are known to be spent."""
    cost_unknown: int = 0
    """Tries whose cost is unknown."""
    seconds: float = 0.0
    """Seconds that runners were at work."""
    eta: float | None = None
    """Seconds until all is done at the pace so far; None when nothing is known."""

    @property
    def remaining(self) -> int:
        """Planned attempts without a record."""
        return self.planned - self.done

    @property
    def exit_status(self) -> int:
        """What the command line returns."""
        return EXIT_STATUS[self.state]


def void(manifest: Manifest, progress: Progress, planned: int) -> str:
    """Why a campaign is invalid: more was lost than its manifest allows; empty when it isn't.

    Shares are judged once there are ``invalid_runs.after`` tries, and when all is done.
    """
    done = len(progress.settled)
    if progress.tries < manifest.invalid_runs.after and done < planned:
        return ""
    share = progress.invalid_tries / max(progress.tries, 1)
    if share > (most := manifest.invalid_runs.maximum_share):
        lost = f"{progress.invalid_tries} of {progress.tries} tries are invalid"
        return f"{lost}, more than the declared share of {most:g}"
    if done and progress.unclassified / done > (most := manifest.unclassified_share):
        lost = f"{progress.unclassified} of {done} attempts ended in a way that nobody knows"
        return f"{lost}, more than the declared share of {most:g}"
    return ""


def standing(folder: Path) -> Standing:
    """Read how a campaign stands; also while it runs.

    Raises:
        AgentEvalError: The folder is no campaign, or a record is damaged.
    """
    lock, store = read_lock(folder), CampaignStore(folder)
    progress = store.progress()
    last = progress.last
    state: State = "planned"
    reason = ""
    if runner := store.runner_at_work():
        state, reason = "running", runner
    elif last is not None and last.kind == "stop":
        state, reason = last.data.get("state", "stopped"), last.detail
    elif last is not None:
        state, reason = "stopped", "the runner was killed; 'agenteval campaign resume' goes on"
    return stand(lock, progress, state, reason)


def stand(lock: Lock, progress: Progress, state: State, reason: str) -> Standing:
    """The standing that progress and the runner's state amount to; what the records say goes before the state."""
    planned, done = len(lock.planned), len(progress.settled)
    if why := void(lock.manifest, progress, planned):
        state, reason = ("running" if state == "running" else "invalid"), why
    elif done >= planned and state != "running":
        state, reason = "finished", ""
    eta = progress.seconds / done * (planned - done) if done and progress.seconds else None
    return Standing(
        state=state,
        reason=reason,
        planned=planned,
        done=done,
        invalid=progress.invalid,
        classes=progress.classes,
        tries=progress.ever,
        cost=progress.cost,
        cost_unknown=progress.cost_unknown,
        seconds=progress.seconds,
        eta=eta,
    )
