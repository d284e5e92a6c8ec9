"""What keeps the kernel's writers to Kafka apart: claims of queries, and marks of what is written.

Writers are driven as the sink drives them: task by task, epoch by epoch.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from eventually import eventually
from kafka_broker import KafkaBroker
from pulsar_sink import Row
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel
from headgate.engine.session.session import open_session
from headgate.engine.settings import SparkSettings

JOB = "shop"
MARKS = "headgate-epochs"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give a JVM with the kernel in it."""
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = open_session(SparkSettings(parallelism=1, log_file=log), modules=("kafka",))
    yield session
    session.stop()


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a lineage; a second one of the same lineage is its restart."""

    spark: SparkSession
    broker: KafkaBroker
    topic: str
    lineage: str
    delivery: str = "exactly-once"
    unfinished: bool = False
    made: list[Any] = field(default_factory=list)

    def start(self) -> Any:
        """Make the cluster ready, and return what writes to it."""
        core, java = kernel(self.spark), self.spark._jvm.java.util  # type: ignore[union-attr]
        sources, topics = java.ArrayList(), java.HashMap()
        sources.add("orders")
        topics.put(0, self.topic)
        since = int(time.time() * 1000) if self.unfinished else 0
        placement = core.plan.Placement(0)
        query = core.sink.LogSpec.Query(
            uuid.uuid4().hex, JOB, self.lineage, 2, sources, java.ArrayList(), placement, since
        )
        text = json.dumps({"servers": self.broker.address, "options": {}, "config": None})
        spec = core.sink.LogSpec(query, 0, text, self.delivery, topics, java.HashMap())
        writers = core.kafka.KafkaWriters(spec)
        self.made.append(writers)
        writers.prepare(java.ArrayList())
        return writers

    def again(self, **changes: Any) -> Query:
        """Return a query that starts after this one."""
        given = {"delivery": self.delivery, "unfinished": self.unfinished, **changes}
        return Query(self.spark, self.broker, self.topic, self.lineage, made=self.made, **given)

    def values(self) -> list[bytes | None]:
        return sorted(self.broker.values(self.topic), key=lambda value: value or b"")

    def claim(self) -> tuple[int, str]:
        """Return the offset and the run of the lineage's claim."""
        claim = self.find_claim()
        assert claim is not None
        return claim

    def find_claim(self) -> tuple[int, str] | None:
        """Return the offset and the run of the lineage's claim, or None if there is none."""
        wanted = ConsumerGroupTopicPartitions(self.group, [TopicPartition(MARKS, 0)])
        admin = self.broker.admin()
        answer = admin.list_consumer_group_offsets([wanted])[self.group].result(30)
        (place,) = answer.topic_partitions
        if place.offset < 0:
            return None
        try:
            # The client may give bytes of its own behind the text.
            return place.offset, json.JSONDecoder().raw_decode(place.metadata)[0]["run"]
        except UnicodeDecodeError:
            return self.find_claim()

    @property
    def group(self) -> str:
        return f"headgate.{JOB}.{self.lineage}"

    def forget_groups(self) -> None:
        """Do what brokers do to groups that were idle for a week."""
        admin = self.broker.admin()
        known = [each.group_id for each in admin.list_consumer_groups().result(30).valid]
        ours = [each for each in known if each == self.group or each.startswith(f"{self.group}.")]
        for gone in admin.delete_consumer_groups(ours).values():
            gone.result(30)


def write(writers: Any, *values: bytes, epoch: int, task: int = 0) -> None:
    """Write a task's rows of one epoch; one that fails is given up, as Spark does it."""
    writer = writers.open(task, 2, epoch)
    try:
        for number, value in enumerate(values):
            writer.write(0, Row(value, offset=number).envelope())
        writer.commit()
    finally:
        writer.abort()


def refused(code: str) -> Any:
    """Expect the kernel to throw a failure of this code."""
    return pytest.raises(Py4JJavaError, match=f"{code}: ")


@pytest.fixture
def query(spark: SparkSession, kafka: KafkaBroker) -> Iterator[Query]:
    out = Query(spark, kafka, kafka.make_topic(), f"20261118T{uuid.uuid4().hex[:6]}")
    yield out
    for writers in out.made:
        writers.close()


