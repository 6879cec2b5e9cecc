"""The audit: proofs, made without any model, that a family's tasks, resets and graders measure what they say."""

from agent_envs.audit.certificate import (
    Certificate,
    Person,
    TaskCertificate,
    read_certificate,
    valid_certificate,
    write_certificate,
)
from agent_envs.audit.finding import Finding
from agent_envs.audit.run import run_audit
from agent_envs.audit.subject import AuditError, Subject, subject

__all__ = [
    "AuditError",
    "Certificate",
    "Finding",
    "Person",
    "Subject",
    "TaskCertificate",
    "read_certificate",
    "run_audit",
    "subject",
    "valid_certificate",
    "write_certificate",
]
