"""AgentRun: the record of one attempt, one line in ``runs.jsonl``."""

from typing import Literal

from pydantic import Field

from agent_envs.contract.evidence import Terminal, Usage
from agent_envs.contract.model import Model
from agent_envs.contract.outcomes import OutcomeClass
from agent_envs.contract.task import Limits
from agent_envs.contract.verdict import Verdict


class AgentRun(Model):
    """One attempt: what ran, how it ended, its class and verdict, and where its evidence is."""

    run_id: str
    """Unique within a results folder: task, policy and attempt."""
    env_id: str
    task_id: str
    task_revision: int
    task_digest: str
    policy: str
    """Name of the policy; ``oracle`` policies play with the reference solution and are kept out of rankings."""
    oracle: bool
    system_spec_hash: str
    """SHA-256 of what was under test: policy, tools, task, wrappers and versions."""
    attempt: int = Field(ge=0)
    seed: int
    initial_state_hash: str
    final_state_hash: str
    log_digest: str
    evidence_digest: str
    terminal: Terminal
    outcome_class: OutcomeClass
    counts: bool
    """Whether the attempt is in the denominator."""
    verdict: Verdict | None
    """Null when nothing could be judged (an environment failure before or while acting)."""
    declared_success: bool
    """The agent claimed it had done what was asked."""
    usage: Usage
    limits: Limits
    """The effective budget."""
    seconds: float
    """Wall time from reset to the end."""
    environment_seconds: float
    """Part of it spent inside the environment."""
    infrastructure_status: Literal["ok", "faulted"]
    evidence: str = ""
    """Folder of the evidence, relative to the results folder; empty when not kept."""
    campaign: str = ""
    """Digest of the campaign's lock; empty outside a campaign."""
    system: str = ""
    """Name of the system in the manifest."""
    try_number: int = Field(default=0, ge=0)
    """0 for the first try of a planned attempt; later ones follow invalid tries."""
    order: int = Field(default=0, ge=0)
    """Place in the order in which the campaign's tries were started."""
    worker: str = ""
    """Worker that ran it."""
    weight: float = Field(default=1.0, gt=0)
    """The task's weight in the campaign."""
    labels: dict[str, str] = {}
    """The task's slice labels."""

    @property
    def broke_rule(self) -> bool:
        """The outcome is right, but a constraint was breached on the way."""
        return self.verdict is not None and self.verdict.broke_rule

    @property
    def false_claim(self) -> bool:
        """Success was claimed, and the state says otherwise."""
        return self.declared_success and self.verdict is not None and self.verdict.G == "fail"
