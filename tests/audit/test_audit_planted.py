"""An audit that finds nothing in a faulty family proves nothing: each planted fault is caught, by the check's name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_envs.audit import Certificate, Finding, Subject, run_audit, subject
from agent_envs.audit.checks.tamper import _unrecorded
from agent_envs.audit.playing import Actions, play
from agent_envs.audit.tampering import TAMPERS, Stage
from agent_envs.contract import Status

sys.path.insert(0, str(Path(__file__).parent))  # probe processes find the module the same way
planted: Any = importlib.import_module("planted")
LANTERNS = "refund/three-lanterns"


def audited(fault: str, check: str, task: str = planted.TASK, mutants: int | None = None) -> Certificate:
    """Make one check of a planted family."""
    whole = subject(f"planted:planted/{fault}-v1", (task,), seed=1)
    few = Subject(whole.env_id, whole.task_ids, whole.seed, repetitions=1)
    return run_audit(few, checks=[check], mutants=mutants)


def fault_of(certificate: Certificate) -> Finding:
    """The one finding that stands against it."""
    (found,) = certificate.faults
    return found


@pytest.mark.parametrize(
    ("fault", "check", "task", "words"),
    [
        ("loosened", "known wrong", LANTERNS, "'all-three' is to fail 'changes', but failed: nothing"),
        ("alwaystrue", "known wrong", planted.TASK, "'fathers_lamp' is to fail 'identity', but failed: changes"),
        ("misnamed", "known wrong", planted.TASK, "is to fail 'confirm_credit', but failed: changes, identity"),
        ("freeforall", "nothing free", planted.TASK, "'liar' with seed 1 gets the verdict 'pass'"),
        (
            "failingreference",
            "solvable",
            planted.TASK,
            "'reference': it does not pass: changes: missing: update ticket",
        ),
        ("raisingreference", "solvable", planted.TASK, "ScriptError: reference, call 1 (get_order): was to succeed"),
        ("goldininfo", "gold", planted.TASK, "'noop', step 0 sees shows slice_labels.kind"),
        ("referenceininfo", "gold", planted.TASK, "shows references.reference.calls.0"),
        (
            "referenceinwrapper",
            "gold",
            planted.TASK,
            "Telling.hint at 'noop', step 0 shows references.reference.calls.0",
        ),
        (
            "fragile",
            "tamper",
            planted.TASK,
            "'queries in arguments': it broke the environment, which voids the episode",
        ),
        ("sharing", "tamper", planted.TASK, "an info that the policy changed came back"),
        ("halfreset", "books", planted.TASK, "channel 'rate_limits' starts as"),
    ],
)
def test_a_planted_fault_is_found(fault: str, check: str, task: str, words: str) -> None:
    """B001, B008, B018, B021, B105, B175: one fault each."""
    found = fault_of(audited(fault, check, task))
    assert (found.check, found.task_id, found.status) == (check, task, Status.FAIL)
    assert any(words in sentence for sentence in found.evidence["faults"])


def test_a_forgotten_frame_is_found() -> None:
    """B021: rows of other tables may be added."""
    found = fault_of(audited("noframe", "mutation", LANTERNS, mutants=30))
    assert found.summary.startswith("wrong, yet accepted")


def test_a_leaking_reset_is_found() -> None:
    """B103: a class attribute outlives the episode and shows in an observation."""
    found = fault_of(audited("leaking", "reset"))
    assert found.check == "reset"
    assert "episode 1' against" in found.summary


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("wallclock", "AGENTEVAL_PROBE_SHIFT"),
        ("calendarclock", "AGENTEVAL_PROBE_SHIFT"),
        ("hashorder", "'PYTHONHASHSEED': '4242'"),
    ],
)
def test_a_clock_and_a_set_are_found(fault: str, words: str) -> None:
    found = fault_of(audited(fault, "determinism"))
    assert found.check == "determinism"
    assert "the same seed gives another episode under {" in found.summary
    assert words in found.summary


def test_every_way_to_the_clock_is_moved() -> None:
    script = (
        "import time, datetime as dt\n"
        "from datetime import datetime\n"
        "from agent_envs.audit.probe import shift_clock\n"
        "ways = (lambda: datetime.now().year, lambda: datetime.now(dt.UTC).year, lambda: datetime.today().year,\n"
        "        lambda: datetime.utcnow().year, lambda: dt.date.today().year, lambda: time.gmtime().tm_year,\n"
        "        lambda: time.localtime().tm_year, lambda: int(time.strftime('%Y')), lambda: int(time.ctime()[-4:]),\n"
        "        lambda: time.gmtime(time.time()).tm_year, lambda: time.gmtime(time.time_ns() // 10**9).tm_year)\n"
        "before = [way() for way in ways]\n"
        "shift_clock(3 * 366 * 86400)\n"
        "print({way() - year for way, year in zip(ways, before)}, time.gmtime(0).tm_year)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout in ("{3} 1970\n", "{4} 1970\n")  # 1098 days may reach over one more New Year


@pytest.mark.parametrize("check", ["known wrong", "nothing free", "solvable", "gold", "books", "replay", "tamper"])
def test_the_same_family_without_a_fault_passes(check: str) -> None:
    certificate = audited("sound", check)
    assert {item.status for item in certificate.findings} == {Status.PASS}


def test_a_check_that_breaks_off_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr("agent_envs.audit.checks.known_wrong.play_script", broken)
    found = fault_of(audited("loosened", "known wrong"))
    assert found.status is Status.UNDETERMINED
    assert "RuntimeError: out of order" in found.summary


@pytest.mark.timeout(60)
def test_a_worker_that_dies_leaves_findings_and_an_end() -> None:
    """B208: nobody waits for a killed process, and what it had to do counts as unproven."""
    two = subject("planted:planted/dying-v1", (planted.TASK, LANTERNS))
    certificate = run_audit(two, checks=["solvable", "mutation"], mutants=1, workers=2)
    assert [(item.check, item.status) for item in certificate.faults] == [
        (check, Status.UNDETERMINED) for check in ("solvable", "solvable", "mutation", "mutation")
    ]
    assert all("a worker process died" in item.summary for item in certificate.faults)


def test_why_nothing_could_be_mutated_is_told() -> None:
    found = fault_of(audited("failingreference", "mutation", mutants=1))
    assert found.status is Status.UNDETERMINED
    assert "reference doesn't pass: changes: missing: update ticket" in found.summary


def test_one_hostile_call_that_is_carried_out_is_enough() -> None:
    """B182: of calls that must all be refused, one that isn't stands against the family."""
    whole = subject("planted:planted/sound-v1", (planted.TASK,))
    stage = Stage.of(whole, planted.TASK)
    tamper = next(tamper for tamper in TAMPERS if tamper.name == "keys for decoders")
    with whole.make() as env:
        clean = play(env, Actions(tamper.actions(stage), tamper.name), planted.TASK, 0)
    assert list(_unrecorded(tamper, clean, stage)) == []
    events = [dict(event) for event in clean.evidence.events]
    taken = next(event for event in events[1:] if event["status"] == "invalid")
    taken["status"] = "ok"
    leaky = clean._replace(evidence=clean.evidence.model_copy(update={"events": tuple(events)}))
    (found,) = _unrecorded(tamper, leaky, stage)
    assert found == f"'keys for decoders': step {taken['step']} ({taken['tool']}) was carried out, not refused"
