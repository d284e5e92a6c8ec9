"""A job on Kafka with the topics that Debezium's connectors for PostgreSQL and MySQL write."""

from __future__ import annotations

import base64
import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import debezium
from bench import Bench
from confluent_kafka import Producer
from kafka_broker import KafkaBroker

from headgate import Flow, Kafka

USERS = "id BIGINT NOT NULL, name STRING NOT NULL, seen TIMESTAMP NOT NULL"
ITEMS = "id BIGINT NOT NULL, name STRING NOT NULL, price DECIMAL(10,2) NOT NULL"
KEYS = list(range(12))


def field(column: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": False, "field": column, **more}


def users_row(row: debezium.Row) -> debezium.Row:
    return {**row, "seen": 1_700_000_000_000_000 + int(row["name"][1:])}


def items_row(row: debezium.Row) -> debezium.Row:
    cents = int(row["name"][1:]).to_bytes(4, "big")
    return {**row, "price": base64.b64encode(cents).decode()}


def wrapped(value: bytes, record: debezium.Record, row_of: Any, column: Any) -> bytes:
    """Return an envelope with Connect's schema and one more column in its rows."""
    envelope = json.loads(value)
    envelope = envelope.get("payload", envelope)
    for part in ("before", "after"):
        envelope[part] = None if envelope[part] is None else row_of(envelope[part])
    columns = [field("id", "int64"), field("name", "string"), column]
    row = {"type": "struct", "fields": columns, "optional": True, "name": "shop.Value"}
    schema = {
        "type": "struct",
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}, field("op", "string")],
        "optional": False,
        "name": "shop.Envelope",
        "version": 2,
    }
    return json.dumps({"schema": schema, "payload": envelope}).encode()


def send(broker: KafkaBroker, topic: str, records: list[debezium.Record], since: int) -> None:
    """Send records in their order, each with a timestamp of its own.

    Where positions say nothing and a key has moved to another partition, timestamps decide.

    Args:
        since: The timestamp of the first one.
    """
    producer = Producer({**broker.client, "linger.ms": "5"})
    for number, record in enumerate(records):
        producer.produce(
            topic, record.value, record.key, partition=record.partition, timestamp=since + number
        )
        producer.poll(0)
    assert producer.flush(120) == 0


def topics(kind: str, row_of: Any, column: Any) -> list[debezium.Record]:
    """Return what a connector wrote, in the order in which it did."""
    topic, _ = debezium.run(kind, random.Random(f"end-to-end {kind}"), KEYS, steps=400)
    records = sorted(
        (each for part in topic.records for each in part), key=lambda each: each.timestamp
    )
    return [
        each
        if each.value is None
        else replace(each, value=wrapped(each.value, each, row_of, column))
        for each in records
    ]


def test_a_job_reads_the_topics_of_two_connectors_and_is_restarted(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    micros = field("seen", "int64", name="io.debezium.time.MicroTimestamp", version=1)
    decimal = field(
        "price",
        "bytes",
        name="org.apache.kafka.connect.data.Decimal",
        version=1,
        parameters={"scale": "2", "connect.decimal.precision": "10"},
    )
    sent = {
        "users": topics("postgresql", users_row, micros),
        "items": topics("mysql", items_row, decimal),
    }
    names = {
        name: kafka.make_topic(partitions=1 + max(each.partition for each in records))
        for name, records in sent.items()
    }
    flow = Flow("shop")
    users = flow.table(
        Kafka(names["users"], servers=kafka.address),
        USERS,
        key="id",
        format="debezium",
        uid="users",
    )
    items = flow.table(
        Kafka(names["items"], servers=kafka.address),
        ITEMS,
        key="id",
        format="debezium",
        uid="items",
    )
    asks = flow.stream("asks", "round BIGINT NOT NULL, id BIGINT NOT NULL")
    asks.enrich("user", users, on="id", into="row").matched.select(
        "round", "row.id AS id", "row.name AS name", "row.seen AS seen"
    ).to("known-users")
    asks.enrich("item", items, on="id", into="row").matched.select(
        "round", "row.id AS id", "row.name AS name", "row.price AS price"
    ).to("known-items")

    read: dict[str, list[debezium.Record]] = {"users": [], "items": []}
    wanted: dict[str, list[Any]] = {"users": [], "items": []}
    since = int(time.time() * 1000) - sum(map(len, sent.values()))
    for number in range(2):
        for name, records in sent.items():
            half = len(records) * (number + 1) // 2
            begin = len(read[name])
            send(kafka, names[name], records[begin:half], since + begin)
            read[name] = records[:half]
        # A round asks what the one before it has read: a table's changes may come behind its asks.
        bench.run(flow, parallelism=2)
        bench.put("asks", [{"round": number, "id": key} for key in KEYS])
        bench.run(flow, parallelism=2)
        for name, records in read.items():
            wanted[name] += [
                {"round": number, "id": key, "name": row["name"]}
                for key, row in debezium.newest(records).items()
            ]
    for name, rows in wanted.items():
        found = bench.read(f"known-{name}")
        extra = "seen" if name == "users" else "price"
        plain = [{key: row[key] for key in ("round", "id", "name")} for row in found]
        order = lambda row: (row["round"], row["id"])  # noqa: E731
        assert sorted(plain, key=order) == sorted(rows, key=order), name
        for row in found:
            number = int(row["name"][1:])
            if extra == "price":
                assert row["price"] == number / 100
            else:
                assert row["seen"].startswith("2023-11-14T22:13:2")
    assert bench.read("dead-letters") == []
