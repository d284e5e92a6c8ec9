"""What a job measured comes back as series: whole, thinned, after crashes, and in a moment."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_clock import NOON, FakeClock
from hypothesis import given
from hypothesis import strategies as st

from headgate._codec import encode
from headgate.engine.attempt.progress import BatchReport, Latency, SourceProgress, StateProgress
from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.supervision.sample_files import OLDER, RECENT, Sample, append, read_since, roll
from headgate.jobs.supervision.sampler import Sampler
from headgate.jobs.views.samples import Samples, thin

START_MS = round(NOON.timestamp() * 1000)
MS = timedelta(milliseconds=1)


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    made = JobFolder(tmp_path, "orders")
    made.write_status({"state": "RUNNING"})
    return made


def report(started: float, seconds: float, rows: int, **other: Any) -> BatchReport:
    told: dict[str, Any] = {
        "batch": 1,
        "started": NOON + timedelta(seconds=started),
        "duration": timedelta(seconds=seconds),
        "sources": {"in": SourceProgress(rows, None, 5, timedelta(seconds=2), "{}")},
        "outputs": {"out": rows - 1, "e.missing": 1},
        "state": {"e": StateProgress(10, 1000)},
        "phases": {"addBatch": 300 * MS, "latestOffset": 20 * MS, "queryPlanning": 30 * MS},
        "written": rows - 1,
        "latency": Latency(100 * MS, 200 * MS, 300 * MS, rows),
    }
    return BatchReport(**{**told, **other})


def work(sampler: Sampler, clock: FakeClock, *, until: float, state: JobState) -> None:
    while clock.seconds < until:
        clock.advance(seconds=0.1)
        sampler.tick(state)


def read(home: JobFolder, **asked: Any) -> Samples:
    return FolderHome(home.root).samples(home.name, **asked)


def test_a_batch_becomes_rates_over_the_time_since_the_one_before(home: JobFolder) -> None:
    clock = FakeClock()
    sampler = Sampler(home, clock)
    clock.advance(seconds=5)
    sampler.batch_committed(report(4, 1, 1000))
    sampler.flush()
    found = read(home)
    # Its rows were read while it ran; nobody knows of the time before.
    assert [each for each in found.in_per_s if each] == [200.0] * 5
    assert found.out_per_s[-1] == 199.8
    assert found.outputs["e.missing"][-1] == 0.2
    assert (found.lag_records[-1], found.lag_bytes[-1], found.lag_s[-1]) == (5, None, 2.0)
    assert (found.batch_ms[-1], found.phases["processing"][-1]) == (1000.0, 300.0)
    assert (found.phases["waiting"][-1], found.phases["planning"][-1]) == (20.0, 30.0)
    assert found.phases["committing"][-1] == 0.0
    assert (found.latency_p50_ms[-1], found.latency_p95_ms[-1]) == (100, 200)
    assert found.latency_p99_ms[-1] == 300
    assert (found.state_rows[-1], found.state_bytes[-1]) == (10, 1000)
    assert found.at[-1] == NOON + timedelta(seconds=5)


def test_an_idle_job_writes_little_and_shows_that_it_is_idle(home: JobFolder) -> None:
    clock = FakeClock()
    sampler = Sampler(home, clock)
    work(sampler, clock, until=601, state=JobState.RUNNING)
    lines = (home.path / RECENT).read_text().splitlines()
    assert len(lines) <= 62
    found = read(home)
    assert set(found.in_per_s) == {0.0}
    assert set(found.batch_ms) == {None}


def test_what_is_left_to_read_is_known_while_a_job_waits_and_not_while_it_is_paused(
    home: JobFolder,
) -> None:
    clock = FakeClock()
    sampler = Sampler(home, clock)
    clock.advance(seconds=1)
    sampler.batch_committed(report(0, 1, 100))
    work(sampler, clock, until=20, state=JobState.RUNNING)
    assert read(home).lag_records[-1] == 5
    work(sampler, clock, until=40, state=JobState.PAUSED)
    paused = read(home)
    assert paused.lag_records[-1] is None
    assert paused.state_rows[-1] == 10


def test_quick_batches_share_a_line_a_second(home: JobFolder) -> None:
    clock = FakeClock()
    sampler = Sampler(home, clock)
    for batch in range(100):
        clock.advance(seconds=0.1)
        sampler.batch_committed(report(batch / 10, 0.1, 10))
        sampler.tick(JobState.RUNNING)
    sampler.flush()
    assert len((home.path / RECENT).read_text().splitlines()) <= 13
    found = read(home)
    assert sum(each or 0 for each in found.in_per_s) == pytest.approx(1000, rel=0.12)
    assert found.batch_ms[-1] == 100.0


def test_a_long_batch_is_spread_over_its_time_though_idle_lines_were_written_meanwhile(
    home: JobFolder,
) -> None:
    clock = FakeClock()
    sampler = Sampler(home, clock)
    work(sampler, clock, until=60, state=JobState.RUNNING)
    sampler.batch_committed(report(10, 50, 5000))
    sampler.flush()
    found = read(home)
    assert set(found.in_per_s[:9]) == {0.0}
    # Whole seconds only: the first may share its span with the time before.
    assert {round(each or 0) for each in found.in_per_s[11:-1]} == {100}


def test_places_are_thinned_to_averages_of_rates_and_maxima_of_latency_and_lag(
    home: JobFolder,
) -> None:
    for second in range(1000):
        end = START_MS + 1000 * (second + 1)
        slow = second == 500
        append(
            home.path,
            Sample(
                end,
                1000,
                inputs={"in": 50 if second % 2 else 150},
                written=100,
                batches=1,
                took=[10.0, 0, 0, 10, 0],
                lag=[9.0 if slow else 1.0, None, None],
                latency=[900, 950, 990] if slow else [10, 20, 30],
            ),
        )
    found = read(home, points=100)
    assert len(found.at) <= 100
    assert found.every == timedelta(seconds=11)
    assert all(90 <= (each or 0) <= 110 for each in found.in_per_s)
    assert max(each or 0 for each in found.latency_p99_ms) == 990
    assert max(each or 0 for each in found.lag_records) == 9.0
    assert sum(1 for each in found.latency_p99_ms if each == 990) == 1


@given(
    spans=st.lists(st.integers(1, 250) | st.integers(1, 3000), min_size=1, max_size=40),
    offset=st.integers(0, 999),
    points=st.sampled_from([10, 300]),
)
def test_rates_times_their_seconds_are_the_rows_whatever_the_samples_lengths(
    spans: list[int], offset: int, points: int
) -> None:
    # Idle time before and behind, so that every place with rows is measured whole.
    begin = START_MS + offset
    samples, end = [Sample(begin, 60_000)], begin
    for span in spans:
        end += span
        samples.append(Sample(end, span, {"in": 100}, batches=1))
    samples.append(Sample(end + 60_000, 60_000))
    found = thin("orders", samples, since=None, points=points)
    rates = found.inputs["in"]
    seconds = found.every.total_seconds()
    assert sum(each or 0 for each in rates) * seconds == pytest.approx(100 * len(spans), abs=1)
    # No place has more than the samples that overlap it.
    for place, rate in enumerate(rates):
        place_end = round(found.at[place].timestamp() * 1000)
        place_begin = place_end - round(seconds * 1000)
        overlapping = sum(
            100 for each in samples[1:-1] if each.end > place_begin and each.start < place_end
        )
        assert (rate or 0) * seconds <= overlapping + 1


def test_only_what_is_asked_for_is_given(home: JobFolder) -> None:
    for second in range(100):
        append(home.path, Sample(START_MS + 1000 * (second + 1), 1000, {"in": second}, batches=1))
    since = NOON + timedelta(seconds=90)
    found = read(home, since=since)
    assert len(found.at) == 10
    assert found.at[0] == since + timedelta(seconds=1)
    assert read(home, since=NOON + timedelta(hours=1)).at == ()


def test_a_gap_while_the_job_was_down_is_no_zero(home: JobFolder) -> None:
    append(home.path, Sample(START_MS + 1000, 1000, {"in": 5}, batches=1))
    append(home.path, Sample(START_MS + 10_000, 1000, {"in": 5}, batches=1))
    found = read(home)
    assert found.in_per_s == (5.0, *[None] * 8, 5.0)
    assert set(found.latency_p50_ms) == {None}


def test_a_job_without_samples_has_empty_series(home: JobFolder) -> None:
    found = read(home)
    assert (found.at, found.in_per_s, found.inputs) == ((), (), {})
    assert encode(found)["at"] == []


def test_half_a_line_is_passed_over_and_written_behind(home: JobFolder) -> None:
    append(home.path, Sample(START_MS + 1000, 1000, {"in": 1}, batches=1))
    with (home.path / RECENT).open("ab") as file:
        file.write(b'{"t":17948')
    assert read(home).in_per_s == (1.0,)
    append(home.path, Sample(START_MS + 2000, 1000, {"in": 2}, batches=1))
    assert read(home).in_per_s == (1.0, 2.0)


def test_the_first_line_is_the_format_and_a_newer_one_is_refused(home: JobFolder) -> None:
    append(home.path, Sample(START_MS, 1000))
    file = home.path / RECENT
    first, _, rest = file.read_text().partition("\n")
    assert json.loads(first) == {"format": 1}
    file.write_text('{"format": 2}\n' + rest)
    with pytest.raises(HeadgateError) as caught:
        read(home)
    assert caught.value.code == "JOB_FORMAT_UNSUPPORTED"


def fill(home: JobFolder, hours: float) -> int:
    """Write samples of a busy store, a line a second; return how many."""
    for second in range(int(hours * 3600)):
        append(
            home.path,
            Sample(
                START_MS + 1000 * (second + 1),
                1000,
                inputs={"orders": 12_345, "users": 12, "items": 3},
                outputs={"enriched-orders": 12_000, "missing-users": 300, "with-item.missing": 45},
                written=12_300,
                batches=1,
                took=[901.0, 0, 90.0, 700.0, 0],
                lag=[123_456.0, None, 4.5],
                state={"with-user": [117_178, 34_567_890], "with-item": [2_198, 1_234_567]},
                watermark=START_MS,
                latency=[1234, 2345, 3456],
            ),
        )
    return int(hours * 3600)


def test_hours_stay_in_two_small_files_and_are_read_in_a_moment(home: JobFolder) -> None:
    written = fill(home, 3)
    sizes = [(home.path / name).stat().st_size for name in (RECENT, OLDER)]
    assert sum(sizes) < 2**20
    took = []
    for _ in range(3):
        began = time.process_time()
        found = read(home)
        took.append(time.process_time() - began)
    # Of the processor's time; on a quiet machine a third of this.
    assert min(took) < 0.1, took
    assert 200 < len(found.at) <= 300
    # The oldest second is still told of, and no row was lost on the way to the older file.
    assert found.at[0] < NOON + timedelta(minutes=2)
    rows = sum((each or 0) * found.every.total_seconds() for each in found.inputs["orders"])
    assert rows == pytest.approx(12_345 * written, rel=0.01)


def test_a_crash_between_the_two_files_leaves_nothing_twice(home: JobFolder) -> None:
    fill(home, 0.1)
    before = (home.path / RECENT).read_bytes()
    roll(home.path)
    (home.path / RECENT).write_bytes(before)
    assert sum(each.inputs["users"] for each in read_since(home.path, None)) == 12 * 360
    roll(home.path)
    total = sum(each.inputs["users"] for each in read_since(home.path, None))
    assert total == 12 * 360


def test_a_disk_that_takes_no_more_ends_no_job(home: JobFolder) -> None:
    (home.path / RECENT).mkdir()
    sampler = Sampler(home, FakeClock())
    sampler.batch_committed(replace(report(0, 1, 5), latency=None))
    sampler.flush()


def test_samples_of_a_newer_release_end_no_job_and_make_room(home: JobFolder) -> None:
    for name in ("samples.jsonl", "samples.old.jsonl"):
        (home.path / name).write_text('{"format": 99}\n' + '{"x": 1}\n' * 60_000)
    clock = FakeClock()
    sampler = Sampler(home, clock)
    work(sampler, clock, until=60, state=JobState.RUNNING)
    assert len(read(home).at) > 1
