"""Audits on a real broker: what was lost or doubled by hand is found, and nothing else is."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from audited_job import AuditedJob, kafka_position, make_job
from confluent_kafka import Producer, TopicPartition
from kafka_broker import KafkaBroker

from headgate import Flow, HeadgateError
from headgate._codec import encode
from headgate.connectors import Kafka
from headgate.connectors.kafka.access.admin import Cluster
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.logs import bind, parse_log
from headgate.flow.graph.graph import Graph
from headgate.jobs.audit.report import Audit
from headgate.jobs.runs.lineage import Origin

ORDER = "order BIGINT NOT NULL, user BIGINT"
USER = "id BIGINT NOT NULL, name STRING"
LETTERS = "dead-letters"


@dataclass(slots=True)
class Desk:
    """The topics of one test, and what is written to them by hand."""

    kafka: KafkaBroker
    home: Path
    prefix: str = field(default_factory=lambda: f"a{uuid.uuid4().hex[:8]}-")
    producer: Producer | None = None

    def topic(self, name: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        """Make a topic of this test."""
        return self.kafka.make_topic(self.prefix + name, partitions=partitions, config=config)

    def send(self, topic: str, values: Iterable[bytes], *, partition: int = 0) -> None:
        """Write records outside of transactions."""
        self.kafka.send(self.prefix + topic, values, partition=partition)

    def send_in_transaction(
        self,
        topic: str,
        rows: Iterable[tuple[bytes, bytes | None]],
        *,
        partition: int = 0,
        commit: bool = True,
    ) -> None:
        """Write records, each with the mark it carries, in one transaction."""
        producer = self._transactions()
        producer.begin_transaction()
        for value, mark in rows:
            headers: dict[str, str | bytes | None] = {} if mark is None else {"headgate": mark}
            producer.produce(
                self.prefix + topic, value, b"key", partition=partition, headers=headers
            )
        producer.flush(180)
        if commit:
            producer.commit_transaction(180)
        else:
            producer.abort_transaction(180)

    def _transactions(self) -> Producer:
        if self.producer is None:
            self.producer = Producer(
                {
                    **self.kafka.client,
                    "transactional.id": uuid.uuid4().hex,
                    "transaction.timeout.ms": 600_000,
                }
            )
            self.producer.init_transactions(180)
        return self.producer

    def offsets(self, topic: str) -> dict[int, list[int]]:
        """Return the offsets of the committed records by partition: they have gaps."""
        found: dict[int, list[int]] = {}
        for message in self.kafka.read(self.prefix + topic):
            found.setdefault(message.partition() or 0, []).append(message.offset() or 0)
        return found

    def position(self, topic: str, *following: int) -> str:
        """Return a position as the kernel writes it; without offsets, the topic's end."""
        name = self.prefix + topic
        cluster = Cluster(KafkaLog.of(self.kafka.address), doing="look")
        (facts,) = cluster.describe([name])
        ends = following or [part.next for part in facts.parts]
        # Java writes ids in the alphabet of base64 that fits into addresses.
        return kafka_position(name, facts.id.replace("+", "-").replace("/", "_"), *ends)

    def flow(self) -> Flow:
        """Return a flow without nodes, whose dead letters go to a topic of this test."""
        return Flow("shop", dead_letters=self.prefix + LETTERS)

    def bound(self, flow: Flow) -> Graph:
        """Return the flow on the broker."""
        return bind(flow.graph(), parse_log(f"kafka://{self.kafka.address}"))

    def job(self, graph: Graph, **more: Any) -> AuditedJob:
        """Return a job that has read all of the topic orders."""
        ends = {"orders": self.position("orders")}
        begins = {"orders": kafka_position(*_topic_of(ends["orders"]), 0, 0)}
        return make_job(self.home, graph, ends, **{"begins": begins, **more})

    def write(self, job: AuditedJob, output: str, places: Iterable[tuple[int, int]]) -> None:
        """Write a row to an output for the record of each place, in a transaction."""
        rows = [(_row(place), job.mark("orders", *place)) for place in places]
        self.send_in_transaction(output, rows)


