"""Evaluation: the reward is the verdict, made from frozen evidence when the episode has ended."""

import time
from typing import Any, cast

import gymnasium

from agent_envs.contract import (
    AgentRun,
    Evidence,
    OutcomeClass,
    Status,
    SystemSpec,
    Terminal,
    Verdict,
    classify,
)
from agent_envs.episode.env import AgentEnv, Observation
from agent_envs.episode.faults import Fault, boundary
from agent_envs.episode.record import Episode
from agent_envs.evaluator import Monitor, evaluate
from agent_envs.wrappers.system import environment_sections

_GRADER = boundary("grade", "grader", "grader_fault")


class Evaluation(gymnasium.Wrapper[Observation, Any, Observation, Any], gymnasium.utils.RecordConstructorArgs):
    """Judges each episode at its end: reward 1.0 for a success, 0.0 for anything else.

    Adds to ``info`` ``is_success`` (bool) and ``verdict`` (``""`` while the episode runs, then ``pass``, ``fail`` or
    ``undetermined``). A breached constraint with ``on_breach: terminate`` ends the episode at once.

    Args:
        env: An environment inside `Recording`.
        recheck: Share of verdicts, chosen by the evidence's digest, that are made twice and compared; a disagreement
            is a grader failure.

    Attributes:
        verdict: Verdict of the episode that has just ended; None while it runs or when nothing could be judged.
        run: Its `AgentRun`; raises RuntimeError while it runs.
    """

    def __init__(self, env: gymnasium.Env[Observation, Any], recheck: float = 0.05) -> None:
        """Judge ``env``."""
        if not 0.0 <= recheck <= 1.0:
            raise ValueError(f"recheck={recheck!r}: a share in [0, 1] is needed")
        gymnasium.utils.RecordConstructorArgs.__init__(self, recheck=recheck)
        gymnasium.Wrapper.__init__(self, env)
        self._core = cast(AgentEnv, env.unwrapped)
        self.recheck = recheck
        self._episode: Episode | None = None
        """The episode that is followed; not the environment's own once that was forked or restored."""
        self._monitors: list[Monitor] = []
        self.verdict: Verdict | None = None
        self._run: AgentRun | None = None
        self._terminal: Terminal | None = None
        self._system: SystemSpec | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._follow()
        return observation, info | {"is_success": False, "verdict": ""}

    def _follow(self) -> None:
        """Turn to the environment's current episode, and watch its terminating constraints from its beginning."""
        core = self._core
        self._episode = core.episode
        self.verdict = self._run = self._terminal = None
        constraints = core.episode.task.constraints
        self._monitors = [Monitor(item) for item in constraints if item.on_breach == "terminate"]
        for entry in core.episode.log.entries:
            self._watch(entry)
        core.watch = self._watch if self._monitors else None

    def _watch(self, entry: dict[str, Any]) -> Terminal | None:
        ending = None
        try:
            with _GRADER:
                for monitor in self._monitors:
                    monitor.feed(entry)
                    if monitor.breached and ending is None:
                        detail = monitor.result().explanation
                        ending = Terminal(phase="act", origin="agent", kind="forbidden_action", detail=detail)
        except Fault as fault:
            return fault.terminal
        return ending

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        """Step, and judge when the episode has ended."""
        if self._core._episode is not self._episode:
            self._follow()
        observation, _, terminated, truncated, info = self.env.step(action)
        reward = 0.0
        info |= {"is_success": False, "verdict": ""}
        if terminated or truncated:
            terminal = self._judge()
            judged = None if self.verdict is None else self.verdict.Y
            # A right state makes no success of an ending that is nobody's score, such as a harness failure.
            success = classify(terminal, judged)[0] is OutcomeClass.SUCCESS
            reward = float(success)
            info |= {"is_success": success, "verdict": (judged or Status.UNDETERMINED).value}
        return observation, reward, terminated, truncated, info

    def stop(self, kind: str = "stopped", detail: str = "", origin: str = "agent") -> AgentRun:
        """End the episode from outside, when the policy gives up or fails, and judge it.

        Returns:
            The record, as ``run``.
        """
        self._core.episode.end(Terminal(phase="act", origin=origin, kind=kind, detail=detail))  # type: ignore[arg-type]
        return self.run

    def _judge(self) -> Terminal:
        evidence: Evidence = self.env.get_wrapper_attr("freeze")()
        task = self._core.episode.task
        self._terminal = evidence.terminal
        try:
            with _GRADER:
                self.verdict = evaluate(task, evidence)
                again = int(evidence.digest[:8], 16) < self.recheck * 2**32
                if again and evaluate(task, evidence) != self.verdict:
                    detail = "two evaluations of the same evidence differ"
                    raise Fault(detail, Terminal(phase="grade", origin="grader", kind="disagreement", detail=detail))
        except Fault as fault:
            self.verdict, self._terminal = None, fault.terminal
        return self._terminal

    @property
    def run(self) -> AgentRun:
        """The record of the episode that has just ended; policy, attempt and place are the runner's to fill in.

        Raises:
            RuntimeError: The episode hasn't ended.
        """
        episode = self._core._episode
        if episode is not None:
            if episode is not self._episode:
                self._follow()
            if self._terminal is None and episode.terminal is not None:
                self._judge()
        if self._terminal is None:
            raise RuntimeError("the episode hasn't ended; its record is made at the end (or by stop())")
        if self._run is None:
            self._run = self._make_run(self.env.get_wrapper_attr("freeze")(), self._terminal)
        return self._run

    def _make_run(self, evidence: Evidence, terminal: Terminal) -> AgentRun:
        core = self._core
        outcome_class, row = classify(terminal, None if self.verdict is None else self.verdict.Y)
        return AgentRun(
            run_id=evidence.digest[:32],
            env_id=core.spec.id if core.spec is not None else type(core).__name__,
            task_id=evidence.task_id,
            task_revision=evidence.task_revision,
            task_digest=evidence.task_digest,
            policy="",
            oracle=False,
            system_spec_hash=self.system().digest,
            attempt=0,
            seed=evidence.seed,
            initial_state_hash=evidence.initial_state_hash,
            final_state_hash=evidence.final_state_hash,
            log_digest=evidence.log_digest,
            evidence_digest=evidence.digest,
            terminal=terminal,
            outcome_class=outcome_class,
            counts=row.counts,
            verdict=self.verdict,
            declared_success=(evidence.answer or {}).get("outcome") == "completed",
            usage=evidence.usage,
            limits=self.env.get_wrapper_attr("limits"),
            seconds=time.monotonic() - core.episode.started,
            environment_seconds=core.episode.environment_seconds,
            infrastructure_status="faulted" if terminal.origin == "environment" else "ok",
        )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the episode, which the environment copies or pickles itself and is then followed anew."""
        return {**self.__dict__, "_episode": None, "_monitors": []}

    def system(self) -> SystemSpec:
        """What is under test beside the policy; wrappers outside of this one are not seen from here."""
        if self._system is None:
            nobody: dict[str, dict[str, Any]] = {"policy": {}, "model": {}, "harness": {}}
            self._system = SystemSpec(**nobody, **environment_sections(self))
        return self._system
