"""Made-up visits: the same bytes every time, of the shape asked for, at the rate asked for."""

import hashlib
import itertools
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_clock import FakeClock

from headgate.errors import HeadgateError
from headgate.producers import _chunks
from headgate.producers.pace import send_visits
from headgate.producers.visits import (
    VisitsShape,
    count_late,
    generate_visits,
    visit_key_values,
)

SMALL = VisitsShape(3000, visits=40)
TEN = int(datetime(2025, 9, 4, 10, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000

Row = dict[str, Any]


def lines_of(shape: VisitsShape) -> bytes:
    return b"".join(chunk.lines for chunk in generate_visits(shape))


def rows_of(shape: VisitsShape) -> list[Row]:
    return [json.loads(line) for line in lines_of(shape).splitlines()]


def nominal(shape: VisitsShape, place: int) -> int:
    """Return when the event at a place would happen were none out of order."""
    span = shape.span // timedelta(milliseconds=1)
    return TEN + shape.round * span + place * span // shape.count


def late_places(shape: VisitsShape) -> set[int]:
    return {
        place
        for place, row in enumerate(rows_of(shape))
        if row["event_time"] <= nominal(shape, place) - 30 * MINUTE
    }


def test_the_same_shape_gives_the_same_bytes_in_every_release() -> None:
    digest = hashlib.sha256(lines_of(SMALL) + lines_of(replace(SMALL, round=2, late=0.1)))
    expected = "792a7879941b367d4e90d23ea9d4c144a4dd77c85b20365e7e0cff98a3298901"
    assert digest.hexdigest() == expected


def test_another_seed_gives_other_visits() -> None:
    assert lines_of(SMALL) != lines_of(replace(SMALL, seed=8))


@pytest.mark.parametrize("records", [1, 7, 999, 100_000])
def test_events_do_not_depend_on_how_they_are_cut(
    monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    shape = VisitsShape(1000, visits=30, late=0.2, round=3)
    expected = lines_of(shape)
    monkeypatch.setattr(_chunks, "CHUNK_RECORDS", records)
    chunks = list(generate_visits(shape))
    assert b"".join(chunk.lines for chunk in chunks) == expected
    assert max(chunk.records for chunk in chunks) <= records
    assert sum(chunk.records for chunk in chunks) == shape.count
    assert sum(chunk.late for chunk in chunks) == count_late(shape) == 200


def test_an_event_has_an_id_a_visit_a_time_in_milliseconds_and_a_page() -> None:
    first, *_ = rows_of(SMALL)
    assert first == {"event_id": "7-0-0", "visit_id": "1", "event_time": TEN, "page": "/search"}
    assert len({row["page"] for row in rows_of(SMALL)}) > 5


def test_ids_are_unique_over_rounds_of_any_size_and_over_seeds() -> None:
    shapes = [replace(SMALL, round=number, count=count) for number, count in ((0, 3000), (1, 100))]
    shapes += [replace(SMALL, seed=8)]
    ids = [row["event_id"] for shape in shapes for row in rows_of(shape)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("count", "number"), [(40, 40), (99, 40), (3000, 40), (10_000, 7), (5, 1)])
def test_every_visit_has_events_and_low_ones_have_more(count: int, number: int) -> None:
    found = Counter(row["visit_id"] for row in rows_of(VisitsShape(count, visits=number)))
    assert set(found) == {str(each) for each in range(1, number + 1)}
    if count > 20 * number > 20:
        assert found["1"] > 2 * found[str(number)]


@pytest.mark.parametrize("number", [0, 1, 5])
def test_event_times_move_forward_and_lie_back_no_further_than_asked(number: int) -> None:
    shape = replace(SMALL, round=number, late=0.0, out_of_order=timedelta(seconds=90))
    back = [nominal(shape, place) - row["event_time"] for place, row in enumerate(rows_of(shape))]
    assert min(back) >= 0
    assert 80_000 < max(back) < 90_000


def test_without_disorder_times_never_go_back() -> None:
    shape = replace(SMALL, late=0.0, out_of_order=timedelta(0))
    times = [row["event_time"] for row in rows_of(shape)]
    assert times == sorted(times)
    assert times[0] == TEN
    assert TEN + 119 * MINUTE < times[-1] < TEN + 120 * MINUTE


def test_nothing_but_late_events_lies_before_the_first_one() -> None:
    early = [row for row in rows_of(SMALL) if row["event_time"] < TEN]
    assert 0 < len(early) <= count_late(SMALL)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.25, 1.0])
def test_the_late_share_comes_30_to_60_minutes_too_late(share: float) -> None:
    shape = replace(SMALL, late=share)
    found = late_places(shape)
    assert len(found) == count_late(shape) == pytest.approx(3000 * share, abs=1)
    rows = rows_of(shape)
    back = [nominal(shape, place) - rows[place]["event_time"] for place in found]
    assert all(30 * MINUTE <= each < 60 * MINUTE for each in back)


def test_a_later_round_goes_on_where_the_one_before_ended() -> None:
    shape = replace(SMALL, late=0.0)
    for number in range(3):
        before, after = (replace(shape, round=each) for each in (number, number + 1))
        assert before.end == after.begin
        assert max(row["event_time"] for row in rows_of(before)) < nominal(after, 0)
        last = min(row["event_time"] for row in rows_of(after))
        assert last > nominal(after, 0) - 30_000


def test_the_key_of_an_event_is_its_visit() -> None:
    lines = lines_of(SMALL)
    for (key, value), line in zip(visit_key_values(lines), lines.splitlines(), strict=True):
        assert value == line
        assert key == json.loads(line)["visit_id"].encode()
    assert list(visit_key_values(b"")) == []


def test_with_a_rate_events_go_in_slices_and_are_counted_once_acknowledged() -> None:
    clock = FakeClock()
    calls: list[tuple[float, int]] = []
    counts: list[int] = []
    parts: list[bytes] = []

    def sink(lines: bytes, records: int) -> None:
        assert sum(each for _, each in calls) == (counts[-1] if counts else 0)
        calls.append((round(clock.seconds, 6), records))
        parts.append(lines)

    assert send_visits(SMALL, sink, clock=clock, rate=2000, progress=counts.append) == 3000
    assert calls == [(round(0.1 * number, 6), 200) for number in range(15)]
    assert min(clock.slept) > timedelta(0)
    assert counts == list(itertools.accumulate(each for _, each in calls))
    assert b"".join(parts) == lines_of(SMALL)


def test_no_events_are_no_records() -> None:
    assert lines_of(replace(SMALL, count=0)) == b""


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"count": -1}, "--count"),
        ({"visits": 0}, "--visits"),
        ({"round": -1}, "--round"),
        ({"late": 1.5}, "--late"),
        ({"late": float("nan")}, "--late"),
        ({"out_of_order": timedelta(-1)}, "--out-of-order"),
        ({"span": timedelta(0)}, "--span"),
        ({"round": 1_000_000, "span": timedelta(days=365)}, "--round"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused_with_a_hint(
    changes: dict[str, Any], option: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        replace(SMALL, **changes)
    assert caught.value.code == "BAD_VISITS_SHAPE"
    assert caught.value.hint.startswith(option)
