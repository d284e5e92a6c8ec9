"""The contract of a connector, checked for each one in the registry, without a broker."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate import Console, Files, Flow, Folder, Graph, HeadgateError, Kafka, Pulsar
from headgate.connectors.contract import connector as protocols
from headgate.connectors.contract.connector import Connector, Reading, RecordCount
from headgate.connectors.contract.places import Places
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.topics import Topics
from headgate.connectors.contract.written import NOTHING, Answer, Batches, Writers
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.logs import anchored, bind, parse_log
from headgate.connectors.registry import CONNECTORS, clusters_of, find_connector, get_connector
from headgate.flow.topics import LogicalTopic, Topic, topic_from_json, topic_to_json

HEAVY = ("confluent_kafka", "pulsar", "psycopg", "httpx", "pyspark")
LOGS = {
    "files": ("files:topics", "files:/var/topics"),
    # A flow names each folder of data files itself.
    "folder": (),
    "kafka": ("kafka://h:9092", "kafka://a:1,b:2?client.id=x&config=c.properties"),
    "pulsar": ("pulsar://h:6650", "pulsar+ssl://h:6651/shop/eu?admin=https://a:8443"),
    "postgres": (
        "postgresql://h:5432/shop",
        "postgresql://me@h:5433/shop?password=${env:PG}&epochs=e.epochs&sslmode=require",
    ),
}
POSITIONS = {
    "files": tuple(
        json.dumps({"format": 1, "topic": "x", "file": 0, "byte": each}) for each in (0, 7)
    ),
    "folder": tuple(
        json.dumps({"format": 1, "ledger": "x", "file": 0, "byte": each}) for each in (0, 7)
    ),
    "kafka": tuple(
        json.dumps({"format": 1, "topics": {"t": {"id": "x", "next": [each, 3]}}})
        for each in (5, 9)
    ),
    "pulsar": tuple(
        json.dumps({"format": 1, "topics": {"t": {"partitioned": False, "next": [f"4:{each}"]}}})
        for each in (5, 9)
    ),
    "postgres": tuple(json.dumps({"format": 1, "rows": each}) for each in (5, 9)),
}
READING = Reading(job="shop", max_batch=10, max_record=20, splits=2)
WRITERS = Writers("L", "headgate.shop.L", ("headgate.shop.L.0",))
BATCHES = Batches(1, None, datetime(2026, 11, 15, tzinfo=UTC))
# Parts of a connector, by the protocol that each one follows.
PARTS = {
    "spark": protocols.SparkEnds,
    "positions": protocols.Positions,
    "writing": protocols.Writing,
    "setup": protocols.TopicSetup,
    "audit": protocols.Audit,
}

every_connector = pytest.mark.parametrize("connector", CONNECTORS.values(), ids=CONNECTORS)


def topic_of(connector: Connector[Any], name: str = "orders") -> Topic:
    if connector.kind == Folder.kind:
        return Folder(f"data/{name}")
    return parse_log(LOGS[connector.kind][0]).bind(name)


def members(protocol: type) -> set[str]:
    own = {name for name in vars(protocol) if not name.startswith("_")}
    return own | set(inspect.get_annotations(protocol))


def test_the_tests_know_every_connector() -> None:
    assert set(LOGS) == set(POSITIONS) == set(CONNECTORS)


@every_connector
def test_every_member_of_the_protocol_is_there(connector: Connector[Any]) -> None:
    assert not {name for name in members(Connector) if not hasattr(connector, name)}
    for name, protocol in PARTS.items():
        part = getattr(connector, name)
        if part is not None or name != "audit":
            assert not {each for each in members(protocol) if not hasattr(part, each)}, name
    log = connector.log_of(topic_of(connector))
    assert not {name for name in members(protocols.Log) if not hasattr(log, name)}


@pytest.mark.parametrize("text", [text for texts in LOGS.values() for text in texts])
def test_the_text_of_a_log_is_read_by_one_connector_and_printed_again(text: str) -> None:
    found = {kind: each.find_log(text) for kind, each in CONNECTORS.items()}
    (kind,) = [kind for kind, log in found.items() if log is not None]
    assert text in LOGS[kind]
    log = parse_log(text)
    assert str(log) == text
    assert parse_log(str(log)) == log
    assert anchored(anchored(text)) == anchored(text)
    assert (log.folder is None) == (CONNECTORS[kind].find_cluster(log.bind("a")) is not None)


@pytest.mark.parametrize("text", [text for texts in LOGS.values() for text in texts])
def test_a_topic_is_found_by_its_log_its_json_and_its_flow(text: str) -> None:
    log = parse_log(text)
    topic = log.bind("orders")
    connector = get_connector(topic)
    assert (topic.name, topic.pattern, connector.kind) == ("orders", None, topic.kind)
    assert connector.log_of(topic) == log
    assert topic_from_json(json.loads(json.dumps(topic_to_json(topic)))) == topic
    flow = Flow("shop")
    if getattr(topic, "can_stream", True):
        flow.stream("orders", "id BIGINT").to("out")
    else:
        rows = flow.stream(Files("orders", dir="orders"), "id BIGINT")
        found = rows.enrich(
            "with-user", flow.table("users", "id BIGINT", key="id"), on="id", into="user"
        )
        found.matched.to("out")
        found.missing.to("missing")
    graph = bind(flow.graph(), log)
    assert Graph.from_json(graph.to_json()) == graph
    assert {each.kind for each in graph.topics()} - {"files"} == {topic.kind} - {"files"}


@every_connector
def test_a_topic_is_named_on_the_terminal_and_for_on(connector: Connector[Any]) -> None:
    topic = topic_of(connector)
    assert topic.describe().startswith(f"{connector.kind} orders ")
    if connector.kind != Folder.kind:
        assert parse_log(connector.where(topic)) == connector.log_of(topic)


@every_connector
def test_sources_and_the_sink_are_told_text_alone(connector: Connector[Any]) -> None:
    topic = topic_of(connector)
    options = connector.spark.source_options(topic, READING)
    assert connector.spark.SOURCE.startswith("io.headgate.kernel.")
    assert options["start"] == "earliest"
    assert all(isinstance(value, str) for value in options.values())
    assert connector.spark.output_option(topic)["kind"] == connector.kind
    position = POSITIONS[connector.kind][0]
    resumed = Reading(job="shop", max_batch=10, max_record=20, splits=2, start=position)
    assert connector.spark.source_options(topic, resumed)["start"] == position


@every_connector
def test_positions_are_compared_and_counted(connector: Connector[Any]) -> None:
    positions, (first, last) = connector.positions, POSITIONS[connector.kind]
    assert positions.has_reached(first, first)
    assert positions.has_reached(last, first)
    assert not positions.has_reached(first, last)
    assert positions.has_reached(first, None)
    count = positions.count_between(topic_of(connector), first, last)
    # A folder and a broker that are not there cannot tell.
    assert count == (RecordCount(4) if connector.kind in ("kafka", "postgres") else None)


@every_connector
def test_starts_read_back_and_the_example_is_one(connector: Connector[Any]) -> None:
    starts = connector.starts
    for text in ("earliest", "latest", "2026-11-15T10:05", starts.example):
        checked = starts.check_start(text, topic="orders")
        assert starts.check_start(checked, topic="orders") == checked
    with pytest.raises(HeadgateError) as caught:
        starts.check_start("soon", topic="orders")
    assert caught.value.code == "BAD_TOPIC"


@every_connector
def test_what_was_written_is_unknown_where_nothing_can_answer(connector: Connector[Any]) -> None:
    topics = {"out": topic_of(connector)}
    writers = replace(WRITERS, are_gone=False, leave_marks=False)
    found = connector.writing.find_written(topics, writers, BATCHES)
    assert {name: each.answer for name, each in found.items()} == {"out": Answer.UNKNOWN}
    assert found["out"].why
    assert connector.writing.find_written({}, writers, BATCHES) == {}
    assert connector.writing.rests_on


def test_an_embedded_topic_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    topic = Files("out", dir=tmp_path / "out")
    found = get_connector(topic).writing.find_written({"out": topic}, WRITERS, BATCHES)
    assert found == {"out": NOTHING}


@every_connector
def test_topics_are_wanted_by_their_role(connector: Connector[Any]) -> None:
    topic, options = topic_of(connector), SetupOptions(partitions=3)
    for role in TopicRole:
        wanted = connector.setup.wanted(topic, role, options, None)
        assert wanted.name == "orders"
        is_one = role is TopicRole.EPOCHS or connector.kind == Folder.kind
        assert wanted.partitions == (1 if is_one else 3)
    assert {"retention", "replication"} >= connector.setup.options
    for companion, _ in connector.setup.find_companions(topic):
        assert connector.log_of(companion) == connector.log_of(topic)


@every_connector
def test_a_topic_reads_itself_and_none_of_another_log(connector: Connector[Any]) -> None:
    topic = topic_of(connector)
    others = [topic_of(each) for each in CONNECTORS.values() if each is not connector]
    assert connector.reads(topic, topic)
    assert not connector.reads(topic, topic_of(connector, "returns"))
    assert not any(connector.reads(topic, other) for other in others)


@pytest.mark.parametrize(
    "topic",
    [
        Kafka("all", servers="h", pattern="or.*"),
        Pulsar("all", service="pulsar://h", pattern="or.*"),
    ],
)
def test_a_pattern_reads_what_it_matches(topic: Topic) -> None:
    connector = get_connector(topic)
    assert connector.reads(topic, topic_of(connector, "orders"))
    assert not connector.reads(topic, topic_of(connector, "returns"))


def test_a_cluster_is_named_once_and_folders_are_none() -> None:
    topics: list[Topic] = [
        Kafka("a", servers="h"),
        Files("b", dir="b"),
        Kafka("c", servers="h"),
        Console(),
    ]
    assert [each.name for each in clusters_of(topics).values()] == ["a"]


@pytest.mark.parametrize("topic", [Console(), LogicalTopic("orders")])
def test_what_no_connector_serves_is_refused_with_what_works(topic: Topic) -> None:
    assert find_connector(topic) is None
    with pytest.raises(HeadgateError) as caught:
        get_connector(topic)
    assert caught.value.code == "TOPIC_UNBOUND"
    assert "--on files:DIR" in caught.value.hint


def test_an_embedded_topic_keeps_the_whole_contract(tmp_path: Path) -> None:
    log = parse_log(f"files:{tmp_path}")
    topic = log.bind("orders")
    connector = get_connector(topic)
    connector.spark.prepare(topic, 2, "L")
    assert TopicFolder(tmp_path / "orders").partitions == 2
    with log.open_sink({"orders": TopicRole.STREAM}, lambda *_: ()) as sink:
        sink("orders", b'{"id": 1}\n{"id": 2}\n', 2)
    topics: Topics = log.open_topics()
    places: Places = connector.open_places(topic)
    assert topics.tail("orders", last=1) == [b'{"id": 2}']
    assert [each.value for each in places.last(5)] == [b'{"id": 1}', b'{"id": 2}']


def loaded_by(code: str) -> Mapping[str, bool]:
    script = (
        f"{code}\nimport json, sys\nprint(json.dumps({{m: m in sys.modules for m in {HEAVY}}}))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "code",
    [
        "import headgate",
        "import headgate.connectors.registry",
        "from headgate.connectors.logs import parse_log\n"
        f"topics = [parse_log(t).bind('a') for texts in {list(LOGS.values())} for t in texts]",
    ],
)
def test_no_client_and_no_spark_is_loaded_until_it_is_needed(code: str) -> None:
    assert not any(loaded_by(code).values())
