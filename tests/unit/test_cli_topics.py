"""The verbs `topics` and `tail`, and what every verb does when something goes wrong."""

import contextlib
import errno
import inspect
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli_runs import run

import headgate
from headgate.cli.parts import failures
from headgate.cli.parts.help import flowing
from headgate.cli.parts.output import format_age, visible
from headgate.cli.topics import topics
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.errors import Domain, HeadgateError

COMMAND = [sys.executable, "-c", "from headgate.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(headgate.__file__).parents[1])}
VERBS = ["tail", "topics", "topics list", "topics show", "topics create", "produce store", "doctor"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADGATE_TRACEBACK", raising=False)
    return tmp_path


def start(*args: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, *args],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A test runner may itself ignore Ctrl-C, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def topic(name: str = "orders", partitions: int = 1) -> TopicFolder:
    folder = TopicFolder(Path(".headgate/topics") / name)
    folder.create(partitions)
    return folder


def test_topics_without_a_verb_lists_them_as_list_does() -> None:
    topic("users", 2).publish(b'{"id":1}\n')
    topic("items")
    bare, listed = run("topics"), run("topics", "list")
    assert bare.exit_code == 0
    # The age of the newest file goes on between the two.
    lines = [line.split()[:4] for line in bare.stdout.splitlines()]
    assert lines == [line.split()[:4] for line in listed.stdout.splitlines()]
    assert lines == [
        ["topic", "partitions", "files", "size"],
        ["items", "1", "0", "0B"],
        ["users", "2", "1", "9B"],
    ]


def test_topics_counts_records_only_when_asked() -> None:
    topic().publish(b'{"id":1}\n\n{"id":2}\n')
    (plain,) = json.loads(run("topics", "--json").stdout)
    (counted,) = json.loads(run("topics", "--json", "--count").stdout)
    assert "records" not in plain
    assert counted["records"] == 2
    assert run("topics", "--count").stdout.splitlines()[1].split()[4] == "2"


def test_topics_says_where_it_found_none_and_how_to_make_one() -> None:
    result = run("topics", "--on", "files:elsewhere")
    assert result.exit_code == 0
    assert "files:elsewhere" in result.stdout
    assert "headgate topics create" in result.stdout
    assert json.loads(run("topics", "--json").stdout) == []


def test_a_table_in_a_pipe_is_plain_and_never_cut() -> None:
    name = "n" * 200
    topic(name)
    out = run("topics").stdout
    assert name in out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_show_tells_all_about_a_topic() -> None:
    folder = topic(partitions=3)
    for number in range(12):
        folder.publish(b'{"id":1}\n', name=f"{number:02d}.jsonl")
    shown = run("topics", "show", "orders", "--count").stdout
    for text in ("where      .headgate/topics/orders", f"id         {folder.get_meta().id}"):
        assert text in shown
    assert re.search(r"partitions +3\nfiles +12, 108B\nledger +0 files.*\nrecords +12\n", shown)
    assert shown.count("part-0/") == 10
    assert "part-0/11.jsonl" in shown

    told = json.loads(run("topics", "show", "orders", "--json").stdout)
    assert told["id"] == folder.get_meta().id
    assert told["ledger"] == 0
    assert [file["path"] for file in told["last_files"]] == [
        f"part-0/{number:02d}.jsonl" for number in range(2, 12)
    ]


def test_show_tells_that_a_folder_was_made_by_hand(here: Path) -> None:
    (here / ".headgate/topics/orders").mkdir(parents=True)
    assert "created by hand" in run("topics", "show", "orders").stdout


def test_create_makes_a_topic_once_and_says_so() -> None:
    made = run("topics", "create", "orders", "--partitions", "4")
    again = run("topics", "create", "orders", "--partitions", "4")
    assert "Created topic 'orders' with 4 partitions" in made.stdout
    assert "exists already, with 4 partitions" in again.stdout
    assert (made.exit_code, again.exit_code) == (0, 0)
    assert json.loads(run("topics", "create", "orders", "--json").stdout) == {
        "name": "orders",
        "partitions": 4,
        "where": ".headgate/topics/orders",
        "existed": True,
    }


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("topics", "create", "orders", "--partitions", "3"), "TOPIC_EXISTS"),
        (("topics", "create", "visits", "--partitions", "0"), "BAD_PARTITIONS"),
        (("topics", "create", "_visits"), "BAD_TOPIC_NAME"),
        (("topics", "show", "visits"), "TOPIC_NOT_FOUND"),
        (("tail", "visits"), "TOPIC_NOT_FOUND"),
        (("tail", "visits", "-f"), "TOPIC_NOT_FOUND"),
        (("topics", "--on", "nats://localhost"), "LOG_UNSUPPORTED"),
        (("tail",), "BAD_USAGE"),
        (("tail", "orders", "-n", "many"), "BAD_USAGE"),
        (("tail", "orders", "-n", "-1"), "BAD_USAGE"),
        (("topics", "--count", "list"), "BAD_USAGE"),
        (("topics", "lst"), "BAD_USAGE"),
        (("tpics",), "BAD_USAGE"),
        (("--colour",), "BAD_USAGE"),
    ],
)
def test_a_users_error_is_a_code_a_message_and_a_hint(args: tuple[str, ...], code: str) -> None:
    topic()
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    error, hint, *more = result.stderr.splitlines()
    assert error.startswith(f"error {code}: cannot ")
    assert hint.startswith("hint: ")
    # The help explains more of a command line than the page of errors.
    assert more == ([] if code == "BAD_USAGE" else [f"more: headgate explain {code}"])


