"""Batches read from a real Kafka broker are bounded by the bytes of their records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench
from confluent_kafka import Producer
from kafka_broker import KafkaBroker

from headgate import Flow
from headgate.checkpoints.sparklog import list_commits, read_offsets
from headgate.connectors import Kafka
from headgate.connectors.kafka.runs.positions import offsets

LIMIT = 512 << 10
SMALL, LARGE, GIANT = 200, 20_000, 900_000


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class Numbered:
    """Rows of any size, each with a number of its own."""

    def __init__(self) -> None:
        self.count = 0

    def rows(self, *sizes: int) -> list[bytes]:
        return [self._row(size) for size in sizes]

    def _row(self, size: int) -> bytes:
        self.count += 1
        bare = json.dumps({"id": self.count, "v": ""})
        return json.dumps({"id": self.count, "v": "x" * (size - len(bare))}).encode()


def send_in_transactions(broker: KafkaBroker, topic: str, partition: int, made: Numbered) -> None:
    """Write short transactions, of which every third is aborted: offsets have gaps."""
    producer = Producer(
        {**broker.client, "transactional.id": f"t-{topic}", "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(180)
    for number in range(30):
        producer.begin_transaction()
        before = made.count
        for row in made.rows(*[SMALL, LARGE] * 4):
            producer.produce(topic, row, partition=partition)
        # An abort drops what was not sent: there would be no gap, and no transaction to end.
        producer.flush(180)
        if number % 3:
            producer.commit_transaction(180)
        else:
            producer.abort_transaction(180)
            made.count = before


def batches(bench: Bench, broker: KafkaBroker, topic: str) -> Iterator[tuple[int, int]]:
    """Give the bytes and the number of the records of each batch, by its logged positions."""
    (checkpoint,) = (bench.home / "jobs" / "copy").glob("runs/*/checkpoint")
    records = [
        (message.partition() or 0, message.offset() or 0, len(message.value() or b""))
        for message in broker.read(topic)
    ]
    since: dict[tuple[str, int], int] = {}
    for batch in list_commits(checkpoint):
        (position,) = read_offsets(checkpoint, batch).values()
        until = offsets(position or "")
        sizes = [
            size
            for partition, offset, size in records
            if since.get((topic, partition), 0) <= offset < until[topic, partition]
        ]
        yield sum(sizes), len(sizes)
        since = until


def test_a_kafka_batch_stays_within_its_bytes_however_sizes_jump(
    kafka: KafkaBroker, bench: Bench
) -> None:
    source, target = kafka.make_topic(partitions=4), kafka.make_topic()
    letters = kafka.make_topic()
    made = Numbered()
    # Large from the first record on.
    kafka.send(source, made.rows(*[LARGE] * 60), partition=0)
    # Small, then a hundred times as large, then small again.
    for size, count in ((SMALL, 3000), (LARGE, 60), (SMALL, 3000)):
        kafka.send(source, made.rows(*[size] * count), partition=1)
    # Small and large in turn, with gaps between the offsets.
    send_in_transactions(kafka, source, 2, made)
    # A record that alone is larger than a batch may be.
    kafka.send(source, made.rows(SMALL, GIANT, SMALL), partition=3)

    flow = Flow("copy", dead_letters=Kafka(letters, servers=kafka.address))
    stream = flow.stream(Kafka(source, servers=kafka.address), "id BIGINT NOT NULL, v STRING")
    stream.to(Kafka(target, servers=kafka.address), key="id")
    bench.run(flow, max_batch=LIMIT)
    # What a batch may have is found out again at every start.
    kafka.send(source, made.rows(*[LARGE] * 60), partition=1)
    bench.run(flow, max_batch=LIMIT)

    found = list(batches(bench, kafka, source))
    assert sum(records for _, records in found) == made.count
    assert all(size <= LIMIT or records == 1 for size, records in found), found
    assert (GIANT, 1) in found
    # Batches are about as large as they may be.
    assert len(found) <= 4 + 2 * sum(size for size, _ in found) / LIMIT, found
    written = sorted(json.loads(value or b"")["id"] for value in kafka.values(target))
    assert written == list(range(1, made.count + 1))
