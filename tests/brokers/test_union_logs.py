"""A union of streams on different logs: exactly once, in order, and audited by source."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench import Bench
from kafka_broker import KafkaBroker

from headgate import Files, Flow
from headgate.connectors import Kafka
from headgate.jobs.audit.job_audit import AuditRequest
from headgate.jobs.dead_letters.replay import ReplayRequest
from headgate.jobs.folder_home import FolderHome

ROW = "id BIGINT NOT NULL, place STRING"


def test_a_union_of_kafka_and_files_keeps_partitions_in_order_over_a_restart(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    source = kafka.make_topic(partitions=2)
    target, letters = kafka.make_topic(), kafka.make_topic()

    def bound(topic: str) -> Kafka:
        return Kafka(topic, servers=kafka.address)

    flow = Flow("united", dead_letters=bound(letters))
    orders = flow.stream(bound(source), ROW, uid="orders")
    returns = flow.stream(Files("returns", dir=str(bench.topics / "returns")), ROW)
    both = orders.union(returns)
    # One record in a hundred fails.
    both.with_columns(check="1 / (id % 100 - 99)").select("id", "place").to(bound(target))
    sent: dict[str, list[int]] = defaultdict(list)
    for part in range(2):
        for number, place in enumerate(("0", "1", "file")):
            ids = [1000 * number + 100 * part + n for n in range(100)]
            sent[place] += ids
            values = [{"id": each, "place": place} for each in ids]
            if place == "file":
                bench.put("returns", values)
            else:
                kafka.send(source, [json.dumps(each).encode() for each in values], partition=number)
        bench.run(flow, parallelism=1, max_batch=3000)

    made: dict[str, list[int]] = defaultdict(list)
    for value in kafka.values(target):
        row = json.loads(value or b"null")
        made[row["place"]].append(row["id"])
    assert made == {place: [n for n in ids if n % 100 != 99] for place, ids in sent.items()}
    failed: list[dict[str, Any]] = [json.loads(value or b"null") for value in kafka.values(letters)]
    assert Counter(letter["record_topic"] for letter in failed) == {source: 4, "returns": 2}

    home = FolderHome(bench.home)
    audit = home.audit("united", AuditRequest(source="orders"))
    assert audit.ok, audit
    assert audit.sources["orders"].records == 400
    # Records go back to the topic that each letter names.
    replayed = home.replay_dead_letters("united", ReplayRequest(), by="test")
    assert replayed.sent == {source: 4, "returns": 2}
    assert len(bench.read("returns")) == 202
