"""What readers of Kafka see of a job's order, and of outputs of several kinds after a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import Bench
from kafka_broker import KafkaBroker
from ordered_job import (
    EARLY,
    IN_ORDER,
    PARTITIONS,
    by_key,
    by_partition,
    ordered_flow,
    results,
    visits,
)

from headgate import Flow
from headgate.connectors import Kafka


def bound_flow(broker: KafkaBroker, source: str, copy: str, plain: str, counts: str) -> Flow:
    names = (source, copy, plain, counts, broker.make_topic())
    return ordered_flow(*(Kafka(name, servers=broker.address) for name in names))


def test_a_crash_between_outputs_of_two_kinds_costs_no_row_and_no_order_on_kafka(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    source, copy, counts = (kafka.make_topic(partitions=PARTITIONS) for _ in range(3))
    plain = kafka.make_topic()
    for partition in range(PARTITIONS):
        kafka.send(source, visits(partition), partition=partition)
    flow = bench.flow_file(bound_flow(kafka, source, copy, plain, counts))
    crashes = tmp_path / "crashes"
    crashes.mkdir()
    # A task has published its files, and its transaction is not committed.
    (crashes / "state-committed").touch()
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(crashes))
    job = bench.spawn(flow, parallelism=2)
    printed, _ = job.communicate(timeout=180)
    assert job.returncode != 0, printed
    assert not list(crashes.iterdir()), printed
    assert bench.read("even") + bench.read("odd"), "files were published before the crash"
    bench.run(flow, parallelism=2)

    assert by_key(kafka.values(copy)) == IN_ORDER
    assert by_partition(kafka.values(plain)) == [visits(each) for each in range(PARTITIONS)]
    assert by_key(kafka.values(counts)) == EARLY
    told = results(json.loads(value or b"null") for value in kafka.values(counts))
    assert results([*bench.read("even"), *bench.read("odd")]) == told
