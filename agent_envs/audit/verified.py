"""The verified slice: tasks that every check and every reviewer lets stand, as a list of ids with their digests."""

import json
from pathlib import Path

from agent_envs.audit.certificate import Certificate, missing_checks
from agent_envs.contract import Status


def verified_ids(certificate: Certificate) -> tuple[str, ...]:
    """Ids of the tasks whose checks all pass and whose reviewers, enough of them, see no more than slight problems.

    Every check must have been made: a sample verifies nothing, a check left out leaves its tasks unverified, and one
    of the family that is left out or found a fault leaves all of them so.
    """
    open_tasks = {task_id for _, task_id in missing_checks(certificate)}
    if certificate.sampled or "" in open_tasks or any(not item.task_id for item in certificate.faults):
        return ()
    return tuple(
        task_id
        for task_id, task in sorted(certificate.tasks.items())
        if task_id not in open_tasks
        and all(status is Status.PASS for status in task.checks.values())
        and task.review is not None
        and task.review.acceptable
    )


def write_slice(certificate: Certificate, path: Path) -> tuple[str, ...]:
    """Write the slice ``verified`` of a certificate.

    Returns:
        The ids written.
    """
    ids = verified_ids(certificate)
    data = {
        "name": "verified",
        "env_id": certificate.env_id,
        "certificate": certificate.digest,
        "tasks": {task_id: certificate.tasks[task_id].task_digest for task_id in ids},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return ids
