"""A job's logs: the last lines, and those that come, across a roll."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headgate.jobs.log_files import follow_log, tail_log


class _Over(Exception):  # noqa: N818 - no error
    """The script is over."""


class Script:
    """A clock that does the next thing each time somebody waits."""

    def __init__(self, *steps: object) -> None:
        self._steps = list(steps)

    def now(self) -> datetime:
        raise AssertionError("nobody asks for the time")

    def monotonic(self) -> float:
        raise AssertionError("nobody asks for the time")

    def sleep(self, duration: timedelta) -> None:
        assert duration < timedelta(seconds=1)
        if not self._steps:
            raise _Over
        step = self._steps.pop(0)
        assert callable(step)
        step()


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

    clock = Script(add, roll, begin)
    found = list(_until_over(follow_log(file, last=1, clock=clock)))
    assert found == [b"b", b"half", b"c", b"d", b"e"]


def _until_over(lines: Iterator[bytes]) -> Iterator[bytes]:
    with contextlib.suppress(_Over):
        yield from lines
