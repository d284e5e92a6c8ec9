"""A start from an older checkpoint writes rows to a broker again only where that was allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from bench import Bench, refused
from kafka_broker import KafkaBroker
from pulsar_broker import PulsarBroker

from headgate import Flow
from headgate.checkpoints.catalog import list_kept
from headgate.connectors import Kafka, Pulsar
from headgate.flow.topics import Topic
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.values import Consent

JOB = "copy"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def copying(output: Topic, letters: Topic) -> Flow:
    flow = Flow(JOB, dead_letters=letters)
    flow.stream("in", "n BIGINT NOT NULL").to(output)
    return flow


def check_fallback(
    bench: Bench, flow: Flow, read: Callable[[], Iterable[bytes | None]], letters: Callable[[], int]
) -> None:
    """Corrupt all checkpoints but the first, and start with and without consent."""

    def found() -> list[int]:
        return sorted(json.loads(value or b"")["n"] for value in read())

    for n in (1, 2, 3):
        bench.put("in", [{"n": n}, "no json"])
        bench.run(flow, checkpoint_every=timedelta(0))
    home = JobFolder(bench.home, JOB)
    kept = list_kept(home.checkpoints_folder(str(home.find_present_run())))
    spoiled = [each.folder / "offsets" / str(each.batch) for each in kept[1:]]
    spoiled += bench.home.glob("jobs/*/runs/*/checkpoint/offsets/[1-9]*")
    for file in spoiled:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    with refused("FALLBACK_REPEATS") as told:
        bench.run(flow)
    assert "rows of later batches" in told.value.message
    for output in flow.graph().outputs():
        assert repr(output.topic.name) in told.value.message
    assert (found(), letters()) == ([1, 2, 3], 3)
    bench.run(flow, consent=Consent(allow_repeats=True))
    assert (found(), letters()) == ([1, 2, 2, 3, 3], 5)


def test_a_fall_back_writes_rows_and_letters_again_with_consent_alone_on_kafka(
    kafka: KafkaBroker, bench: Bench
) -> None:
    output, letters = kafka.make_topic(), kafka.make_topic()
    flow = copying(Kafka(output, servers=kafka.address), Kafka(letters, servers=kafka.address))
    check_fallback(bench, flow, lambda: kafka.values(output), lambda: len(kafka.values(letters)))


def test_a_fall_back_writes_rows_and_letters_again_with_consent_alone_on_pulsar(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    output, letters = (pulsar.make_topic(deduplicated=True) for _ in range(2))
    bound = [Pulsar(each, service=pulsar.service, admin=pulsar.admin) for each in (output, letters)]
    flow = copying(*bound)
    check_fallback(bench, flow, lambda: pulsar.values(output), lambda: len(pulsar.values(letters)))
