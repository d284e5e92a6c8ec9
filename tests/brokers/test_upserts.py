"""Upserts on every log: a table that reads them has what the rows said, whatever was killed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from bench import Bench
from kafka_broker import KafkaBroker
from pulsar_broker import PulsarBroker

from headgate import Flow, Kafka, Pulsar
from headgate.flow.topics import LogicalTopic, Topic
from headgate.formats import Upsert

# Texts that could be taken for JSON, and plain ones.
KEYS = ["a", '"quoted"', '{"k":"x"}', '"', "42", "null", "é😀", "{", " b ", "$deleted"]


def changes(number: int) -> list[dict[str, Any]]:
    """Return rows of which the last of each key counts."""
    rng = random.Random(number)
    return [
        {"k": rng.choice(KEYS), "n": n, "gone": rng.choice([True, False, False, None])}
        for n in range(number, number + 300)
    ]


def held(rows: list[dict[str, Any]]) -> dict[str, int]:
    last = {row["k"]: row for row in rows}
    return {key: row["n"] for key, row in last.items() if not row["gone"]}


def writing(out: Topic | str) -> Flow:
    flow = Flow("writing")
    rows = flow.stream("rows", "k STRING, n BIGINT NOT NULL, gone BOOLEAN")
    rows.to(out, key="k", format=Upsert(deleted="gone"))
    return flow


def reading(out: Topic | str) -> Flow:
    flow = Flow("reading")
    table = flow.table(out, "k STRING NOT NULL, n BIGINT NOT NULL", key="k", uid="state")
    asked = flow.stream("asks", "k STRING NOT NULL").enrich("asked", table, on="k", into="row")
    asked.matched.select("row.k AS k", "row.n AS n").to("known")
    asked.missing.to("unknown")
    return flow


def check(bench: Bench, out: Topic | str, monkeypatch: pytest.MonkeyPatch, crash: str) -> list[Any]:
    """Write twice, with a kill in the first, and compare the table that another job reads."""
    first, second = changes(0), changes(1000)
    bench.put("rows", [*first, {"k": None, "n": 1, "gone": False}])
    crashes = bench.root / "crashes"
    crashes.mkdir()
    (crashes / crash).touch()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(crashes))
    job = bench.spawn(bench.flow_file(writing(out)), parallelism=1)
    printed, _ = job.communicate(timeout=480)
    assert job.returncode != 0, printed
    assert not list(crashes.iterdir()), printed
    bench.run(writing(out), parallelism=1)
    bench.put("rows", second)
    bench.run(writing(out), parallelism=1)
    assert [letter["code"] for letter in bench.read("dead-letters")] == ["NO_KEY"]

    bench.put("asks", [{"k": key} for key in KEYS])
    bench.run(reading(out), parallelism=2)
    rows = first + second
    assert {row["k"]: row["n"] for row in bench.read("known")} == held(rows)
    assert {row["k"] for row in bench.read("unknown")} == set(KEYS) - set(held(rows))
    assert len(bench.read("dead-letters")) == 1
    return rows


def check_records(records: list[tuple[bytes, bytes | None]], rows: list[dict[str, Any]]) -> None:
    """Compare what is in a topic with the rows: each is there once, in the order of its key."""
    keys = {json.loads(value)["k"]: key for key, value in records if value is not None}
    for text, key in keys.items():
        written = [
            None if value is None else json.loads(value) for own, value in records if own == key
        ]
        wanted = [
            None if row["gone"] else {"k": text, "n": row["n"]} for row in rows if row["k"] == text
        ]
        assert written == wanted, text
    assert len(records) == len(rows)
    assert len(set(keys.values())) == len(KEYS)


def test_a_table_reads_upserts_from_an_embedded_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    rows = check(bench, LogicalTopic("out"), monkeypatch, "epoch-committed")
    written = bench.read("out")
    assert len(written) == len(rows)
    gone = [row for row in written if "$deleted" in row]
    assert len(gone) == sum(row["gone"] is True for row in rows)
    assert all(set(row) == {"k", "$deleted"} and row["$deleted"] is True for row in gone)
    assert all("gone" not in row for row in written)


def test_a_table_reads_upserts_from_kafka(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.make_topic(partitions=3)
    out = Kafka(topic, servers=kafka.address)
    rows = check(Bench(tmp_path), out, monkeypatch, "in-transaction")
    check_records(kafka.changes(topic), rows)


def test_a_table_reads_upserts_from_pulsar(
    pulsar: PulsarBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = pulsar.make_topic(partitions=3, deduplicated=True)
    out = Pulsar(topic, service=pulsar.service, admin=pulsar.admin)
    rows = check(Bench(tmp_path), out, monkeypatch, "in-transaction")
    check_records(pulsar.changes(topic), rows)


def test_rows_are_written_to_several_topics_in_one_epoch(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    topic = kafka.make_topic(partitions=2)
    rows = changes(0)
    bench.put("rows", rows)
    flow = Flow("both")
    source = flow.stream("rows", "k STRING NOT NULL, n BIGINT NOT NULL, gone BOOLEAN")
    out = Kafka(topic, servers=kafka.address)
    source.to([out, "copy"], key="k", format=Upsert(deleted="gone"))
    crashes = bench.root / "crashes"
    crashes.mkdir()
    # The files are published, and the transaction is not committed.
    (crashes / "state-committed").touch()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(crashes))
    job = bench.spawn(bench.flow_file(flow), parallelism=1)
    printed, _ = job.communicate(timeout=480)
    assert job.returncode != 0, printed
    bench.run(flow, parallelism=1)
    check_records(kafka.changes(topic), rows)
    assert len(bench.read("copy")) == len(rows)
