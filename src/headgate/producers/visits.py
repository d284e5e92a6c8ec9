"""The events of generated visits: page views, roughly in the order of time.

The data is a pure function of the shape: the same arguments give the same bytes, on any machine and
in any release.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from headgate.errors import HeadgateError
from headgate.producers._chunks import check_count, check_share, chunk_ranges, split_lines
from headgate.producers._draws import Column, Draws, Ints

TOPIC = "visits"
FIRST_EVENT = datetime(2025, 9, 4, 10, tzinfo=UTC)

# Beyond an out-of-orderness of 5 minutes and a window of 15, wherever the event falls in it.
_LATE_BY_MS = (1_800_000, 3_600_000)
_MS = timedelta(milliseconds=1)
_FIRST_EVENT_MS = (FIRST_EVENT - datetime.fromtimestamp(0, UTC)) // _MS
_KEY = re.compile(rb'"visit_id":"([0-9]+)"')
_PAGES = (
    *("/", "/search", "/category", "/product", "/reviews", "/basket"),
    *("/shipping", "/payment", "/thanks", "/account", "/help", "/imprint"),
)


@dataclass(frozen=True, slots=True)
class VisitsShape:
    """The amount and kind of events.

    Event times move forward evenly over the round's time span, from 2025-09-04T10:00:00Z in round
    0; the next round continues where this one ends.

    Attributes:
        count: The number of events of the round.
        visits: The number of visits, with ids from 1. Low ids have more events; each has at least
            one if there are as many events as visits.
        late: The share of events that arrive 30 to 60 minutes of event time too late.
        out_of_order: How far the event time of any other event goes back at most; none goes before
            the first event, as late ones of the first hour do.
        span: The event time that the round covers.
        seed: Another seed gives other visits.
        round: The number of the round, from 0.
    """

    count: int
    visits: int = 100
    late: float = 0.01
    out_of_order: timedelta = timedelta(seconds=30)
    span: timedelta = timedelta(hours=2)
    seed: int = 7
    round: int = 0

    def __post_init__(self) -> None:
        for name, least in (("count", 0), ("visits", 1), ("round", 0)):
            check_count(name, getattr(self, name), _bad_shape, least)
        check_share("late", self.late, _bad_shape)
        if self.out_of_order < timedelta(0):
            raise _bad_shape("--out-of-order must not be negative", "--out-of-order 30s")
        if self.span < _MS:
            raise _bad_shape("--span must be at least a millisecond", "--span 2h")
        try:
            _ = self.end
        except OverflowError as cause:
            raise _bad_shape("its events would be after the year 9999", "--round 0") from cause

    @property
    def begin(self) -> datetime:
        """The time of the round's first event."""
        return FIRST_EVENT + self.round * self.span

    @property
    def end(self) -> datetime:
        """The time of the next round's first event."""
        return self.begin + self.span


@dataclass(frozen=True, slots=True)
class VisitsChunk:
    """Some events.

    Attributes:
        lines: The events as JSON, each with its newline.
        records: The number of events, including late ones.
        late: The number of late events.
    """

    lines: bytes
    records: int
    late: int


def generate_visits(shape: VisitsShape) -> Iterator[VisitsChunk]:
    """Yield the round's events in the order of arrival, in chunks of up to 20,000."""
    for first, last in chunk_ranges(shape.count):
        yield _chunk(shape, first, last)


def count_late(shape: VisitsShape) -> int:
    """Return the number of late events of the round."""
    start = shape.round * shape.count
    return len(
        Draws(shape.seed).picks(Column.VISIT_LATE, shape.late, start, start + shape.count)[0]
    )


def visit_key_values(lines: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the events with their visit as the key, for a log with keys."""
    for line in split_lines(lines):
        match = _KEY.search(line)
        assert match is not None, "every event has a visit"
        yield match[1], line


def _chunk(shape: VisitsShape, first: int, last: int) -> VisitsChunk:
    draws = Draws(shape.seed)
    place = np.arange(first, last, dtype=np.int64)
    number = place + shape.round * shape.count
    times, late = _event_times(shape, draws, place, number)
    # The first pages are viewed more often.
    what = draws.unit(Column.VISIT_PAGE, number)
    page = (what * what * len(_PAGES)).astype(np.int64)
    columns = (place, _visit_ids(shape, draws, place, number), times, page)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = [
        f'{{"event_id":"{shape.seed}-{shape.round}-{i}","visit_id":"{visit}",'
        f'"event_time":{time},"page":"{_PAGES[page]}"}}\n'
        for i, visit, time, page in rows
    ]
    return VisitsChunk("".join(lines).encode(), last - first, late)


def _event_times(shape: VisitsShape, draws: Draws, place: Ints, number: Ints) -> tuple[Ints, int]:
    """Return the event times in epoch milliseconds, and the number of late events."""
    since = shape.round * (shape.span // _MS) + place * (shape.span // _MS) // shape.count
    late, _ = draws.picks(Column.VISIT_LATE, shape.late, int(number[0]), int(number[-1]) + 1)
    soonest, latest = _LATE_BY_MS
    back = soonest + draws.below(Column.VISIT_LATE_BY, latest - soonest, late)
    # Events that are only out of order never precede the first event.
    furthest = np.minimum(since, shape.out_of_order // _MS)
    shift = (draws.unit(Column.VISIT_SHIFT, number) * furthest).astype(np.int64)
    shift[late - int(number[0])] = back
    times: Ints = _FIRST_EVENT_MS + since - shift
    return times, len(late)


def _visit_ids(shape: VisitsShape, draws: Draws, place: Ints, number: Ints) -> Ints:
    whom = draws.unit(Column.VISIT_ID, number)
    ids = 1 + (whom * whom * shape.visits).astype(np.int64)
    # The visits rotate, so that each has an event.
    stride = max(1, shape.count // shape.visits)
    turns, rest = np.divmod(place, stride)
    chosen: Ints = np.where(rest == 0, 1 + turns % shape.visits, ids)
    return chosen


def _bad_shape(problem: str, hint: str) -> HeadgateError:
    return HeadgateError("BAD_VISITS_SHAPE", f"cannot produce visits: {problem}", hint=hint)