def test_an_error_is_json_where_json_was_asked_for() -> None:
    topic()
    for args in (("tail", "visits", "--json"), ("topics", "lst", "--json")):
        told = json.loads(run(*args).stderr)
        assert sorted(told) == ["code", "hint", "message"]
    # After a double dash it is a name like any other.
    assert run("tail", "--", "--json").stderr.startswith("error TOPIC_NOT_FOUND")


def test_a_topic_that_is_not_found_names_those_that_are() -> None:
    topic("orders")
    topic("users")
    assert "it has orders, users" in run("tail", "oders").stderr


def test_the_hint_of_a_missing_topic_works_when_pasted() -> None:
    hint = run("tail", "visits").stderr.splitlines()[1].removeprefix("hint: headgate ")
    assert run(*shlex.split(hint)).exit_code == 0
    assert run("tail", "visits").exit_code == 0


def test_a_failure_from_outside_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HeadgateError("BROKER_DOWN", "cannot reach it", domain=Domain.EXTERNAL)

    monkeypatch.setattr(topics, "list_topics", fail)
    result = run("topics")
    assert result.exit_code == 3
    assert result.stderr.startswith("error BROKER_DOWN: cannot reach it\n")


def test_what_the_system_refuses_is_told_without_a_traceback(here: Path) -> None:
    (here / "file").write_text("")
    result = run("topics", "create", "orders", "--on", "files:file")
    assert result.exit_code == 3
    assert result.stderr.startswith("error NOT_A_FOLDER: cannot finish 'headgate topics create")


def test_an_unexpected_failure_ends_with_70_and_says_where_its_traceback_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics, "list_topics", _surprise)
    result = run("topics")
    assert result.exit_code == 70
    error, _hint, _more = result.stderr.splitlines()
    found = re.fullmatch(r"error INTERNAL: .*ZeroDivisionError: .* \(traceback: (.+)\)", error)
    assert found
    story = Path(found[1])
    assert "in _surprise" in story.read_text()
    story.unlink()


def test_a_traceback_is_shown_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "list_topics", _surprise)
    monkeypatch.setenv("HEADGATE_TRACEBACK", "1")
    result = run("topics")
    assert result.exit_code == 70
    assert "in _surprise" in result.stderr


def _surprise(*_: object, **__: object) -> None:
    raise ZeroDivisionError("division by zero")


def test_a_pipe_that_broke_elsewhere_is_a_failure_and_not_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "the other process has gone")

    monkeypatch.setattr(topics, "list_topics", fail)
    monkeypatch.setattr(failures, "is_stdout_closed", lambda: False)
    result = run("topics")
    assert result.exit_code == 70
    assert "the other process has gone" in result.stderr


def test_tail_gives_a_pipe_the_records_own_bytes() -> None:
    folder = topic()
    folder.publish(b'{"id":1}\n\xff\xfe bad\n\n{"name":"\xc3\xa9 \x1b[31m"}\r\n')
    expected = b'\xff\xfe bad\n{"name":"\xc3\xa9 \x1b[31m"}\n'
    assert run("tail", "orders", "-n", "2").stdout_bytes == expected
    assert run("tail", "orders", "-n", "2", "--json").stdout_bytes == expected
    assert run("tail", "orders", "-n", "0").stdout_bytes == b""


def test_tail_shows_ten_records() -> None:
    topic().publish(b"".join(b'{"id":%d}\n' % number for number in range(20)))
    assert run("tail", "orders").stdout.splitlines()[0] == '{"id":10}'


