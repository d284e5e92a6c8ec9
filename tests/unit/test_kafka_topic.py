"""A topic on Kafka as a value, and what the kernel is told of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from headgate import Flow, Graph, HeadgateError
from headgate.connectors import Kafka
from headgate.connectors.contract.connector import Reading
from headgate.connectors.contract.starts import OFFSETS
from headgate.connectors.kafka.connector import KafkaEnds
from headgate.flow.topics import topic_from_json, topic_to_json

POSITION = '{"format":1,"topics":{"orders":{"id":"a","next":[5]}}}'


def kafka(**more: Any) -> Kafka:
    return Kafka("orders", servers="h", **more)


def options(topic: Kafka, **more: Any) -> dict[str, str]:
    reading = Reading(job="store", max_batch=10, max_record=20, splits=2, **more)
    return KafkaEnds().source_options(topic, reading)


@pytest.mark.parametrize(
    "topic",
    [
        kafka(),
        kafka(options={"sasl.password": "${env:P}"}, config="c.properties"),
        kafka(pattern="orders-.*", start="latest"),
        kafka(start=datetime(2026, 11, 15, 10, 5)),
        kafka(start={1: 20, 0: 15}),
    ],
)
def test_a_topic_reads_back_from_its_json(topic: Kafka) -> None:
    text = json.dumps(topic_to_json(topic))
    assert topic_from_json(json.loads(text)) == topic
    assert hash(topic_from_json(json.loads(text))) == hash(topic)


def test_a_flow_with_topics_on_kafka_reads_back_from_its_json() -> None:
    flow = Flow("f")
    flow.stream(kafka(start="latest"), "a BIGINT").to(Kafka("out", servers="h"))
    graph = flow.graph()
    assert Graph.from_json(graph.to_json()) == graph


def test_a_topic_says_where_it_is() -> None:
    assert kafka().describe() == "kafka orders at h:9092"
    assert kafka(pattern="o.*").describe() == "kafka orders (topics o.*) at h:9092"


def test_options_are_kept_as_text_and_apart_from_the_users_own() -> None:
    given: dict[str, Any] = {"linger.ms": 5, "enable.idempotence": True}
    topic = kafka(options=given)
    given["linger.ms"] = 6
    assert topic.options == {"linger.ms": "5", "enable.idempotence": "true"}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"pattern": "("}, "BAD_TOPIC"),
        ({"pattern": ""}, "BAD_TOPIC"),
        ({"pattern": "a.*", "start": {0: 1}}, "BAD_TOPIC"),
        ({"start": "yesterday"}, "BAD_TOPIC"),
        ({"start": {}}, "BAD_TOPIC"),
        ({"start": {0: -1}}, "BAD_TOPIC"),
        ({"start": {"0": True}}, "BAD_TOPIC"),
        ({"start": 5}, "BAD_TOPIC"),
        ({"options": {"sasl.password": "hunter2"}}, "SECRET_IN_PLAIN"),
        ({"servers": "h:x"}, "BAD_SERVERS"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_when_it_is_written(
    more: dict[str, Any], code: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        Kafka("orders", **{"servers": "h", **more})
    assert (caught.value.code, caught.value.exit_code) == (code, 2)


def test_a_pattern_can_be_read_and_not_written() -> None:
    topic = kafka(pattern="orders-.*")
    assert options(topic)["pattern"] == "orders-.*"
    assert "topics" not in options(topic)
    with pytest.raises(HeadgateError) as caught:
        KafkaEnds().output_option(topic)
    assert caught.value.code == "BAD_TOPIC"


def test_the_kernels_source_gets_all_it_needs_as_text() -> None:
    topic = kafka(options={"sasl.password": "${env:P}"})
    assert KafkaEnds.SOURCE == "io.headgate.kernel.kafka.KafkaSource"
    assert options(topic) == {
        "client": topic.log.to_text(),
        "topics": "orders",
        "start": "earliest",
        "max.bytes": "10",
        "max.record": "20",
        "splits": "2",
        "on.data.loss": "fail",
        "meta": "true",
        "isolation": "read_committed",
    }
    assert json.loads(topic.log.to_text()) == {
        "servers": "h:9092",
        "options": {"sasl.password": "${env:P}"},
        "config": None,
    }


@pytest.mark.parametrize("name", ["isolation.level", "consumer.isolation.level"])
def test_isolation_is_an_option_of_the_client(name: str) -> None:
    assert options(kafka(options={name: "read_uncommitted"}))["isolation"] == "read_uncommitted"


def test_the_kernels_sink_gets_the_name() -> None:
    assert KafkaEnds().output_option(kafka()) == {"kind": "kafka", "topic": "orders"}


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (None, "earliest"),
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("2026-11-15T10:05:00", "timestamp:1794737100000"),
        ("2026-11-15 10:05", "timestamp:1794737100000"),
        ("2026-11-15T10:05:00Z", "timestamp:1794737100000"),
        ("2026-11-15T12:05:00+02:00", "timestamp:1794737100000"),
        (datetime(2026, 11, 15, 10, 5), "timestamp:1794737100000"),
        (datetime(2026, 11, 15, 10, 5, tzinfo=UTC), "timestamp:1794737100000"),
        (
            datetime(2026, 11, 15, 12, 5, tzinfo=timezone(timedelta(hours=2))),
            "timestamp:1794737100000",
        ),
        ({2: 20, 0: 15}, "offsets:0=15,2=20"),
        ("offsets:2=20,0=15", "offsets:0=15,2=20"),
        ("timestamp:5", "timestamp:5"),
    ],
)
def test_a_start_becomes_the_kernels_words(start: Any, told: str) -> None:
    assert options(kafka(start=start))["start"] == told


def test_a_start_that_is_given_wins_over_the_topics_own() -> None:
    topic = kafka(start="latest")
    assert options(topic, start=POSITION)["start"] == POSITION
    assert options(topic, start="2026-11-15")["start"] == "timestamp:1794700800000"
    assert options(topic, start=None)["start"] == "latest"


@pytest.mark.parametrize("text", ["earliest", "2026-11-15T10:05:00+00:00", "offsets:0=1"])
def test_a_start_that_was_checked_stays_as_it_is(text: str) -> None:
    assert OFFSETS.check_start(text, topic="t") == text
    assert OFFSETS.kernel_start(OFFSETS.kernel_start(text)) == OFFSETS.kernel_start(text)
