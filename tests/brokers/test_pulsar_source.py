"""What is read from a real Pulsar, from where, and topics that change meanwhile."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulsar as client
import pytest
from bench import Bench, bag, refused
from eventually import eventually
from inline_attempts import InlineLauncher
from interrupted_load import in_time, joined, joining, stop_while_loading
from pulsar_broker import PulsarBroker
from pyspark import SparkContext

from headgate import Flow
from headgate.brokers.pulsar_settings import TOKEN
from headgate.brokers.security import AUTHORITY
from headgate.connectors import Pulsar
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

ROW = "id BIGINT NOT NULL, v STRING"
_LARGE = 6 << 20
# Full ones, however slow the machine: by default, what waits for 10 ms makes a smaller batch.
BATCHES_OF_20: dict[str, Any] = {
    "batching_enabled": True,
    "batching_max_messages": 20,
    "batching_max_publish_delay_ms": 60_000,
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def rows(*ids: int, v: str = "x") -> list[bytes]:
    return [json.dumps({"id": each, "v": v}).encode() for each in ids]


class Copy:
    """A topic to read, and a flow from it to an embedded one."""

    def __init__(self, broker: PulsarBroker, bench: Bench, *, partitions: int = 1) -> None:
        self.broker = broker
        self.bench = bench
        self.source = broker.make_topic(partitions=partitions)

    def bound(self, topic: str | None = None, **more: Any) -> Pulsar:
        broker = self.broker
        return Pulsar(topic or self.source, service=broker.service, admin=broker.admin, **more)

    def flow(self, **source: Any) -> Flow:
        flow = Flow("copy")
        flow.stream(self.bound(**source), ROW, uid="in").to("out", key="id")
        return flow

    def run(self, **options: Any) -> JobSnapshot:
        return self.bench.run(self.flow(), **options)

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.bench.read("out"))

    def send(self, *ids: int, partition: int | None = 0, **how: Any) -> None:
        self.broker.send(self.source, rows(*ids), partition=partition, **how)

    def cut(self, partition: int = 0) -> None:
        """Remove what is there; what comes then is written behind it."""
        # The ledger that is written to stays: another one must take its place first.
        self.reload(partition)
        self.broker.truncate(f"{self.source}-partition-{partition}")
        eventually(lambda: len(self.ledgers(partition)) == 1, what=lambda: self.ledgers(partition))

    def reload(self, partition: int = 0) -> None:
        """Have the broker load a partition again, as it does after a restart.

        It then writes to another ledger, and removes one that has no entries.
        """
        before = self.ledgers(partition)[-1]
        plain = f"persistent/public/default/{self.source}-partition-{partition}"
        self.broker.ask("PUT", f"{plain}/unload")
        eventually(lambda: self.ledgers(partition)[-1] != before, what=f"a ledger after {before}")

    def unread(self, subscription: str) -> list[int]:
        """Return the backlog of each partition, as Pulsar's own tools tell it."""
        stats = self.broker.ask("GET", f"persistent/public/default/{self.source}/partitioned-stats")
        partitions = sorted(stats["partitions"].items())
        return [each["subscriptions"][subscription]["msgBacklog"] for _, each in partitions]

    def subscriptions(self) -> dict[str, dict[str, Any]]:
        """Return the subscriptions of the first partition."""
        plain = f"persistent/public/default/{self.source}-partition-0"
        found: dict[str, dict[str, Any]] = self.broker.ask("GET", f"{plain}/stats")["subscriptions"]
        return found

    @contextmanager
    def watched(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Yield the subscriptions with consumers that were there at any moment until the end."""
        seen: dict[str, dict[str, Any]] = {}
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.05):
                found = self.subscriptions().items()
                seen.update({name: each for name, each in found if each["consumers"]})

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield seen
        finally:
            ended.set()
            thread.join()

    def ledgers(self, partition: int) -> list[int]:
        """Return the ids of a partition's ledgers, oldest first."""
        plain = f"persistent/public/default/{self.source}-partition-{partition}"
        stats = self.broker.ask("GET", f"{plain}/internalStats")
        return [each["ledgerId"] for each in stats["ledgers"]]

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.bench.home / "jobs" / "copy" / "events.jsonl").read_text().splitlines()
        return [each for each in map(json.loads, lines) if each["event"] == kind]


# What is read


