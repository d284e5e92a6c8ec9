"""Totals add batches up and forget nothing but old speeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headgate._codec import encode
from headgate.engine.attempt.progress import BatchReport, Latency, SourceProgress, StateProgress
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
    assert encode(fresh) == {
        "inputs": {},
        "outputs": {},
        "lag_bytes": {},
        "lag_records": {},
        "lag_estimated": [],
        "lag_s": {},
        "state_rows": {},
        "state_bytes": {},
        "batch": None,
        "batches": 0,
        "records_per_s": 0,
        "watermark": None,
        "held_back_by": None,
        "event_times": {},
        "ports": {},
        "ports_per_s": {},
        "busy": {},
        "latency_ms": None,
        "committed_at": None,
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
    assert encode(Totals().plus(moved))["watermark"] == START.isoformat()
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
    assert encode(totals)["records_per_s"] == 200


def test_batches_that_took_no_time_have_no_rate() -> None:
    assert Totals().plus(report(0, 5, seconds=0)).rate == 0.0


def worked(batch: int, *, busy: float, rows: int) -> BatchReport:
    """Return a batch that began at its number in seconds and took half a second."""
    state = {"e": StateProgress(1, 1, timedelta(seconds=busy), tasks=2)}
    return replace(report(batch, 1, seconds=0.5), state=state, ports={"in": rows, "in!": 1})


def test_an_operator_is_busy_for_its_share_of_the_time_with_the_waits_between_batches() -> None:
    totals = Totals().plus(worked(0, busy=0.6, rows=10)).plus(worked(1, busy=0.6, rows=20))
    # 1.2 seconds of two tasks, in the second and a half from the first start to the last end.
    assert totals.busy == {"e": 0.4}
    assert totals.ports == {"in": 30, "in!": 2}
    assert totals.ports_per_s == {"in": 20.0, "in!": 1.3}


def test_an_operator_is_never_busier_than_all_the_time() -> None:
    assert Totals().plus(worked(0, busy=9, rows=1)).busy == {"e": 1.0}


def test_speeds_are_those_of_the_last_few_batches() -> None:
    totals = Totals().plus(worked(0, busy=1, rows=1_000_000))
    for batch in range(100, 105):
        totals = totals.plus(worked(batch, busy=0, rows=9))
    assert totals.ports_per_s["in"] == 10.0
    assert totals.busy == {"e": 0.0}


def test_latency_is_that_of_the_last_batch_that_had_one() -> None:
    ms = timedelta(milliseconds=1)
    late = replace(report(1, 5), latency=Latency(10 * ms, 20 * ms, 30 * ms, 5))
    totals = Totals().plus(late).plus(report(2, 5))
    assert encode(totals)["latency_ms"] == {"p50": 10, "p95": 20, "p99": 30}
    assert encode(totals)["committed_at"] == (START + timedelta(seconds=3)).isoformat()


def at_ends(*ends: float) -> Totals:
    """Return the totals of batches of half a second that ended after these seconds."""
    totals = Totals()
    for end in ends:
        began = START + timedelta(seconds=end - 0.5)
        totals = totals.plus(replace(worked(0, busy=0.4, rows=10), started=began))
    return totals


@pytest.mark.parametrize(
    ("ends", "last", "first_idle"),
    [
        ((1.0, 2.0, 3.0), 13, 14),
        # A batch a minute: its rates last for two minutes.
        ((60.0, 120.0, 180.0), 300, 301),
        # A pause of an hour between quick batches does not make the rates last for hours.
        ((1.0, 2.0, 3.0, 3603.0, 3604.0), 3614, 3615),
    ],
)
def test_an_idle_job_has_no_rates(ends: tuple[float, ...], last: int, first_idle: int) -> None:
    totals = at_ends(*ends)
    assert totals.as_of(START + timedelta(seconds=last)) == totals
    idle = encode(totals.as_of(START + timedelta(seconds=first_idle)))
    assert idle["records_per_s"] == 0
    assert (idle["busy"], idle["ports_per_s"]) == ({"e": 0.0}, {"in": 0.0, "in!": 0.0})
    assert idle["inputs"] == totals.inputs


def test_a_batch_ends_the_idle_time() -> None:
    totals = at_ends(1.0)
    assert totals.as_of(START + timedelta(minutes=5)).rate == 0
    awake = totals.plus(report(300, 50)).as_of(START + timedelta(minutes=5, seconds=2))
    assert awake.rate > 0


def test_a_job_without_a_batch_has_no_rates_at_any_time() -> None:
    assert Totals().as_of(START) == Totals()
