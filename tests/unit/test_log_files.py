"""A job's logs: the last lines, and those that come, across a roll."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate import HeadgateError
from headgate._codec import decode, encode
from headgate.jobs.views.logs import LogPage, follow_log, read_log, tail_log


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
