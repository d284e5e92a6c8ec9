"""Which kept checkpoints may go."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import Kind
from headgate.checkpoints.retention import to_delete

NOW = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)


def point(
    name: str, at: datetime, *, pinned: bool = False, kind: Kind = Kind.CHECKPOINT
) -> Checkpoint:
    return Checkpoint(
        id=name, kind=kind, run="L", pinned=pinned, folder=Path(name), batch=0, completed_at=at
    )


def every(step: timedelta, count: int, *, until: datetime = NOW) -> list[Checkpoint]:
    times = [until - step * back for back in reversed(range(count))]
    return [point(f"chk-{number}", at) for number, at in enumerate(times)]


def left(points: Iterable[Checkpoint], gone: Iterable[str]) -> list[Checkpoint]:
    doomed = set(gone)
    return [each for each in points if each.id not in doomed]


def test_the_newest_stay_and_the_oldest_go_first() -> None:
    points = every(timedelta(seconds=5), 13)
    assert to_delete(points, retain=10, retain_for=None, now=NOW) == ["chk-0", "chk-1", "chk-2"]


def test_the_newest_stay_however_old_they_are() -> None:
    points = every(timedelta(days=1), 5, until=NOW - timedelta(days=100))
    gone = to_delete(points, retain=3, retain_for=timedelta(hours=1), now=NOW)
    assert gone == ["chk-0", "chk-1"]


def test_fewer_than_are_retained_all_stay() -> None:
    for retain in (3, 4, 5, 6, 10):
        points = every(timedelta(days=9), 3)
        assert to_delete(points, retain=retain, retain_for=None, now=NOW) == []
    assert to_delete([], retain=10, retain_for=None, now=NOW) == []


def test_pinned_checkpoints_and_savepoints_never_go() -> None:
    old = NOW - timedelta(days=9)
    points = [
        point("pinned", old, pinned=True),
        point("savepoint", old, kind=Kind.SAVEPOINT),
        point("plain", old),
        *every(timedelta(seconds=5), 2),
    ]
    assert to_delete(points, retain=2, retain_for=timedelta(hours=1), now=NOW) == ["plain"]


def test_all_of_the_last_ten_minutes_stay() -> None:
    points = every(timedelta(seconds=5), 120)
    assert to_delete(points, retain=1, retain_for=timedelta(hours=24), now=NOW) == []


def test_after_ten_minutes_one_a_minute_stays_and_after_six_hours_one_an_hour() -> None:
    points = every(timedelta(seconds=5), 12 * 60 * 24)
    stay = left(points, to_delete(points, retain=10, retain_for=timedelta(hours=24), now=NOW))
    ages = [NOW - each.completed_at for each in stay]
    recent = sum(age <= timedelta(minutes=10) for age in ages)
    minutes = sum(timedelta(minutes=10) < age <= timedelta(hours=6) for age in ages)
    hours = sum(age > timedelta(hours=6) for age in ages)
    assert recent == 121
    assert minutes in (350, 351)
    assert hours in (18, 19)


def test_what_is_older_than_retain_for_goes() -> None:
    points = every(timedelta(minutes=30), 10)
    stay = left(points, to_delete(points, retain=1, retain_for=timedelta(hours=2), now=NOW))
    assert [NOW - each.completed_at for each in stay] == [
        timedelta(minutes=30) * back for back in (4, 3, 2, 1, 0)
    ]


def test_a_checkpoint_of_a_clock_that_ran_ahead_stays() -> None:
    ahead = point("ahead", NOW + timedelta(hours=1))
    points = [*every(timedelta(seconds=5), 3), ahead]
    assert "ahead" not in to_delete(points, retain=1, retain_for=timedelta(hours=1), now=NOW)


@given(
    seconds=st.lists(st.integers(0, 90_000), max_size=60),
    retain=st.integers(0, 12),
    hours=st.none() | st.integers(0, 30),
    later=st.integers(0, 40_000),
)
def test_thinning_is_stable_however_often_and_whenever_it_is_done(
    seconds: list[int], retain: int, hours: int | None, later: int
) -> None:
    points = [point(str(n), NOW - timedelta(seconds=each)) for n, each in enumerate(seconds)]
    keep = None if hours is None else timedelta(hours=hours)
    once = left(points, to_delete(points, retain=retain, retain_for=keep, now=NOW))
    assert to_delete(once, retain=retain, retain_for=keep, now=NOW) == []
    assert len(once) >= min(retain, len(points))
    # What a later look keeps of all, it still finds after an earlier look.
    then = NOW + timedelta(seconds=later)
    of_all = left(points, to_delete(points, retain=retain, retain_for=keep, now=then))
    of_once = left(once, to_delete(once, retain=retain, retain_for=keep, now=then))
    assert of_all == of_once
