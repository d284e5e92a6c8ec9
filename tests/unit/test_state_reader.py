"""The reader of state as a process: who gets in, how it ends, what it says if it cannot answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from eventually import eventually

from headgate.errors import HeadgateError
from headgate.jobs.processes.messages import to_line
from headgate.jobs.state import client
from headgate.jobs.state.answers import Answers
from headgate.jobs.state.client import LONGEST_QUERY, StateDesk
from headgate.jobs.state.connection import ReaderFolder, introduction, receive
from headgate.jobs.state.reader import LONGEST, Daemon


def no_spark() -> None:
    raise HeadgateError("DRIVER_NOT_STARTED", "cannot start Spark: it is not here", hint="none")


@contextmanager
def serving(
    root: Path, *, idle: float = 600.0, longest: Mapping[str, float] = LONGEST
) -> Iterator[Daemon]:
    """Run a reader that has no Spark, in this process."""
    folder = ReaderFolder(root)
    folder.make()
    daemon = Daemon(folder, idle=idle, reader=no_spark, longest=longest)  # type: ignore[arg-type]
    with folder.listen() as listening:
        thread = threading.Thread(target=daemon.serve, args=(listening,))
        thread.start()
        try:
            yield daemon
        finally:
            daemon.stop()
            thread.join(20)
            assert not thread.is_alive()


def talk(root: Path, question: dict[str, object]) -> tuple[object, object]:
    """Return how a reader introduces itself, and what it answers."""
    connection = ReaderFolder(root).find_connection(5.0)
    assert connection is not None
    with connection, connection.makefile("rb") as stream:
        told = receive(stream)
        connection.sendall(to_line(question))
        return told, receive(stream)


@pytest.mark.parametrize("name", ["home", "h" * 120, "ü" * 60])
def test_nobody_else_gets_to_the_socket_however_long_its_path_is(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    with serving(root):
        folder = ReaderFolder(root)
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert folder.socket_file.stat().st_mode & 0o777 == 0o600
        told, _ = talk(root, {"ask": "nothing"})
        assert told == introduction()


def test_a_socket_that_a_dead_reader_left_is_replaced(tmp_path: Path) -> None:
    folder = ReaderFolder(tmp_path)
    folder.make()
    folder.listen().close()
    assert folder.socket_file.exists()
    assert folder.find_connection(1.0) is None
    with serving(tmp_path):
        found = folder.find_connection(1.0)
        assert found is not None
        found.close()


def test_a_reader_ends_when_it_is_asked_to_and_takes_its_socket_along(tmp_path: Path) -> None:
    with serving(tmp_path):
        StateDesk(tmp_path).close()
        eventually(lambda: not ReaderFolder(tmp_path).socket_file.exists())
    # Nobody there is no error.
    StateDesk(tmp_path).close()


def test_a_reader_ends_when_nobody_asks(tmp_path: Path) -> None:
    with serving(tmp_path, idle=0.2):
        eventually(lambda: not ReaderFolder(tmp_path).socket_file.exists())


def test_a_reader_ends_when_its_folder_is_gone(tmp_path: Path) -> None:
    with serving(tmp_path):
        folder = ReaderFolder(tmp_path)
        made = folder.socket_file.stat().st_mtime_ns
        # A file that follows at once may have the number and the time of the one before.
        eventually(lambda: time.time_ns() - made > 50_000_000)
        folder.socket_file.unlink()
        with folder.listen() as other:
            # Another one's socket stays.
            eventually(lambda: not any(t.name.endswith("(serve)") for t in threading.enumerate()))
            assert folder.socket_file.exists()
            assert other.fileno() >= 0


def test_errors_travel_with_their_code_and_hint(tmp_path: Path) -> None:
    with serving(tmp_path):
        _, answer = talk(tmp_path, {"ask": "nothing"})
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == "STATE_QUESTION_UNKNOWN"
        _, answer = talk(
            tmp_path, {"ask": "look_up", "job": "none", "uid": "u", "key": "1", "at": None}
        )
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == "JOB_NOT_FOUND"
        # What nobody foresaw: a question without its parts.
        _, answer = talk(tmp_path, {"ask": "look_up"})
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == "STATE_READER_FAILED"
        assert "reader.out" in answer["error"]["hint"]


def test_an_answer_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = [16 * 1024 * 1024]
    monkeypatch.setattr(Answers, "answer", lambda *_: {"rows": "x" * size[0]})
    with serving(tmp_path):
        _, answer = talk(tmp_path, {"ask": "query"})
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == "STATE_ANSWER_TOO_LARGE"
        assert "16.0 MiB" in answer["error"]["message"]
        size[0] -= 100
        _, answer = talk(tmp_path, {"ask": "query"})
        assert isinstance(answer, dict)
        assert len(answer["answer"]["rows"]) == size[0]


def test_a_reader_that_hangs_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(Answers, "answer", lambda *_: release.wait(30))
    with serving(tmp_path, longest={"look_up": 0.2}):
        _, answer = talk(tmp_path, {"ask": "look_up"})
        assert isinstance(answer, dict)
        assert answer["error"]["code"] == "STATE_READER_DIED"
        eventually(lambda: not ReaderFolder(tmp_path).socket_file.exists())
        release.set()


def test_a_desk_that_waited_in_vain_ends_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(Answers, "answer", lambda *_: release.wait(30))
    monkeypatch.setattr(client, "_ANSWER", 0.2)
    with serving(tmp_path):
        with pytest.raises(HeadgateError) as caught:
            StateDesk(tmp_path)._request({"ask": "look_up"})
        assert caught.value.code == "STATE_READER_DIED"
        assert not ReaderFolder(tmp_path).socket_file.exists()
        release.set()


def test_whoever_waits_outlasts_a_reader_and_a_reader_outlasts_its_queries() -> None:
    assert max(LONGEST.values()) < client._ANSWER
    assert LONGEST["query"] == LONGEST["first_rows"] > LONGEST_QUERY.total_seconds()


def test_a_query_that_its_reader_died_of_is_not_sent_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = StateDesk(tmp_path)
    asked: list[str] = []

    def die(question: Mapping[str, str]) -> None:
        asked.append(question["ask"])

    monkeypatch.setattr(desk, "_try", die)
    with pytest.raises(HeadgateError) as caught:
        desk._request({"ask": "query"})
    assert (caught.value.code, caught.value.retryable) == ("STATE_READER_DIED", True)
    with pytest.raises(HeadgateError):
        desk._request({"ask": "look_up"})
    assert asked == ["query", "look_up", "look_up"]


def test_whoever_connects_and_says_nothing_keeps_nobody_from_being_answered(tmp_path: Path) -> None:
    with serving(tmp_path):
        silent = ReaderFolder(tmp_path).find_connection(1.0)
        assert isinstance(silent, socket.socket)
        assert talk(tmp_path, {"ask": "nothing"})[0] == introduction()
        silent.close()


def test_a_desk_asks_nobody_where_there_is_no_such_job(tmp_path: Path) -> None:
    desk = StateDesk(tmp_path, idle=timedelta(seconds=1))
    with pytest.raises(HeadgateError) as caught:
        desk.look_up("none", "with-user", "1")
    assert caught.value.code == "JOB_NOT_FOUND"
    assert not ReaderFolder(tmp_path).path.exists()
