"""Event time of topics on brokers: each partition has its own, and the slowest one decides."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, stop_now
from confluent_kafka.admin import NewPartitions
from kafka_broker import KafkaBroker
from pulsar_broker import PulsarBroker

from headgate import Flow
from headgate.connectors import Kafka, Pulsar
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.values import JobSnapshot
from headgate.windows import count, tumbling

TEN = datetime(2025, 9, 4, 10, tzinfo=UTC)
SCHEMA = "key STRING, at STRING"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class Visits:
    """A topic of visits, and a job that counts them by key in windows of a minute."""

    def __init__(
        self, broker: KafkaBroker | PulsarBroker, bench: Bench, *, partitions: int
    ) -> None:
        self.broker = broker
        self.bench = bench
        self.topic = broker.make_topic(partitions=partitions)
        self.sent: list[tuple[str, datetime]] = []

    def flow(self) -> Flow:
        """Return the flow; no partition that holds records is ever idle in it."""
        flow = Flow("visits")
        stream = flow.stream(self._bound(), SCHEMA, uid="in", event_time="at", idle_after=None)
        counts = stream.key_by("key").window("per-minute", tumbling("1m")).aggregate(n=count())
        counts.updates.to("counts")
        counts.late.to("late")
        return flow

    def _bound(self) -> Kafka | Pulsar:
        broker = self.broker
        if isinstance(broker, KafkaBroker):
            return Kafka(self.topic, servers=broker.address)
        return Pulsar(self.topic, service=broker.service, admin=broker.admin)

    def send(self, partition: int, *minutes: float) -> None:
        """Publish a visit for each of some minutes after ten, of two keys in turn."""
        times = [TEN + timedelta(minutes=minute) for minute in minutes]
        visits = [("ab"[number % 2], at) for number, at in enumerate(times)]
        self.sent += visits
        values = [json.dumps({"key": each, "at": at.isoformat()}) for each, at in visits]
        self.broker.send(self.topic, values, partition=partition)

    def run(self, **options: Any) -> JobSnapshot:
        """Run the job until it has caught up."""
        return self.bench.run(self.flow(), **options)

    def drain(self, **options: Any) -> JobSnapshot:
        """Run the job until it has read what is there and every window is over."""
        asked: list[JobSnapshot] = []

        def watch(now: JobSnapshot) -> None:
            if now.state is JobState.RUNNING and not asked:
                asked.append(now)
                home = JobFolder(self.bench.home, "visits")
                write_intent(home, Verb.STOP, {"drain": True}, by="test")

        return self.run(watch=watch, until_caught_up=False, **options)

    def expected(self) -> Counter[tuple[str, datetime]]:
        """Return how many visits each window has, by key and start."""
        return Counter((key, at.replace(second=0, microsecond=0)) for key, at in self.sent)

    def counted(self) -> Counter[tuple[str, datetime]]:
        """Return how many visits the final rows count."""
        rows = [row for row in self.bench.read("counts") if not row["partial"]]
        assert len({(row["key"], row["window_start"]) for row in rows}) == len(rows)
        return Counter(
            {(row["key"], datetime.fromisoformat(row["window_start"])): row["n"] for row in rows}
        )


def minute(of: datetime | None) -> float | None:
    """Return how many minutes after ten a time is."""
    return None if of is None else (of - TEN) / timedelta(minutes=1)


def stopped_after(batches: int) -> Callable[[JobSnapshot], None]:
    """Return a watcher that stops a job once it has committed so many batches."""
    asked: list[int] = []

    def watch(now: JobSnapshot) -> None:
        if now.totals.batches >= batches and not asked:
            asked.append(now.totals.batches)
            stop_now()

    return watch


def test_a_backfill_of_partitions_of_very_different_age_loses_nothing_to_late(
    kafka: KafkaBroker, bench: Bench
) -> None:
    draw = random.Random(20250904)
    # The third partition is always empty, and holds nothing back.
    visits = Visits(kafka, bench, partitions=3)
    for partition, begin in ((0, -7 * 24 * 60), (1, 0)):
        visits.send(partition, *sorted(begin + draw.random() * 60 for _ in range(300)))
    marks: list[float | None] = []

    stop = stopped_after(6)

    def watch(now: JobSnapshot) -> None:
        marks.append(minute(now.totals.watermark))
        stop(now)

    visits.run(max_batch=2048, watch=watch)
    # Windows of the old partition are over while both are read, and none of the new one.
    assert visits.counted()
    assert all(mark is None or mark < -7 * 24 * 60 + 61 for mark in marks)
    assert visits.drain(max_batch=2048).totals.batches > 3
    assert bench.read("late") == []
    assert visits.counted() == visits.expected()


def test_a_partition_added_later_holds_the_watermark_from_where_it_is_found(
    kafka: KafkaBroker, bench: Bench
) -> None:
    visits = Visits(kafka, bench, partitions=1)
    visits.send(0, 0, 5, 10)
    assert minute(visits.run().totals.watermark) == 10
    admin = kafka.admin()
    for grown in admin.create_partitions([NewPartitions(visits.topic, 2)]).values():
        grown.result(30)
    visits.send(0, 90, 91)
    # From where the watermark is on: nothing of it may be late.
    visits.send(1, *(10 + number / 10 for number in range(500)))
    held = visits.run(max_batch=4096)
    assert minute(held.totals.watermark) == pytest.approx(59.9)
    assert held.totals.batches > 5
    visits.drain()
    assert bench.read("late") == []
    assert visits.counted() == visits.expected()


def test_the_time_of_each_partition_survives_a_restart_and_a_restore(
    kafka: KafkaBroker, bench: Bench
) -> None:
    visits = Visits(kafka, bench, partitions=2)
    visits.send(0, 1, 10)
    visits.send(1, 1, 2)
    assert minute(visits.run(parallelism=2).totals.watermark) == 2
    # Of the first partition nothing new comes, and its time is still known.
    visits.send(1, 6)
    assert minute(visits.run().totals.watermark) == 6
    visits.send(1, 15)
    ended = visits.run(restore_from="latest", parallelism=3)
    assert minute(ended.totals.watermark) == 10
    assert bench.read("late") == []
    status = FolderHome(bench.home).details("visits").view.status
    (stream,) = status["event_times"].values()
    assert stream["held_back_by"] == f"{visits.topic}-0"
    times = {name: each["time"] for name, each in stream["partitions"].items()}
    assert times == {
        f"{visits.topic}-{number}": (TEN + timedelta(minutes=reached)).isoformat()
        for number, reached in enumerate((10, 15))
    }


def test_so_it_is_on_pulsar(pulsar: PulsarBroker, bench: Bench) -> None:
    visits = Visits(pulsar, bench, partitions=3)
    for part in range(4):
        visits.send(0, *(-600 + part + number / 20 for number in range(20)))
        visits.send(1, *(part + number / 20 for number in range(20)))
    held = visits.run(max_batch=2048)
    assert minute(held.totals.watermark) == pytest.approx(-600 + 3.95)
    assert held.totals.batches > 3
    assert held.totals.held_back_by == f"{visits.topic}-0"
    visits.drain()
    assert bench.read("late") == []
    assert visits.counted() == visits.expected()
