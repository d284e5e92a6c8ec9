"""Child processes: what is sent arrives, and no end of either side goes unnoticed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually

import headgate
from headgate.jobs.processes.child import REPLIES, ChildProcess, open_output, spawn
from headgate.jobs.processes.messages import GarbledMessageError, parse_line, to_line

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def child_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(headgate.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(source), str(HERE))))


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildProcess]:
    with spawn("odd_child", output=open_output(tmp_path / "logs" / "out")) as spawned:
        yield spawned


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and was not collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_child_has_a_session_of_its_own_and_what_it_prints_is_no_answer(
    child: ChildProcess, tmp_path: Path
) -> None:
    child.send({"do": "answer", "text": "ü\n" * 100_000})
    answer = child.receive(30)
    assert answer is not None
    assert answer["session"] == answer["pid"] == child.pid
    assert answer["text"] == "ü\n" * 100_000
    assert child.receive(30) is None
    assert str(child.get_death()) == "exit code 0"
    assert (tmp_path / "logs" / "out").read_text(encoding="utf-8") == "what a flow prints ü\n"


def test_a_locale_that_is_not_utf_8_changes_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    with spawn("odd_child", output=open_output(tmp_path / "out")) as child:
        child.send({"do": "answer"})
        assert child.receive(30) is not None
        assert child.get_death().code == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "what a flow prints ü\n"


def test_messages_go_both_ways_until_the_child_is_killed(child: ChildProcess) -> None:
    child.send({"do": "echo"})
    for number in range(100):
        child.send({"number": number})
    echoed: list[Any] = []

    def has_all() -> bool:
        echoed.extend(child.take(0.1))
        return len(echoed) == 100

    eventually(has_all)
    assert [message["echo"]["number"] for message in echoed] == list(range(100))
    assert child.find_death() is None
    child.kill()
    assert str(child.find_death()) == "killed by signal 9"
    child.send({"number": 100})
    assert child.take_rest() == []


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ({"code": 3}, "exit code 3: the last word ü"),
        ({"signal": signal.SIGKILL}, "killed by signal 9"),
        ({"signal": signal.SIGSEGV}, "killed by signal 11"),
    ],
)
def test_a_death_has_its_code_or_signal_and_the_last_lines(
    tmp_path: Path, order: dict[str, int], told: str
) -> None:
    output = tmp_path / "out"
    output.write_text("of another child\n")
    with spawn("odd_child", output=open_output(output)) as child:
        child.send({"do": "die", **order})
        assert child.receive(30) is None
        death = child.get_death()
        how = "was" if "signal" in order else "ended with"
        assert death.explain() == f"{how} {told}"
    assert str(death) == told
    assert death.lines == ("first line", "the last word ü")


def test_an_error_that_nobody_caught_is_in_the_death(child: ChildProcess) -> None:
    child.send({"do": "raise"})
    assert child.receive(30) is None
    assert child.get_death().explain() == "ended with exit code 1: RuntimeError: out of paper"


@pytest.mark.parametrize(
    "rubbish", [b"hello\n", b"\xff\xfe\n", b"\n", b"[1]\n", b"null\n", b"[" * 100_000 + b"\n"]
)
def test_a_child_that_sends_rubbish_is_killed_and_its_death_says_so(
    child: ChildProcess, rubbish: bytes
) -> None:
    child.send({"do": "rubbish", "bytes": list(rubbish)})
    assert child.receive(30) is None
    told = str(child.get_death())
    assert told.startswith("killed because it sent a line that is not a message: b'")
    assert len(told) < 500


def test_half_a_message_of_a_killed_child_is_dropped_and_what_came_before_is_not(
    child: ChildProcess,
) -> None:
    child.send({"do": "half"})
    child.get_death()
    assert child.take_rest() == [{"whole": True}]
    assert str(child.find_death()) == "killed by signal 9"


@pytest.mark.parametrize("rubbish", [b"stop\n", b'"stop"\n', b"\xff\n"])
def test_a_child_that_is_sent_rubbish_ends(child: ChildProcess, rubbish: bytes) -> None:
    child.send({"do": "echo"})
    child.send({"number": 1})
    assert child.receive(30) is not None
    assert child._process.stdin is not None
    os.write(child._process.stdin.fileno(), rubbish)
    assert str(child.get_death()) == "killed by signal 9"
    assert "cannot read a message of the parent" in child.get_death().lines[-1]


def test_a_first_message_that_is_rubbish_ends_the_child_with_a_word(child: ChildProcess) -> None:
    assert child._process.stdin is not None
    os.write(child._process.stdin.fileno(), b"rubbish\n")
    assert child.receive(30) is None
    assert "a line that is not a message" in child.get_death().explain()


def test_the_end_of_a_child_is_noticed_though_its_pipe_is_held(
    child: ChildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.jobs.processes.child._LAST_MESSAGES", 0.5)
    child.send({"do": "grandchild", "seconds": 20})
    assert child.receive(30) == {"grandchild": True}
    assert child.receive(10) is None


def test_a_kill_ends_what_the_child_started(child: ChildProcess) -> None:
    child.send({"do": "program"})
    answer = child.receive(30)
    assert answer is not None
    child.kill()
    eventually(lambda: not is_alive(answer["pid"]))


def test_a_child_that_says_nothing_is_waited_for_no_longer_than_was_said(
    child: ChildProcess,
) -> None:
    with pytest.raises(TimeoutError):
        child.receive(0.3)
    assert child.find_death() is None


def test_a_block_that_fails_leaves_no_child_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyError), spawn("odd_child", output=open_output()) as child:
        raise KeyError
    assert not is_alive(child.pid)


def test_an_orphan_goes_on_and_is_no_zombie(tmp_path: Path) -> None:
    child = spawn("odd_child", output=open_output(tmp_path / "out"), is_orphan=True)
    child.send({"do": "orphan"})
    answer = child.receive(30)
    child.close()
    assert answer is not None
    try:
        assert answer["pid"] != child.pid
        eventually(lambda: not Path(f"/proc/{child.pid}").exists() or child.find_death())
        assert is_alive(answer["pid"])
    finally:
        os.kill(answer["pid"], signal.SIGKILL)
    eventually(lambda: not is_alive(answer["pid"]))


def test_an_orphan_that_ends_before_it_answers_leaves_its_last_words(tmp_path: Path) -> None:
    child = spawn("odd_child", output=open_output(tmp_path / "out"), is_orphan=True)
    child.send({"do": "orphan", "dies": True})
    assert child.receive(30) is None
    assert child.get_death().explain() == "exited at once: no room left"
    child.close()


def test_a_module_that_is_not_there_is_a_death_with_a_reason(tmp_path: Path) -> None:
    for is_orphan in (False, True):
        child = spawn("no_such_module", output=open_output(tmp_path / "out"), is_orphan=is_orphan)
        child.send({"do": "answer"})
        assert child.receive(30) is None
        assert child.get_death().explain().endswith("No module named no_such_module")
        child.close()


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    middle = """
import sys, time
from headgate.jobs.processes.child import open_output, spawn
child = spawn("odd_child", output=open_output())
child.send({"do": sys.argv[1]})
child.send({"any": 1})
print(child.pid, child.receive(30) is not None, flush=True)
time.sleep(600)
"""
    for do in ("echo", "wait-for-parent"):
        parent = subprocess.Popen(
            [sys.executable, "-c", middle, do], stdout=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        pid, began = parent.stdout.readline().split()
        assert began == "True"
        parent.kill()
        parent.communicate()
        eventually(lambda pid=int(pid): not is_alive(pid))  # type: ignore[misc]


def test_no_descriptor_and_no_thread_is_left_of_children_that_ended(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for _ in range(5):
        with spawn("odd_child", output=open_output(tmp_path / "out")) as child:
            child.send({"do": "answer"})
            assert child.receive(30) is not None
    eventually(lambda: count() <= before, what=count)
    eventually(lambda: not [t for t in threading.enumerate() if t.name == f"child-{child.pid}"])
    assert REPLIES not in os.environ


def test_a_message_is_one_line_of_json() -> None:
    assert parse_line(to_line({"text": "a\nb ü"})) == {"text": "a\nb ü"}
    assert to_line({"text": "a\nb"}).count(b"\n") == 1
    with pytest.raises(GarbledMessageError):
        parse_line(b"1\n")


def test_time_goes_on_while_a_message_is_waited_for(child: ChildProcess) -> None:
    began = time.monotonic()
    assert child.take(0.2) == []
    assert time.monotonic() - began >= 0.2
