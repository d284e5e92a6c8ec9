"""A job's logs: the last lines, and those that come, across a roll."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate import HeadgateError
from headgate._codec import decode, encode
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.views.log_search import LogFilter, LogLevel, filter_log, search_log
from headgate.jobs.views.logs import Log, LogPage, follow_log, read_log, tail_log


class _Over(Exception):  # noqa: N818 - no error
    """The script is over."""


@pytest.mark.parametrize(
    ("text", "last", "lines"),
    [
        (b"", 5, []),
        (b"a\nb\nc\n", 2, [b"b", b"c"]),
        (b"a\nb\nc\n", 9, [b"a", b"b", b"c"]),
        (b"a\n\n", 2, [b"a", b""]),
        (b"\n", 1, [b""]),
        (b"a\nhalf", 5, [b"a"]),
        (b"a\nb\n", 0, []),
        (b"x" * 200_000 + b"\nb\n", 1, [b"b"]),
    ],
)
def test_the_last_whole_lines_are_given(
    tmp_path: Path, text: bytes, last: int, lines: list[bytes]
) -> None:
    file = tmp_path / "spark.log"
    file.write_bytes(text)
    assert tail_log(file, last=last) == lines


def test_a_follower_sees_every_line_once_also_when_the_file_is_rolled(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    file.write_bytes(b"a\nb\nha")

    def add() -> None:
        with file.open("ab") as log:
            log.write(b"lf\nc\n")

    def roll() -> None:
        file.rename(tmp_path / "spark.log.1")

    def begin() -> None:
        file.write_bytes(b"d\ne\n")

    def end() -> None:
        raise _Over

    clock = FakeClock(steps=[add, roll, begin, end])
    found = list(_until_over(follow_log(file, last=1, clock=clock)))
    assert found == [b"b", b"half", b"c", b"d", b"e"]
    assert max(clock.slept) < timedelta(seconds=1)


def _until_over(lines: Iterator[bytes]) -> Iterator[bytes]:
    with contextlib.suppress(_Over):
        yield from lines


def test_a_page_goes_on_where_the_one_before_ended(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"one\ntwo\nthr")
    first = read_log(file, last=1)
    assert first.lines == ("two",)
    with file.open("ab") as more:
        more.write(b"ee\n\n\xff\n")
    second = read_log(file, last=1, after=first.position)
    assert second.lines == ("three", "", "\\xff")
    assert read_log(file, last=1, after=second.position).lines == ()
    assert decode(LogPage, encode(second)) == second


def test_a_page_of_a_log_that_was_rolled_begins_with_the_new_file(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"one\n" * 9)
    position = read_log(file, last=1).position
    file.rename(tmp_path / "a.log.1")
    file.write_bytes(b"two\n")
    assert read_log(file, last=1, after=position).lines == ("two",)
    position = read_log(file, last=0).position
    file.write_bytes(b"cut\n"[:3])
    assert read_log(file, last=1, after=position).lines == ()


def test_a_line_without_end_does_not_hold_up_a_page(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"")
    position = read_log(file, last=0).position
    file.write_bytes(b"x" * (1 << 20) + b"yy\nlast\n")
    first = read_log(file, last=0, after=position)
    second = read_log(file, last=0, after=first.position)
    assert (len(first.lines[0]), second.lines) == (1 << 20, ("yy", "last"))


def test_the_last_lines_are_looked_for_in_the_last_few_megabytes_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"early\n" + b"x" * (20 << 20) + b"\nlast\n")
    begun = time.monotonic()
    cut, last = tail_log(file, last=9)
    assert (len(cut), set(cut), last) == ((8 << 20) - len(b"\nlast\n"), set(b"x"), b"last")
    # A line that has no end yet is none; a page goes on within it.
    file.write_bytes(b"early\n" + b"x" * (20 << 20))
    page = read_log(file, last=9)
    assert page.lines == ()
    assert page.position.endswith(f":{len(b'early') + 1 + (12 << 20)}")
    assert time.monotonic() - begun < 5


def test_lines_are_found_across_the_pieces_that_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    lines = [b"%d" % number * (number % 50) for number in range(20_000)]
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    for last in (1, 500, 5_000, 19_999, 20_000, 30_000):
        assert tail_log(file, last=last) == lines[-last:]


@pytest.mark.parametrize("position", ["", "7", "a:b", "1:-1", "1:2:3", "1:" + "9" * 40])
def test_what_is_no_position_of_a_log_is_refused(tmp_path: Path, position: str) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"one\n")
    with pytest.raises(HeadgateError) as raised:
        read_log(file, last=1, after=position)
    assert raised.value.code == "BAD_POSITION"


ERROR = b"2026-11-18 14:00:00.000 ERROR A: Lost\njava.io.IOException: gone\n\tat X\n"
WARN = b"2026-11-18 14:00:01.000 WARN B: slow\n"
INFO = b"2026-11-18 14:00:02.000 INFO C: fine \xff\n"


@pytest.mark.parametrize(
    ("text", "level", "lines"),
    [
        ("", None, [*ERROR.splitlines(), *WARN.splitlines(), *INFO.splitlines()]),
        ("", LogLevel.ERROR, ERROR.splitlines()),
        ("", LogLevel.WARN, [*ERROR.splitlines(), *WARN.splitlines()]),
        ("GONE", None, [b"java.io.IOException: gone"]),
        ("o", LogLevel.WARN, [*ERROR.splitlines()[:2], *WARN.splitlines()]),
        ("nothing", LogLevel.DEBUG, []),
    ],
)
def test_a_log_is_searched_by_text_and_level_with_the_lines_of_an_entry(
    tmp_path: Path, text: str, level: LogLevel | None, lines: list[bytes]
) -> None:
    home = JobFolder(tmp_path, "orders")
    home.log_file.parent.mkdir(parents=True)
    home.log_file.write_bytes(ERROR + WARN + INFO)
    wanted = LogFilter(text=text, level=level)
    assert list(filter_log(home, Log.SPARK, wanted)) == lines
    found = search_log(home, Log.SPARK, wanted, last=1)
    assert found.total == len(lines)
    last = [line.decode("utf-8", errors="backslashreplace") for line in lines[-1:]]
    assert list(found.lines) == last


def test_a_search_covers_rolled_files_oldest_first_and_lines_across_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.jobs.views.log_search._PIECE", 7)
    home = JobFolder(tmp_path, "orders")
    home.log_file.parent.mkdir(parents=True)
    for number, (name, content) in enumerate(
        [
            ("spark.log.2", b"a needle 1\nhay\n"),
            ("spark.log.1", b"a needle 2\n" + b"h" * 100 + b"\n"),
            ("spark.log", b"hay\nneedle 3"),
            ("spark.log4j2.properties", b"needle 4\n"),
        ]
    ):
        file = home.log_file.with_name(name)
        file.write_bytes(content)
        os.utime(file, (number, number))
    found = search_log(home, Log.SPARK, LogFilter(text="needle"), last=9)
    assert found.lines == ("a needle 1", "a needle 2", "needle 3")
    (home.path / "events.old.jsonl").write_text('{"old": 1}\n')
    (home.path / "events.jsonl").write_text('{"new": 1}\n')
    assert search_log(home, Log.EVENTS, LogFilter()).lines == ('{"old": 1}', '{"new": 1}')


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_log_that_was_replaced_by_something_else_is_not_read(tmp_path: Path, kind: str) -> None:
    secret, file = tmp_path / "secret", tmp_path / "stderr"
    secret.write_text("secret\n")
    file.write_text("a\n")
    follower = follow_log(file, last=1, clock=FakeClock())
    assert next(follower) == b"a"
    file.unlink()
    if kind == "link":
        file.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    for read in (
        lambda: tail_log(file, last=9),
        lambda: read_log(file, last=9),
        lambda: next(follow_log(file, last=9)),
        lambda: next(follower),
    ):
        with pytest.raises(HeadgateError, match="LOG_NOT_FOUND"):
            read()


def test_a_level_is_refused_for_a_log_without_levels(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "orders")
    with pytest.raises(HeadgateError, match="LOG_WITHOUT_LEVELS"):
        search_log(home, Log.EVENTS, LogFilter(level=LogLevel.WARN))