def test_follow_prints_what_comes_and_ends_well_with_control_c() -> None:
    folder = topic()
    folder.publish(b'{"id":1}\n')
    process = start("tail", "orders", "-f")
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == b'{"id":1}\n'
    folder.publish(b'{"id":2}\n')
    assert process.stdout.readline() == b'{"id":2}\n'
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=180) == 0
    assert process.stderr.read() == b""


@pytest.mark.parametrize("args", [("tail", "orders", "-n", "100000"), ("topics", "--json")])
def test_a_reader_that_leaves_ends_the_verb_in_silence(args: tuple[str, ...]) -> None:
    topic().publish(b'{"id":1}\n' * 100_000)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, *args], env=ENVIRONMENT, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.returncode == failures.PIPE_CLOSED
    assert done.stderr == b""


def test_a_terminal_gets_colours_and_obeys_no_record() -> None:
    topic().publish(b'{"id":1,"name":"\x1b[2J\x07\xff"}\n')
    shown = b"".join(_on_terminal("tail", "orders")).decode()
    assert "\x1b[2J" not in shown
    assert "\x07" not in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain != shown
    assert plain.strip() == r'{"id":1,"name":"\x1b[2J\x07\xff"}'


def _on_terminal(*args: str) -> Iterator[bytes]:
    ours, theirs = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([*COMMAND, *args], env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    # An error of input and output is how Linux says that the other side was closed.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 4096):
            yield piece
    os.close(ours)
    assert process.wait(timeout=180) == 0


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_examples(verb: str) -> None:
    result = run(*verb.split(), "--help")
    assert result.exit_code == 0
    assert re.search(rf"Examples\s+headgate {verb.split()[0]}", result.stdout)


def test_the_examples_of_topics_work() -> None:
    topic()
    docs = [topics.topics, topics.list_all, topics.show_one, topics.create]
    lines = [
        line.strip().partition(" # ")[0]
        for each in docs
        for line in (inspect.getdoc(each) or "").splitlines()
        if line.startswith("  headgate ") and "://" not in line
    ]
    assert len(lines) > 6
    for line in lines:
        name, *args = shlex.split(line)
        # The topic of the examples is there with one partition.
        args = ["8" if arg == "orders" and "create" in args else arg for arg in args]
        assert name == "headgate"
        assert run(*args).exit_code == 0, line


def test_help_flows_and_keeps_examples_together() -> None:
    text = (
        "A promise\nin two lines.\n\nMore\nwords.\n\n[bold]Examples[/bold]\n\n  a\n\n  b  # why\n"
    )
    assert flowing(text) == (
        "A promise in two lines.\n\nMore words.\n\n"
        "[bold]Examples[/bold]\n[cyan]  a[/cyan]\n[cyan]  b[/cyan]  # why"
    )


def test_help_waits_for_neither_numpy_nor_spark_and_a_command_for_no_other() -> None:
    script = (
        "import sys\nfrom headgate.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'numpy', 'pyspark', 'pandas', 'confluent_kafka', 'httpx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert ('headgate.cli.views.audit' in sys.modules) is ('--help' in sys.argv)\n"
    )
    for args in (["--help"], ["topics"]):
        command = [sys.executable, "-c", script, *args]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout == f"headgate {headgate.__version__}\n"


def test_headgate_alone_shows_its_help() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Usage: headgate" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("ago", "text"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (172_800, "2d")],
)
def test_an_age_is_told_in_its_largest_unit(ago: int, text: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert format_age(now - timedelta(seconds=ago), now) == text


def test_visible_text_keeps_letters_and_tabs() -> None:
    assert visible("é\t日\x1b\x9b\x7f") == "é\t日\\x1b\\x9b\\x7f"


def test_a_variable_says_where_topics_are_and_an_option_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = f"files:{tmp_path / 'here'}", f"files:{tmp_path / 'there'}"
    monkeypatch.setenv("HEADGATE_ON", here)
    assert run("topics", "create", "orders").exit_code == 0
    assert run("topics", "create", "users", "--on", there).exit_code == 0
    for group in (("topics",), ("topics", "list")):
        names = [each["name"] for each in json.loads(run(*group, "--json").stdout)]
        assert names == ["orders"]
    assert "users" in run("topics", "list", "--on", there).stdout
    # Set to nothing, it says nothing.
    monkeypatch.setenv("HEADGATE_ON", "")
    assert "orders" not in run("topics", "list").stdout
