"""Counters of a job only grow: over batches, attempts, starts, and supervisors that are killed."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate.engine.attempt.progress import PHASES, Ages, BatchReport, Latency, SourceProgress
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.metrics.counter_file import read_counters
from headgate.jobs.metrics.counters import BATCH_BOUNDS, Counters
from headgate.jobs.metrics.histogram import Histogram
from headgate.jobs.supervision.meter import Meter

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PORTS = {"orders": ("orders", "out"), "w.late": ("w", "late"), "w!": ("w", "!")}
BOUNDS = (0.01, 0.1, 1.0)
NO_TIME = timedelta(0)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def batch(number: int, dice: random.Random) -> tuple[BatchReport, list[float]]:
    """Return a batch, and the age of each of its rows."""
    ages = [dice.choice((0.01, 0.02, 0.1, 0.5, 1.0, 7.0)) for _ in range(dice.randrange(5))]
    rows = [sum(low < age <= high for age in ages) for low, high in _spans(BOUNDS)]
    latency = None
    if ages:
        histogram = Ages(tuple(map(seconds, BOUNDS)), tuple(rows), seconds(sum(ages)))
        latency = Latency(NO_TIME, NO_TIME, NO_TIME, len(ages), histogram)
    report = BatchReport(
        batch=number,
        started=NOON + seconds(number),
        duration=seconds(dice.choice((0.05, 0.2, 3.0, 1000.0))),
        sources={
            name: SourceProgress(dice.randrange(100), None, None, None, "{}")
            for name in dice.sample(["orders", "users"], dice.randrange(1, 3))
        },
        outputs={"out": dice.randrange(50), "dead-letters": dice.randrange(3)},
        state={},
        phases={
            name: timedelta(milliseconds=dice.randrange(100))
            for name in dice.sample([part for parts in PHASES.values() for part in parts], 4)
        },
        ports={name: dice.randrange(40) for name in dice.sample(sorted(PORTS), 2)},
        latency=latency,
    )
    return report, ages


def _spans(bounds: tuple[float, ...]) -> list[tuple[float, float]]:
    return list(zip((-1.0, *bounds), (*bounds, float("inf")), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_counters_are_the_sums_of_all_batches_of_all_starts(tmp_path: Path, seed: int) -> None:
    dice, home, clock = random.Random(seed), JobFolder(tmp_path, "shop"), FakeClock(NOON)
    sums: Counter[tuple[str, str]] = Counter()
    took: list[float] = []
    ages: list[float] = []
    phases: Counter[str] = Counter()
    meter = Meter(home, clock, PORTS)
    for number in range(60):
        report, more = batch(number, dice)
        meter.batch_committed(report)
        sums.update({("in", name): source.rows for name, source in report.sources.items()})
        sums.update({("out", name): rows for name, rows in report.outputs.items()})
        sums.update({("port", name): rows for name, rows in report.ports.items()})
        took.append(report.duration.total_seconds())
        ages += more
        phases.update(
            {name: round(spent / seconds(0.001)) for name, spent in report.phases.items()}
        )
        if dice.random() < 0.2:
            # The next start of the job.
            meter.flush()
            meter = Meter(home, clock, PORTS)
    meter.flush()
    counted = read_counters(home)
    found = Counter({("in", name): rows for name, rows in counted.records_in.items()})
    found.update({("out", name): rows for name, rows in counted.records_out.items()})
    found.update({("port", name): port.rows for name, port in counted.ports.items()})
    assert found == sums
    assert {port: PORTS[port] for port in counted.ports} == {
        port: (rows.operator, rows.output) for port, rows in counted.ports.items()
    }
    assert counted.batches.counts == tuple(
        sum(low < each <= high for each in took) for low, high in _spans(BATCH_BOUNDS)
    )
    assert counted.batches.sum == pytest.approx(sum(took))
    assert counted.latency is not None
    assert counted.latency.counts == tuple(
        sum(low < age <= high for age in ages) for low, high in _spans(BOUNDS)
    )
    assert counted.latency.sum == pytest.approx(sum(ages))
    for phase, parts in PHASES.items():
        spent = sum(phases[part] for part in parts) / 1000
        assert counted.phase_seconds[phase] == pytest.approx(spent)


def test_a_supervisor_that_is_killed_takes_no_count_back(tmp_path: Path) -> None:
    home, clock, dice = JobFolder(tmp_path, "shop"), FakeClock(NOON), random.Random(1)
    seen = 0
    for _ in range(5):
        # Killed without a last write, each time.
        meter = Meter(home, clock)
        for number in range(20):
            meter.batch_committed(batch(number, dice)[0])
            clock.sleep(timedelta(seconds=0.4))
            meter.tick()
            read = read_counters(home).batches.total
            assert read >= seen
            seen = read
        home.write_status({"state": "RUNNING"})
    # Each time, at most a second of batches was not written.
    assert 5 * 17 <= seen <= 5 * 20
    assert read_counters(home).restarts == {"SUPERVISOR_DIED": 4}


def test_a_job_that_was_stopped_did_not_lose_its_supervisor(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    home.write_status({"state": "STOPPED"})
    meter = Meter(home, FakeClock(NOON))
    meter.restarted("DRIVER_DIED")
    meter.flush()
    assert read_counters(home).restarts == {"DRIVER_DIED": 1}


def test_checkpoints_and_savepoints_are_counted_with_their_failures(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    meter = Meter(home, FakeClock(NOON))
    for count, times in (
        (meter.checkpoint_kept, 4),
        (meter.checkpoint_failed, 3),
        (meter.savepoint_taken, 2),
        (meter.savepoint_failed, 1),
    ):
        for _ in range(times):
            count()
    meter.flush()
    found = read_counters(home)
    assert (found.checkpoints, found.checkpoint_failures) == (4, 3)
    assert (found.savepoints, found.savepoint_failures) == (2, 1)


def test_a_job_of_an_older_release_has_the_counts_of_its_status(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "shop")
    home.write_status({"state": "STOPPED", "inputs": {"orders": 7}, "outputs": {}, "restarts": 2})
    before = Counters(records_in={"orders": 7}, restarts={"UNKNOWN": 2})
    assert read_counters(home) == before
    meter = Meter(home, FakeClock(NOON))
    report, _ = batch(1, random.Random(1))
    meter.batch_committed(report)
    meter.flush()
    assert read_counters(home).records_in["orders"] == 7 + report.sources["orders"].rows


@pytest.mark.parametrize(
    "content", ["", "{", "[]", json.dumps({"format": 99}), '{"format": 1, "records_in": 3}']
)
def test_counters_that_cannot_be_read_begin_again(tmp_path: Path, content: str) -> None:
    home = JobFolder(tmp_path, "shop")
    home.path.mkdir(parents=True)
    (home.path / "counters.json").write_text(content)
    assert read_counters(home) == Counters()


def test_bounds_of_another_release_replace_the_histogram() -> None:
    old = Histogram((1.0,), (4, 5), 6.0)
    new = Histogram((1.0, 2.0), (1, 0, 0), 0.5)
    assert old.plus(new) == new
