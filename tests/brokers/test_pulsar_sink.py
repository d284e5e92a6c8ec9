"""What the kernel writes to Pulsar, as readers find it: once, whatever happened on the way."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pulsar as client
import pytest
from eventually import eventually
from pulsar_broker import PulsarBroker
from pulsar_sink import JOB, Row, Sink
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.connectors.pulsar.topics.producing import partition_of
from headgate.engine.session.session import open_session
from headgate.engine.settings import SparkSettings

_MINUTE_MS = 60_000
_TOO_LARGE = 6 << 20


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give a JVM with the kernel in it."""
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = open_session(SparkSettings(parallelism=1, log_file=log), modules=("pulsar",))
    yield session
    session.stop()


@pytest.fixture
def sink(spark: SparkSession, pulsar: PulsarBroker) -> Sink:
    """Give a query that writes to one topic without partitions."""
    topic = pulsar.make_topic(partitions=0, deduplicated=True)
    return Sink(spark=spark, broker=pulsar, topics=[topic], lineage=f"run-{time.time_ns()}")


def made(count: int, *, begin: int = 0, keys: int = 0) -> list[Row]:
    """Return rows in the order in which they are numbered."""
    return [
        Row(
            json.dumps({"n": n}).encode(),
            key=f"k{n % keys}".encode() if keys else None,
            offset=n,
        )
        for n in range(begin, begin + count)
    ]


def values(rows: list[Row]) -> list[bytes]:
    """Return what readers shall find."""
    return [row.value for row in rows]


def found(sink: Sink) -> list[bytes]:
    """Return what readers find in the sink's first topic."""
    return sink.broker.values(sink.topics[0])


def refused(code: str) -> pytest.RaisesExc[Py4JJavaError]:
    """Expect a failure that the kernel names; the pattern begins with its code."""
    return pytest.raises(Py4JJavaError, match=f"PulsarFailure: {code}")


def test_rows_have_their_key_and_their_place_and_keys_go_where_javas_producers_put_them(
    sink: Sink,
) -> None:
    main = sink.broker.make_topic(partitions=3, deduplicated=True)
    side = sink.broker.make_topic(partitions=2, deduplicated=True)
    rows = made(30, keys=7) + [replace(row, output=1, partition=4) for row in made(6)]
    replace(sink, topics=[main, side, *sink.topics]).write(random.sample(rows, len(rows)))

    records = sink.broker.read(main)
    assert sorted(record.value for record in records) == sorted(values(rows[:30]))
    assert {record.properties["headgate"] for record in records} == {
        f"{sink.lineage}/orders/0/{n}" for n in range(30)
    }
    assert {record.key for record in records} == {f"k{n}" for n in range(7)}
    assert all(each.partition == partition_of(each.key.encode(), 3) for each in records)
    aside = sink.broker.read(side)
    assert sorted(each.partition for each in aside) == [0, 0, 0, 1, 1, 1]
    assert {each.key for each in aside} == {""}
    assert aside[0].properties["headgate"].startswith(f"{sink.lineage}/orders/4/")
    assert found(sink) == []


def test_rows_of_a_place_stay_in_the_order_of_the_records_they_come_from(sink: Sink) -> None:
    rows = made(500)
    sink.write(random.sample(rows, len(rows)))
    assert found(sink) == values(rows)


def test_early_results_on_pulsar_keep_their_order(sink: Sink) -> None:
    """Each counts more events than the one before, and nothing else tells their places apart."""
    told = [
        Row(b'{"n":%d}' % count, offset=9, sequence=key, lane=count)
        for key in (3, 7)
        for count in (4, 8, 12)
    ]
    old = replace(sink, placed_since=1)
    # A batch that was begun by the order of release 0.7, by bytes, is finished by it.
    by_bytes = sorted(told, key=lambda row: row.value)
    old.write(by_bytes[:3], epoch=0)
    old.write(random.sample(told, len(told)), epoch=0)
    old.write(random.sample(told, len(told)), epoch=1)
    assert found(sink) == values(by_bytes + told)


@pytest.mark.parametrize("written", [0, 1, 7, 200])
def test_an_epoch_that_is_replayed_adds_what_is_missing(sink: Sink, written: int) -> None:
    rows = made(200)
    # A process that died after these rows, whose batches had other borders.
    replace(sink, options={"producer.batchingMaxMessages": "3"}).write(rows[:written], epoch=5)
    sink.write(random.sample(rows, len(rows)), epoch=5)
    sink.write(made(10, begin=200), epoch=6)
    assert found(sink) == values(made(210))


