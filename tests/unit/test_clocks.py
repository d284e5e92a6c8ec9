"""Clocks of timed streams: their options, what a checkpoint says of them, and drained jobs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import stored_run

from headgate import Flow, HeadgateError
from headgate.checkpoints.catalog import keep
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.engine.plan.clocks import (
    clock_name,
    clock_options,
    delay,
    is_drained,
    read_partition_times,
    read_times,
)
from headgate.engine.plan.flow_plan import source_name
from headgate.flow.operators.nodes import Source
from headgate.jobs.checkpoints.keeper import by_source
from headgate.jobs.runs.drain import check_not_drained, check_not_drained_at

END_MS = 253_402_300_799_999


def stream(name: str = "visits", *, idle_after: str | None = None) -> Source:
    flow = Flow("f")
    visits = flow.stream(
        name, "at BIGINT", event_time="at", out_of_orderness="5s", idle_after=idle_after
    )
    visits.to("out")
    (found,) = flow.graph().streams()
    return found


def position(max_ms: int | None) -> str:
    return json.dumps({"format": 1, "max": max_ms, "nudged": 0, "n": 3})


@pytest.mark.parametrize("other", ["visits", "__clockvisits", "clock visits", "_clock", "_"])
def test_no_source_has_the_name_of_a_clock(other: str) -> None:
    assert clock_name("visits") != source_name(other)
    assert clock_name("visits").replace("_", "").isalnum()


def test_a_clock_is_told_of_its_stream() -> None:
    plain = clock_options(stream(), None, watermark_ms=0, reached={}, partitions={})
    assert plain == {"clock.stream": "visits", "clock.delay": "5000"}
    nudged = clock_options(
        stream(idle_after="30s"), timedelta(seconds=10), watermark_ms=0, reached={}, partitions={}
    )
    assert nudged["clock.idle"] == "30000"
    assert nudged["clock.nudge"] == "10000"


def test_the_watermark_trails_by_what_a_clock_may_be_nudged() -> None:
    assert delay(stream(), None) == timedelta(seconds=5)
    assert delay(stream(), timedelta(seconds=10)) == timedelta(seconds=6)


@pytest.mark.parametrize(
    ("watermark_ms", "reached", "start"),
    [(0, {}, None), (0, {"visits": 70_000}, "70000"), (60_000, {}, "65000")],
)
def test_a_clock_begins_where_the_checkpoint_was(
    watermark_ms: int, reached: dict[str, int], start: str | None
) -> None:
    options = clock_options(
        stream(), None, watermark_ms=watermark_ms, reached=reached, partitions={}
    )
    assert options.get("clock.start") == start


def test_a_clock_never_begins_behind_the_watermark() -> None:
    options = clock_options(
        stream(), None, watermark_ms=60_000, reached={"visits": 61_000}, partitions={}
    )
    assert options["clock.start"] == "65000"


def test_times_are_read_from_a_batch_that_has_some() -> None:
    positions = {"visits": "{}", clock_name("visits"): position(7), clock_name("b"): position(None)}
    assert read_times(positions, (stream("visits"), stream("b"), stream("c"))) == {"visits": 7}


def test_times_of_partitions_are_read_from_a_clock_that_knows_them() -> None:
    known = json.dumps({"format": 2, "max": 7, "nudged": 0, "n": 3, "partitions": {"visits-1": 9}})
    positions = {clock_name("visits"): known, clock_name("b"): position(7)}
    streams = (stream("visits"), stream("b"), stream("c"))
    assert read_times(positions, streams) == {"visits": 7, "b": 7}
    assert read_partition_times(positions, streams) == {"visits": {"visits-1": 9}}


def test_a_clock_begins_with_the_times_of_its_partitions() -> None:
    options = clock_options(
        stream(), None, watermark_ms=0, reached={"visits": 7}, partitions={"visits-1": 9}
    )
    assert json.loads(options["clock.partitions"]) == {"visits-1": 9}


def test_a_clock_is_no_source() -> None:
    flow = Flow("f")
    flow.stream("visits", "at BIGINT", event_time="at", out_of_orderness="5s").to("out")
    positions = {"visits": "{}", clock_name("visits"): position(7)}
    assert by_source(flow.graph(), positions) == {"visits": "{}"}


@pytest.mark.parametrize(
    ("max_ms", "drained"), [(None, False), (END_MS - 1, False), (END_MS, True), (END_MS + 5, True)]
)
def test_a_batch_is_drained_if_a_clock_is_at_the_end_of_time(
    max_ms: int | None, drained: bool
) -> None:
    positions = {"visits": position(END_MS), clock_name("visits"): position(max_ms)}
    assert is_drained(positions) is drained


def drain(checkpoint: Path, batch: int) -> None:
    """Write a clock at the end of time into a batch of Spark's log."""
    file = checkpoint / "offsets" / str(batch)
    file.write_text(f"{file.read_text()}\n{clock_name('visits')}:{position(END_MS)}")
    file.with_name(f".{batch}.crc").unlink(missing_ok=True)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return stored_run.unpack(tmp_path)


def kept(checkpoint: Path, batch: int) -> Checkpoint:
    folder = checkpoint.parent / "kept"
    return keep(checkpoint, batch, folder, stored_run.facts())


def test_a_run_that_was_not_drained_is_resumed(checkpoint: Path) -> None:
    check_not_drained(checkpoint, [], job="visits")


def test_a_drained_run_is_not_resumed(checkpoint: Path) -> None:
    before = kept(checkpoint, stored_run.LAST - 1)
    drain(checkpoint, stored_run.LAST)
    with pytest.raises(HeadgateError) as caught:
        check_not_drained(checkpoint, [before], job="visits")
    assert caught.value.code == "JOB_DRAINED"
    assert f"--from {before.id}" in caught.value.hint


def test_a_drain_that_was_cut_short_is_not_resumed(checkpoint: Path) -> None:
    drain(checkpoint, stored_run.LAST)
    (checkpoint / "commits" / str(stored_run.LAST)).unlink()
    with pytest.raises(HeadgateError) as caught:
        check_not_drained(checkpoint, [], job="visits")
    assert caught.value.code == "JOB_DRAINED"
    assert caught.value.hint == "start empty with --fresh"


def test_a_checkpoint_of_the_drain_is_not_restored_and_one_before_it_is(checkpoint: Path) -> None:
    before = kept(checkpoint, stored_run.LAST - 1)
    drain(checkpoint, stored_run.LAST)
    after = kept(checkpoint, stored_run.LAST)
    check_not_drained_at(before, [before, after], job="visits")
    with pytest.raises(HeadgateError) as caught:
        check_not_drained_at(after, [before, after], job="visits")
    assert caught.value.code == "JOB_DRAINED"
    assert f"--from {before.id}" in caught.value.hint
