"""The timeline of a job's past: where moments stand, and which checkpoint a moment means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import Kind
from headgate.jobs.views.past import Past
from headgate.server.console.charts.timeline import Track, in_ms, lay_out, tell_roughly

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)

moments = st.lists(
    st.integers(min_value=0, max_value=40 * 86_400_000).map(
        lambda ms: NOW - timedelta(milliseconds=ms)
    ),
    max_size=40,
)


def _ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@given(moments)
def test_moments_stand_in_their_order_between_the_ends(known: list[datetime]) -> None:
    track = lay_out(known, NOW)
    places = [track.place(each) for each in sorted(set(known))]
    assert places == sorted(set(places))
    assert all(0 < place <= 1 for place in places)
    assert track.place(NOW) == 1
    assert track.ends == NOW


def test_even_checkpoints_stand_evenly() -> None:
    track = lay_out([_ago(40), _ago(30), _ago(20), _ago(10)], NOW)
    places = [track.place(_ago(each)) for each in (40, 30, 20, 10, 0)]
    steps = [after - before for before, after in pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 4)
    assert track.cuts == ()


def test_a_savepoint_of_last_week_does_not_press_the_last_minutes_together() -> None:
    week = timedelta(days=7)
    track = lay_out([NOW - week, *(_ago(20 * each) for each in range(1, 10))], NOW)
    assert track.place(_ago(20)) - track.place(_ago(180)) > 0.4
    (cut,) = track.cuts
    assert cut.lasted > timedelta(days=6)
    assert cut.start == pytest.approx(track.place(NOW - week))


def test_a_job_without_a_past_has_a_track_all_the_same() -> None:
    track = lay_out([], NOW)
    assert track.ends == NOW
    assert track.stops[0][1] < NOW
    assert track.cuts == ()


def test_moments_outside_stand_at_the_nearer_end() -> None:
    track = lay_out([_ago(10)], NOW)
    assert track.place(_ago(10_000)) == 0
    assert track.place(NOW + timedelta(days=1)) == 1


def test_the_browser_gets_rising_stops_in_milliseconds() -> None:
    told = lay_out([_ago(86_400), _ago(10), _ago(5)], NOW).to_json()
    assert told["stops"] == sorted(told["stops"])
    assert told["stops"][-1] == [1.0, in_ms(NOW)]
    assert [each["lasted"] for each in told["cuts"]] == ["1 day"]


def test_a_moment_in_milliseconds_is_never_before_the_moment() -> None:
    moment = NOW + timedelta(microseconds=1)
    assert datetime.fromtimestamp(in_ms(moment) / 1000, UTC) >= moment


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5, "5 s"), (60, "1 min"), (150, "2 min"), (7_200, "2 hours"), (86_400, "1 day")],
)
def test_gaps_are_told_in_one_unit(seconds: int, told: str) -> None:
    assert tell_roughly(timedelta(seconds=seconds)) == told


def _past(*seconds: float) -> Past:
    return Past(
        tuple(
            Checkpoint(
                id=f"chk-{number}",
                kind=Kind.CHECKPOINT,
                run="run",
                folder=Path("run") / f"chk-{number}",
                batch=number,
                completed_at=_ago(each),
            )
            for number, each in enumerate(seconds)
        ),
        (),
    )


def test_a_moment_means_the_newest_checkpoint_that_was_complete_by_then() -> None:
    past = _past(30, 20, 10)
    assert past.find_at(_ago(31)) is None
    found = [past.find_at(_ago(each)) for each in (30, 20.5, 20, 11, 10, 0)]
    assert [each and each.id for each in found] == [
        "chk-0",
        "chk-0",
        "chk-1",
        "chk-1",
        "chk-2",
        "chk-2",
    ]


def test_time_is_even_between_two_stops() -> None:
    track = Track(((0.0, _ago(20)), (0.5, _ago(10)), (1.0, NOW)))
    assert track.place(_ago(15)) == 0.25