def test_tasks_and_epochs_without_rows_in_between_are_told_apart(sink: Sink) -> None:
    run = sink.start()
    rows = made(40)
    run.write(rows[:10], epoch=0, task=0, tasks=2)
    run.write(rows[10:20], epoch=0, task=1, tasks=2)
    run.write(rows[20:30], epoch=4, task=1, tasks=2)
    run.write(rows[30:], epoch=5, task=0, tasks=2)
    run.end()
    sink.write(rows[30:], epoch=5, task=0, tasks=2)
    assert found(sink) == values(rows)


def test_a_task_that_is_tried_again_in_the_same_process_writes_nothing_twice(sink: Sink) -> None:
    run = sink.start()
    run.write(made(5), epoch=0)
    given_up = run.open(made(5, begin=5), epoch=1)
    given_up.abort()
    for _ in range(2):
        run.write(made(5, begin=5), epoch=1)
    run.write(made(5, begin=10), epoch=2)
    run.end()
    assert found(sink) == values(made(15))


def test_rows_of_every_size_come_whole_from_epoch_to_epoch_and_task_to_task(sink: Sink) -> None:
    sizes = [0, 1, 3_000, 100_000, 262_143, 262_144, 262_145, 300_000]

    def sized(begin: int) -> list[Row]:
        offsets = range(begin, begin + 2 * len(sizes))
        return [
            Row(bytes([n % 251 + 1]) * sizes[n % len(sizes)], key=f"k{n}".encode(), offset=n)
            for n in offsets
        ]

    run = sink.start()
    expected: list[Row] = []
    for epoch in range(3):
        # What one task holds must stay while others come and go.
        held = run.open(sized(100 * epoch), epoch=epoch, task=0, tasks=2)
        run.open(sized(900), epoch=epoch, task=1, tasks=2).abort()
        other = random.sample(rows := sized(100 * epoch + 50), 2 * len(sizes))
        run.write(other, epoch=epoch, task=1, tasks=2)
        held.commit()
        expected += [*rows, *sized(100 * epoch)]
    run.end()
    assert found(sink) == values(expected)
    assert [each.key.encode() for each in sink.broker.read(sink.topics[0])] == [
        row.key for row in expected
    ]


@pytest.mark.parametrize("written", [0, 400])
def test_rows_beyond_a_tasks_memory_wait_on_disk_and_keep_their_order(
    sink: Sink, spark: SparkSession, written: int
) -> None:
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    scratch = Path(system.getProperty("java.io.tmpdir"))
    before = set(scratch.glob("held-*"))
    system.setProperty("headgate.pulsar.held", "20000")
    rows = [*made(1000, keys=7), *made(1000, begin=1000)]
    large = [replace(row, value=row.value + b" " * 300_000) for row in made(3, begin=2000)]
    expected = [*rows, *large]
    try:
        run = sink.start()
        # An earlier try, in another order, got as far as this.
        run.write(expected[:written], epoch=0)
        writer = run.open(random.sample(expected, len(expected)), epoch=0)
        assert len(set(scratch.glob("held-*")) - before) > 10
        writer.commit()
        given_up = run.open(random.sample(rows, len(rows)), epoch=1)
        assert set(scratch.glob("held-*")) - before
        given_up.abort()
        run.end()
    finally:
        system.clearProperty("headgate.pulsar.held")
    assert found(sink) == values(expected)
    assert set(scratch.glob("held-*")) == before


def test_another_lineage_writes_again(sink: Sink) -> None:
    sink.write(made(5))
    replace(sink, lineage=f"{sink.lineage}-fork").write(made(5))
    assert found(sink) == values(made(5) * 2)


def test_rows_that_are_equal_are_all_written(sink: Sink) -> None:
    same = [Row(b'{"n":1}')] * 20
    sink.write(same[:8], epoch=0)
    sink.write(same, epoch=0)
    assert found(sink) == values(same)


def test_a_name_that_is_taken_is_waited_for(sink: Sink) -> None:
    other = sink.broker.client()
    _take_name(sink, other)
    threading.Timer(1, other.close).start()
    sink.write(made(5))
    assert found(sink) == values(made(5))


