"""What a batch did, read out of reports that Spark really wrote."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate._codec import encode
from headgate.cli.parts.status import source_lags
from headgate.engine.attempt.progress import BatchReport, Latency, StateProgress, parse_report
from headgate.jobs.totals import Totals

# Two batches of a flow with a stream, two tables and two operators: tables first, then orders.
REPORTS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("progress_reports.json").read_text()
)
SCANS = {"orders": 1, "users": 1, "items": 1}
OPERATORS = ("with-user", "with-item")


def parse(report: dict[str, Any], **scans: int) -> BatchReport:
    parsed = parse_report(report, scans={**SCANS, **scans}, operators=OPERATORS)
    assert parsed is not None
    return parsed


def test_a_report_tells_what_was_read_and_what_is_left() -> None:
    loading, last = (parse(report) for report in REPORTS)
    assert {name: each.rows for name, each in loading.sources.items()} == {
        "orders": 0,
        "users": 2,
        "items": 1,
    }
    assert (loading.sources["orders"].lag_bytes, last.sources["orders"].lag_bytes) == (64, 0)
    assert (last.sources["orders"].lag_records, last.sources["orders"].lag) == (None, None)
    assert (loading.rows, last.rows) == (3, 4)


def test_a_report_tells_where_the_batch_ends_as_json() -> None:
    position = json.loads(parse(REPORTS[1]).sources["orders"].position)
    assert position == REPORTS[1]["sources"][0]["endOffset"]


def test_a_report_tells_when_the_batch_began_and_how_long_it_took() -> None:
    last = parse(REPORTS[1])
    assert last.batch == 1
    assert last.started == datetime(2026, 11, 15, 15, 30, 53, 583000, tzinfo=UTC)
    assert last.duration == timedelta(milliseconds=1427)
    assert last.phases["addBatch"] == timedelta(milliseconds=1136)


@pytest.mark.parametrize(
    ("told", "watermark"),
    [
        ({}, None),
        ({"watermark": "1970-01-01T00:00:00.000Z"}, None),
        (
            {"max": "2025-09-04T10:05:00.000Z", "watermark": "2025-09-04T10:00:00.250Z"},
            datetime(2025, 9, 4, 10, 0, 0, 250_000, tzinfo=UTC),
        ),
    ],
)
def test_a_report_tells_the_watermark_once_there_is_one(
    told: dict[str, str], watermark: datetime | None
) -> None:
    assert parse({**REPORTS[1], "eventTime": told}).watermark == watermark


def test_a_clock_is_no_source_of_a_report() -> None:
    clock = {**REPORTS[1]["sources"][0], "description": "clock of orders", "numInputRows": 1}
    found = parse({**REPORTS[1], "sources": [*REPORTS[1]["sources"], clock]})
    assert found == parse(REPORTS[1])


def test_a_report_tells_the_rows_of_every_output() -> None:
    assert parse(REPORTS[1]).outputs == {
        "dead-letters": 1,
        "miss": 1,
        "out": 1,
        "with-item.missing": 1,
    }


def test_state_is_told_by_uid_though_spark_counts_from_the_sink_up() -> None:
    assert parse(REPORTS[1]).state == {
        "with-user": StateProgress(2, 2518, busy=timedelta(milliseconds=200), tasks=2, entries=2),
        "with-item": StateProgress(1, 1247, busy=timedelta(milliseconds=79), tasks=2, entries=1),
    }


def test_a_lag_that_the_log_estimates_is_told_as_an_estimate() -> None:
    source = REPORTS[1]["sources"][0]
    estimated = {**source, "metrics": {"lagRecords": "7000", "lagEstimated": "true"}}
    report = {**REPORTS[1], "sources": [estimated, *REPORTS[1]["sources"][1:]]}
    batch = parse(report)
    totals = Totals().plus(batch)
    assert totals.lag_estimated == ("orders",)
    lags = source_lags(json.loads(json.dumps(encode(totals))))
    assert lags["orders"].startswith("about 7,000 records")
    assert parse(REPORTS[1]).sources["orders"].is_estimate is False


def test_the_writes_of_a_batch_to_state_are_told_with_their_bytes() -> None:
    users = parse(REPORTS[0]).state["with-user"]
    assert (users.entries, users.writes, users.written_bytes) == (2, 2, 230)


def test_an_operators_time_is_all_that_its_tasks_spent() -> None:
    spent = {"allUpdatesTimeMs": 100, "allRemovalsTimeMs": 20, "commitTimeMs": 3}
    timers = {"customMetrics": {"timerProcessingTimeMs": 4000}}
    last, *others = REPORTS[1]["stateOperators"]
    told = {**REPORTS[1], "stateOperators": [{**last, **spent, **timers}, *others]}
    assert parse(told).state["with-item"].busy == timedelta(milliseconds=4123)


TELEMETRY = {
    "ports": {"orders": 8, "orders!": 2, "with-user.matched": 3},
    "written": 9,
    "latency": {"rows": 9, "p50": 100, "p95": 250, "p99": 1000},
}


def with_telemetry(told: dict[str, Any]) -> dict[str, Any]:
    sink = REPORTS[1]["sink"]
    metrics = {**sink["metrics"], "$telemetry": json.dumps(told)}
    return {**REPORTS[1], "sink": {**sink, "metrics": metrics}}


def test_the_sink_tells_rows_by_port_and_how_old_their_records_were() -> None:
    found = parse(with_telemetry(TELEMETRY))
    assert found.ports == {"orders": 8, "orders!": 2, "with-user.matched": 3}
    assert found.written == 9
    p50, p95, p99 = (timedelta(milliseconds=each) for each in (100, 250, 1000))
    assert found.latency == Latency(p50, p95, p99, rows=9)
    # No output is called like the sink's own words.
    assert found.outputs == parse(REPORTS[1]).outputs


def test_rows_that_a_batch_makes_twice_count_once() -> None:
    told = with_telemetry(TELEMETRY)
    found = parse_report(told, scans=SCANS, operators=OPERATORS, repeats={"orders": 2})
    assert found is not None
    assert found.ports == {"orders": 4, "orders!": 1, "with-user.matched": 3}


def test_a_batch_without_rows_of_records_has_no_latency() -> None:
    assert parse(with_telemetry({"ports": {}, "written": 0})).latency is None
    assert (parse(REPORTS[1]).ports, parse(REPORTS[1]).written) == ({}, None)


def test_a_source_that_is_scanned_several_times_counts_once() -> None:
    assert parse(REPORTS[1], orders=2).sources["orders"].rows == 2


def test_a_report_that_nothing_ran_is_no_batch() -> None:
    waiting = {**REPORTS[1], "durationMs": {"latestOffset": 1, "triggerExecution": 2}}
    assert parse_report(waiting, scans=SCANS, operators=OPERATORS) is None


@pytest.mark.parametrize("missing", ["sink", "sources"])
def test_a_report_without_metrics_counts_nothing(missing: str) -> None:
    bare = json.loads(json.dumps(REPORTS[1]))
    for holder in [bare["sink"]] if missing == "sink" else bare["sources"]:
        del holder["metrics"]
    report = parse(bare)
    if missing == "sink":
        assert report.outputs == {}
    else:
        assert report.sources["users"].lag_bytes is None