def _topic_of(position: str) -> tuple[str, str]:
    ((name, content),) = json.loads(position)["topics"].items()
    return name, content["id"]


def _row(place: tuple[int, int]) -> bytes:
    return json.dumps({"order": place[0] * 1000 + place[1]}).encode()


def _letter(desk: Desk, place: tuple[int, int], *, origin: str = "orders") -> bytes:
    content = {
        "source": origin,
        "topic": desk.prefix + "orders",
        "partition": place[0],
        "offset": place[1],
        "timestamp": 1_000,
        "code": "BAD_JSON",
        "reason": "the record is not JSON",
        "bytes": 1,
        "raw": base64.b64encode(b"x").decode(),
    }
    return json.dumps(content).encode()


@pytest.fixture
def desk(kafka: KafkaBroker, tmp_path: Path) -> Desk:
    """Give topics of a small store; orders were written in transactions, some rolled back."""
    made = Desk(kafka, tmp_path / "home")
    made.topic("orders", partitions=2)
    for name in ("enriched", "missing", LETTERS):
        made.topic(name)
    for partition in range(2):
        for start, commit in ((0, True), (100, False), (10, True)):
            orders = [
                (json.dumps({"order": start + each, "user": each}).encode(), None)
                for each in range(10)
            ]
            made.send_in_transaction("orders", orders, partition=partition, commit=commit)
    return made


@pytest.fixture
def shop(desk: Desk) -> AuditedJob:
    """Give a job whose flow sends each record to exactly one output."""
    flow = desk.flow()
    orders = flow.stream(desk.prefix + "orders", ORDER, uid="orders")
    users = flow.table(desk.prefix + "users", USER, key="id", uid="users")
    found = orders.enrich("with-user", users, on="user", into="who")
    found.matched.to(desk.prefix + "enriched")
    found.missing.to(desk.prefix + "missing")
    return desk.job(desk.bound(flow))


def places(desk: Desk) -> list[tuple[int, int]]:
    """Return where every committed order is."""
    return [
        (number, offset)
        for number, offsets in sorted(desk.offsets("orders").items())
        for offset in offsets
    ]


def told(audit: Audit) -> set[tuple[str, str]]:
    return {(each.kind.value, each.place) for each in audit.examples}


def test_a_run_that_wrote_every_record_once_is_well_though_offsets_have_gaps(
    desk: Desk, shop: AuditedJob
) -> None:
    every = places(desk)
    assert len(every) == 40
    assert every[-1][1] > 30
    desk.write(shop, "enriched", every[:25])
    desk.write(shop, "missing", every[25:39])
    desk.send_in_transaction(LETTERS, [(_letter(desk, every[39]), shop.mark("orders", *every[39]))])
    found = shop.audit()
    assert found.ok, found
    assert found.verdict == "Each of 40 records is in exactly one output row."
    partitions = found.sources["orders"].partitions
    assert {name: (each.records, each.written) for name, each in partitions.items()} == {
        "0": (20, 20),
        "1": (20, 20),
    }
    assert {name.removeprefix(desk.prefix): each.rows for name, each in found.outputs.items()} == {
        "enriched": 25,
        "missing": 14,
        LETTERS: 1,
    }
    assert found.notes == ()


def test_a_loss_and_a_double_are_found_with_their_places(desk: Desk, shop: AuditedJob) -> None:
    every = places(desk)
    lost, doubled = every[3], every[33]
    desk.write(shop, "enriched", [each for each in every if each != lost])
    desk.write(shop, "enriched", [doubled])
    found = shop.audit()
    assert not found.ok
    assert (found.lost, found.doubled, found.unknown) == (1, 1, 0)
    assert (found.sources["orders"].partitions["0"].lost) == 1
    assert (found.sources["orders"].partitions["1"].doubled) == 1
    topic = desk.prefix + "orders"
    assert told(found) == {
        ("lost", f"{topic}/0/{lost[1]}"),
        ("doubled", f"{topic}/1/{doubled[1]}"),
    }