def test_rows_that_another_try_has_written_meanwhile_cost_none_that_are_new(sink: Sink) -> None:
    run = sink.start()
    run.write(made(5), epoch=0)
    with frozen():
        write_as(sink, epoch=1, rows=made(3, begin=5))
    # The producer of the first epoch knows nothing of it, and sends all rows in one batch.
    run.write(made(10, begin=5), epoch=1)
    run.end()
    assert found(sink) == values(made(15))


@contextlib.contextmanager
def frozen() -> Iterator[None]:
    """Have the JVM stand still, as a process does whose machine was cut off."""
    assert SparkContext._gateway is not None
    pid = SparkContext._gateway.proc.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def write_as(sink: Sink, *, epoch: int, rows: list[Row]) -> None:
    """Write the first rows of an epoch under the name of the sink's one task."""
    other = sink.broker.client()
    try:
        producer = _take_name(sink, other)
        shape = 37  # Of one task and a topic without partitions.
        for rank, row in enumerate(rows):
            producer.send(row.value, sequence_id=epoch << 32 | shape << 26 | rank)
    finally:
        other.close()


def _take_name(sink: Sink, other: client.Client) -> client.Producer:
    """Open a producer once the broker has found out that the one of that name is gone."""
    topic = f"persistent://public/default/{sink.topics[0]}"
    name = f"headgate.{JOB}.{sink.lineage}.0"

    def producer() -> client.Producer | None:
        with contextlib.suppress(client.ProducerBusy):
            return other.create_producer(topic, producer_name=name)
        return None

    return eventually(producer, what=f"the name {name}")


def test_a_checkpoint_that_was_set_back_is_refused(sink: Sink) -> None:
    sink.write(made(5), epoch=7)
    with refused("OUTPUT_AHEAD"):
        sink.write(made(5), epoch=6)
    assert found(sink) == values(made(5))


def test_an_epoch_that_was_begun_with_other_tasks_or_partitions_is_not_finished(sink: Sink) -> None:
    topic = sink.broker.make_topic(partitions=2, deduplicated=True)
    sink = replace(sink, topics=[topic])
    sink.write(made(8), epoch=3, tasks=2)
    with refused("OUTPUT_CHANGED"):
        sink.write(made(8), epoch=3, tasks=4)
    sink.broker.ask("POST", f"persistent/public/default/{topic}/partitions", 3)
    with refused("OUTPUT_CHANGED"):
        sink.write(made(8), epoch=3, tasks=2)
    sink.write(made(8, begin=8), epoch=4, tasks=4)
    assert sorted(found(sink)) == sorted(values(made(16)))


def test_an_epoch_whose_rows_would_all_go_elsewhere_now_is_not_finished_either(sink: Sink) -> None:
    topic = sink.broker.make_topic(partitions=2, deduplicated=True)
    sink = replace(sink, topics=[topic], unfinished_since=int(time.time() * 1000))
    # The hash of this key is 99: it is in partition 1 of 2, and would be in partition 3 of 4.
    row = Row(b'{"n": 1}', key=b"c")
    sink.write([row], epoch=3)
    sink.broker.ask("POST", f"persistent/public/default/{topic}/partitions", 4)
    with refused("OUTPUT_CHANGED"):
        sink.write([row], epoch=3)
    assert found(sink) == [row.value]


def test_a_topic_whose_doubles_are_not_dropped_is_refused(sink: Sink) -> None:
    topic = sink.broker.make_topic(partitions=2)
    sink = replace(sink, topics=[*sink.topics, topic])
    with refused(f"DEDUPLICATION_OFF: cannot write exactly once to topic '{topic}'"):
        sink.start()
    replace(sink, delivery="at-least-once").start().end()


def test_a_batch_that_brokers_may_have_forgotten_is_not_finished(sink: Sink) -> None:
    now = time.time_ns() // 1_000_000
    replace(sink, unfinished_since=now - 359 * _MINUTE_MS).start().end()
    with refused(
        "DEDUPLICATION_FORGOTTEN: .* 361 minutes ago, .* remember written rows for 360 minutes"
    ):
        replace(sink, unfinished_since=now - 361 * _MINUTE_MS).start()


def test_a_topic_that_is_not_there_is_named_and_not_made(sink: Sink) -> None:
    sink = replace(sink, topics=[*sink.topics, "never-made"])
    for delivery in ("exactly-once", "at-least-once"):
        with refused("TOPIC_MISSING: cannot write to topic 'never-made'"):
            replace(sink, delivery=delivery).start()
    with pytest.raises(Exception, match="404"):
        sink.broker.partitions("never-made")