def test_records_of_all_partitions_are_read_once_and_a_second_start_goes_on(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench, partitions=4)
    for partition in (0, 1, 3):
        copy.send(partition, partition + 10, partition=partition)
    done = copy.run(parallelism=2)
    assert (done.totals.inputs, done.totals.lag_records) == ({"in": 6}, {"in": 0})
    assert copy.unread("copy") == [0, 0, 0, 0]
    copy.send(2, partition=2)
    assert copy.unread("copy") == [0, 0, 1, 0]
    assert copy.run(parallelism=2).totals.inputs == {"in": 1}
    assert copy.ids() == [0, 1, 2, 3, 10, 11, 13]


@pytest.mark.parametrize("partitions", [0, 2])
def test_an_empty_topic_is_caught_up_with_at_once(
    pulsar: PulsarBroker, bench: Bench, partitions: int
) -> None:
    copy = Copy(pulsar, bench, partitions=partitions)
    assert copy.run().state is JobState.FINISHED
    copy.send(1, 2, partition=None)
    copy.run()
    assert copy.ids() == [1, 2]


def test_batched_and_compressed_messages_are_read_in_batches_of_bounded_size(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench, partitions=2)
    kinds = [getattr(client.CompressionType, name) for name in ("LZ4", "ZLib", "ZSTD", "SNAPPY")]
    for number, kind in enumerate([client.CompressionType.NONE, *kinds]):
        copy.send(
            *range(number * 1000, number * 1000 + 1000),
            partition=number % 2,
            compression_type=kind,
            batching_enabled=number != 1,
            batching_max_messages=100,
        )
    with copy.watched() as seen:
        done = copy.run(max_batch=20_000)
    assert done.totals.inputs == {"in": 5000}
    assert copy.ids() == list(range(5000))
    assert done.totals.batches > 3
    check_subscriptions(copy, seen)


def check_subscriptions(copy: Copy, seen: dict[str, dict[str, Any]]) -> None:
    """Look at the subscriptions of a job as Pulsar's tools show them, while it ran and after."""
    readers = {name: each for name, each in seen.items() if name.startswith("headgate-")}
    assert readers
    for name, each in readers.items():
        assert re.fullmatch(r"headgate-copy-in-reader-[0-9a-f]+", name)
        assert (each["type"], each["durable"]) == ("Exclusive", False)
        assert {consumer["consumerName"] for consumer in each["consumers"]} == {"headgate-copy-in"}
    after = copy.subscriptions()
    assert (after["copy"]["durable"], after["copy"]["consumers"]) == (True, [])
    eventually(lambda: list(copy.subscriptions()) == ["copy"], what=copy.subscriptions)


@pytest.mark.parametrize("max_batch", [1, 64 << 20])
def test_a_message_in_chunks_is_read_whole_wherever_batches_end(
    pulsar: PulsarBroker, bench: Bench, max_batch: int
) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1)
    large = rows(2, v="y" * _LARGE)
    pulsar.send(copy.source, large, partition=0, batching_enabled=False, chunking_enabled=True)
    copy.send(3)
    # Here the chunks are the last that is there.
    pulsar.send(copy.source, large, partition=0, batching_enabled=False, chunking_enabled=True)
    copy.run(max_batch=max_batch, max_record=2 * _LARGE)
    assert [(row["id"], len(row["v"])) for row in sorted(bench.read("out"), key=str)] == [
        (1, 1),
        (2, _LARGE),
        (2, _LARGE),
        (3, 1),
    ]


class Transaction:
    """A transaction of a producer, by the Java client in the JVM of the jobs: Python's has none."""

    def __init__(self, copy: Copy) -> None:
        jvm = SparkContext._jvm
        assert jvm is not None, "a job has run in this process"
        api = jvm.org.apache.pulsar.client.api
        self._client = (
            api.PulsarClient.builder()
            .serviceUrl(copy.broker.service)
            .enableTransaction(True)
            .build()
        )
        minutes = jvm.java.util.concurrent.TimeUnit.MINUTES
        self._open = self._client.newTransaction().withTransactionTimeout(10, minutes).build().get()
        topic = f"persistent://public/default/{copy.source}-partition-0"
        self._producer = self._client.newProducer(api.Schema.BYTES).topic(topic).create()

    def send(self, *ids: int) -> None:
        for row in rows(*ids):
            self._producer.newMessage(self._open).value(bytearray(row)).send()

    def commit(self) -> None:
        self._open.commit().get()
        self._client.close()

    def abort(self) -> None:
        self._open.abort().get()
        self._client.close()


