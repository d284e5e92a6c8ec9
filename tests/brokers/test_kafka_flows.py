"""Flows on a real Kafka broker: what is read, from where, and topics that change meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from confluent_kafka import Producer, TopicPartition
from interrupted_load import in_time, joined, joining, stop_while_loading
from kafka_broker import KafkaBroker

from headgate import Flow
from headgate.connectors import Kafka
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.values import JobSnapshot

ROW = "id BIGINT NOT NULL, v STRING"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def rows(*ids: int, v: str = "x") -> list[bytes]:
    return [json.dumps({"id": each, "v": v}).encode() for each in ids]


def found(broker: KafkaBroker, topic: str) -> list[Any]:
    return [json.loads(value) for value in broker.values(topic) if value is not None]


def ids(broker: KafkaBroker, topic: str) -> list[int]:
    return sorted(row["id"] for row in found(broker, topic))


class Pair:
    """A topic to read, a topic to write, and a flow from one to the other."""

    def __init__(self, broker: KafkaBroker, *, partitions: int = 1, **source: Any) -> None:
        self.broker = broker
        self.source = broker.make_topic(partitions=partitions)
        self.target = broker.make_topic()
        self.letters = broker.make_topic()
        self.options = source

    def bound(self, topic: str, **more: Any) -> Kafka:
        return Kafka(topic, servers=self.broker.address, **more)

    def flow(self, **stream: Any) -> Flow:
        flow = Flow("copy", dead_letters=self.bound(self.letters))
        rows = flow.stream(self.bound(self.source, **self.options), ROW, uid="in", **stream)
        rows.to(self.bound(self.target), key="id")
        return flow

    def ids(self) -> list[int]:
        return ids(self.broker, self.target)


def events(bench: Bench, kind: str, job: str = "copy") -> list[dict[str, Any]]:
    lines = (bench.home / "jobs" / job / "events.jsonl").read_text().splitlines()
    return [each for each in map(json.loads, lines) if each["event"] == kind]


# What is read


def test_records_of_all_partitions_are_read_once_and_a_second_start_goes_on(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka, partitions=4)
    for partition in (0, 1, 3):
        kafka.send(pair.source, rows(partition, partition + 10), partition=partition)
    assert bench.run(pair.flow()).totals.inputs == {"in": 6}
    kafka.send(pair.source, rows(2), partition=2)
    assert bench.run(pair.flow()).totals.inputs == {"in": 1}
    assert pair.ids() == [0, 1, 2, 3, 10, 11, 13]


def test_an_empty_topic_is_caught_up_with_at_once(kafka: KafkaBroker, bench: Bench) -> None:
    assert bench.run(Pair(kafka).flow()).state is JobState.FINISHED


def test_aborted_and_open_transactions_are_not_read(kafka: KafkaBroker, bench: Bench) -> None:
    pair = Pair(kafka)
    producer = Producer(
        {**kafka.client, "transactional.id": f"t-{pair.source}", "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(180)
    for number, end in enumerate([producer.commit_transaction, producer.abort_transaction]):
        producer.begin_transaction()
        for row in rows(number * 10 + 1, number * 10 + 2):
            producer.produce(pair.source, row)
        producer.flush(180)
        end(180)
    kafka.send(pair.source, rows(100))
    producer.begin_transaction()
    producer.produce(pair.source, rows(30)[0])
    producer.flush(180)
    assert bench.run(pair.flow()).totals.inputs == {"in": 3}
    assert pair.ids() == [1, 2, 100]
    producer.commit_transaction(180)
    assert bench.run(pair.flow()).totals.inputs == {"in": 1}
    assert pair.ids() == [1, 2, 30, 100]


def test_keys_headers_and_places_are_columns(kafka: KafkaBroker, bench: Bench) -> None:
    pair = Pair(kafka, partitions=2)
    sent = [("trace", b"a"), ("trace", b"b"), ("other", "é".encode())]
    kafka.send(
        pair.source, rows(1), key="k-1", partition=1, headers=sent, timestamp_ms=1_700_000_000_123
    )
    kafka.send(pair.source, rows(2), partition=0, timestamp_ms=1_700_000_000_000)
    flow = Flow("copy", dead_letters=pair.bound(pair.letters))
    stream = flow.stream(pair.bound(pair.source), ROW, meta="m", uid="in")
    stream.select("id", "m").to(pair.bound(pair.target), key="m.key")
    bench.run(flow)
    first, second = sorted(found(kafka, pair.target), key=lambda row: int(row["id"]))
    assert first["m"] == {
        "topic": pair.source,
        "partition": 1,
        "offset": 0,
        "timestamp": "2023-11-14T22:13:20.123Z",
        "key": "k-1",
        "headers": {"trace": "b", "other": "é"},
        "event_time": None,
    }
    assert (second["m"]["key"], second["m"]["headers"]) == (None, {})
    assert {message.key() for message in kafka.read(pair.target)} == {b"k-1", None}


def test_a_pattern_reads_every_topic_of_that_name_those_made_later_too(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    prefix = kafka.make_topic()
    for number in range(2):
        kafka.make_topic(f"{prefix}-{number}")
        kafka.send(f"{prefix}-{number}", rows(number))
    kafka.make_topic(f"un{prefix}-9")
    kafka.send(f"un{prefix}-9", rows(99))
    flow = Flow("copy", dead_letters=pair.bound(pair.letters))
    source = pair.bound("in", pattern=f"{prefix}-.*")
    flow.stream(source, ROW, meta="m").select("id", "m.topic").to(pair.bound(pair.target))
    bench.run(flow)
    kafka.make_topic(f"{prefix}-2", partitions=2)
    kafka.send(f"{prefix}-2", rows(2))
    bench.run(flow)
    assert bag(found(kafka, pair.target)) == bag(
        {"id": number, "topic": f"{prefix}-{number}"} for number in range(3)
    )
    assert f"{prefix}-2" in events(bench, "TOPIC_ADDED")[0]["message"]


def test_what_is_no_row_is_a_dead_letter_with_its_place(kafka: KafkaBroker, bench: Bench) -> None:
    pair = Pair(kafka, partitions=2)
    kafka.send(pair.source, [b"no json", None, b'{"id": "one"}'], partition=1)
    kafka.send(pair.source, rows(1), partition=1)
    bench.run(pair.flow(), max_record=64)
    letters = found(kafka, pair.letters)
    assert sorted((each["partition"], each["offset"]) for each in letters) == [
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert {each["topic"] for each in letters} == {pair.source}
    assert pair.ids() == [1]


# Where reading begins


@pytest.mark.parametrize(
    ("start", "read"),
    [
        ("earliest", [0, 1, 2, 3, 4, 5]),
        ("latest", []),
        ("offsets:0=2,1=1", [2, 4, 5]),
        ("offsets:1=2", [0, 1, 2, 5]),
        (datetime.fromtimestamp(1_700_000_002, UTC).isoformat(), [2, 3, 4, 5]),
    ],
)
def test_a_source_begins_where_it_was_told(
    kafka: KafkaBroker, bench: Bench, start: str, read: list[int]
) -> None:
    pair = Pair(kafka, partitions=2)
    for number in range(6):
        moment = 1_700_000_000_000 + number * 1000
        kafka.send(pair.source, rows(number), partition=number // 3, timestamp_ms=moment)
    bench.run(pair.flow(), start=(start,))
    assert pair.ids() == read
    # What comes after is read wherever it began.
    kafka.send(pair.source, rows(100), partition=0)
    bench.run(pair.flow(), start=("earliest",))
    assert pair.ids() == [*read, 100]


def test_a_topic_says_itself_where_it_begins_unless_the_start_is_told_otherwise(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka, start={0: 1})
    kafka.send(pair.source, rows(0, 1, 2))
    bench.run(pair.flow())
    assert pair.ids() == [1, 2]


# Topics that change


def during(
    pair: Pair, bench: Bench, act: Callable[[], None], then: int, **options: Any
) -> JobSnapshot:
    """Run a job that goes on; act once it has read something, stop it once it wrote so many."""
    acted = False
    deadline = time.monotonic() + 90

    def watch(snapshot: JobSnapshot) -> None:
        nonlocal acted
        assert time.monotonic() < deadline, snapshot
        outputs = snapshot.totals.outputs.get(pair.target, 0)
        if not acted and outputs:
            acted = True
            act()
        if acted and outputs >= then:
            stop.set()

    import threading

    stop = threading.Event()
    from inline_attempts import InlineLauncher

    from headgate.jobs.startup.foreground import run_job
    from headgate.jobs.values import RunOptions, Watcher

    place: dict[str, Any] = {"home": bench.home, "on": f"files:{bench.topics}"}
    chosen = {**place, "restart": "none", **options}
    return run_job(
        str(bench.flow_file(pair.flow())),
        RunOptions(**chosen),
        Watcher(on_snapshot=watch),
        launcher=InlineLauncher(),
        stop=stop,
    )


def test_a_topic_that_gains_partitions_is_read_on_and_told_of(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    kafka.send(pair.source, rows(1))

    def grow() -> None:
        from confluent_kafka.admin import NewPartitions

        admin = kafka.admin()
        for grown in admin.create_partitions([NewPartitions(pair.source, 3)]).values():
            grown.result(30)
        kafka.send(pair.source, rows(2), partition=2)

    assert during(pair, bench, grow, then=2).state is JobState.STOPPED
    assert pair.ids() == [1, 2]
    (grew,) = events(bench, "TOPIC_GREW")
    assert grew["source"] == "in"
    assert "3" in grew["message"]


def delete_before(broker: KafkaBroker, topic: str, offset: int) -> None:
    place = TopicPartition(topic, 0, offset)
    admin = broker.admin()
    for deleted in admin.delete_records([place]).values():
        deleted.result(30)


def test_records_that_are_gone_unread_end_the_job(kafka: KafkaBroker, bench: Bench) -> None:
    pair = Pair(kafka)
    kafka.send(pair.source, rows(1))
    bench.run(pair.flow())
    kafka.send(pair.source, rows(2, 3, 4))
    delete_before(kafka, pair.source, 3)
    with refused("DATA_LOST") as caught:
        bench.run(pair.flow())
    assert pair.source in caught.value.message
    assert pair.ids() == [1]


def test_records_that_are_gone_unread_are_told_where_the_job_shall_go_on(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    kafka.send(pair.source, rows(1))
    bench.run(pair.flow())
    kafka.send(pair.source, rows(2, 3, 4))
    delete_before(kafka, pair.source, 3)
    bench.run(pair.flow(), on_data_loss="continue")
    assert pair.ids() == [1, 4]
    (lost,) = events(bench, "DATA_LOST")
    assert "2" in lost["message"]


@pytest.mark.parametrize("on_data_loss", ["fail", "continue"])
def test_a_topic_that_was_made_anew_is_noticed(
    kafka: KafkaBroker, bench: Bench, on_data_loss: str
) -> None:
    pair = Pair(kafka)
    kafka.send(pair.source, rows(1, 2))
    bench.run(pair.flow())
    kafka.drop_topic(pair.source)
    time.sleep(1)
    kafka.make_topic(pair.source)
    kafka.send(pair.source, rows(3))
    if on_data_loss == "fail":
        with refused("DATA_LOST"):
            bench.run(pair.flow())
        assert pair.ids() == [1, 2]
        return
    bench.run(pair.flow(), on_data_loss=on_data_loss)
    assert pair.ids() == [1, 2, 3]
    assert events(bench, "TOPIC_MADE_ANEW")


def test_a_topic_that_vanishes_is_told_where_the_job_shall_go_on(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    kafka.send(pair.source, rows(1))
    bench.run(pair.flow())
    kafka.drop_topic(pair.source)
    time.sleep(1)
    assert bench.run(pair.flow(), on_data_loss="continue").state is JobState.FINISHED
    (gone,) = events(bench, "TOPIC_GONE")
    assert pair.source in gone["message"]


def test_a_topic_that_vanishes_ends_the_job(kafka: KafkaBroker, bench: Bench) -> None:
    pair = Pair(kafka)
    kafka.send(pair.source, rows(1))
    bench.run(pair.flow())
    kafka.drop_topic(pair.source)
    time.sleep(1)
    with refused("DATA_LOST") as caught:
        bench.run(pair.flow())
    assert pair.source in caught.value.message


def test_streams_do_not_wait_for_a_table_that_vanished_while_it_was_loaded(
    kafka: KafkaBroker, bench: Bench
) -> None:
    users, orders = (Kafka(kafka.make_topic(), servers=kafka.address) for _ in range(2))
    kafka.send(users.name, rows(*range(200)))
    kafka.send(orders.name, rows(1, 1000))
    flow = joining(users, orders)
    stop_while_loading(bench, flow)
    kafka.drop_topic(users.name)
    with refused("DATA_LOST") as caught:
        bench.run(flow, watch=in_time())
    assert users.name in caught.value.message
    assert joined(bench) == []
    bench.run(flow, on_data_loss="continue", watch=in_time())
    assert joined(bench) == [1, 1000]


def test_a_topic_that_was_never_there_is_named_with_the_next_step(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    kafka.drop_topic(pair.target)
    time.sleep(1)
    kafka.send(pair.source, rows(1))
    with refused("TOPIC_MISSING") as caught:
        bench.run(pair.flow())
    assert pair.target in caught.value.message
    assert "headgate setup" in caught.value.hint


def test_a_broker_that_is_not_there_is_named(bench: Bench) -> None:
    flow = Flow("copy")
    flow.stream(Kafka("in", servers="127.0.0.1:1"), ROW).to("out")
    began = time.monotonic()
    with refused("BROKER_UNREACHABLE") as caught:
        bench.run(flow)
    assert "127.0.0.1:1" in caught.value.message
    assert time.monotonic() - began < 15, "a first start does not wait for a broker"


# Tables


def test_a_null_value_deletes_the_row_whose_key_is_the_messages(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    users = kafka.make_topic(partitions=2, config={"cleanup.policy": "compact"})
    for user in range(1, 5):
        kafka.send(users, rows(user, v=f"user-{user}"), key=str(user), partition=user % 2)
    kafka.send(users, [None], key="2", partition=0)
    kafka.send(users, [None], key='{"id": 3}', partition=1)
    kafka.send(users, [None], key="no key of ours", partition=1)
    kafka.send(pair.source, rows(1, 2, 3, 4))
    missing = kafka.make_topic()
    flow = Flow("copy", dead_letters=pair.bound(pair.letters))
    table = flow.table(pair.bound(users), ROW, key="id", uid="users")
    stream = flow.stream(pair.bound(pair.source), ROW, uid="in")
    joined = stream.enrich("with-user", table, on="id", into="user")
    joined.matched.to(pair.bound(pair.target))
    joined.missing.to(pair.bound(missing))
    bench.run(flow)
    assert {row["id"]: row["user"]["v"] for row in found(kafka, pair.target)} == {
        1: "user-1",
        4: "user-4",
    }
    assert ids(kafka, missing) == [2, 3]
    (letter,) = found(kafka, pair.letters)
    assert letter["code"] == "NO_KEY"


# What is told


def test_positions_are_published_to_a_group_named_after_the_job(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka, partitions=2)
    kafka.send(pair.source, rows(1, 2, 3), partition=0)
    kafka.send(pair.source, rows(4), partition=1)
    done = bench.run(pair.flow())
    assert (done.totals.lag_records, done.totals.lag_s) == ({"in": 0}, {"in": 0.0})
    from confluent_kafka import ConsumerGroupTopicPartitions

    admin = kafka.admin()
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("copy")])
    told = asked["copy"].result(30).topic_partitions
    mine = {each.partition: each.offset for each in told if each.topic == pair.source}
    assert mine == {0: 3, 1: 1}


def test_lag_is_told_in_records_and_seconds(kafka: KafkaBroker, bench: Bench) -> None:
    pair = Pair(kafka)
    old = (int(time.time()) - 3600) * 1000
    kafka.send(pair.source, rows(*range(5000)), timestamp_ms=old)
    seen: list[tuple[int, float | None]] = []

    def watch(snapshot: JobSnapshot) -> None:
        totals = snapshot.totals
        if totals.lag_records.get("in"):
            seen.append((totals.lag_records["in"], totals.lag_s.get("in")))

    # So far apart that each batch is seen by itself.
    bench.run(pair.flow(), watch=watch, max_batch=20_000, batch_every=timedelta(seconds=1))
    assert len(pair.ids()) == 5000
    assert any(0 < records < 5000 for records, _ in seen)
    assert any(age is not None and 3500 < age < 4200 for _, age in seen)


def test_a_record_that_is_too_large_for_its_topic_is_told_with_its_size(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    small = kafka.make_topic(config={"max.message.bytes": "2000"})
    pair.target = small
    kafka.send(pair.source, rows(1, v="x" * 5000))
    with refused("RECORD_TOO_LARGE") as caught:
        bench.run(pair.flow())
    assert small in caught.value.message


def test_a_transaction_that_may_be_open_longer_than_brokers_allow_is_refused(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    flow = Flow("copy", dead_letters=pair.bound(pair.letters))
    long = {"producer.transaction.timeout.ms": str(24 * 3600 * 1000)}
    flow.stream(pair.bound(pair.source), ROW, uid="in").to(pair.bound(pair.target, options=long))
    with refused("BROKER_REFUSED") as caught:
        bench.run(flow)
    assert "transaction.max.timeout.ms" in caught.value.message


def test_two_clients_of_one_cluster_write_each_row_once_also_after_a_restart(
    kafka: KafkaBroker, bench: Bench
) -> None:
    pair = Pair(kafka)
    other = kafka.make_topic()
    flow = Flow("copy", dead_letters=pair.bound(pair.letters))
    stream = flow.stream(pair.bound(pair.source), ROW, uid="in")
    stream.to(pair.bound(pair.target))
    stream.to(pair.bound(other, options={"producer.linger.ms": "1"}))
    for number in range(3):
        kafka.send(pair.source, rows(number))
        bench.run(flow)
    assert pair.ids() == ids(kafka, other) == [0, 1, 2]