def test_a_record_in_two_outputs_is_doubled_too(desk: Desk, shop: AuditedJob) -> None:
    every = places(desk)
    desk.write(shop, "enriched", every)
    desk.write(shop, "missing", every[:2])
    desk.send_in_transaction(LETTERS, [(_letter(desk, every[7]), shop.mark("orders", *every[7]))])
    found = shop.audit()
    assert (found.lost, found.doubled) == (0, 3)


def test_rows_that_were_rolled_back_are_no_rows(desk: Desk, shop: AuditedJob) -> None:
    every = places(desk)
    rows = [(b"{}", shop.mark("orders", *place)) for place in every]
    desk.send_in_transaction("enriched", rows, commit=False)
    desk.write(shop, "enriched", every[1:])
    found = shop.audit()
    assert (found.lost, found.doubled) == (1, 0)
    assert found.outputs[desk.prefix + "enriched"].rows == 39


def test_a_row_of_a_record_that_was_rolled_back_is_found(desk: Desk, shop: AuditedJob) -> None:
    every = places(desk)
    desk.write(shop, "enriched", every)
    desk.write(shop, "enriched", [(0, 12)])
    assert (0, 12) not in every
    found = shop.audit()
    assert not found.ok
    assert (found.lost, found.doubled, found.unknown) == (0, 0, 1)
    assert told(found) == {("unknown", f"{desk.prefix}orders/0/12")}


def test_rows_ahead_of_other_runs_and_of_nobody_are_counted_apart(
    desk: Desk, shop: AuditedJob
) -> None:
    every = places(desk)
    end = json.loads(desk.position("orders"))["topics"][desk.prefix + "orders"]["next"][1]
    desk.write(shop, "enriched", [*every, (1, end), (1, end + 1), (7, 0)])
    desk.send_in_transaction(
        "missing", [(b"{}", b"20250101T000000-abcdef/orders/0/1"), (b"{}", None), (b"{}", b"odd")]
    )
    found = shop.audit()
    assert found.ok, found
    assert found.sources["orders"].partitions["1"].ahead == 2
    counts = encode(found)
    assert (counts["ahead"], counts["other_runs"], counts["foreign"]) == (3, 1, 2)


def test_a_side_output_that_nobody_writes_leaves_losses_open_and_doubles_told(
    desk: Desk,
) -> None:
    flow = desk.flow()
    orders = flow.stream(desk.prefix + "orders", ORDER, uid="orders")
    users = flow.table(desk.prefix + "users", USER, key="id", uid="users")
    found = orders.enrich("with-user", users, on="user", into="who")
    found.matched.to(desk.prefix + "enriched")
    job = desk.job(desk.bound(flow))
    every = places(desk)
    desk.write(job, "enriched", every[:30])
    open_end = job.audit()
    assert open_end.ok
    assert open_end.lost is None
    assert "'with-user.missing'" in open_end.notes[0]
    desk.write(job, "enriched", every[:1])
    assert (job.audit().ok, job.audit().doubled) == (False, 1)


def test_a_stream_that_is_written_twice_is_judged_output_by_output(desk: Desk) -> None:
    flow = desk.flow()
    orders = flow.stream(desk.prefix + "orders", ORDER, uid="orders")
    orders.to(desk.prefix + "enriched")
    orders.to(desk.prefix + "missing")
    job = desk.job(desk.bound(flow))
    every = places(desk)
    desk.write(job, "enriched", every)
    desk.write(job, "missing", every)
    assert (job.audit().ok, job.audit().lost) == (True, None)
    desk.write(job, "missing", every[5:6])
    assert (job.audit().ok, job.audit().doubled) == (False, 1)


