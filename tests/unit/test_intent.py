"""Intents: what is asked of a job, one numbered thing after another."""

import json
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from fake_clock import NOON, FakeClock

from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import (
    Intent,
    find_echo,
    find_intent,
    has_supervisor,
    write_intent,
)
from headgate.jobs.lifecycle.vocabulary import Verb


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    home = JobFolder(tmp_path, "orders")
    home.path.mkdir(parents=True)
    return home


def ask(home: JobFolder, verb: Verb = Verb.STOP, **arguments: Any) -> int:
    return write_intent(home, verb, arguments, by="cli", clock=FakeClock(steps=()))


def echo(home: JobFolder, number: int) -> None:
    home.write_status({"intent": number, "intent_error": None})


def supervised(home: JobFolder) -> AbstractContextManager[None]:
    """Hold the job as its supervisor does."""
    return home.locked()


def test_an_intent_is_found_as_it_was_written(home: JobFolder) -> None:
    assert ask(home, Verb.STOP, drain=True, savepoint="/backups") == 1
    assert find_intent(home) == Intent(
        1, Verb.STOP, {"drain": True, "savepoint": "/backups"}, "cli", NOON
    )


def test_a_job_of_which_nothing_was_asked_has_no_intent(home: JobFolder) -> None:
    assert find_intent(home) is None
    assert find_echo(home) == 0


def test_the_file_carries_its_format(home: JobFolder) -> None:
    ask(home, Verb.PAUSE)
    content = json.loads((home.path / "intent.json").read_text())
    assert content["format"] == 1
    assert content["verb"] == "pause"


def test_numbers_rise_with_each_intent_that_is_followed(home: JobFolder) -> None:
    with supervised(home):
        for number in range(1, 6):
            assert ask(home) == number
            echo(home, number)


def test_a_lost_intent_file_does_not_start_the_numbers_again(home: JobFolder) -> None:
    ask(home)
    echo(home, 1)
    (home.path / "intent.json").unlink()
    assert ask(home) == 2


def test_an_intent_that_is_not_yet_followed_is_not_replaced(home: JobFolder) -> None:
    ask(home, Verb.STOP)
    with supervised(home), pytest.raises(HeadgateError) as caught:
        ask(home, Verb.PAUSE)
    error = caught.value
    assert (error.code, error.retryable) == ("JOB_BUSY", True)
    assert error.message == (
        "cannot pause job 'orders': it was asked to stop by cli at 12:00:00 UTC, and has not "
        "done so yet"
    )
    assert error.hint == "headgate show orders"
    found = find_intent(home)
    assert found is not None
    assert found.verb is Verb.STOP


def test_an_intent_that_was_refused_counts_as_dealt_with(home: JobFolder) -> None:
    with supervised(home):
        ask(home, Verb.RESUME)
        home.write_status({"intent": 1, "intent_error": {"code": "ILLEGAL_TRANSITION"}})
        assert ask(home, Verb.PAUSE) == 2


def test_what_a_dead_supervisor_left_undone_is_replaced(home: JobFolder) -> None:
    with supervised(home):
        ask(home, Verb.PAUSE)
    assert ask(home, Verb.CANCEL) == 2


def test_a_job_that_does_not_exist_is_not_made_by_asking(tmp_path: Path) -> None:
    with pytest.raises(HeadgateError) as caught:
        ask(JobFolder(tmp_path, "odrers"))
    assert caught.value.code == "JOB_NOT_FOUND"
    assert caught.value.hint == "headgate jobs"
    assert not (tmp_path / "jobs").exists()


def test_a_verb_that_is_none_is_refused_before_anything_is_written(home: JobFolder) -> None:
    with pytest.raises(ValueError, match="explode"):
        write_intent(home, "explode", by="cli")  # type: ignore[arg-type]
    assert find_intent(home) is None


def test_a_supervisor_is_seen_while_it_holds_the_job_and_no_longer(home: JobFolder) -> None:
    assert not has_supervisor(home)
    with supervised(home):
        assert has_supervisor(home)
        assert has_supervisor(home), "looking lets nothing go"
    assert not has_supervisor(home)


def test_looking_for_a_supervisor_keeps_none_from_starting(home: JobFolder) -> None:
    with supervised(home):
        pass
    assert not has_supervisor(home)
    with supervised(home):
        assert has_supervisor(home)


DAMAGE = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b'{"format": 1}',
    b'{"format": 1, "number": "x", "verb": "stop", "arguments": {}, "by": "", "at": ""}',
    b'{"format": 1, "number": 1, "verb": "fly", "arguments": {}, "by": "", "at": "2026-01-01"}',
    b'{"format": 1, "number": 1, "verb": "stop", "arguments": 7, "by": "", "at": "2026-01-01"}',
    b'{"format": 1, "number": 1, "verb": "stop", "arguments": {}, "by": "", "at": 5}',
]


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_intent_is_told_and_not_guessed_at(home: JobFolder, content: bytes) -> None:
    (home.path / "intent.json").write_bytes(content)
    with pytest.raises(HeadgateError) as caught:
        find_intent(home)
    assert (caught.value.code, caught.value.domain) == ("JOB_FILE_BROKEN", Domain.EXTERNAL)
    assert "intent.json" in caught.value.message


def test_a_status_with_a_damaged_echo_is_told(home: JobFolder) -> None:
    home.write_status({"intent": "many"})
    with pytest.raises(HeadgateError) as caught:
        ask(home)
    assert caught.value.code == "JOB_FILE_BROKEN"


def test_a_status_without_an_echo_stands_for_none(home: JobFolder) -> None:
    home.write_status({"state": "RUNNING"})
    assert find_echo(home) == 0
    home.write_status({"state": "RUNNING", "intent": None})
    assert find_echo(home) == 0


def test_of_many_writers_at_once_no_two_get_the_same_number(home: JobFolder) -> None:
    start = threading.Barrier(8)

    def write(_: int) -> list[int]:
        start.wait()
        return [ask(home) for _ in range(10)]

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for given in pool.map(write, range(8)) for number in given]
    assert sorted(numbers) == list(range(1, 81))


def ask_some(root: Path) -> list[int]:
    return [ask(JobFolder(root, "orders")) for _ in range(50)]


def test_of_many_processes_at_once_no_two_get_the_same_number(home: JobFolder) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        numbers = [number for given in pool.map(ask_some, [home.root] * 2) for number in given]
    assert sorted(numbers) == list(range(1, 101))


def test_of_two_who_ask_a_supervised_job_at_once_one_is_told_it_is_busy(home: JobFolder) -> None:
    start = threading.Barrier(4)

    def write(_: int) -> str:
        start.wait()
        try:
            return str(ask(home))
        except HeadgateError as error:
            return error.code

    with supervised(home), ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, range(4))) == ["1", "JOB_BUSY", "JOB_BUSY", "JOB_BUSY"]
