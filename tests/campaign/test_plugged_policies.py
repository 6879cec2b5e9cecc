"""Anybody's policy: found, run, and recorded whatever it does."""

import functools
import itertools
import threading
import time

import gymnasium
import numpy as np
import pytest

import agent_envs
from agent_envs.baselines import PolicyError, as_policy, load, rollout
from agent_envs.baselines.human import Human, parse_line
from agent_envs.baselines.policy import FunctionPolicy, GaveUp
from agent_envs.campaign.results import Results
from agent_envs.campaign.runner import plan, run_attempts
from agent_envs.contract import AgentRun, OutcomeClass, Status, ToolError
from agent_envs.episode.faults import Fault

FINISH = {"tool": "finish", "arguments": {"outcome": "completed"}}
TASKS = [f"refund/train-{number}" for number in range(10)]


@pytest.fixture
def env():
    agent_envs.register_envs()
    with gymnasium.make("agenteval/refund-v1", split="train") as made:
        yield made


class Loud(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


ERRORS = {
    "error": ValueError("bad"),
    "words-that-raise": Loud(),
    "surrogate": ValueError("\ud835"),
    "markup-and-escapes": ValueError("[/red]\x1b[2J\x00"),
    "long": ValueError("x" * 1_000_000),
    "our-own": ToolError("as if a tool had refused"),
    "a-fault": Fault("as if the environment had broken"),
    "stop-iteration": StopIteration(),
    "exit": SystemExit(0),
    "memory": MemoryError(),
    "recursion": RecursionError(),
    "reset-needed": gymnasium.error.ResetNeeded("as if"),
    "assertion": AssertionError(),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("where", ["begin", "act", "later", "usage"])
def test_whatever_a_policy_raises_is_its_own_failure(env, error, where):
    """B114, B136: never the environment's fault, never a crash."""

    class Failing:
        name = "failing"

        def begin(self, task, tools, seed):
            if where == "begin":
                raise error

        def act(self, observation, info):
            if where == "act" or (where == "later" and info["step"]):
                raise error
            return {"tool": "read_policy", "arguments": {}}

        def usage(self):
            if where == "usage":
                raise error
            return None, None

    run = rollout(env, Failing(), seed=1)
    assert run.terminal.kind == "policy_error"
    assert run.terminal.origin == "agent"
    assert run.outcome_class is OutcomeClass.AGENT_FAILURE
    assert run.counts
    assert not (run.verdict is not None and run.verdict.Y is Status.PASS)
    assert len(run.terminal.detail) <= 2000
    assert AgentRun.parse(run.canonical()) == run


def test_three_failures_of_ten_are_ten_records(env, tmp_path):
    """B136."""
    calls = iter(range(10))

    def act(observation, info):
        if next(calls) in (2, 5, 9):
            raise ValueError("\ud835")
        return FINISH

    policy = FunctionPolicy(act)
    runs = run_attempts(env, policy, list(plan(env, policy, TASKS, 1, 0)), tmp_path)
    assert len(runs) == len(Results(tmp_path).read()) == 10
    failed = [run for run in runs if run.terminal.kind == "policy_error"]
    assert len(failed) == 3
    assert {run.outcome_class for run in runs} == {OutcomeClass.AGENT_FAILURE}
    assert all(run.counts for run in runs)
    assert all(Results(tmp_path).evidence(run) for run in runs)


def test_control_c_is_no_failure_of_the_policy(env):
    def act(observation, info):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rollout(env, FunctionPolicy(act), seed=1)


def test_giving_up_is_judged_by_the_state(env):
    def act(observation, info):
        raise GaveUp("enough")

    run = rollout(env, FunctionPolicy(act), seed=1)
    assert run.terminal.kind == "stopped"
    assert run.outcome_class is OutcomeClass.AGENT_FAILURE
    assert run.verdict.Y is Status.FAIL


GARBAGE = [
    None,
    "",
    " ",
    "refund(",
    '{"tool": "finish"',
    "\ud835",
    [],
    [None],
    {},
    {"tool": None},
    {"tool": "refnd", "arguments": {}},
    {"tool": "finish", "arguments": [1]},
    {"tool": "finish", "arguments": {"outcome": 7}},
    {"tool": "finish", "arguments": {"outcome": "unable"}, "extra": 1},
    7,
    float("nan"),
    b"\xff",
    object(),
    np.zeros(3),
    {"tool": "finish", "arguments": {"\ud835": "\udfff"}},
    {"tool": "\ud835", "arguments": {}},
    {1: 2, (3, 4): {5}},
    "[" * 100_000,
    Exception,
    lambda: None,
]


@pytest.mark.parametrize("action", GARBAGE, ids=[str(number) for number in range(len(GARBAGE))])
def test_garbage_is_answered_and_ends_as_incompatibility(env, tmp_path, action):
    """B009, B120, B121, B179, B182, B184, B188, B191: recorded, answered, and after the declared number the end."""
    seen = []

    def act(observation, info):
        seen.append(observation["text"])
        return action

    policy = FunctionPolicy(act)
    run = run_attempts(env, policy, list(plan(env, policy, TASKS[:1], 1, 0)), tmp_path)[0]
    assert run.terminal.kind == "too_many_invalid_calls"
    assert run.outcome_class is OutcomeClass.HARNESS_INCOMPATIBILITY
    assert run.usage.calls == len(seen) == run.limits.invalid_calls
    assert all('"invalid"' in text for text in seen[1:])
    kept = Results(tmp_path)
    assert kept.read() == [run]
    assert [entry["status"] for entry in kept.evidence(run).events[1:]] == ["invalid"] * run.limits.invalid_calls


def test_a_good_call_in_between_starts_the_count_anew(env):
    def act(observation, info):
        return "garbage" if info["step"] % 10 != 9 else {"tool": "read_policy", "arguments": {}}

    run = rollout(env, FunctionPolicy(act), seed=1)
    assert run.terminal.kind not in ("too_many_invalid_calls", "finished")
    assert run.usage.steps > 10


@pytest.mark.parametrize(
    "usage", [(1,), (float("nan"), None), (-1, 0.0), (None, float("inf")), ("1", None), None, (True, None)]
)
def test_a_usage_that_is_no_number_is_the_policys_failure(env, usage):
    class Odd:
        name = "odd"

        def act(self, observation, info):
            return FINISH

        def usage(self):
            return usage

    assert rollout(env, Odd(), seed=1).terminal.kind == "policy_error"


def test_usage_is_added_up_and_unknown_stays_unknown(env):
    class Counting:
        name = "counting"

        def act(self, observation, info):
            return FINISH if info["step"] == 2 else {"tool": "read_policy", "arguments": {}}

        def usage(self):
            return 100, 0.5

    run = rollout(env, Counting(), seed=1)
    assert (run.usage.tokens, run.usage.cost) == (300, 1.5)
    run = rollout(env, FunctionPolicy(lambda observation, info: FINISH), seed=1)
    assert (run.usage.tokens, run.usage.cost) == (None, None)


# Naming policies ----------------------------------------------------------------------------------------------------

MODULE = """
import functools
import itertools
import threading
import time
class Mine:
    def act(self, observation, info):
        return {"tool": "finish", "arguments": {"outcome": "unable"}}
class Needs:
    def __init__(self, model):
        self.act = print
class Broken:
    def __init__(self):
        raise RuntimeError("no key")
class Slotted:
    __slots__ = ()
    def act(self, observation, info): ...
def act(observation, info):
    return {"tool": "finish", "arguments": {"outcome": "unable"}}
instance = Mine()
bound = functools.partial(act)
number = 7
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "some policies.py"
    path.write_text(MODULE)
    return path


@pytest.mark.parametrize("attribute", ["Mine", "act", "instance", "bound"])
def test_a_policy_is_a_class_an_object_or_a_function(env, module, attribute):
    run = rollout(env, load(f"{module}:{attribute}"), seed=1)
    assert run.policy == attribute
    assert run.terminal.kind == "finished"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{file}:Needs", "Needs"),
        ("{file}:Broken", "no key"),
        ("{file}:Slotted", "name"),
        ("{file}:number", "number.*7 is no policy"),
        ("{file}:nothing", "has no 'nothing'"),
        ("{file}", "file.py:attribute"),
        ("{folder}/none.py:act", "no file"),
        ("{folder}:act", "can't be imported"),
        ("no.such.module:act", "No module named"),
        ("noob", "built in are"),
        ("", "built in are"),
        (":", "can't be imported"),
        ("json:loads.x", "has no"),
    ],
)
def test_what_is_no_policy_is_told_in_a_line(module, spec, message):
    with pytest.raises(PolicyError, match=message) as caught:
        load(spec.format(file=module, folder=module.parent))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["def act(:", "raise ValueError('x')", "import nothing_there", "\0"])
def test_a_file_that_can_not_be_imported_is_told(tmp_path, text):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(PolicyError, match="can't be imported"):
        load(f"{tmp_path / 'bad.py'}:act")


def test_no_policy_is_chosen_by_default():
    """B063: nothing runs as the oracle unless it is named, and its runs say so."""
    assert load("reference").oracle
    assert not any(getattr(load(name), "oracle", False) for name in ("noop", "refuser", "liar", "random", "rulebook"))


def test_the_oracle_is_marked_in_its_records(env):
    run = rollout(env, load("reference"), seed=1)
    assert run.oracle
    assert run.outcome_class is OutcomeClass.SUCCESS


def test_arguments_bound_to_a_function_make_another_policy(env):
    """B138: the same function with another model's name is not the same system."""

    def act(observation, info, model):
        return FINISH

    policies = [as_policy(functools.partial(act, model=model), "mine") for model in ("one", "two", "one")]
    ids = [next(iter(plan(env, policy, TASKS[:1], 1, 0))).run_id for policy in policies]
    assert ids[0] == ids[2] != ids[1]


def test_settings_make_another_policy(env):
    class Model:
        name = "model"

        def __init__(self, temperature):
            self.settings = {"temperature": temperature}

        def act(self, observation, info):
            return FINISH

    ids = [next(iter(plan(env, Model(value), TASKS[:1], 1, 0))).run_id for value in (0.0, 1.0, 0.0)]
    assert ids[0] == ids[2] != ids[1]


# A person -----------------------------------------------------------------------------------------------------------


def _human(lines):
    shown = []
    answers = iter(lines)

    def read(prompt):
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    return Human(read, shown.append), shown


def test_a_person_plays_by_the_same_rules(env):
    human, shown = _human(["?", "? finish", "", "read_policy", 'nothing "at all', "finish outcome=unable"])
    run = rollout(env, human, seed=1)
    assert run.policy == "human"
    assert run.terminal.kind == "finished"
    assert run.usage.calls == 3
    assert run.verdict.Y is Status.FAIL
    assert any("outcome" in text for text in shown)


@pytest.mark.parametrize("lines", [["quit"], ["exit"], ["read_policy", "quit"], []])
def test_a_person_who_leaves_is_judged_by_the_state(env, lines):
    human, _ = _human(lines)
    run = rollout(env, human, seed=1)
    assert run.terminal.kind == "stopped"
    assert run.outcome_class is OutcomeClass.AGENT_FAILURE


@pytest.mark.parametrize(
    "line", ["[" * 5000 + "=" + "[" * 5000, "a b=" + "[" * 100_000, "\\", "'", "= = =", "x=\ud835"]
)
def test_no_line_breaks_the_game(env, line):
    human, _ = _human([line, "finish outcome=unable"])
    assert rollout(env, human, seed=1).terminal.kind == "finished"


def test_amounts_and_numbers_with_zeros_stay_text():
    assert parse_line("refund order=007 amount=25.00 lines=[1,2] n=3 flag=true text='two words' e=1e5 z=NaN")[
        "arguments"
    ] == {
        "order": "007",
        "amount": "25.00",
        "lines": [1, 2],
        "n": 3,
        "flag": True,
        "text": "two words",
        "e": "1e5",
        "z": "NaN",
    }


def test_what_a_parameter_takes_decides_how_a_value_is_read(env):
    tools = {tool["name"]: tool for tool in env.unwrapped.action_space.schemas()}
    for line, arguments in {
        "verify_identity postcode=90210 email=null": {"postcode": "90210", "email": None},
        "get_order order_id=1042": {"order_id": "1042"},
        "send_message text=7 ask=name,email": {"text": "7", "ask": ["name", "email"]},
        'send_message ask=["name"]': {"ask": ["name"]},
        """send_message propose='{"action": "cancel", "order_id": "W1"}'""": {
            "propose": {"action": "cancel", "order_id": "W1"}
        },
        "issue_refund amount=25 authorisation_id=3": {"amount": 25, "authorisation_id": 3},
        "issue_refund amount=25.00 nothing=4": {"amount": "25.00", "nothing": 4},
    }.items():
        assert parse_line(line, tools)["arguments"] == arguments, line


@pytest.mark.parametrize("where", ["begin", "act"])
@pytest.mark.parametrize("hang", [lambda: time.sleep(100), lambda: [None for _ in itertools.count()]])
@pytest.mark.timeout(30)
def test_a_policy_that_never_answers_is_broken_off_and_its_state_judged(where, hang):
    """Law 10, B117."""

    class Slow:
        name = "slow"

        def begin(self, task, tools, seed):
            if where == "begin":
                hang()

        def act(self, observation, info):
            hang()

    agent_envs.register_envs()
    with gymnasium.make("agenteval/refund-v1", wall_seconds=0.5) as env:
        run = rollout(env, Slow(), seed=1)
        assert (run.terminal.kind, run.outcome_class) == ("wall_time_limit", OutcomeClass.AGENT_FAILURE)
        assert run.verdict is not None and run.counts
        assert rollout(env, as_policy(lambda observation, info: FINISH), seed=1).terminal.kind == "finished"


def test_a_policy_stays_in_the_thread_it_is_played_in():
    """What a policy holds, a connection or a browser, may belong to one thread."""
    threads = set()

    class Bound:
        name = "bound"

        def begin(self, task, tools, seed):
            threads.add(threading.get_ident())

        def act(self, observation, info):
            threads.add(threading.get_ident())
            return FINISH

    def play():
        agent_envs.register_envs()
        with gymnasium.make("agenteval/refund-v1", wall_seconds=60) as env:
            kinds.append(rollout(env, Bound(), seed=1).terminal.kind)

    kinds = []
    worker = threading.Thread(target=play)
    worker.start()
    worker.join(30)
    assert kinds == ["finished"]
    assert len(threads) == 1