def test_a_restored_run_is_audited_with_those_it_comes_from_or_from_where_it_began(
    desk: Desk, shop: AuditedJob
) -> None:
    graph = shop.run.flow
    began = desk.position("orders", 11, 22)
    origin = Origin("chk-1", shop.lineage, 1, began={"orders": began})
    job = desk.job(graph, origin=origin)
    rest = [place for place in places(desk) if place[1] >= (11, 22)[place[0]]]
    desk.write(job, "enriched", rest)
    desk.write(shop, "enriched", [place for place in places(desk) if place not in rest])
    found = job.audit()
    assert found.ok, found
    assert found.records == 40
    alone = job.audit(lineage=job.lineage)
    assert alone.ok, alone
    assert alone.records == len(rest) == 20
    assert job.home.find_present_run() == job.lineage
    assert job.audit(lineage=shop.lineage).lost == len(rest)


def test_a_record_that_a_later_run_wrote_again_is_doubled(desk: Desk, shop: AuditedJob) -> None:
    origin = Origin("chk-1", shop.lineage, 1, began={"orders": desk.position("orders", 11, 22)})
    job = desk.job(shop.run.flow, origin=origin)
    every = places(desk)
    rest = [place for place in every if place[1] >= (11, 22)[place[0]]]
    desk.write(shop, "enriched", [*(place for place in every if place not in rest), *rest[:3]])
    # It goes to another output now, and the record is in both.
    desk.write(job, "missing", rest)
    found = job.audit()
    assert (found.ok, found.lost, found.doubled) == (False, 0, 3)
    topic = desk.prefix + "orders"
    assert told(found) == {("doubled", f"{topic}/{n}/{at}") for n, at in rest[:3]}
    assert job.audit(lineage=job.lineage).ok


def test_records_that_are_not_kept_any_more_are_not_judged_and_that_is_told(
    desk: Desk, shop: AuditedJob
) -> None:
    desk.write(shop, "enriched", places(desk))
    topic = desk.prefix + "orders"
    admin = desk.kafka.admin()
    for gone in admin.delete_records([TopicPartition(topic, 0, 5)]).values():
        gone.result(30)
    found = shop.audit()
    assert found.ok, found
    assert found.sources["orders"].partitions["0"].records == 15
    assert any(f"{topic}/0 before offset 5 have been deleted" in note for note in found.notes)
    assert any("5 rows are of records before the audited range" in note for note in found.notes)


