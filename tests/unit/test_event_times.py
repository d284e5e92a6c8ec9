"""How far partitions have come in event time: what a clock tells, what it says of the watermark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from console_job import make_job
from test_totals import report
from typer.testing import CliRunner

from headgate._codec import decode, encode
from headgate.cli.app import app
from headgate.engine.attempt.progress import (
    PartitionTime,
    StreamTimes,
    find_holder,
    parse_report,
    parse_stream_times,
)
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.totals import Totals
from headgate.server.console.pages.overview import job_head

TEN = datetime(2025, 9, 4, 10, tzinfo=UTC)
TEN_MS = round(TEN.timestamp() * 1000)
END = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


def told(**parts: Any) -> str:
    """Return what a clock tells, as the kernel writes it."""
    return json.dumps({"stream": "visits", "watermark": None, "slowest": None, **parts})


def held(watermark: datetime | None, by: str | None, *names: str) -> StreamTimes:
    return StreamTimes(watermark, by, {name: PartitionTime(watermark, False) for name in names})


def test_a_clock_tells_the_time_of_each_partition() -> None:
    partitions = {
        "visits-0": {"time": TEN_MS, "idle": False},
        "visits-1": {"time": None, "idle": True},
    }
    text = told(watermark=TEN_MS - 5000, slowest="visits-0", partitions=partitions)
    stream, times = parse_stream_times(text)
    assert stream == "visits"
    assert times == StreamTimes(
        TEN - timedelta(seconds=5),
        "visits-0",
        {"visits-0": PartitionTime(TEN, False), "visits-1": PartitionTime(None, True)},
    )
    assert decode(StreamTimes, json.loads(json.dumps(encode(times)))) == times


def test_a_drained_stream_is_at_the_last_moment_that_has_a_date() -> None:
    _, times = parse_stream_times(told(watermark=253_402_300_799_999 + 5000, partitions={}))
    assert times.watermark == END


def test_times_are_taken_from_the_clocks_of_a_report() -> None:
    reports = json.loads(Path(__file__).with_name("progress_reports.json").read_text())
    clock = {
        "description": "clock of visits",
        "metrics": {"eventTime": told(partitions={})},
        "numInputRows": 0,
    }
    sources = [*reports[1]["sources"], clock]
    scans = {"orders": 1, "users": 1, "items": 1}
    found = parse_report({**reports[1], "sources": sources}, scans=scans, operators=())
    assert found is not None
    assert found.event_times == {"visits": StreamTimes(None, None, {})}
    assert list(found.sources) == list(scans)


@pytest.mark.parametrize(
    ("streams", "holder"),
    [
        ({}, None),
        # Where there is one partition there is nothing to tell.
        ({"a": held(TEN, "a-0", "a-0")}, None),
        ({"a": held(TEN, "a-1", "a-0", "a-1")}, "a-1"),
        ({"a": held(TEN, "a", "a"), "b": held(TEN - timedelta(1), "b", "b")}, "b"),
        ({"a": held(TEN, "a", "a"), "b": held(None, "b", "b")}, "b"),
        ({"a": held(TEN, None, "a-0", "a-1")}, None),
    ],
)
def test_the_slowest_partition_of_the_slowest_stream_holds_the_watermark_back(
    streams: dict[str, StreamTimes], holder: str | None
) -> None:
    assert find_holder(streams) == holder


def test_who_watches_is_told_what_holds_the_watermark_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"visits": held(TEN, "visits-1", "visits-0", "visits-1")}
    totals = Totals().plus(replace(report(1, 5), watermark=TEN, event_times=times))
    status = encode(totals)
    assert decode(Totals, status).event_times == times
    line = "2025-09-04 10:00:00"
    monkeypatch.chdir(tmp_path)
    JobFolder(Path(".headgate"), "visits").write_status({"state": "STOPPED", **status})
    shown = CliRunner().invoke(app, ["show", "visits"]).stdout
    assert f"watermark   {line} UTC, held back by visits-1" in shown
    assert [row.split()[:2] for row in shown.splitlines() if line in row][1:] == [
        ["visits", "visits-0"],
        ["visits", "visits-1"],
    ]
    as_json = json.loads(CliRunner().invoke(app, ["show", "visits", "--json"]).stdout)
    assert '"held_back_by": "visits-1"' in json.dumps(as_json)
    assert "held back by visits-1" in str(job_head(make_job(status=status), TEN))
