"""What the mutation test costs: one mutant made, played and judged twice, over playing its calls alone."""

from __future__ import annotations

import itertools
import time

from agent_envs.audit import mutation
from agent_envs.audit.mutation.equivalence import judge
from agent_envs.audit.mutation.mutant import Mutant
from agent_envs.audit.mutation.play import play
from agent_envs.audit.subject import Subject, make
from agent_envs.envs.refund.env import SUITE, RefundEnv
from benchmarks._timing import Result, compare

ENV = "agenteval/refund-v1"
TASK = "refund/boots-for-samuel"
BUDGET = 2.5
"""Playing is most of the work; making mutants, proving start and end, and both judgements may add as much again."""


def run(smoke: bool) -> list[Result]:
    """Compare judged mutants with bare episodes of as many steps."""
    with make(ENV) as env, RefundEnv(task=TASK) as core:
        trial = mutation.Trial(env, TASK, 0)
        scripts = itertools.cycle([mutant for _, mutant in trial._scripts()])
        calls = next(iter(trial.scripts.values()))
        actions = [{"tool": call.tool, "arguments": call.arguments} for call in calls]

        def judged() -> None:
            mutant: Mutant = next(scripts)
            played = play(env, trial.task, mutant)
            judge(trial.family, trial.task, played.evidence, trial.right)

        def bare() -> None:
            core.reset(seed=0)
            for action in actions:
                core.step(action)

        one = compare(
            "audit: one mutant played and judged",
            judged,
            bare,
            budget=BUDGET,
            rounds=2 if smoke else 15,
            number=5 if smoke else 40,
            note="floor: the reference's calls in the bare environment, not judged",
        )
    chosen = Subject(ENV, SUITE.eval_ids[:1] if smoke else SUITE.eval_ids[::12])
    sample = 5 if smoke else None
    return [one, *_whole(chosen, sample)]


def _whole(chosen: Subject, sample: int | None) -> list[Result]:
    """Seconds a mutant of the whole test in one process, with the environment's start."""
    started = time.perf_counter()
    result = mutation.check(chosen, sample=sample)
    spent = time.perf_counter() - started
    tried = result.total(lambda task: task.mutants + task.variations)
    note = f"{tried / spent:.0f} mutants a second over {len(result.tasks)} tasks, one process"
    return [Result(name="audit: mutation test, a mutant", value=spent / tried, note=note)]
