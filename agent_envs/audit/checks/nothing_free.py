"""Nothing free: policies that do no honest work earn 0.0 on every task."""

from collections.abc import Callable, Iterator

from agent_envs.audit.finding import Finding, finding
from agent_envs.audit.playing import play
from agent_envs.audit.subject import Subject
from agent_envs.baselines.cheap import Constant, HandOver, Liar, Noop, RandomCalls, RandomInvalid, Refuser
from agent_envs.baselines.policy import Policy
from agent_envs.contract import Status

NAME = "nothing free"
SURE: tuple[Callable[[], Policy], ...] = (Noop, Refuser, HandOver, Liar, Constant)
"""Policies that do the same whatever the seed; played once."""
DRAWN: tuple[Callable[[], Policy], ...] = (RandomCalls, RandomInvalid)
"""Policies that draw; played with several seeds."""


def check_nothing_free(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Play each cheap policy; a pass, or a verdict that stays open, is a fault.

    Doing nothing must fail by the outcome itself: where only a constraint stands between a no-op and success, the task
    rewards the absence of evidence.
    """
    earned: dict[str, dict[str, int]] = {}
    faults: list[str] = []
    plays = [(make, subject.seed) for make in SURE]
    plays += [(make, subject.seed + number) for make in DRAWN for number in range(subject.repetitions)]
    with subject.make() as env:
        for make, seed in plays:
            policy = make()
            played = play(env, policy, task_id, seed)
            row = earned.setdefault(policy.name, {"runs": 0, "passed": 0})
            row["runs"] += 1
            row["passed"] += played.status is Status.PASS
            if played.broken:
                faults.append(f"{policy.name!r} with seed {seed} broke the episode: {played.broken}")
            elif played.status is not Status.FAIL:
                faults.append(f"{policy.name!r} with seed {seed} gets the verdict {played.status.value!r}, not 'fail'")
            verdict = played.run.verdict
            if policy.name == Noop.name and verdict is not None and verdict.G is not Status.FAIL:
                faults.append("doing nothing leaves the right outcome: success needs positive evidence in the state")
    kind = subject.task(task_id).slice_labels.get("kind", "")
    good = f"{len(plays)} runs of {len(earned)} cheap policies earn 0.0"
    yield finding(NAME, task_id, faults, good, kind=kind, earned=earned)
