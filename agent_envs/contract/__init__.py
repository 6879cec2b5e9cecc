"""The nouns: task, evidence, verdict and run, with canonical JSON, digests and the outcome table."""

from agent_envs.contract.archive import chain, read_evidence, write_evidence
from agent_envs.contract.canonical import canonical_json, decimal_text, digest, jsonable, parse_json, typed, untyped
from agent_envs.contract.change import Change, RowPatch, net_changes
from agent_envs.contract.errors import (
    AgentEvalError,
    EnvironmentFault,
    EvidenceError,
    GraderFault,
    TaskError,
    ToolError,
)
from agent_envs.contract.evidence import Evidence, Terminal, Usage
from agent_envs.contract.loading import Document, load_tasks, read_yaml, unique, validate
from agent_envs.contract.model import Model
from agent_envs.contract.outcomes import OUTCOME_TABLE, OUTCOME_TABLE_VERSION, OutcomeClass, classify, consequences
from agent_envs.contract.reference import Call, ReferenceRun, TaskReferences, WrongRun
from agent_envs.contract.run import AgentRun
from agent_envs.contract.system import SECTIONS, SpecError, SystemSpec
from agent_envs.contract.task import AgentTask, InitialState, Limits, Permission, PublicTask, RubricItem, state_hash
from agent_envs.contract.user import Fact, ScriptedUserSpec, Terms, Turn, Wish
from agent_envs.contract.verdict import CheckResult, Status, Verdict

__all__ = [
    "OUTCOME_TABLE",
    "OUTCOME_TABLE_VERSION",
    "SECTIONS",
    "AgentEvalError",
    "AgentRun",
    "AgentTask",
    "Call",
    "Change",
    "CheckResult",
    "Document",
    "EnvironmentFault",
    "Evidence",
    "EvidenceError",
    "Fact",
    "GraderFault",
    "InitialState",
    "Limits",
    "Model",
    "OutcomeClass",
    "Permission",
    "PublicTask",
    "ReferenceRun",
    "RowPatch",
    "RubricItem",
    "ScriptedUserSpec",
    "SpecError",
    "Status",
    "SystemSpec",
    "TaskError",
    "TaskReferences",
    "Terminal",
    "Terms",
    "ToolError",
    "Turn",
    "Usage",
    "Verdict",
    "Wish",
    "WrongRun",
    "canonical_json",
    "chain",
    "classify",
    "consequences",
    "decimal_text",
    "digest",
    "jsonable",
    "load_tasks",
    "net_changes",
    "parse_json",
    "read_evidence",
    "read_yaml",
    "state_hash",
    "typed",
    "unique",
    "untyped",
    "validate",
    "write_evidence",
]
