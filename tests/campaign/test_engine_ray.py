"""The Ray engine on real Ray clusters on this machine: the same records, and a node that is killed in the middle."""

import builtins
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_envs.campaign.engines import Done, EngineError, Job, LocalEngine, make_engine
from agent_envs.campaign.engines.ray import RayEngine, _own_folder
from agent_envs.contract import consequences, read_evidence
from tests.campaign.engine_cases import hard, kinds, make_job, processes

MARK = f"AGENTEVAL_TEST_RAY_{os.getpid()}"


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_records_and_endings_are_those_of_the_local_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "1")

    def jobs(folder: Path) -> Iterator[Job]:
        for seed in range(6):
            yield make_job(folder, seed)
        yield make_job(folder, 11, hard("Exits"))
        yield make_job(folder, 13, hard("Spins"), limits={"wall_seconds": 1.0})
        yield make_job(folder, 15, hard("BlocksHolding"), deadline=1.0)

    with LocalEngine(2) as local:
        wanted = {item.job.run_id: item for item in local.run(jobs(tmp_path / "local"))}
    with make_engine("ray", 2) as engine:
        assert isinstance(engine, RayEngine)
        found = {item.job.run_id: item for item in engine.run(jobs(tmp_path / "ray"))}
        with pytest.raises(EngineError, match="there is no policy 'nosuch'"):
            list(engine.run(iter([make_job(tmp_path, 1, "nosuch")])))
        engine.stop()
        assert list(engine.run(jobs(tmp_path))) == []
    assert found.keys() == wanted.keys()
    for run_id, item in found.items():
        assert _comparable(item) == _comparable(wanted[run_id])
        if item.run is not None:
            assert read_evidence(tmp_path / "ray" / item.evidence).digest == item.run.evidence_digest
    assert "these are my last words" in found["run-11"].tail
    monkeypatch.delenv(MARK)
    assert processes(MARK) == []


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_a_node_that_is_killed_costs_the_attempt_it_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray
    from ray.cluster_utils import Cluster

    scratch = tempfile.mkdtemp(prefix="agenteval-")
    Path(scratch, "ray").mkdir()  # where Ray notes the cluster's address
    monkeypatch.setenv("RAY_TMPDIR", scratch)
    monkeypatch.setenv("TMPDIR", scratch)
    common = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 10**8}
    cluster = Cluster(initialize_head=True, head_node_args={**common, "temp_dir": scratch})
    try:
        node = cluster.add_node(**common)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        done = []
        with RayEngine(2) as engine:
            for item in engine.run(make_job(tmp_path, seed, hard("Slow")) for seed in range(8)):
                done.append(item)
                if len({item.worker for item in done}) == 2 and node is not None:
                    cluster.remove_node(node, allow_graceful=False)
                    node = None
            lost = [item for item in done if item.run is None]
            again = list(engine.run(iter([item.job for item in lost])))
        assert ray.is_initialized(), "a cluster that somebody else started is left alone"
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)
    assert node is None and len(kinds(done)) == 8 and len(lost) == 1
    for item in lost:
        assert (item.terminal.origin, item.terminal.kind) == ("environment", "worker_lost")
        assert consequences(item.terminal).retry
    assert set(kinds(again).values()) == {("agent", "finished")} and len(again) == len(lost)


def test_without_ray_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EngineError, match=r"pip install 'agent-envs\[ray\]'"):
        make_engine("ray", 1)


def _comparable(item: Done) -> Any:
    """What must be equal on every engine."""
    run = None if item.run is None else item.run.as_json()
    for name in ("seconds", "environment_seconds", "worker"):
        (run or {}).pop(name, None)
    return run, item.terminal, item.evidence, item.health


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_what_a_killed_runner_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B127: only what nobody holds any more is removed."""
    place = Path(tempfile.mkdtemp(prefix="agenteval-"))  # short, because sockets lie in it
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    script = """
        import os, signal, tempfile
        from agent_envs.campaign.engines.ray import _own_folder
        (open(_own_folder("agenteval-rc-")[0] + "/log", "w")).close()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(place)}
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, check=False)
    (left,) = place.iterdir()
    assert killed.returncode == -signal.SIGKILL and left.name.startswith("agenteval-rc-")
    other, held = _own_folder("agenteval-rc-")
    assert not left.exists()
    try:
        with make_engine("ray", 1) as engine:
            assert kinds(engine.run(iter([make_job(tmp_path, 1)]))) == {"run-1": ("agent", "finished")}
        assert [str(entry) for entry in place.iterdir()] == [other]
    finally:
        os.close(held)
        shutil.rmtree(place, ignore_errors=True)
