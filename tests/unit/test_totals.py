"""Totals add batches up and forget nothing but old speeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headgate.engine.progress import BatchReport, SourceProgress, StateProgress
from headgate.jobs.totals import Totals

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


def report(batch: int, rows: int, *, seconds: float = 1.0, left: int = 0) -> BatchReport:
    return BatchReport(
        batch=batch,
        started=START + timedelta(seconds=batch),
        duration=timedelta(seconds=seconds),
        sources={"in": SourceProgress(rows, left, None, None, "{}")},
        outputs={"out": rows - 1, "dead-letters": 1},
        state={"e": StateProgress(10 * batch, 1000 * batch)},
        phases={},
    )


def test_nothing_has_happened_at_first() -> None:
    fresh = Totals()
    assert (fresh.batch, fresh.batches, fresh.rate, fresh.committed) == (None, 0, 0.0, None)
    assert fresh.to_json() == {
        "inputs": {},
        "outputs": {},
        "lag_bytes": {},
        "lag_records": {},
        "lag_s": {},
        "state_rows": {},
        "state_bytes": {},
        "batch": None,
        "batches": 0,
        "records_per_s": 0,
        "watermark": None,
    }


def test_counts_add_up_and_state_and_lag_are_the_last_known() -> None:
    totals = Totals().plus(report(4, 10, left=50)).plus(report(5, 6, left=20))
    assert totals.inputs == {"in": 16}
    assert totals.outputs == {"out": 14, "dead-letters": 2}
    assert totals.lag_bytes == {"in": 20}
    assert (totals.state_rows, totals.state_bytes) == ({"e": 50}, {"e": 5000})
    assert (totals.batch, totals.batches) == (5, 2)
    assert totals.committed == START + timedelta(seconds=6)


def test_the_watermark_is_that_of_the_last_batch() -> None:
    moved = replace(report(1, 5), watermark=START)
    assert Totals().plus(moved).to_json()["watermark"] == START.isoformat()
    assert Totals().plus(moved).plus(report(2, 5)).watermark is None


def test_a_snapshot_stays_as_it_was() -> None:
    before = Totals().plus(report(0, 10))
    before.plus(report(1, 10))
    assert before.inputs == {"in": 10}


def test_the_rate_is_that_of_the_last_few_batches() -> None:
    totals = Totals().plus(report(0, 1_000_000, seconds=1))
    for batch in range(1, 6):
        totals = totals.plus(report(batch, 100, seconds=0.5))
    assert totals.rate == 200.0
    assert totals.to_json()["records_per_s"] == 200


def test_batches_that_took_no_time_have_no_rate() -> None:
    assert Totals().plus(report(0, 5, seconds=0)).rate == 0.0
