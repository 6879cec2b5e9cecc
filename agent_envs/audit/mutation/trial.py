"""The mutation test of one task: make the mutants, play them, and put the grader's word beside the second opinion."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium

from agent_envs.audit.mutation.equivalence import Judgement, difference, judge, outcome
from agent_envs.audit.mutation.mutant import Calls, Family, Mutant, MutationError, family_of
from agent_envs.audit.mutation.operators import mutants, other_ids
from agent_envs.audit.mutation.play import Played, concrete, play
from agent_envs.audit.mutation.result import Direction, Disagreement, Equivalent, Kind, TaskMutation, counted
from agent_envs.audit.mutation.states import state_mutants
from agent_envs.audit.mutation.variations import variations
from agent_envs.contract import AgentTask, Call, Change, Status, Verdict, canonical_json, digest
from agent_envs.episode.env import AgentEnv
from agent_envs.evaluator import evaluate
from agent_envs.evaluator.changes import describe


class Trial:
    """One task under test, in one environment.

    Args:
        env: An environment in its standard dress.
        task_id: The task.
        seed: Seed of the references' episodes, and of the sample.

    Raises:
        MutationError: A reference doesn't pass, or breaks a rule by the family's own account.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], task_id: str, seed: int) -> None:
        """Play the references."""
        self.env, self.seed = env, seed
        self.core: AgentEnv = env.unwrapped  # type: ignore[assignment]
        self.task: AgentTask = self.core.suite.task(task_id)
        self.family: Family = family_of(self.core)
        self.scripts: dict[str, Calls] = {}
        self.played: dict[str, Played] = {}
        self.right: dict[str, Any] = {}
        for run in self.core.suite.references(task_id).references:
            played = play(env, self.task, Mutant("reference", run.name, run.calls, seed))
            if played.verdict.Y is not Status.PASS:
                raise MutationError(f"{task_id}: {run.name} doesn't pass: {'; '.join(_failed(played.verdict))[:600]}")
            if broken := self.family.breaches(self.task, played.evidence.events):
                raise MutationError(f"{task_id}: {run.name} passes, but breaks rules: {'; '.join(broken)[:600]}")
            self.scripts[run.name], self.played[run.name] = run.calls, played
            self.right[run.name] = outcome(self.family, self.task, played.evidence)

    def run(self, sample: int | None = None) -> TaskMutation:
        """Try everything, or a sample of ``sample`` mutants, ``sample`` variations and ``sample`` states.

        The sample is drawn by hash from the trial's seed: the same wherever and in whatever order tasks are tested.
        """
        operators: list[str] = []
        equivalents: list[Equivalent] = []
        disagreements: list[Disagreement] = []
        count = dict.fromkeys(("mutants", "killed", "equivalent", "variations", "passed", "withdrawn"), 0)

        def settle(kind: Kind, operator: str, what: str, accepted: bool, judgement: Judgement) -> Direction | None:
            operators.append(operator)
            count["variations" if kind == "variation" else "mutants"] += 1
            if accepted != judgement.lawful:
                return "false_accept" if accepted else "false_reject"
            if kind == "variation":
                count["passed" if accepted else "withdrawn"] += 1
                return None
            count["equivalent" if accepted else "killed"] += 1
            if accepted:
                equivalents.append(Equivalent(operator=operator, what=what, proof=judgement.proof))
            return None

        scripts = list(self._scripts())
        drawn = [
            self._drawn([item for item in scripts if item[1].lawful is lawful], sample) for lawful in (False, True)
        ]
        for name, mutant in (*drawn[0], *drawn[1]):
            played = play(self.env, self.task, mutant)
            judgement = judge(self.family, self.task, played.evidence, self.right)
            kind: Kind = "variation" if mutant.lawful else "mutant"
            accepted = played.verdict.Y is Status.PASS
            if direction := settle(kind, mutant.operator, mutant.what, accepted, judgement):
                against = self.scripts[name] if mutant.lawful else concrete(self.scripts[name], self.played[name].saved)
                script = _diff(map(_call, against), map(_call, mutant.calls))
                disagreements.append(
                    self._disagreement(kind, direction, mutant.operator, mutant.what, played.verdict, judgement, script)
                )
        right = next(iter(self.played.values())).evidence.changes
        for operator, what, changes, free in self._drawn(list(self._states()), sample):
            verdict, judgement = self._judge_state(changes, free)
            if direction := settle("state", operator, what, verdict.Y is Status.PASS, judgement):
                script = _diff(map(describe, right), map(describe, changes))
                disagreements.append(self._disagreement("state", direction, operator, what, verdict, judgement, script))
        return TaskMutation(
            task_id=self.task.task_id,
            mutants=count["mutants"],
            killed=count["killed"],
            equivalent=count["equivalent"],
            variations=count["variations"],
            passed=count["passed"],
            withdrawn=count["withdrawn"],
            by_operator=counted(operators),
            equivalents=tuple(equivalents),
            disagreements=tuple(disagreements),
        )

    def _scripts(self) -> Iterator[tuple[str, Mutant]]:
        """Every mutant and every variation, each with the name of the reference it was made from."""
        tools = {tool.name: tool for tool in self.core.tools if tool.name in self.task.available_tools}
        first = next(iter(self.scripts))
        events = self.played[first].evidence.events
        self.env.reset(seed=self.seed, options={"task": self.task.task_id})
        others = other_ids(self.core.world, self.task, events, self.family)
        script = concrete(self.scripts[first], self.played[first].saved)
        for operator, what, calls in mutants(self.task, script, tools, self.family, others):
            yield first, Mutant(operator, what, calls, self.seed)
        for name, calls in self.scripts.items():
            for variation in variations(self.task, calls, tools, self.family, self.seed):
                yield name, variation

    def _states(self) -> Iterator[tuple[str, str, tuple[Change, ...], bool]]:
        self.env.reset(seed=self.seed, options={"task": self.task.task_id})
        database = self.core.world.database
        if database is not None:
            first = next(iter(self.played.values()))
            yield from state_mutants(database, first.evidence.changes, self.family)

    def _judge_state(self, changes: tuple[Change, ...], free: bool) -> tuple[Verdict, Judgement]:
        evidence = next(iter(self.played.values())).evidence.model_copy(update={"changes": changes})
        verdict = evaluate(self.task, evidence)
        if free:
            return verdict, Judgement(True, {"declared free": True})
        reached = outcome(self.family, self.task, evidence)
        for name, form in self.right.items():
            if form == reached:
                return verdict, Judgement(True, {"equals": name, "outcome": digest(reached)})
        return verdict, Judgement(False, difference(next(iter(self.right.values())), reached))

    def _drawn(self, items: list[Any], sample: int | None) -> list[Any]:
        if sample is None or sample >= len(items):
            return items
        numbers = sorted(range(len(items)), key=lambda number: digest([self.seed, self.task.task_id, number]))
        return [items[number] for number in sorted(numbers[:sample])]

    def _disagreement(
        self,
        kind: Kind,
        direction: Direction,
        operator: str,
        what: str,
        verdict: Verdict,
        judgement: Judgement,
        script: tuple[str, ...],
    ) -> Disagreement:
        return Disagreement(
            task_id=self.task.task_id,
            direction=direction,
            kind=kind,
            operator=operator,
            what=what,
            verdict=verdict.Y.value,
            failed=tuple(_failed(verdict)),
            proof=judgement.proof,
            script=script,
        )


def _failed(verdict: Verdict) -> list[str]:
    results = (*verdict.assertions, *verdict.constraints)
    return [f"{item.name}: {item.explanation}" for item in results if item.status is not Status.PASS]


def _call(call: Call) -> str:
    return f"{call.tool} {canonical_json(call.arguments).decode()}"


def _diff(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    """The lines that differ."""
    lines = difflib.unified_diff(list(before), list(after), lineterm="", n=0)
    return tuple(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))
