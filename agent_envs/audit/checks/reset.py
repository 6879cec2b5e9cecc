"""Reset: after whatever came before, an episode is the one a fresh process would have played.

What is compared is every byte a policy is shown in a random and in a reference episode, and every channel's digest. So
a family that observes something it declared no channel for is caught as well: the random policy acts on what it sees,
and any difference grows.
"""

from collections.abc import Iterator

import gymnasium

from agent_envs.audit.finding import Finding, finding
from agent_envs.audit.playing import Actions, books_differ, play, play_script
from agent_envs.audit.probe import Job, difference, elsewhere, killed, summary_digest, transcript
from agent_envs.audit.subject import Subject, core_of
from agent_envs.audit.tampering import TAMPERS, Stage
from agent_envs.baselines.cheap import RandomCalls
from agent_envs.contract import digest

NAME = "reset"
_TASKS = {1: 2, 3: 6}


def jobs_of(subject: Subject) -> list[Job]:
    """A few tasks, drawn by the audit's seed, each with a seed of its own."""
    drawn = sorted(subject.task_ids, key=lambda task_id: digest(["reset", subject.seed, task_id]))
    most = _TASKS.get(subject.repetitions, 2 * subject.repetitions)
    return [Job(task_id, subject.seed + number) for number, task_id in enumerate(drawn[:most])]


def check_reset(subject: Subject) -> Iterator[Finding]:
    """Compare fresh processes with each other, with a used environment, and with one that starts after a kill -9."""
    jobs = jobs_of(subject)
    forward, backward = elsewhere(subject.env_id, jobs), elsewhere(subject.env_id, jobs[::-1])
    fresh, reverse = forward.result(), backward.result()
    faults = []

    def compare(what: str, found: dict[str, list[object]]) -> None:
        if where := difference(fresh, found):
            faults.append(f"{what} differs from a fresh process: {where}")

    compare("playing the same episodes in reverse order", reverse)
    with subject.make() as env:
        _soil(subject, env)
        compare("an environment after dirty episodes", transcript(subject.env_id, jobs, env))
        _abandon(env, jobs[-1])
        compare("an environment after an abandoned episode", transcript(subject.env_id, jobs[:1], env) | _rest(fresh))
    killed(subject.env_id, jobs[0])
    compare("a process after a kill -9 in mid-episode", elsewhere(subject.env_id, jobs[:1]).result() | _rest(fresh))
    good = f"{len(jobs)} tasks look alike in fresh, reversed, used and restarted environments"
    yield finding(NAME, "", faults, good, jobs=[job.name for job in jobs], transcript=summary_digest(fresh))


def check_books(subject: Subject, task_id: str) -> Iterator[Finding]:
    """Compare the incremental state hash with one made from every stored row, at the start and after dirty episodes."""
    faults = []
    with subject.make() as env:
        core = core_of(env)
        env.reset(seed=subject.seed, options={"task": task_id})
        start = core.episode.state_hash
        looked = [("at the start", books_differ(core))]
        reference = subject.references(task_id).references[0]
        play_script(env, reference, task_id, subject.seed)
        looked.append(("after the reference", books_differ(core)))
        for number in range(subject.repetitions):
            play(env, RandomCalls(), task_id, subject.seed + number)
            looked.append((f"after random calls with seed {subject.seed + number}", books_differ(core)))
        env.reset(seed=subject.seed, options={"task": task_id})
        looked.append(("after the next reset", books_differ(core)))
        faults = [f"{when}: {what}" for when, what in looked if what]
        if core.episode.state_hash != start:
            faults.append(f"the same reset gives state {core.episode.state_hash[:16]} after {start[:16]}")
    yield finding("books", task_id, faults, f"{len(looked)} full counts agree with the incremental hash", start=start)


def _soil(subject: Subject, env: gymnasium.Env[object, object]) -> None:
    """Dirty episodes: random calls, and every hostile run."""
    for number, task_id in enumerate(subject.task_ids[: 2 * subject.repetitions]):
        play(env, RandomCalls(), task_id, subject.seed + 1000 + number)
    stage = Stage.of(subject, subject.task_ids[0])
    for tamper in TAMPERS:
        play(env, Actions(tamper.actions(stage), tamper.name), subject.task_ids[0], subject.seed)


def _abandon(env: gymnasium.Env[object, object], job: Job) -> None:
    """Leave an episode in the middle."""
    env.reset(seed=job.seed, options={"task": job.task_id})
    core = core_of(env)
    for _ in range(5):
        if core.episode.terminal is None:
            env.step(env.action_space.sample())


def _rest(fresh: dict[str, list[object]]) -> dict[str, list[object]]:
    """Everything but the first job, which alone is played again."""
    return dict(list(fresh.items())[1:])
