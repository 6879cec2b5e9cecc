"""The certificate: whole, tied to what was audited, and void as soon as that changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agent_envs.audit import (
    AuditError,
    Certificate,
    Finding,
    TaskCertificate,
    read_certificate,
    run_audit,
    subject,
    valid_certificate,
    write_certificate,
)
from agent_envs.audit.certificate import identity
from agent_envs.audit.checks import CHECKS
from agent_envs.campaign.runner import Attempt, run_attempts
from agent_envs.cli import main
from agent_envs.contract import Status

ENV = "agenteval/refund-v1"
TASK = "refund/kite-for-arun"


@pytest.fixture(scope="module")
def env() -> Iterator[gymnasium.Env[Any, Any]]:
    with subject(ENV).make() as made:
        yield made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of one check of one task."""
    path = tmp_path_factory.mktemp("certificate") / "certificate.json"
    write_certificate(run_audit(subject(ENV, (TASK,)), checks=["solvable"]), path)
    return path


@pytest.mark.timeout(300)
def test_the_family_passes_its_audit_in_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample of tasks, every check, at two workers; also after a kill -9 in mid-episode (B097, B102, B103)."""
    out = tmp_path / "certificate.json"
    status = main(["audit", ENV, "--sample", "2", "--workers", "2", "--seed", "5", "--out", str(out)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert max(map(len, printed.splitlines())) <= 80 + len(str(tmp_path))
    certificate = read_certificate(out)
    assert len(certificate.tasks) == 2 and certificate.sampled
    made = {item.check for item in certificate.findings}
    assert made >= {check.name for check in CHECKS} - {"idle"} | {"mutation", "tampering recorded"}
    for task in certificate.tasks.values():
        assert task.mutants["false_accepts"] == task.mutants["false_rejects"] == 0 < task.mutants["killed"]
        assert {"solvable", "mutation"} <= set(task.grader_manifest)
    earned = certificate.earned()
    assert all(passed == 0 < runs for row in earned.values() for passed, runs in row.values())


def test_a_certificate_of_a_part_admits_nothing(kept: Path, env: gymnasium.Env[Any, Any]) -> None:
    reasons = valid_certificate(kept, env)
    assert "it is of a sample; audit all tasks and mutants" in reasons
    assert "refund/three-lanterns: was not audited" in reasons
    assert f"{TASK}: the check 'gold' was not made" in reasons
    assert not any(TASK in reason and "changed" in reason for reason in reasons)


def test_any_edit_voids_it(kept: Path, env: gymnasium.Env[Any, Any], tmp_path: Path) -> None:
    text = kept.read_text()
    forged = tmp_path / "forged.json"
    forged.write_text(text.replace('"sampled": true', '"sampled": false'))
    (reason,) = valid_certificate(forged, env)
    assert "was changed after it was written" in reason
    forged.write_text(text[:-200])
    assert "no certificate" in valid_certificate(forged, env)[0]
    with pytest.raises(AuditError, match="no certificate"):
        read_certificate(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("identity", "family"), "the family has changed since the audit"),
        (("identity", "core"), "the core has changed since the audit"),
        (("tasks", TASK, "task_digest"), f"{TASK}: the task has changed since the audit"),
        (("tasks", TASK, "references_digest"), f"{TASK}: its references have changed since the audit"),
    ],
)
def test_a_change_of_what_was_audited_voids_it(
    kept: Path, env: gymnasium.Env[Any, Any], tmp_path: Path, place: tuple[str, ...], words: str
) -> None:
    certificate = read_certificate(kept)
    data = json.loads(json.dumps(certificate.as_json()))
    part = data
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = "0" * 64
    path = tmp_path / "earlier.json"
    write_certificate(type(certificate).model_validate(data), path)
    assert words in valid_certificate(path, env)


def test_people_are_shown_beside_the_checks(tmp_path: Path, env: gymnasium.Env[Any, Any]) -> None:
    class Person:
        name = "human"

        def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
            return {"tool": "finish", "arguments": {"outcome": "unable"}}

    run_attempts(env, Person(), [Attempt("kite.human.1", TASK, 0, 3)], tmp_path)
    certificate = run_audit(subject(ENV, (TASK,)), checks=["replay"], human=tmp_path)
    (person,) = certificate.tasks[TASK].people
    assert (person.run_id, person.success, person.steps) == ("kite.human.1", False, 1)
    with pytest.raises(AuditError, match=r"agenteval play"):
        run_audit(subject(ENV, (TASK,)), checks=["replay"], human=tmp_path / "none")


def test_the_same_seed_gives_the_same_certificate() -> None:
    one, two = (run_audit(subject(ENV, (TASK,), seed=4), checks=["nothing free", "tamper"]) for _ in range(2))
    assert one.digest == two.digest


def test_samples_are_drawn_by_seed() -> None:
    draws = {subject(ENV, sample=3, seed=seed).task_ids for seed in range(6)}
    assert len(draws) > 1
    assert subject(ENV, sample=3, seed=1) == subject(ENV, sample=3, seed=1)
    assert all(len(draw) == 3 for draw in draws)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no/such-v1"], "there is no environment 'no/such-v1'"),
        ([ENV, "--task", "refund/nothing"], "there is no task 'refund/nothing'"),
        ([ENV, "--check", "luck"], "there are no checks ['luck']"),
        (["CartPole-v1"], "not an AgentEnv"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_command_says_whether_a_certificate_holds(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", ENV, "--valid", str(kept)]) == 1
    assert "it is of a sample" in capsys.readouterr().out


def test_no_findings_are_no_success() -> None:
    certificate = run_audit(subject(ENV, (TASK,)), checks=["idle"])
    assert certificate.findings == () and not certificate.good
    assert all(item.status is Status.PASS for item in certificate.findings)


def whole(env: gymnasium.Env[Any, Any], without: str = "") -> Certificate:
    """The certificate of a whole audit in which everything passed, as far as its form goes."""
    suite = subject(ENV).suite
    made = [(check.name, task) for check in CHECKS for task in (suite.eval_ids if check.task else ("",))]
    made += [("mutation", task) for task in suite.eval_ids]
    findings = [Finding(check=name, task_id=task, status=Status.PASS, summary="good") for name, task in made]
    return Certificate(
        env_id=ENV,
        seed=0,
        sampled=False,
        identity=identity(env),
        versions={},
        tasks={
            task: TaskCertificate(
                task_digest=suite.task(task).digest,
                references_digest=suite.references(task).digest,
                grader_revision=1,
                checks={},
            )
            for task in suite.eval_ids
        },
        findings=tuple(item for item in findings if item.check != without),
    )


def test_a_whole_certificate_holds(env: gymnasium.Env[Any, Any], tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    write_certificate(whole(env), path)
    assert valid_certificate(path, env) == []
    write_certificate(whole(env, without="reset"), path)
    assert valid_certificate(path, env) == ["the family: the check 'reset' was not made"]


def test_a_kill_while_writing_leaves_the_earlier_certificate(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = read_certificate(kept)

    def torn(path: Path, text: str, **_: Any) -> int:
        with path.open("w") as file:
            file.write(text[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(KeyboardInterrupt):
        write_certificate(certificate, kept)
    assert read_certificate(kept) == certificate


def test_a_generated_task_is_no_whole_audit() -> None:
    suite = subject(ENV).suite
    drawn = suite.draw("train", 3).task_id
    assert subject(ENV, (drawn,)).partial
    assert subject(ENV, (TASK,)).partial
    assert subject(ENV, sample=len(suite.eval_ids)).partial
    assert not subject(ENV).partial
    assert not subject(ENV, (drawn, *suite.eval_ids)).partial


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--out", "no file can be written there"),
        ("--verified", "no file can be written there"),
        ("--reviews", "no such"),
    ],
)
def test_a_bad_path_is_told_before_the_work(
    option: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("agent_envs.audit.run._made", never)
    (tmp_path / "file").write_text("")
    assert main(["audit", ENV, "--check", "replay", option, str(tmp_path / "file" / "certificate.json")]) == 2
    assert words in capsys.readouterr().err


def test_ctrl_c_promises_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("agent_envs.audit.run_audit", stopped)
    assert main(["audit", ENV]) == 130
    assert "an audit keeps nothing" in capsys.readouterr().err