@pytest.fixture
def points(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Give a folder whose files make the kernel wait where it is told to."""
    crash = kernel(spark).testing.CrashPoint
    crash.arm(str(tmp_path))
    yield tmp_path
    crash.arm(None)


@pytest.fixture
def no_marks(kafka: KafkaBroker) -> Iterator[None]:
    """Let a test have the topic of marks to itself, and leave none behind."""
    _drop_marks(kafka)
    yield
    _drop_marks(kafka)


def _drop_marks(broker: KafkaBroker) -> None:
    if MARKS not in broker.admin().list_topics(timeout=180).topics:
        return
    broker.drop_topic(MARKS)
    eventually(lambda: MARKS not in broker.admin().list_topics(timeout=180).topics)


def test_a_claim_is_renewed_by_its_own_query_alone(query: Query) -> None:
    old = query.start()
    claimed = query.claim()
    eventually(lambda: int(time.time() * 1000) > claimed[0] + 1)
    old.renew()
    renewed = query.claim()
    assert renewed[0] > claimed[0], "a claim that is committed anew does not expire"
    assert renewed[1] == claimed[1]
    query.again().start()
    taken = query.claim()
    assert taken[1] != claimed[1]
    old.renew()
    assert query.claim() == taken


@pytest.mark.long
def test_a_claim_outlives_the_retention_of_offsets_while_its_query_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    # The broker deletes offsets of idle groups after a minute.
    broker = KafkaBroker(
        tmp_path / "kafka",
        settings={"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "2000"},
    )
    broker.start()
    query = Query(spark, broker, broker.make_topic(), "20261118T000000")
    left = Query(spark, broker, query.topic, "20261118T000001")
    try:
        writers = query.start()
        left.start().close()
        eventually(lambda: left.find_claim() is None, every=1, within=300)
        write(writers, b"row", epoch=0)
        assert query.values() == [b"row"]
    finally:
        for made in (*query.made, *left.made):
            made.close()
        broker.stop()


def test_a_task_whose_claim_is_gone_writes_nothing_until_a_new_attempt_claims(
    query: Query,
) -> None:
    old = query.start()
    query.forget_groups()
    with pytest.raises(Py4JJavaError, match="its claim is gone"):
        write(old, b"stale", epoch=0)
    # A renewal must not hide it.
    old.renew()
    with pytest.raises(Py4JJavaError, match="its claim is gone"):
        write(old, b"stale", epoch=0)
    write(query.again(unfinished=True).start(), b"new", epoch=0)
    assert query.values() == [b"new"]


def test_a_task_that_was_asleep_before_its_producer_was_fenced_writes_nothing(
    query: Query, points: Path
) -> None:
    old = query.start()
    hold = points / "claim-checked.hold"
    hold.touch()
    thrown: list[str] = []

    def write_late() -> None:
        try:
            write(old, b"stale", epoch=0)
        except Py4JJavaError as error:
            thrown.append(str(error))

    task = threading.Thread(target=write_late)
    task.start()
    try:
        eventually((points / "claim-checked.held").exists)
        # It has fenced and claimed all there is before the old task opens its producer.
        new = query.again().start()
    finally:
        hold.unlink()
        task.join(60)
    assert not task.is_alive()
    assert any("FENCED: " in each for each in thrown), thrown
    assert query.values() == []
    write(new, b"new", epoch=0)
    assert query.values() == [b"new"]


def test_a_batch_is_not_written_again_when_the_topic_of_its_marks_was_deleted(
    query: Query, no_marks: None
) -> None:
    writers = query.start()
    write(writers, b"row", epoch=0)
    writers.close()
    _drop_marks(query.broker)
    resumed = query.again(unfinished=True)
    for _ in range(2):
        # The refused start made the topic again, and must not take that for a proof.
        with refused("MARKS_LOST"):
            resumed.start()
    # The way forward: the batch is finished at-least-once, and the next one is not in doubt.
    write(query.again(unfinished=True, delivery="at-least-once").start(), b"row", epoch=0)
    write(query.again().start(), b"next", epoch=1)
    assert query.values() == [b"next", b"row", b"row"]


def test_a_run_that_wrote_nothing_is_not_taken_for_one_that_lost_its_marks(query: Query) -> None:
    query.start()
    query.again(unfinished=True).start()
    # Brokers forget groups; the topic remembers the run.
    query.forget_groups()
    write(query.again(unfinished=True).start(), b"row", epoch=0)
    # A replay of a batch that is written is skipped, also without groups.
    query.forget_groups()
    write(query.again(unfinished=True).start(), b"row", epoch=0)
    assert query.values() == [b"row"]


def test_a_topic_of_marks_that_is_not_kept_is_refused(query: Query, no_marks: None) -> None:
    query.broker.make_topic(MARKS, config={"cleanup.policy": "delete"})
    with refused("MARKS_EXPIRE") as caught:
        query.start()
    assert "got delete" in str(caught.value)
