"""A topic on Pulsar as a value, the log it is on, and what the kernel is told of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Flow, Graph, HeadgateError, Kafka, Pulsar
from headgate._references import is_secret
from headgate.connectors.contract.connector import Reading
from headgate.connectors.logs import anchored, parse_log
from headgate.connectors.pulsar.connector import PulsarEnds
from headgate.connectors.pulsar.descriptor import STARTS, PulsarLog
from headgate.connectors.pulsar.names import partition_name, topic_path
from headgate.flow.topics import topic_from_json, topic_to_json

POSITION = '{"format":1,"topics":{}}'


def pulsar(**more: Any) -> Pulsar:
    return Pulsar("orders", **{"service": "pulsar://h", **more})


def options(topic: Pulsar, **more: Any) -> dict[str, str]:
    reading = Reading(job="store", max_batch=10, max_record=20, splits=2, **more)
    return PulsarEnds().source_options(topic, reading)


@pytest.mark.parametrize(
    "topic",
    [
        pulsar(),
        pulsar(admin="http://a:1", namespace="shop/eu", options={"token": "${env:T}"}),
        pulsar(service="pulsar+ssl://h,i", config="c.properties"),
        pulsar(pattern="orders-.*", start="latest"),
        pulsar(start=datetime(2026, 11, 15, 10, 5)),
        pulsar(start={1: "20:3", 0: "15:0"}),
    ],
)
def test_a_topic_reads_back_from_its_json(topic: Pulsar) -> None:
    text = json.dumps(topic_to_json(topic))
    assert topic_from_json(json.loads(text)) == topic
    assert hash(topic_from_json(json.loads(text))) == hash(topic)


def test_a_flow_with_topics_on_both_brokers_reads_back_from_its_json() -> None:
    flow = Flow("f")
    flow.stream(pulsar(start="latest"), "a BIGINT").to(Kafka("out", servers="h"))
    graph = flow.graph()
    assert Graph.from_json(graph.to_json()) == graph


def test_a_topic_says_where_it_is() -> None:
    assert pulsar().describe() == "pulsar orders at pulsar://h:6650"
    assert pulsar(namespace="shop/eu").describe() == "pulsar shop/eu/orders at pulsar://h:6650"
    assert pulsar(pattern="o.*").describe() == "pulsar orders (topics o.*) at pulsar://h:6650"


def test_a_topic_has_a_whole_name_and_partitions_that_are_topics() -> None:
    full = pulsar(namespace="shop/eu").kernel_name
    assert full == "persistent://shop/eu/orders"
    assert topic_path(partition_name(full, 3)) == "persistent/shop/eu/orders-partition-3"
    assert topic_path("persistent://shop/eu/a b?c") == "persistent/shop/eu/a%20b%3Fc"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"pattern": "("}, "BAD_TOPIC"),
        ({"pattern": ""}, "BAD_TOPIC"),
        ({"pattern": "a.*", "start": {0: "1:0"}}, "BAD_TOPIC"),
        ({"start": "yesterday"}, "BAD_TOPIC"),
        ({"start": "offsets:0=5"}, "BAD_TOPIC"),
        ({"start": "messages:"}, "BAD_TOPIC"),
        ({"start": "messages:0=5"}, "BAD_TOPIC"),
        ({"start": "messages:0=-1:0"}, "BAD_TOPIC"),
        ({"start": {}}, "BAD_TOPIC"),
        ({"start": {0: 5}}, "BAD_TOPIC"),
        ({"start": {-1: "1:0"}}, "BAD_TOPIC"),
        ({"start": {0: "1:9999999999999999999"}}, "BAD_TOPIC"),
        ({"start": 5}, "BAD_TOPIC"),
        ({"options": {"token": "hunter2"}}, "SECRET_IN_PLAIN"),
        ({"service": "h:6650"}, "BAD_SERVERS"),
        ({"admin": "h:8080"}, "BAD_SERVERS"),
        ({"namespace": "default"}, "BAD_NAMESPACE"),
        ({"namespace": "a/b/c"}, "BAD_NAMESPACE"),
        ({"namespace": "../b"}, "BAD_NAMESPACE"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_when_it_is_written(
    more: dict[str, Any], code: str
) -> None:
    with pytest.raises(HeadgateError) as caught:
        pulsar(**more)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)


def test_a_pattern_can_be_read_and_not_written() -> None:
    topic = pulsar(pattern="orders-.*", namespace="shop/eu")
    assert options(topic)["pattern"] == "orders-.*"
    assert options(topic)["namespace"] == "shop/eu"
    assert "topics" not in options(topic)
    with pytest.raises(HeadgateError) as caught:
        PulsarEnds().output_option(topic)
    assert caught.value.code == "BAD_TOPIC"


def test_the_kernels_source_gets_all_it_needs_as_text() -> None:
    topic = pulsar(options={"token": "${env:T}"})
    assert PulsarEnds.SOURCE == "io.headgate.kernel.pulsar.PulsarSource"
    assert options(topic) == {
        "client": topic.log.to_text(),
        "topics": "persistent://public/default/orders",
        "start": "earliest",
        "max.bytes": "10",
        "max.record": "20",
        "splits": "2",
        "on.data.loss": "fail",
        "meta": "true",
        "subscription": "store",
    }
    assert json.loads(topic.log.to_text()) == {
        "service": "pulsar://h:6650",
        "admin": "http://h:8080",
        "options": {"token": "${env:T}"},
        "config": None,
    }


def test_the_kernels_sink_gets_the_whole_name() -> None:
    name = "persistent://public/default/orders"
    assert PulsarEnds().output_option(pulsar()) == {"kind": "pulsar", "topic": name}


@pytest.mark.parametrize(
    ("start", "kernel"),
    [
        ("latest", "latest"),
        ("1970-01-01T00:00:01", "timestamp:1000"),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "timestamp:0"),
        ("timestamp:5", "timestamp:5"),
        ("messages:1=3:4,0=1:2", "messages:0=1:2,1=3:4"),
        ({10: "3:4", 2: "1:2"}, "messages:2=1:2,10=3:4"),
    ],
)
def test_a_start_is_put_into_the_kernels_words(start: object, kernel: str) -> None:
    checked = STARTS.check_start(start, topic="orders")
    assert checked is not None
    assert STARTS.check_start(checked, topic="orders") == checked
    assert STARTS.kernel_start(checked) == kernel


def test_a_job_s_own_start_wins_over_the_topic_s() -> None:
    topic = pulsar(start="latest")
    assert options(topic)["start"] == "latest"
    assert options(topic, start="earliest")["start"] == "earliest"
    assert options(topic, start=POSITION)["start"] == POSITION
    moment = datetime(2026, 11, 15, tzinfo=UTC)
    assert options(pulsar(start=moment))["start"] == f"timestamp:{moment.timestamp():.0f}000"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pulsar://h", "pulsar://h:6650"),
        ("pulsar://h:1,i:2/", "pulsar://h:1,i:2"),
        ("pulsar+ssl://h", "pulsar+ssl://h:6651"),
        ("pulsar://h/public/default", "pulsar://h:6650"),
        ("pulsar://h/shop/eu/", "pulsar://h:6650/shop/eu"),
        ("pulsar://h?admin=http://h:8080", "pulsar://h:6650"),
        ("pulsar://h?admin=http://a:1/", "pulsar://h:6650?admin=http://a:1"),
        (
            "pulsar://h/a/b?token=${env:T}&config=c.p&admin=https://a",
            "pulsar://h:6650/a/b?admin=https://a:443&token=${env:T}&config=c.p",
        ),
        (
            'pulsar://h?authParams={"userId":"a%26b","password":"${env:P}"}',
            "pulsar://h:6650?authParams={%22userId%22:%22a%26b%22,%22password%22:%22${env:P}%22}",
        ),
    ],
)
def test_a_namespace_is_a_log_and_its_text_reads_back(text: str, shown: str) -> None:
    log = parse_log(text)
    assert isinstance(log, PulsarLog)
    assert str(log) == shown
    assert parse_log(str(log)) == log


PARTS = st.from_regex(r"[A-Za-z0-9_=:-][A-Za-z0-9_=:.-]{0,8}", fullmatch=True)
HOSTS = st.from_regex(r"[a-z][a-z0-9.-]{0,8}(:[1-9][0-9]{0,3})?", fullmatch=True)
OPTIONS = st.dictionaries(
    st.from_regex(r"[a-z][A-Za-z0-9._-]{0,6}", fullmatch=True).filter(
        lambda name: name not in ("admin", "config") and not is_secret(name)
    ),
    st.text(),
    max_size=3,
)


@given(
    scheme=st.sampled_from(["pulsar://", "pulsar+ssl://"]),
    hosts=st.lists(HOSTS, min_size=1, max_size=3),
    admin=st.none() | st.builds("https://{}".format, HOSTS),
    namespace=st.builds("{}/{}".format, PARTS, PARTS),
    options=OPTIONS,
    config=st.none() | st.text(min_size=1),
)
def test_every_log_reads_back_from_its_text(
    scheme: str,
    hosts: list[str],
    admin: str | None,
    namespace: str,
    options: dict[str, str],
    config: str | None,
) -> None:
    log = PulsarLog.of(scheme + ",".join(hosts), admin, options, config, namespace)
    assert PulsarLog.parse(str(log)) == log
    assert str(PulsarLog.parse(str(log))) == str(log)
    assert log.bind("orders").log == log


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("pulsar://", "BAD_SERVERS"),
        ("pulsar://h:99999", "BAD_SERVERS"),
        ("pulsar://me:hunter2@h", "BAD_SERVERS"),
        ("pulsar://me:hun/ter2@h", "BAD_SERVERS"),
        ("pulsar://h?admin=http://me:hunter2@h", "BAD_SERVERS"),
        ("pulsar://h/orders", "BAD_NAMESPACE"),
        ("pulsar://h?a", "BAD_CLIENT_OPTION"),
        ("pulsar://h?token=hunter2", "SECRET_IN_PLAIN"),
        ("pulsar:h", "LOG_UNSUPPORTED"),
    ],
)
def test_a_log_that_cannot_be_is_refused_without_its_secrets(text: str, code: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_log(text)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert "hun" not in str(caught.value)


def test_the_file_of_a_log_is_named_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert anchored("pulsar://h:1/a/b?config=c.p") == f"pulsar://h:1/a/b?config={tmp_path}/c.p"
    assert anchored("pulsar://h:1/a/b") == "pulsar://h:1/a/b"
