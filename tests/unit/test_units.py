"""Durations, sizes, counts and the clock."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate._clock import Clock, SystemClock
from headgate._units import (
    format_count,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)
from headgate.errors import HeadgateError

DURATIONS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=999_999_999))


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("5s", timedelta(seconds=5)),
        ("10m", timedelta(minutes=10)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("1.5s", timedelta(milliseconds=1500)),
        ("0s", timedelta(0)),
        ("1h30m", timedelta(minutes=90)),
        ("1d2h3m4s5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        ("0.001ms", timedelta(microseconds=1)),
        (" 5s ", timedelta(seconds=5)),
    ],
)
def test_a_duration_reads_as_written(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    ["", "5", "s", "-5s", "5 s", "5S", "5sec", "1m1h", "1s1s", ".5s", "1.s", "0.0001ms", "1_0s",
     "9999999999d", "٥s", "5s\n5s"],
)  # fmt: skip
def test_a_bad_duration_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_duration(text)
    assert caught.value.code == "BAD_DURATION"
    assert repr(text) in caught.value.message
    assert caught.value.hint


@given(DURATIONS)
def test_a_duration_survives_being_written_and_read(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@given(st.text(alphabet="0123456789.dhms -", max_size=12))
def test_any_text_is_a_duration_or_is_refused_by_code(text: str) -> None:
    code = ""
    try:
        parse_duration(text)
    except HeadgateError as error:
        code = error.code
    assert code in ("", "BAD_DURATION")


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(microseconds=1), "0.001ms"),
        (timedelta(milliseconds=1500), "1.5s"),
        (timedelta(seconds=10), "10s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(hours=100), "4d4h"),
        (timedelta(days=7), "7d"),
    ],
)
def test_a_duration_is_written_short(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


def test_a_negative_duration_cannot_be_written() -> None:
    with pytest.raises(HeadgateError, match="negative"):
        format_duration(timedelta(seconds=-1))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MiB", 64 * 1024**2),
        ("1MB", 1_000_000),
        ("512k", 512 * 1024),
        ("100", 100),
        ("100B", 100),
        ("0", 0),
        ("2kB", 2000),
        ("2KB", 2000),
        ("1.5GiB", 3 * 512 * 1024**2),
        ("3g", 3 * 1024**3),
        ("1 MiB", 1024**2),
        ("1tb", 10**12),
    ],
)
def test_a_size_reads_as_written(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1.5", "0.3k", "1XB", "1 M iB", "1,000", "1e3"])
def test_a_bad_size_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_size(text)
    assert caught.value.code == "BAD_SIZE"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (100, "100B"),
        (1000, "1000B"),
        (1024, "1KiB"),
        (1536, "1.5KiB"),
        (1024**2 - 1, "1MiB"),
        (64 * 1024**2, "64MiB"),
        (10 * 1024, "10KiB"),
        (5000 * 1024**4, "5000TiB"),
    ],
)
def test_a_size_is_written_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(min_value=0, max_value=2**50))
def test_a_written_size_is_near_the_size(size: int) -> None:
    written = format_size(size)
    number = float(written.rstrip("BKMGTi"))
    unit = parse_size("1" + written.lstrip("0123456789."))
    assert abs(number * unit - size) <= unit * 0.0501


@given(st.integers(min_value=0, max_value=2**60), st.sampled_from(["", "k", "MiB", "GB", "tib"]))
def test_a_whole_number_of_any_unit_reads_exactly(number: int, unit: str) -> None:
    assert parse_size(f"{number}{unit}") == number * parse_size(f"1{unit}")


def test_a_negative_size_cannot_be_written() -> None:
    with pytest.raises(HeadgateError, match="negative"):
        format_size(-1)


def test_a_count_has_its_thousands_apart() -> None:
    assert [format_count(n) for n in (0, 999, 1234, -1_234_567)] == [
        "0", "999", "1,234", "-1,234,567",
    ]  # fmt: skip


def test_the_system_clock_is_in_utc_and_never_goes_back() -> None:
    clock: Clock = SystemClock()
    assert clock.now().tzinfo is UTC
    before = clock.monotonic()
    clock.sleep(timedelta(milliseconds=1))
    assert clock.monotonic() - before >= 0.001


def test_sleeping_no_time_or_less_returns_at_once() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    clock.sleep(timedelta(0))
    clock.sleep(timedelta(days=-1))
    assert clock.monotonic() - before < 1
