"""Windows of whole jobs: stopped, killed and drained, each batch is as plain Python says it is."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from bench import Bench, bag, refused, stop_now
from eventually import eventually
from window_reference import Batch, DedupeModel, Event, Row, Shape, WindowModel
from window_runs import PATIENCE, SCHEMA, TimedRun, aggregated, as_row

from headgate import Flow
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.values import JobSnapshot
from headgate.windows import (
    count,
    every_event_time,
    every_events,
    every_processing_time,
    session,
    sliding,
    tumbling,
)

SECOND = 1000
BEGIN = 1_757_000_000_000 - 1_757_000_000_000 % 3_600_000
OUT_OF_ORDER = 20 * SECOND
# What each window operator of the flow is to the reference, by uid.
SHAPES = {
    "plain": Shape(60 * SECOND, 60 * SECOND),
    "corrected": Shape(60 * SECOND, 60 * SECOND, lateness=40 * SECOND, early_n=3),
    "sliding": Shape(60 * SECOND, 20 * SECOND, lateness=30 * SECOND, early_ms=30 * SECOND),
    "together": Shape(300 * SECOND, 300 * SECOND, early_n=50, early_ms=60 * SECOND, keyed=False),
    "sessions": Shape(15 * SECOND, 0),
}
WITHIN = 45 * SECOND


def windowed() -> Flow:
    """Return a flow with one operator of each kind, all on the same events."""
    flow = Flow("windowed")
    events = flow.stream(
        "events", SCHEMA, event_time="at", out_of_orderness=timedelta(milliseconds=OUT_OF_ORDER)
    )
    keyed = events.key_by("key")
    made = {
        "plain": keyed.window("plain", tumbling("1m")),
        "corrected": keyed.window(
            "corrected", tumbling("1m"), allowed_lateness="40s", early=every_events(3)
        ),
        "sliding": keyed.window(
            "sliding",
            sliding("1m", every="20s"),
            allowed_lateness="30s",
            early=every_event_time("30s"),
        ),
        "together": events.window(
            "together", tumbling("5m"), early=[every_events(50), every_event_time("1m")]
        ),
        "sessions": keyed.window("sessions", session(gap="15s")),
    }
    for uid, each in made.items():
        windows = each.aggregate(**aggregated())
        windows.updates.to(f"{uid}-rows")
        windows.late.select("n").to(f"late-{uid}")
    once = events.dedupe("once", by="by", within="45s")
    once.unique.select("n").to("unique")
    once.repeated.select("n").to("repeated")
    once.late.select("n").to("late-once")
    return flow


def drawn(draw: random.Random, files: int) -> Iterator[list[Event]]:
    """Yield files of events whose time moves on, many out of order and some too late."""
    number = 0
    for file in range(files):
        events = []
        for _ in range(draw.randint(10, 50)):
            back = draw.choice([0, 5, 15, 19, 40, 90, 200]) if draw.random() < 0.5 else 0
            at = BEGIN + (20 * file + draw.randint(0, 20) - draw.randint(0, back)) * SECOND
            events.append(
                Event(
                    n=number,
                    key=f"k{int(draw.random() ** 2 * 12)}",
                    at=at + draw.choice([0, 0, 1, 999]),
                    v=draw.choice([None, 0, 7, -3, draw.randint(-(2**40), 2**40)]),
                    x=draw.choice([None, 0.25, -1.5, 3.0]),
                    s=draw.choice([None, "", "a", "é", "😀", "￿", "zz"]),
                    by=str(draw.randint(0, 40)),
                )
            )
            number += 1
        yield events


def check(run: TimedRun) -> None:
    """Compare what every batch wrote with the reference, and the whole with what is promised."""
    batches = run.batches()
    marks = [batch.watermark for batch in batches]
    assert marks == sorted(marks), "the watermark went back"
    for uid, shape in SHAPES.items():
        model = WindowModel(shape)
        made, late = run.rows(f"{uid}-rows"), run.rows(f"late-{uid}")
        for number, batch in enumerate(batches):
            rows, missed = model.batch(batch)
            found = bag(as_row(row) for row in made[number])
            assert found == bag(rows), f"{uid}, batch {number}: {batch}"
            assert Counter(row["n"] for row in late[number]) == Counter(missed), (uid, number)
        promises(made, late, batches, shape)
    dedupe = DedupeModel(WITHIN)
    for number, batch in enumerate(batches):
        for output, wanted in dedupe.batch(batch).items():
            topic = "late-once" if output == "late" else output
            rows = run.rows(topic)[number]
            assert Counter(row["n"] for row in rows) == Counter(wanted), (topic, number)


def promises(
    made: dict[int, list[Row]], late: dict[int, list[Row]], batches: list[Batch], shape: Shape
) -> None:
    """Check what a user is promised, with no model of the operator; the job was drained."""
    told: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for number in sorted(made):
        for row in sorted(made[number], key=lambda row: (row["correction"], not row["partial"])):
            told[row.get("key"), row["window_start"], row["window_end"]].append(row)
    for window, rows in told.items():
        kinds = ["partial" if row["partial"] else row["correction"] for row in rows]
        assert kinds.count(False) == 1, f"{window} has {kinds.count(False)} final rows"
        assert kinds == sorted(kinds, key=["partial", False, True].index), window
        partials = sorted(row["hits"] for row in rows if row["partial"])
        counts = partials + [row["hits"] for row in rows if not row["partial"]]
        assert all(less <= more for less, more in pairwise(counts)), (window, counts)
    events = sum(len(batch.events) for batch in batches)
    lost = sum(map(len, late.values()))
    if shape.every in (0, shape.size):
        counted = sum(rows[-1]["hits"] for rows in told.values())
        assert counted + lost == events, "an event is in no window and not late, or in two"


# Kills amid windows are in the fault tests of brokers, too.
@pytest.mark.parametrize(
    "killed",
    [pytest.param(False, id="stopped"), pytest.param(True, marks=pytest.mark.long, id="killed")],
)
def test_a_job_stopped_killed_and_drained_gives_what_plain_python_gives(
    bench: Bench, seed: int, killed: bool
) -> None:
    draw = random.Random(seed)
    run = TimedRun(bench, windowed())
    files = list(drawn(draw, 24))
    for events in files[:8]:
        run.put("events", events)
    # First: the JVM of the tests would keep the job's driver lock for as long as it lives.
    first = kill_after if killed else stop_after
    first(run, draw.randint(2, 4), max_batch=4000)
    for part in (files[8:13], files[13:18]):
        for events in part:
            run.put("events", events)
        stop_after(run, draw.randint(1, 3), max_batch=draw.choice([5000, 20_000]))
    bench.run(run.flow, max_batch=9000)
    for events in files[18:]:
        run.put("events", events)
    assert run.drain(max_batch=9000).state is JobState.STOPPED
    assert sum(len(batch.events) for batch in run.batches()) == sum(map(len, files))
    check(run)
    # None of it is about nothing.
    rows = [row for uid in SHAPES for row in bench.read(f"{uid}-rows")]
    assert any(row["partial"] for row in rows)
    assert any(row["correction"] for row in rows)
    assert all(bench.read(topic) for topic in ("late-plain", "late-sliding", "late-sessions"))
    assert all(bench.read(topic) for topic in ("unique", "repeated", "late-once"))
    with refused("JOB_DRAINED"):
        bench.run(run.flow)


def stop_after(run: TimedRun, batches: int, **options: Any) -> None:
    """Run the job, and stop it as a terminal would once so many batches have committed."""
    stopped = False

    def watch(now: JobSnapshot) -> None:
        nonlocal stopped
        if now.totals.batches >= batches and not stopped:
            stopped = True
            stop_now()

    run.bench.run(run.flow, watch=watch, **options)


def kill_after(run: TimedRun, batches: int, **options: Any) -> None:
    """Run the job in a process of its own, and kill it amid a batch after so many."""
    wanted = run.last_commit() + batches
    job = run.bench.spawn(run.bench.flow_file(run.flow), **options)
    try:
        eventually(
            lambda: run.last_commit() >= wanted, every=0.01, what=f"batch {wanted}", alive=job
        )
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate(timeout=PATIENCE)
    assert job.returncode == -signal.SIGKILL, "the job was done before it was killed"


def at(seconds: float, number: int = 0, key: str = "k") -> Event:
    """Return an event so many seconds after the beginning."""
    return Event(number, key, BEGIN + round(seconds * SECOND))


def counting(name: str, *streams: str, idle_after: str | None = None, **window: Any) -> Flow:
    """Return a flow that counts the events of its streams in windows of a minute."""
    flow = Flow(name)
    for stream in streams:
        events = flow.stream(stream, SCHEMA, event_time="at", idle_after=idle_after)
        counts = events.key_by("key").window(f"{stream}-1m", tumbling("1m"), **window)
        updates = counts.aggregate(hits=count())
        updates.updates.to(f"{stream}-counts")
        updates.late.select("n").to(f"{stream}-late")
    return flow


def finals(bench: Bench, topic: str) -> list[tuple[int, int]]:
    """Return minute and count of the final rows."""
    rows = [row for row in bench.read(topic) if not row["partial"]]
    minutes = [int(row["window_start"][14:16]) for row in rows]
    return sorted(zip(minutes, (row["hits"] for row in rows), strict=True))


def test_the_watermark_and_each_streams_own_survive_a_restart(bench: Bench) -> None:
    run = TimedRun(bench, counting("two", "a", "b"))
    run.put("a", [at(10), at(1000, 1)])
    run.put("b", [at(20), at(130, 1)])
    bench.run(run.flow)
    assert (finals(bench, "a-counts"), finals(bench, "b-counts")) == ([(0, 1)], [(0, 1)])
    # Stream a brings nothing since the restart, and what it brought before still counts.
    run.put("b", [at(30, 2), at(500, 3)])
    bench.run(run.flow)
    assert [row["n"] for row in bench.read("b-late")] == [2]
    assert finals(bench, "b-counts") == [(0, 1), (2, 1)]
    marks = [batch.watermark for batch in run.batches()]
    assert marks == sorted(marks)
    assert marks[-1] == BEGIN + 500 * SECOND
    # The slowest of the two decides, whichever it is.
    run.put("b", [at(3000, 4)])
    bench.run(run.flow)
    assert run.batches()[-1].watermark == BEGIN + 1000 * SECOND


def _until(
    bench: Bench, flow: Flow, topic: str, rows: int, also: Callable[[], None] = lambda: None
) -> None:
    """Run a job until an output has so many rows, then stop it.

    Args:
        also: Called again and again meanwhile.
    """
    deadline = time.monotonic() + PATIENCE
    stopped = False

    def watch(now: JobSnapshot) -> None:
        nonlocal stopped
        if stopped or now.state is not JobState.RUNNING:
            return
        if len(bench.read(topic)) >= rows or time.monotonic() > deadline:
            stopped = True
            stop_now()
        else:
            also()

    bench.run(flow, until_caught_up=False, watch=watch)
    assert len(bench.read(topic)) == rows


def test_a_stream_that_is_idle_lets_the_other_close_windows(bench: Bench) -> None:
    run = TimedRun(bench, counting("idle", "a", "b", idle_after="3s"))
    run.put("a", [at(10)])
    run.put("b", [at(20), at(30, 1), at(200, 2)])
    bench.run(run.flow)
    assert bench.read("a-counts") == []
    fed = [time.monotonic()]

    def feed() -> None:
        # The other one goes on, and so it is not idle.
        if time.monotonic() - fed[-1] > 1:
            fed.append(time.monotonic())
            run.put("b", [at(200 + len(fed), len(fed) + 2)])

    _until(bench, run.flow, "a-counts", 1, feed)
    assert (finals(bench, "a-counts"), finals(bench, "b-counts")) == ([(0, 1)], [(0, 2)])
    assert len(fed) > 2


def test_results_by_the_clock_come_in_a_quiet_flow_and_only_for_new_events(bench: Bench) -> None:
    run = TimedRun(bench, counting("clock", "a", early=every_processing_time("1s")))
    run.put("a", [at(10), at(20, 1)])
    _until(bench, run.flow, "a-counts", 1)
    assert [(row["hits"], row["partial"]) for row in bench.read("a-counts")] == [(2, True)]
    run.put("a", [at(30, 2), at(200, 3)])
    run.drain()
    assert finals(bench, "a-counts") == [(0, 3), (3, 1)]
    partials = [row["hits"] for row in bench.read("a-counts") if row["partial"]]
    assert set(partials) <= {1, 2, 3}