def test_a_topic_that_carries_a_schema_is_written_with_it(sink: Sink) -> None:
    fields = [{"name": "n", "type": "int"}]
    register(sink, "JSON", {"type": "record", "name": "Row", "fields": fields})
    sink.write(made(3))
    reader = sink.broker.client()
    try:
        topic = f"persistent://public/default/{sink.topics[0]}"
        messages = reader.create_reader(topic, client.MessageId.earliest)
        first = messages.read_next(10_000)
        assert (first.data(), first.schema_version()) == (b'{"n": 0}', "\0" * 8)
    finally:
        reader.close()


def register(sink: Sink, kind: str, definition: dict[str, object]) -> None:
    """Give the sink's first topic a schema."""
    body = {"type": kind, "schema": json.dumps(definition), "properties": {}}
    sink.broker.ask("POST", f"schemas/public/default/{sink.topics[0]}/schema", body)


def test_a_topic_whose_schema_is_not_one_for_json_is_refused(sink: Sink) -> None:
    register(sink, "AVRO", {"type": "record", "name": "Row", "fields": []})
    with refused("BROKER_REFUSED: .* a schema of type AVRO"):
        sink.start()


def test_at_least_once_needs_no_deduplication_and_a_replay_writes_again(sink: Sink) -> None:
    topic = sink.broker.make_topic(partitions=2)
    sink = replace(sink, topics=[topic], delivery="at-least-once")
    run = sink.start()
    for epoch in (0, 1, 1):
        run.write(made(50, begin=50 * epoch, keys=5), epoch=epoch)
    run.end()
    again = made(50, begin=50, keys=5)
    assert sorted(found(sink)) == sorted(values([*made(50), *again, *again]))
    records = sink.broker.read(topic)
    assert all(each.partition == partition_of(each.key.encode(), 2) for each in records)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_record_that_is_too_large_is_told_with_its_size(sink: Sink, delivery: str) -> None:
    sink = replace(sink, delivery=delivery)
    large = Row(b"x" * _TOO_LARGE, offset=2)
    with refused(f"RECORD_TOO_LARGE: cannot write a record of {_TOO_LARGE} bytes to"):
        sink.write([*made(2), large, *made(3, begin=3)])
    assert delivery == "at-least-once" or found(sink) == values(made(2))


def test_a_topic_with_a_limit_of_its_own_gets_nothing_behind_a_record_it_refuses(
    sink: Sink,
) -> None:
    path = f"persistent/public/default/{sink.topics[0]}/maxMessageSize"
    sink.broker.ask("POST", path, 2000)
    # The broker takes a while to apply it.
    eventually(lambda: sink.broker.ask("GET", path) == 2000, what=path)
    sink.write(made(300))
    with refused("RECORD_TOO_LARGE: cannot write a record of 3000 bytes to"):
        sink.write([Row(b"x" * 3000, offset=300), *made(50, begin=301)], epoch=1)
    # Rows behind it would make it a double for ever.
    assert found(sink) == values(made(300))


def test_a_run_holds_the_names_of_earlier_ones_until_it_ends(sink: Sink) -> None:
    """A process of an earlier run that was suspended cannot go on writing beside it."""
    sink.write(made(5))
    names = [f"headgate.{JOB}.{sink.lineage}.{task}" for task in range(2)]
    run = replace(sink, lineage=f"{sink.lineage}-restored", fenced=[(sink.lineage, 2)]).start()
    asking = sink.broker.client()
    try:
        for name in names:
            with pytest.raises(client.ProducerBusy):
                asking.create_producer(sink.topics[0], producer_name=name)
        run.write(made(5), epoch=0)
        run.end()
        for name in names:
            asking.create_producer(sink.topics[0], producer_name=name).close()
    finally:
        asking.close()
        run.end()
    assert found(sink) == values(made(5)) * 2


def test_names_of_a_run_that_is_over_are_not_opened(sink: Sink) -> None:
    sink.write(made(5))
    later = replace(sink, lineage=f"{sink.lineage}-restored", fenced=[(sink.lineage, 2)])
    run = replace(later, over=[sink.lineage]).start()
    asking = sink.broker.client()
    try:
        name = f"headgate.{JOB}.{sink.lineage}.0"
        asking.create_producer(sink.topics[0], producer_name=name).close()
    finally:
        asking.close()
        run.end()
