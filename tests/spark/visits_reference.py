"""Plain Python that counts visits: what windows must hold, and what a line of the output says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

WINDOW = timedelta(minutes=15)
OUT_OF_ORDERNESS = timedelta(minutes=5)

_EPOCH = datetime.fromtimestamp(0, UTC)
_LINE = re.compile(
    r">> VISIT -(?P<visit>\d+)- \[(?P<made>[-:T.\d]{26})\], "
    r"range=\[(?P<start>[-:T\d]{19}) to (?P<end>[-:T\d]{19})\], "
    r"visits=(?P<visits>\d+), partial=(?P<partial>True|False)"
)

# A visit and the end of a window.
Cell = tuple[str, datetime]


@dataclass(frozen=True, slots=True)
class Event:
    """A record of the input."""

    id: str
    cell: Cell
    time: datetime


@dataclass(frozen=True, slots=True)
class Count:
    """A line of the output."""

    cell: Cell
    made: datetime
    visits: int
    partial: bool


def read_event(value: bytes, *, window: timedelta = WINDOW) -> Event:
    """Return a record of the input."""
    row = json.loads(value)
    time = _EPOCH + timedelta(milliseconds=row["event_time"])
    end = _EPOCH + ((time - _EPOCH) // window + 1) * window
    return Event(row["event_id"], (row["visit_id"], end), time)


def read_count(line: str, *, window: timedelta = WINDOW) -> Count:
    """Return what a line of the output says."""
    found = _LINE.fullmatch(line)
    assert found is not None, f"no line of a count: {line}"
    start, end, made = (
        datetime.fromisoformat(found[name]).replace(tzinfo=UTC) for name in ("start", "end", "made")
    )
    assert end - start == window
    return Count((found["visit"], end), made, int(found["visits"]), found["partial"] == "True")


def watermark(events: Iterable[Event], *, behind: timedelta = OUT_OF_ORDERNESS) -> datetime:
    """Return the watermark once all these events have been read."""
    return max(each.time for each in events) - behind


def count_by_cell(events: Iterable[Event], *, late: Mapping[str, int]) -> dict[Cell, int]:
    """Return the visits of each window; late ones are not counted."""
    return Counter(each.cell for each in events if each.id not in late)


def assert_lateness(
    late: Counter[str],
    before: Sequence[Event],
    after: Sequence[Event],
    *,
    behind: timedelta = OUT_OF_ORDERNESS,
) -> None:
    """Events are late once if their window was over before they came, and never if it is not yet.

    Args:
        before: All that was read before later events came.
        after: All that was read in the end.
    """
    read = {each.id for each in before}
    over, over_now = watermark(before, behind=behind), watermark(after, behind=behind)
    assert set(late.values()) == {1}
    for each in after:
        if each.id not in read and each.cell[1] <= over:
            assert each.id in late, f"{each} was counted"
        assert each.id not in late or each.cell[1] <= over_now, f"{each} was not late"


def finals(counts: Iterable[Count]) -> dict[Cell, int]:
    """Return the final counts; a window that has two is an error."""
    found: dict[Cell, int] = {}
    for each in counts:
        if not each.partial:
            assert each.cell not in found, f"{each.cell} has two final rows"
            found[each.cell] = each.visits
    return found


def assert_counts_never_go_down(counts: Iterable[Count]) -> None:
    """Look at the rows of each window in the order they were made; nothing follows a final one."""
    last: dict[Cell, Count] = {}
    for each in counts:
        before = last.get(each.cell)
        if before is not None:
            assert before.partial, f"{each} follows the final {before}"
            assert each.visits >= before.visits, f"{each} follows {before}"
        last[each.cell] = each