def test_an_open_transaction_holds_back_what_follows_it_and_an_aborted_one_is_passed_over(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1)
    copy.run()
    first = Transaction(copy)
    first.send(2, 3)
    copy.send(4)
    # Caught up: nothing of what is hidden can be read, however long one waits.
    assert copy.run().state is JobState.FINISHED
    assert copy.ids() == [1]
    first.commit()
    copy.run()
    assert copy.ids() == [1, 2, 3, 4]
    second = Transaction(copy)
    second.send(5)
    copy.send(6)
    second.send(7)
    second.abort()
    copy.run()
    assert copy.ids() == [1, 2, 3, 4, 6]
    assert copy.events("DATA_LOST") == []


def test_keys_properties_times_and_places_are_columns(pulsar: PulsarBroker, bench: Bench) -> None:
    copy = Copy(pulsar, bench, partitions=2)
    moment = 1_700_000_000_123
    copy.send(1, partition=1, key="k-1", properties={"trace": "é", "a": ""}, event_ms=moment)
    copy.send(2)
    flow = Flow("copy")
    flow.stream(copy.bound(), ROW, meta="m", uid="in").select("id", "m").to("out")
    bench.run(flow)
    first, second = (row["m"] for row in sorted(bench.read("out"), key=lambda row: row["id"]))
    (sent,) = (record for record in pulsar.read(copy.source) if record.partition == 1)
    place = first.pop("offset")
    assert (place >> 44, place >> 20 & 0xFFFFFF, place & 0xFFFFF) == (sent.at[0], sent.at[1], 0)
    published = datetime.fromisoformat(first.pop("timestamp"))
    assert abs(published.timestamp() * 1000 - sent.publish_ms) < 1
    assert first == {
        "topic": copy.source,
        "partition": 1,
        "key": "k-1",
        "headers": {"trace": "é", "a": ""},
        "event_time": "2023-11-14T22:13:20.123Z",
    }
    assert (second["key"], second["headers"], second["event_time"]) == (None, {}, None)


