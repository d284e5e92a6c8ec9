"""When an event happened: numbers, timestamps and texts, and what is no time."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.bridge import kernel
from headgate._kernel.memory_query import MemoryRecord
from headgate.windows import count, tumbling

EPOCH = datetime.fromtimestamp(0, UTC)
TEN = datetime(2025, 9, 4, 10, tzinfo=UTC)
TEN_MS = (TEN - EPOCH) // timedelta(milliseconds=1)
# Before the year 1, and after the year 9999.
BEFORE_MS, AFTER_MS = -(10**15), 10**15
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_370_764_799_999


def timed(type_: str, unit: str) -> Flow:
    """Return a flow whose windows are so short that their start is the event's time."""
    flow = Flow("timed")
    events = flow.stream("in", f"at {type_}", event_time="at", event_time_unit=unit)
    events.window("each", tumbling("1ms")).aggregate(events=count()).updates.to("out")
    return flow


def times(spark: SparkSession, type_: str, *values: Any, unit: str = "ms") -> list[Any]:
    """Return what each value is as a time: a moment, or why it is a dead letter."""
    found: list[Any] = []
    for value in values:
        flow = MemoryFlow(spark, timed(type_, unit))
        record = MemoryRecord("in", b'{"at": %s}' % str(value).encode())
        letters = flow.batch([record], watermark=BEFORE_MS)["dead-letters"]
        rows = flow.batch([], watermark=AFTER_MS)["out"]
        assert len(letters) + len(rows) == 1, value
        found += [each["code"] for each in letters]
        found += [datetime.fromisoformat(each["window_start"]) for each in rows]
    return found


def test_whole_numbers_count_milliseconds_or_seconds(spark: SparkSession) -> None:
    assert times(spark, "BIGINT", TEN_MS, TEN_MS + 7) == [TEN, TEN + timedelta(milliseconds=7)]
    assert times(spark, "BIGINT", TEN_MS // 1000, unit="s") == [TEN]
    assert times(spark, "INT", TEN_MS // 1000, unit="s") == [TEN]


@pytest.mark.parametrize("ms", [1, 7, 123, 999])
def test_a_fraction_of_seconds_is_cut_to_the_millisecond_it_says(
    spark: SparkSession, ms: int
) -> None:
    seconds = f"{TEN_MS // 1000}.{ms:03d}"
    moment = TEN + timedelta(milliseconds=ms)
    assert times(spark, "DOUBLE", seconds, f"{seconds}9", unit="s") == [moment, moment]


def test_timestamps_are_taken_as_they_are(spark: SparkSession) -> None:
    values = ['"2025-09-04T10:00:00Z"', '"2025-09-04T12:00:00.0019+02:00"']
    assert times(spark, "TIMESTAMP", *values) == [TEN, TEN + timedelta(milliseconds=1)]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-09-04T10:00:00Z", TEN),
        ("2025-09-04T10:00:00", TEN),
        ("2025-09-04 10:00:00", TEN),
        ("2025-09-04T10:00", TEN),
        ("2025-09-04t10:00:00z", TEN),
        ("2025-09-04", TEN - timedelta(hours=10)),
        ("2025-09-04T12:00:00+02:00", TEN),
        ("2025-09-04T12:00:00+0200", TEN),
        ("2025-09-04T08:00:00-02", TEN),
        ("2025-09-04T04:30:00-05:30", TEN),
        ("2025-09-04T12:00:00+02:00[Europe/Paris]", TEN),
        ("2025-09-04T10:00:00.1Z", TEN + timedelta(milliseconds=100)),
        ("2025-09-04 10:00:00.123456789", TEN + timedelta(milliseconds=123)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("1969-12-31T23:59:59.9999Z", EPOCH - timedelta(milliseconds=1)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9998-12-31T23:59:59.999Z", EPOCH + timedelta(milliseconds=LAST_MS)),
    ],
)
def test_texts_are_read_as_iso_8601(spark: SparkSession, text: str, moment: datetime) -> None:
    assert times(spark, "STRING", f'"{text}"') == [moment]


def test_any_time_that_python_writes_is_read(spark: SparkSession) -> None:
    parse = kernel(spark).time.IsoTime.parse
    text_of = spark._jvm.org.apache.spark.unsafe.types.UTF8String.fromString  # type: ignore[union-attr]
    draw = random.Random(6)
    for _ in range(300):
        ms = draw.randrange(FIRST_MS + 10**8, LAST_MS - 10**8)
        zone = timezone(timedelta(minutes=draw.choice([0, 120, -330, 13 * 60])))
        moment = (EPOCH + timedelta(milliseconds=ms)).astimezone(zone)
        text = moment.isoformat(draw.choice("T "), draw.choice(["milliseconds", "microseconds"]))
        assert parse(text_of(text)) == ms, text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "10:00",
        "1756980000000",
        "2025-9-4",
        "2025-02-29T00:00:00Z",
        "2025-13-01",
        "2025-09-04T25:00:00Z",
        "2025-09-04T10:00:00.1234567890Z",
        "2025-09-04T10:00:00Zulu",
        "+12025-09-04T10:00:00Z",
    ],
)
def test_a_text_that_is_no_time_is_a_dead_letter(spark: SparkSession, text: str) -> None:
    assert times(spark, "STRING", f'"{text}"') == ["BAD_EVENT_TIME"]


def test_a_number_outside_the_calendar_is_a_dead_letter(spark: SparkSession) -> None:
    outside = [FIRST_MS - 1, LAST_MS + 1, 2**63 - 1, -(2**63)]
    assert set(times(spark, "BIGINT", *outside)) == {"BAD_EVENT_TIME"}
    assert set(times(spark, "BIGINT", *outside, unit="s")) == {"BAD_EVENT_TIME"}
    assert times(spark, "DOUBLE", "1e300", unit="s") == ["BAD_EVENT_TIME"]


@pytest.mark.parametrize("type_", ["BIGINT", "TIMESTAMP", "STRING"])
def test_an_event_without_a_time_is_a_dead_letter(spark: SparkSession, type_: str) -> None:
    assert times(spark, type_, "null") == ["MISSING_FIELD"]


def test_a_flow_that_does_not_ask_takes_events_without_a_time(spark: SparkSession) -> None:
    flow = Flow("untimed")
    flow.stream("in", "at STRING", event_time="at").to("out")
    assert MemoryFlow(spark, flow).feed("in", {"at": "yesterday"}, {"at": None}) == {
        "out": [{"at": "yesterday"}, {"at": None}]
    }
