"""Task files: a good one is loaded as written, a bad one is refused with file, line and field."""

import os
import time

import pytest
import yaml

from agent_envs.contract import AgentTask, TaskError, load_tasks, read_yaml, unique, validate

GOOD = """\
task_id: shop/one
source: test
initial_state:
  fixture: shop
  clock: 2026-03-01T09:00:00Z
user_request: Refund order A.
available_tools: [refund, finish]
outcome:
  - check: changes
    expect:
      - table: refunds
        values: {order: A, amount: {money: "5.00"}}
"""


def _write(folder, text, name="one.yaml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def test_a_good_file_is_a_task(tmp_path):
    _write(tmp_path, GOOD)
    assert list(load_tasks(tmp_path)) == ["shop/one"]


def test_a_byte_order_mark_and_crlf_do_no_harm(tmp_path):
    _write(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_tasks(tmp_path)["shop/one"].user_request == "Refund order A."


BAD = {
    "duplicate key": ("a: 1\nb:\n  c: 1\n  c: 2\n", r"line 4, b\.c: the key stands here a second time"),
    "duplicate key in another spelling": ('a: 1\n"a": 2\n', r"line 2, a: the key stands here a second time"),
    "alias": ("a: &x [1]\nb: *x\n", r"line 2: the alias \*x"),
    "alias of itself": ("a: &x [*x]\n", r"line 1: the alias \*x"),
    "merge key": ("a: &x {b: 1}\nc:\n  <<: *x\n", r"line 3: the alias"),
    "tab": ("a:\n\t- 1\n", r"line 2, column 1: not YAML"),
    "open bracket": ("a: [1, 2\n", r"line 2, column 1: not YAML"),
    "empty": ("", r"line 1: the file is empty; a mapping"),
    "only a comment": ("# nothing\n", r"line 1: the file is empty; a mapping"),
    "null": ("null\n", r"line 1: the document is a scalar; a mapping"),
    "text": ("just words\n", r"line 1: the document is a scalar; a mapping"),
    "list at the top": ("- a: 1\n", r"line 1: the document is a sequence; a mapping"),
    "two documents": ("a: 1\n---\nb: 2\n", r"line 2, column 1: not YAML"),
    "tag": ("a: 1\nb: !!python/object/apply:os.getcwd []\n", r"line 2: the tag .*python"),
    "number by tag": ("a: !!float .nan\n", r"line 1: the tag"),
    "key that is a list": ("? [1, 2]\n: 3\n", r"line 1, .*a key must be plain text"),
    "number too large": ("a: 1e999\n", r"line 1, a: 1e999 is not a finite number"),
    "number too long": ("a: " + "1" * 5000 + "\n", r"line 1, a: a number of 5000 digits"),
    "nested deeply": ("a: " + "[" * 60 + "]" * 60 + "\n", r"line 1: nested deeper than 40"),
    "nested very deeply": ("a: " + "[" * 100_000, r"line 1"),
    "nul": ("a: \0\n", r"can't be read"),
    "not utf-8": (b"a: \xe9\n", r"can't be read"),
    "utf-16": ("a: 1\n".encode("utf-16"), r"can't be read"),
    "too large": (b"a: " + b"x" * 1_000_001, r"1000004 bytes; a task file holds at most 1000000"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_file_that_is_not_plain_yaml_is_refused_with_its_line(tmp_path, text, message):
    path = _write(tmp_path, text)
    started = time.monotonic()
    with pytest.raises(TaskError, match=message) as caught:
        read_yaml(path)
    assert str(path) in str(caught.value)
    assert time.monotonic() - started < 5


def test_an_alias_bomb_is_refused_quickly(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    started = time.monotonic()
    with pytest.raises(TaskError, match="alias"):
        read_yaml(_write(tmp_path, "\n".join(lines)))
    assert time.monotonic() - started < 5


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe.yaml", "folder.yaml", "missing.yaml"):
        with pytest.raises(TaskError, match=name):
            read_yaml(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-03-01", "2026-03-01"),
        ("12:30", "12:30"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("007", "007"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("0x1f", "0x1f"),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("1.", "1."),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("'12'", "12"),
    ],
)
def test_a_plain_scalar_is_what_it_looks_like(tmp_path, text, value):
    """B064: 007 is a text and not the number 7 (nor is 010 the number 8, or 12:30 the number 750)."""
    found = read_yaml(_write(tmp_path, f"a: {text}\n")).data["a"]
    assert found == value
    assert type(found) is type(value)


FIELDS = {
    "unknown key": (GOOD + "expectd_rows: 1\n", r"line 13, expectd_rows"),
    "unknown key far in": (
        GOOD.replace("table: refunds", "table: refunds\n        tabel: x"),
        r"line 12, outcome\.0\..*tabel",
    ),
    "missing key": (GOOD.replace("source: test\n", ""), r"line 1, source: Field required"),
    "missing key far in": (GOOD.replace("  fixture: shop\n", ""), r"line 3, initial_state\.fixture: Field required"),
    "wrong type": (GOOD.replace("Refund order A.", "[1]"), r"line 6, user_request"),
    "wrong pattern": (GOOD.replace("shop/one", "one"), r"line 1, task_id"),
    "wrong number": (GOOD + "limits:\n  steps: none\n", r"line 14, limits\.steps"),
    "rule over the whole": (GOOD + "terminal_conditions: [done]\n", r"line 1, .*\['done'\]"),
}


@pytest.mark.parametrize(("text", "message"), FIELDS.values(), ids=FIELDS)
def test_a_wrong_field_is_named_with_its_line(tmp_path, text, message):
    """B012."""
    path = _write(tmp_path, text)
    with pytest.raises(TaskError, match=message) as caught:
        validate(read_yaml(path), AgentTask)
    assert str(path) in str(caught.value)


def test_many_faults_are_told_at_once_and_counted(tmp_path):
    path = _write(tmp_path, "".join(f"k{number}: 1\n" for number in range(20)))
    with pytest.raises(TaskError, match=r"and \d+ more") as caught:
        validate(read_yaml(path), AgentTask)
    assert len(str(caught.value)) < 3000


def test_ids_are_unique_also_when_case_is_ignored(tmp_path):
    """B239."""
    _write(tmp_path, GOOD, "one.yaml")
    _write(tmp_path, GOOD, "two.yaml")
    with pytest.raises(TaskError, match=r"two\.yaml, task_id: 'shop/one' is already .*one\.yaml"):
        load_tasks(tmp_path)
    task = AgentTask.model_validate(
        yaml.safe_load(GOOD.replace("clock: 2026-03-01T09:00:00Z", "clock: '2026-03-01T09:00:00Z'"))
    )
    shouted = task.model_copy(update={"task_id": "Shop/One"})
    with pytest.raises(TaskError, match="already"):
        unique([(task, "a"), (shouted, "b")])
    assert list(unique([(task, "a"), (task.model_copy(update={"task_id": "shop/two"}), "b")])) == [
        "shop/one",
        "shop/two",
    ]


def test_a_folder_without_tasks_is_an_error(tmp_path):
    """Law 2: nothing collected is no suite."""
    with pytest.raises(TaskError, match="no task files"):
        load_tasks(tmp_path)