def test_a_pattern_reads_every_topic_of_that_name_those_made_later_too(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    prefix = copy.source
    for number, partitions in enumerate([0, 2]):
        pulsar.make_topic(f"{prefix}-{number}", partitions=partitions)
        pulsar.send(f"{prefix}-{number}", rows(number))
    pulsar.make_topic(f"un{prefix}-9")
    pulsar.send(f"un{prefix}-9", rows(99))
    flow = Flow("copy")
    source = copy.bound("in", pattern=f"{prefix}-.*")
    flow.stream(source, ROW, meta="m").select("id", "m.topic").to("out")
    bench.run(flow)
    pulsar.make_topic(f"{prefix}-2", partitions=2)
    pulsar.send(f"{prefix}-2", rows(2))
    bench.run(flow)
    expected = [{"id": number, "topic": f"{prefix}-{number}"} for number in range(3)]
    assert bench.bag("out") == bag(expected)
    assert len(copy.events("TOPIC_ADDED")) == 1


def test_a_message_without_value_deletes_the_row_whose_key_is_its_own(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1, 2, 3)
    pulsar.send(copy.source, [b""], partition=0, key="2")
    pulsar.send(copy.source, [b"no JSON"], partition=0)
    flow = Flow("copy")
    table = flow.table(copy.bound(), ROW, key="id")
    bench.put("orders", [{"n": n, "user": n} for n in (1, 2, 3)])
    orders = flow.stream("orders", "n BIGINT, user BIGINT")
    enriched = orders.enrich("with-user", table, on="user", into="u")
    enriched.matched.select("n").to("matched")
    enriched.missing.select("n").to("missing")
    bench.run(flow)
    assert sorted(row["n"] for row in bench.read("matched")) == [1, 3]
    assert bench.read("missing") == [{"n": 2}]
    (letter,) = bench.read("dead-letters")
    assert (letter["topic"], letter["code"]) == (copy.source, "BAD_JSON")


# Where reading begins


@pytest.mark.parametrize(
    ("start", "read"),
    [
        ("earliest", [0, 1, 2, 3, 4, 5]),
        ("latest", []),
        ("messages:0={0}:2,1={1}:1", [2, 4, 5]),
        ("messages:1={1}:2", [0, 1, 2, 5]),
        ("{time}", [2, 3, 4, 5]),
    ],
)
def test_a_source_begins_where_it_was_told(
    pulsar: PulsarBroker, bench: Bench, start: str, read: list[int]
) -> None:
    copy = Copy(pulsar, bench, partitions=2)
    for number in range(6):
        copy.send(number, partition=number // 3)
        if number == 1:
            time.sleep(0.01)
    records = pulsar.read(copy.source)
    ledgers = [records[0].at[0], records[3].at[0]]
    third = datetime.fromtimestamp(records[2].publish_ms / 1000, UTC)
    copy.run(start=(start.format(*ledgers, time=third.isoformat()),))
    assert copy.ids() == read
    # What comes after is read wherever it began.
    copy.send(100)
    copy.run(start=("earliest",))
    assert copy.ids() == [*read, 100]


# Topics that change


def during(copy: Copy, act: Callable[[], None], then: int, **options: Any) -> JobSnapshot:
    """Run a job that goes on; act once it has read something, stop it once it wrote so many."""
    acted = False
    deadline = time.monotonic() + 90
    stop = threading.Event()

    def watch(snapshot: JobSnapshot) -> None:
        nonlocal acted
        assert time.monotonic() < deadline, snapshot
        outputs = snapshot.totals.outputs.get("out", 0)
        if not acted and outputs:
            acted = True
            act()
        if acted and outputs >= then:
            stop.set()

    on = f"files:{copy.bench.topics}"
    return run_job(
        str(copy.bench.flow_file(copy.flow())),
        RunOptions(**{"home": copy.bench.home, "on": on, "restart": "none", **options}),
        Watcher(on_snapshot=watch),
        launcher=InlineLauncher(),
        stop=stop,
    )


def test_a_topic_that_gains_partitions_is_read_on_and_told_of(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1)

    def grow() -> None:
        pulsar.ask("POST", f"persistent/public/default/{copy.source}/partitions", 3)
        copy.send(2, partition=2)

    assert during(copy, grow, then=2).state is JobState.STOPPED
    assert copy.ids() == [1, 2]
    (grew,) = copy.events("TOPIC_GREW")
    assert grew["source"] == "in"
    assert "3" in grew["message"]


def test_what_was_read_may_go_also_while_the_job_runs(pulsar: PulsarBroker, bench: Bench) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1)

    def go_on() -> None:
        copy.cut()
        # The job looks four times a second, and nothing outside it shows that it has. If it has not
        # looked before more is written, it cannot exclude that the removed ledger held more.
        time.sleep(3)
        copy.send(2)

    assert during(copy, go_on, then=2).state is JobState.STOPPED
    copy.cut()
    assert copy.run().state is JobState.FINISHED
    assert copy.ids() == [1, 2]
    assert copy.events("DATA_LOST") == []


def test_records_that_are_gone_unread_end_the_job_or_are_told_where_it_shall_go_on(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1)
    copy.run()
    copy.send(2, 3, 4)
    copy.cut()
    copy.send(5)
    with refused("DATA_LOST") as caught:
        copy.run()
    assert copy.source in caught.value.message
    assert copy.ids() == [1]
    copy.run(on_data_loss="continue")
    assert copy.ids() == [1, 5]
    (lost,) = copy.events("DATA_LOST")
    assert copy.source in lost["message"]


def test_an_empty_ledger_that_its_broker_removed_is_not_a_loss(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench, partitions=2)
    copy.run()
    empty = copy.ledgers(0)
    for partition in (0, 1):
        copy.reload(partition)
        copy.send(partition, partition=partition)
    assert copy.ledgers(0) != empty
    copy.run()
    # What was read is cut off: the job stands in an empty ledger, of which a batch takes note.
    copy.cut(0)
    copy.send(2, partition=1)
    copy.run()
    copy.reload(0)
    copy.send(3, partition=0)
    copy.run()
    assert copy.ids() == [0, 1, 2, 3]
    assert copy.events("DATA_LOST") == []


def test_records_of_a_ledger_that_was_empty_when_the_job_saw_it_are_lost_if_it_is_gone(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench, partitions=2)
    copy.send(1, partition=1)
    copy.run()
    # The job reads the record; who goes back to the checkpoint from before does not.
    copy.send(2, partition=0)
    copy.run()
    copy.cut(0)
    copy.send(3, partition=1)
    copy.run()
    copy.reload(0)
    with refused("DATA_LOST") as caught:
        copy.run(restore_from="chk-0")
    assert "partition 0" in caught.value.message
    # Likewise a record that nobody read.
    fresh = Copy(pulsar, Bench(bench.root / "fresh"))
    fresh.bench.root.mkdir()
    fresh.run()
    fresh.send(4)
    fresh.cut()
    fresh.reload()
    fresh.send(5)
    with refused("DATA_LOST"):
        fresh.run()
    assert fresh.ids() == []


def test_a_topic_that_vanishes_ends_the_job_or_is_told_where_it_shall_go_on(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    copy.send(1)
    copy.run()
    pulsar.drop_topic(copy.source)
    with refused("DATA_LOST") as caught:
        copy.run()
    assert copy.source in caught.value.message
    assert copy.run(on_data_loss="continue").state is JobState.FINISHED
    (gone,) = copy.events("TOPIC_GONE")
    assert copy.source in gone["message"]


@pytest.mark.parametrize("anew", [False, True])
def test_streams_do_not_wait_for_a_table_that_vanished_while_it_was_loaded(
    pulsar: PulsarBroker, bench: Bench, anew: bool
) -> None:
    users, orders = Copy(pulsar, bench, partitions=2), Copy(pulsar, bench)
    users.send(*range(200), batching_enabled=False)
    orders.send(1, 1000)
    flow = joining(users.bound(), orders.bound())
    stop_while_loading(bench, flow)
    pulsar.drop_topic(users.source)
    if anew:
        # With fewer partitions than were to be loaded.
        pulsar.make_topic(users.source, partitions=1)
    with refused("DATA_LOST") as caught:
        bench.run(flow, watch=in_time())
    assert users.source in caught.value.message
    assert joined(bench) == []
    bench.run(flow, on_data_loss="continue", watch=in_time())
    assert joined(bench) == [1, 1000]


def test_a_topic_that_was_never_there_is_named_with_the_next_step(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    copy.source = "never-there"
    with refused("TOPIC_MISSING") as caught:
        copy.run()
    assert "headgate topics create never-there" in caught.value.message


# How it is reached, and what is told


def test_lag_is_told_in_records_and_seconds(pulsar: PulsarBroker, bench: Bench) -> None:
    copy = Copy(pulsar, bench)
    copy.send(*range(5000), **BATCHES_OF_20)
    time.sleep(1.5)
    seen: list[tuple[int, float | None]] = []

    def watch(snapshot: JobSnapshot) -> None:
        totals = snapshot.totals
        if totals.lag_records.get("in"):
            seen.append((totals.lag_records["in"], totals.lag_s.get("in")))
            assert totals.lag_estimated == ("in",)

    copy.run(watch=watch, max_batch=10_000)
    assert len(copy.ids()) == 5000
    assert any(1000 < records < 5000 for records, _ in seen)
    assert any(age is not None and 1 < age < 120 for _, age in seen)


def test_messages_of_batches_are_counted_before_any_of_them_is_read(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(pulsar, bench)
    flow = Flow("copy")
    users = flow.table("users", ROW, key="id")
    named = flow.stream(copy.bound(), ROW, uid="in").enrich("with-user", users, on="id", into="u")
    named.matched.select("id", "u.v").to("out", key="id")
    bench.put("users", rows(*range(2000)))
    copy.send(*range(5000), **BATCHES_OF_20)
    seen: set[int] = set()

    def watch(snapshot: JobSnapshot) -> None:
        totals = snapshot.totals
        if totals.batches and not totals.inputs.get("in"):
            seen.add(totals.lag_records["in"])

    bench.run(flow, watch=watch, max_batch=20_000)
    assert seen == {5000}
    copy.send(*range(4500), **BATCHES_OF_20)
    bench.run(flow)
    home = FolderHome(bench.home)
    plan = home.preview_restore("copy", source=home.checkpoints("copy")[-2].id, at=None, drop=())
    assert plan.records_again == {"in": 4500, "users": 0}
    assert plan.records_estimated == ("in",)


def test_a_secured_broker_is_read_by_a_token_and_a_certificate(
    secure_pulsar: PulsarBroker, bench: Bench
) -> None:
    copy = Copy(secure_pulsar, bench, partitions=2)
    token = secure_pulsar.data / TOKEN
    copy.send(1)
    options = {
        "token": f"${{file:{token}}}",
        "tlsTrustCertsFilePath": str(secure_pulsar.data / AUTHORITY),
    }
    bench.run(copy.flow(options=options))
    assert copy.ids() == [1]
    assert token.read_text() not in (bench.home / "jobs/copy/events.jsonl").read_text()
