"""Reviews: labels, agreement and the slice that comes of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_envs.audit import AuditError, Certificate, TaskCertificate
from agent_envs.audit.agreement import ordinal_alpha
from agent_envs.audit.checks import CHECKS
from agent_envs.audit.finding import Finding
from agent_envs.audit.reviews import Review, agreement, label, load_reviews
from agent_envs.audit.verified import verified_ids, write_slice
from agent_envs.contract import Status, TaskError

DIGEST = "ab" * 32
OLD = "cd" * 32

# Four observers, twelve units (Krippendorff 2011, section D): missing labels are left out.
PUBLISHED = [
    [1, 1, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [5, 5, 5],
    [1, 1],
    [3],
]


def review(**changes: Any) -> Review:
    """A clean review."""
    fields = {"reviewer": "r1", "task_digest": DIGEST, "clarity": 0, "too_narrow": 0, "too_wide": 0, "difficulty": 1}
    return Review(**(fields | changes))


def test_alpha_of_the_published_example() -> None:
    alpha = ordinal_alpha(PUBLISHED)
    assert alpha is not None
    assert round(alpha, 3) == 0.815


@pytest.mark.parametrize("seed", range(5))
def test_alpha_agrees_with_the_package(seed: int) -> None:
    import krippendorff
    import numpy as np

    rng = random.Random(seed)
    units = [[rng.choice([0, 1, 2, 3, None]) for _ in range(3)] for _ in range(20)]
    matrix = np.array([[np.nan if value is None else value for value in unit] for unit in units], dtype=float).T
    theirs = krippendorff.alpha(reliability_data=matrix, level_of_measurement="ordinal")
    ours = ordinal_alpha([[value for value in unit if value is not None] for unit in units])
    assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("units", [[], [[1]], [[2, 2], [2, 2]]])
def test_alpha_is_undefined_without_two_labels(units: list[list[int]]) -> None:
    assert ordinal_alpha(units) is None


def test_alpha_of_perfect_agreement_is_one() -> None:
    assert ordinal_alpha([[0, 0], [3, 3]]) == 1.0


def test_the_worst_label_counts_and_stale_ones_do_not() -> None:
    records = [review(), review(reviewer="r2", clarity=2), review(reviewer="r3", task_digest=OLD, too_wide=3)]
    found = label(records, DIGEST)
    assert found is not None
    assert (found.reviewers, found.stale, found.clarity, found.too_wide) == (2, 1, 2, 0)
    assert not found.acceptable
    stale = label(records, "ef" * 32)
    assert stale is not None and not stale.acceptable
    assert (stale.reviewers, stale.stale, stale.clarity, stale.difficulty) == (0, 3, None, None)
    assert label([], DIGEST) is None


def test_agreement_is_over_present_tasks_only() -> None:
    records = {"a/x": (review(), review(reviewer="r2")), "a/y": (review(task_digest=OLD, clarity=3),) * 2}
    assert agreement(records, {"a/x": DIGEST, "a/y": DIGEST})["clarity"] is None
    assert agreement(records, {"a/x": DIGEST, "a/y": OLD})["clarity"] == 1.0


def test_files_are_read_strictly(tmp_path: Path) -> None:
    good = {"task_id": "a/x", "reviews": [review().as_json()]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(good))
    assert load_reviews(tmp_path) == {"a/x": (review(),)}
    assert load_reviews(tmp_path / "none") == {}
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(good))
    with pytest.raises(AuditError, match="another file with reviews of a/x"):
        load_reviews(tmp_path)
    (tmp_path / "again.yaml").unlink()
    good["reviews"].append(review().as_json())
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(good))
    with pytest.raises(TaskError, match="reviews the same version of a task twice"):
        load_reviews(tmp_path)
    (tmp_path / "x.yaml").write_text(
        yaml.safe_dump({"task_id": "a/x", "reviews": [review().as_json() | {"clarity": 4}]})
    )
    with pytest.raises(TaskError, match="less than or equal to 3"):
        load_reviews(tmp_path)


def certificate(*findings: Finding, sampled: bool = False, without: tuple[str, str] | None = None) -> Certificate:
    """Two tasks that pass every check, one of them reviewed well; one result may be left out."""
    made = [(check.name, task) for check in CHECKS for task in (("a/x", "a/y") if check.task else ("",))]
    made += [("mutation", task) for task in ("a/x", "a/y")]
    good = [Finding(check=name, task_id=task, status=Status.PASS, summary="") for name, task in made]
    findings = (*(item for item in good if (item.check, item.task_id) != without), *findings)
    reviewed = label([review(), review(reviewer="r2", too_wide=1)], DIGEST)
    parts = {"task_digest": DIGEST, "references_digest": OLD, "grader_revision": 1, "checks": {"solvable": Status.PASS}}
    tasks = {"a/x": TaskCertificate(**parts, review=reviewed), "a/y": TaskCertificate(**parts)}
    return Certificate(env_id="a-v1", seed=0, sampled=sampled, identity={}, versions={}, tasks=tasks, findings=findings)


def test_the_slice_needs_checks_and_reviewers(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "verified.json"
    assert write_slice(certificate(), path) == ("a/x",)
    assert '"a/x": "abab' in path.read_text()
    leak = Finding(check="reset", status=Status.FAIL, summary="leaks")
    assert verified_ids(certificate(leak)) == ()


@pytest.mark.parametrize("missing", [("gold", "a/x"), ("mutation", "a/x"), ("reset", "")])
def test_a_check_that_was_not_made_verifies_nothing(missing: tuple[str, str]) -> None:
    assert verified_ids(certificate(without=missing)) == ()
    assert verified_ids(certificate(without=("gold", "a/y"))) == ("a/x",)
    assert verified_ids(certificate(sampled=True)) == ()