def test_an_open_transaction_that_hides_rows_is_told_with_the_loss(
    desk: Desk, shop: AuditedJob
) -> None:
    every = places(desk)
    producer = Producer(
        {
            **desk.kafka.client,
            "transactional.id": uuid.uuid4().hex,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(180)
    producer.begin_transaction()
    producer.produce(desk.prefix + "enriched", b"{}", partition=0)
    producer.flush(180)
    try:
        desk.write(shop, "enriched", every)
        found = shop.audit()
        assert found.lost == len(every)
        assert any("an open transaction" in note for note in found.notes)
    finally:
        producer.abort_transaction(180)
    assert shop.audit().ok


def test_a_topic_that_is_gone_or_was_made_anew_cannot_be_audited(
    desk: Desk, shop: AuditedJob
) -> None:
    desk.kafka.drop_topic(desk.prefix + "orders")
    with pytest.raises(HeadgateError) as error:
        shop.audit()
    assert error.value.code == "AUDIT_INPUT_GONE"
    desk.topic("orders", partitions=2)
    with pytest.raises(HeadgateError) as again:
        shop.audit()
    assert again.value.code == "AUDIT_INPUT_GONE"
    assert "was recreated" in again.value.message


def test_a_compacted_input_makes_no_errors_of_rows_whose_record_is_gone(desk: Desk) -> None:
    topic = desk.topic("tables", config={"cleanup.policy": "compact"})
    desk.send_in_transaction("tables", [(b'{"order": 1}', None)])
    desk.send_in_transaction("tables", [(b"{}", None), (b"{}", None)], commit=False)
    flow = desk.flow()
    flow.stream(topic, ORDER, uid="orders").to(desk.prefix + "enriched")
    job = make_job(desk.home, desk.bound(flow), {"orders": desk.position("tables")})
    desk.write(job, "enriched", [(0, 0), (0, 2), (0, 3)])
    found = job.audit()
    assert (found.ok, found.unknown, found.lost) == (True, 2, 0)
    assert any("is compacted" in note for note in found.notes)


def test_several_topics_of_a_pattern_need_a_key_which_works_on_them(desk: Desk) -> None:
    topics = [desk.topic(f"eu-{each}") for each in range(2)]
    for number in range(2):
        desk.send(f"eu-{number}", [_row((number, each)) for each in range(5)])
    flow = desk.flow()
    source = Kafka("eu", servers=desk.kafka.address, pattern=f"{desk.prefix}eu-.*")
    flow.stream(source, ORDER).to(desk.prefix + "enriched")
    positions = [json.loads(desk.position(f"eu-{each}"))["topics"] for each in range(2)]
    end = json.dumps({"format": 1, "topics": {**positions[0], **positions[1]}})
    job = make_job(desk.home, desk.bound(flow), {"eu": end})
    rows = [(_row((n, each)), job.mark("eu", 0, each)) for n in range(2) for each in range(5)]
    desk.send_in_transaction("enriched", rows)
    with pytest.raises(HeadgateError) as error:
        job.audit()
    assert error.value.code == "AUDIT_NEEDS_KEY"
    assert error.value.hint.endswith("headgate audit shop --source eu --key order")
    found = job.audit(key=("order",))
    assert found.ok, found
    assert set(found.sources["eu"].partitions) == {f"{topic}/0" for topic in topics}
    desk.send_in_transaction("enriched", [rows[7]])
    again = job.audit(key=("order",))
    assert (again.doubled, [each.key for each in again.examples]) == (1, [("1002",)])


def test_keys_are_compared_within_the_range_by_the_marks_of_rows(
    desk: Desk, shop: AuditedJob
) -> None:
    every = places(desk)
    orders = [bytes(message.value() or b"") for message in desk.kafka.read(desk.prefix + "orders")]
    rows = _marked(shop, every, orders)
    end = json.loads(desk.position("orders"))["topics"][desk.prefix + "orders"]["next"][0]
    ahead = [(orders[0], shop.mark("orders", 0, end))]
    desk.send_in_transaction("enriched", [*rows[:4], *rows[5:], rows[9], *ahead])
    found = shop.audit(key=("order",))
    # Each order is in the input twice, once in each partition.
    assert (found.lost, found.doubled, found.unknown) == (1, 1, 0)
    assert encode(found)["ahead"] == 1
    assert {(each.kind.value, each.key) for each in found.examples} == {
        ("lost", ("4",)),
        ("doubled", ("9",)),
    }


def _marked(
    job: AuditedJob, every: Sequence[tuple[int, int]], values: Sequence[bytes]
) -> list[tuple[bytes, bytes | None]]:
    return [(value, job.mark("orders", *place)) for place, value in zip(every, values, strict=True)]


def test_an_output_topic_that_is_not_there_is_told_with_the_loss(
    desk: Desk, shop: AuditedJob
) -> None:
    desk.write(shop, "enriched", places(desk)[1:])
    desk.kafka.drop_topic(desk.prefix + "missing")
    found = shop.audit()
    assert found.lost == 1
    assert any("missing' does not exist" in note for note in found.notes)


def test_a_topic_that_is_shorter_than_what_was_read_is_told_and_not_waited_for(
    desk: Desk,
) -> None:
    topic = desk.topic("short")
    desk.send("short", [_row((0, each)) for each in range(3)])
    flow = desk.flow()
    flow.stream(topic, ORDER, uid="orders").to(desk.prefix + "enriched")
    job = make_job(desk.home, desk.bound(flow), {"orders": desk.position("short", 5)})
    desk.write(job, "enriched", [(0, each) for each in range(5)])
    found = job.audit()
    assert (found.records, found.lost, found.unknown) == (3, 0, 2)
    assert any(f"{topic}/0 ends at offset 3" in note for note in found.notes)
