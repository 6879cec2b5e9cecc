"""The system spec: what changes its hash, what doesn't, and what never enters it."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_envs.baselines import load, rollout
from agent_envs.baselines.identity import system_spec
from agent_envs.baselines.policy import PolicyError
from agent_envs.campaign.expansion import make_env
from agent_envs.campaign.spec import capture, describe, diff, differences, load_spec, only_model, show_spec, spec_text
from agent_envs.contract import SECTIONS, AgentEvalError, SpecError, SystemSpec, digest
from agent_envs.contract.secrets import SECRET, is_secret_name
from agent_envs.contract.sources import folder_digest
from agent_envs.wrappers import Permissions, compose

ENV = "agenteval/refund-v1"


class Clerk:
    """A policy that says what it is made of."""

    name = "clerk"

    def __init__(self, **parts: Any) -> None:
        self.parts: Any = {
            "model": {"name": "m-1", "decoding": {"temperature": 0.0}},
            "harness": {"prompt": "Be kind."},
        }
        self.parts |= parts

    def spec(self) -> Any:
        return self.parts

    def act(self, observation: dict[str, Any], info: dict[str, Any]) -> Any:
        return {"tool": "finish", "arguments": {"outcome": "unable"}}


@pytest.fixture
def env() -> Iterator[gymnasium.Env[Any, Any]]:
    with make_env(ENV) as made:
        yield made


def test_a_captured_spec_has_every_section_and_is_the_record_s_hash(env: gymnasium.Env[Any, Any]) -> None:
    spec = capture(env, Clerk())
    assert all(getattr(spec, name) for name in SECTIONS)
    assert spec.model["name"] == "m-1" and spec.harness["prompt"] == "Be kind."
    assert rollout(env, Clerk(), seed=1, task="refund/train-1").system_spec_hash == spec.digest


def test_the_hash_is_the_same_in_any_process_with_any_hash_seed_folder_and_home(tmp_path: Path) -> None:
    """Law 5."""
    code = (
        f"from agent_envs.campaign.spec import show_spec; print(show_spec({ENV!r}, 'rulebook', {{'steps': 30}}).digest)"
    )
    root = Path(__file__).resolve().parents[2]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(root), "PYTHONHASHSEED": seed, "HOME": str(home), "PATH": path},
            cwd=home,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, home, path in (("1", tmp_path, ""), ("2", root, os.environ["PATH"]))
    ]
    one, two = (process.communicate()[0] for process in started)
    assert one == two and len(one) == 65


def test_key_order_makes_no_difference(env: gymnasium.Env[Any, Any]) -> None:
    data = capture(env, Clerk()).as_json()

    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = [(key, shuffled(item)) for key, item in value.items()]
        random.Random(5).shuffle(items)
        return dict(items)

    other = shuffled(data)
    assert json.dumps(other) != json.dumps(data)
    assert SystemSpec.model_validate(other).digest == SystemSpec.model_validate(data).digest


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ({"model": {"name": "m-2", "decoding": {"temperature": 0.0}}}, "model.name"),
        ({"model": {"name": "m-1", "decoding": {"temperature": 0}}}, "model.decoding.temperature"),
        ({"harness": {"prompt": "Be kind. "}}, "harness.prompt"),
        ({"budgets": {"retries": 2}}, "budgets.policy"),
    ],
)
def test_what_the_policy_says_is_in_the_hash(env: gymnasium.Env[Any, Any], parts: dict[str, Any], path: str) -> None:
    one, two = capture(env, Clerk()), capture(env, Clerk(**parts))
    assert one.digest != two.digest
    assert [item.path for item in diff(one, two)] == [path]


def test_a_prompt_changed_between_two_attempts_makes_two_systems(env: gymnasium.Env[Any, Any]) -> None:
    """B138."""
    clerk = Clerk()
    before = system_spec(env, clerk)
    clerk.parts["harness"] = {"prompt": "Be quick."}
    assert diff(before, system_spec(env, clerk))[0].path == "harness.prompt"


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: make_env(ENV, {"steps": 9}), "budgets.limits.steps"),
        (lambda: make_env(ENV, {"recheck": 1.0}), "grader.recheck"),
        (lambda: make_env(ENV, {"database": "postgresql+psycopg://box:1/x"}), "environment.settings.database"),
        (lambda: gymnasium.wrappers.TimeLimit(make_env(ENV), 5), "environment.wrappers.TimeLimit"),
    ],
)
def test_limits_settings_and_wrappers_are_in_the_hash(
    env: gymnasium.Env[Any, Any], make: Callable[[], gymnasium.Env[Any, Any]], path: str
) -> None:
    found = diff(capture(env, Clerk()), capture(make(), Clerk()))
    assert path in {item.path for item in found}


def test_permissions_are_in_the_hash(env: gymnasium.Env[Any, Any]) -> None:
    other = compose(Permissions(env.unwrapped, deny=("issue_refund",)))  # type: ignore[arg-type]
    paths = {item.path for item in diff(capture(env, Clerk()), capture(other, Clerk()))}
    assert "tools.denied" in paths


@pytest.mark.parametrize("arguments", [{"split": "train"}, {"task": "refund/train-3"}, {"render_mode": "ansi"}])
def test_what_moves_no_attempt_is_not_in_the_hash(env: gymnasium.Env[Any, Any], arguments: dict[str, Any]) -> None:
    assert capture(make_env(ENV, arguments), Clerk()).digest == capture(env, Clerk()).digest


def test_the_place_of_evidence_is_not_in_the_hash(env: gymnasium.Env[Any, Any], tmp_path: Path) -> None:
    assert capture(make_env(ENV, {"record": str(tmp_path)}), Clerk()).digest == capture(env, Clerk()).digest


@pytest.mark.parametrize("change", ["description", "schema"])
def test_a_tool_s_description_and_schema_are_in_the_hash(
    env: gymnasium.Env[Any, Any], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    before = capture(env, Clerk())
    tool = env.unwrapped.action_space.tools["get_order"]  # type: ignore[attr-defined]
    new = "Another text." if change == "description" else {**tool.schema, "description": "x"}
    monkeypatch.setattr(tool, change, new)
    found = diff(before, capture(make_env(ENV), Clerk()))
    assert found and all(item.path.startswith("tools.tools.get_order.") for item in found)


def test_an_installed_dependency_is_in_the_hash(env: gymnasium.Env[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_envs.wrappers import system

    before = capture(env, Clerk())
    installed = system._installed()
    packages = {**installed["packages"], "numpy": "0.1"}
    monkeypatch.setattr(system, "_installed", lambda: {**installed, "packages": packages})
    assert [item.path for item in diff(before, capture(make_env(ENV), Clerk()))] == ["environment.packages.numpy"]


def test_source_counts_by_content_and_name_wherever_it_stands(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "a.py").write_text("x = 1\n")
    (two / "__pycache__").mkdir()
    (two / "__pycache__" / "a.pyc").write_bytes(b"1")
    assert folder_digest(one) == folder_digest(two)
    (two / "inner" / "a.py").write_text("x = 2\n")
    assert folder_digest(one) != folder_digest(two)
    (two / "inner" / "a.py").write_text("x = 1\n")
    (two / "inner" / "a.py").rename(two / "inner" / "b.py")
    assert folder_digest(one) != folder_digest(two)


def test_a_policy_file_s_source_is_in_the_hash_and_its_place_is_not(
    env: gymnasium.Env[Any, Any], tmp_path: Path
) -> None:
    hashes = []
    for folder, text in (("a", "return {}"), ("b", "return {}"), ("c", "return []")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "mine.py"
        path.write_text(f"def act(observation, info):\n    {text}\n")
        hashes.append(capture(env, load(f"{path}:act")).digest)
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_commit_is_told_but_makes_no_other_system(env: gymnasium.Env[Any, Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def act(observation, info):\n    return {}\n")
    loose = capture(env, load(f"{path}:act"))
    assert loose.provenance == {"commit": None, "dirty": None}
    other = tmp_path / "checkout"
    other.mkdir()
    (other / "mine.py").write_bytes(path.read_bytes())

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *who, "-C", str(other), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (other / "prompt.txt").write_text("new")
    kept = capture(env, load(f"{other / 'mine.py'}:act"))
    assert kept.provenance == {"commit": git("rev-parse", "HEAD"), "dirty": True}
    assert kept.digest == loose.digest and diff(kept, loose) == []


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"model": {"api_key": "hush-hush"}}, "model.api_key"),
        ({"model": {"headers": {"Authorization": "x"}}}, "model.headers.Authorization"),
        ({"model": {"accessToken": "hush-hush"}}, "model.accessToken"),
        ({"model": {"base_url": "https://me:hush-hush@host/v1"}}, "model.base_url"),
        ({"model": {"base_url": "https://host/v1?api_key=hush-hush"}}, "model.base_url"),
        ({"harness": {"steps": [{"note": "use Bearer hush-hush-hush-hush-hush"}]}}, "harness.steps.0.note"),
        ({"harness": {"prompt": "the code is hush-from-the-environment!"}}, "harness.prompt"),
        ({"budgets": {"password": "hush-hush"}}, "budgets.policy.password"),
    ],
)
def test_a_secret_is_refused_by_its_place_and_never_shown(
    env: gymnasium.Env[Any, Any], monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any], place: str
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hush-from-the-environment")
    with pytest.raises(SpecError) as caught:
        capture(env, Clerk(**parts))
    assert place in str(caught.value) and "hush" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_marked_secret_and_harmless_names_are_fine(env: gymnasium.Env[Any, Any]) -> None:
    model = {"api_key": SECRET, "max_tokens": 100, "eos_token": "</s>", "base_url": "https://host/v1", "password": None}
    schema = {"parameters": {"properties": {"api_key": {"type": "string", "description": "Theirs."}}}}
    assert capture(env, Clerk(model=model, harness=schema)).model["api_key"] == SECRET


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *(
            (name, True)
            for name in ("OPENAI_API_KEY", "x-api-key", "APIKey", "token", "client_secret", "Authorization")
        ),
        *((name, False) for name in ("tokens", "token_limit", "monkey", "keyboard", "author", "eos_token")),
    ],
)
def test_secret_names(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_a_path_of_this_machine_is_refused(env: gymnasium.Env[Any, Any], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"model\.weights is a path of this machine"):
        capture(env, Clerk(model={"weights": str(tmp_path / "w.bin")}))
    assert capture(env, Clerk(model={"route": "/v1/chat"})).model == {"route": "/v1/chat"}


def test_no_path_of_this_machine_stands_in_a_spec(env: gymnasium.Env[Any, Any]) -> None:
    text = spec_text(capture(env, load("rulebook")))
    assert not [place for place in (str(Path.cwd()), str(Path.home()), sys.prefix) if len(place) > 1 and place in text]


@pytest.mark.parametrize(
    "parts", [None, [], {"model": 1}, {"weights": {}}, {"model": {"x": {1}}}, {"model": {"x": float("nan")}}]
)
def test_a_spec_that_is_no_json_is_the_policy_s_error(env: gymnasium.Env[Any, Any], parts: Any) -> None:
    clerk = Clerk()
    clerk.parts = parts
    with pytest.raises(PolicyError, match="clerk"):
        rollout(env, clerk, seed=1, task="refund/train-1")


def test_only_a_changed_model_is_a_comparison_of_models(env: gymnasium.Env[Any, Any]) -> None:
    one, two = Clerk(), Clerk(model={"name": "m-2"})
    two.name = "other clerk"
    found = diff(capture(env, one), capture(env, two))
    assert only_model(found)
    assert describe(found)[-1] == 'policy.name: "clerk" -> "other clerk"'
    assert not only_model(diff(capture(env, one), capture(env, load("noop"))))
    assert not only_model([])


def test_the_order_of_named_things_is_a_difference_too(env: gymnasium.Env[Any, Any]) -> None:
    one = Clerk(harness={"tools": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]})
    two = Clerk(harness={"tools": [{"name": "b", "n": 2}, {"name": "a", "n": 3}]})
    assert describe(diff(capture(env, one), capture(env, two))) == [
        'harness.tools: ["a", "b"] -> ["b", "a"]',
        "harness.tools.a.n: 1 -> 3",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2, width=16) | st.sampled_from(["", "a", "name"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "a", "b"]), inner, max_size=3),
    max_leaves=8,
)


@given(one=JSON, two=JSON)
def test_nothing_differs_exactly_when_the_digests_are_equal(one: Any, two: Any) -> None:
    assert (not list(differences(one, two))) == (digest(one) == digest(two))
    assert not list(differences(one, json.loads(json.dumps(one))))


def test_equal_numbers_of_different_types_differ(env: gymnasium.Env[Any, Any]) -> None:
    """A diff is empty exactly when the hashes are equal."""
    one, two = Clerk(model={"n": 1}), Clerk(model={"n": True})
    assert [item.path for item in diff(capture(env, one), capture(env, two))] == ["model.n"]


def test_a_spec_file_reads_back_and_a_damaged_one_says_where(env: gymnasium.Env[Any, Any], tmp_path: Path) -> None:
    spec = capture(env, Clerk())
    path = tmp_path / "spec.json"
    path.write_text(spec_text(spec), encoding="utf-8")
    assert load_spec(str(path)) == spec
    path.write_text(json.dumps(spec.as_json() | {"modle": {}}))
    with pytest.raises(SpecError, match="modle"):
        load_spec(str(path))
    with pytest.raises(SpecError, match="can't be read"):
        load_spec(str(tmp_path / "none.json"))


def test_an_unknown_environment_or_policy_is_one_clear_error() -> None:
    with pytest.raises(
        AgentEvalError, match="there is no environment 'agenteval/x-v1'; there are: agenteval/refund-v1"
    ):
        show_spec("agenteval/x-v1", "noop")
    with pytest.raises(AgentEvalError, match="there is no policy 'none'"):
        show_spec(ENV, "none")


def test_asking_again_is_cheap_and_gives_the_same_object(env: gymnasium.Env[Any, Any]) -> None:
    clerk = Clerk()
    assert system_spec(env, clerk) is system_spec(env, clerk)
