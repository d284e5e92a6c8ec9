"""Logs bind the topics of a flow that are known by name alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate import Console, Files, Flow, HeadgateError
from headgate.connectors import Kafka
from headgate.connectors.files.log import FilesLog
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.logs import DEFAULT_LOG, anchored, bind, parse_log


@pytest.mark.parametrize("text", ["files:topics", "files:/var/topics", "files:./a b", DEFAULT_LOG])
def test_a_folder_is_a_log_and_its_text_reads_back(text: str) -> None:
    log = parse_log(text)
    assert isinstance(log, FilesLog)
    assert parse_log(str(log)) == log
    assert log.folder == Path(text.removeprefix("files:"))


@pytest.mark.parametrize(
    "text", ["", "files", "files:", "topics", "ftp://host", ":x", "kafka:h", "kafka"]
)
def test_anything_else_is_refused_with_what_works(text: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_log(text)
    assert (caught.value.code, caught.value.exit_code) == ("LOG_UNSUPPORTED", 2)
    assert "--on files:DIR" in caught.value.hint


def test_a_text_that_is_no_log_is_not_repeated_with_its_secrets() -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_log("kafak://me:hunter2@h:9092?sasl.password=hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kafka://h", "kafka://h:9092"),
        ("kafka://h:1,i:2", "kafka://h:1,i:2"),
        ("kafka://h:1/", "kafka://h:1"),
        ("kafka://h:1?a=b&config=c.properties", "kafka://h:1?a=b&config=c.properties"),
        (
            "kafka://h:1?sasl.password=${env:P}&sasl.username=a%26b%20c",
            "kafka://h:1?sasl.password=${env:P}&sasl.username=a%26b%20c",
        ),
        ("kafka://h:1?sasl.password=%24%7Benv%3AP%7D", "kafka://h:1?sasl.password=${env:P}"),
        ("kafka://h:1?a=x+y%2Bz=1", "kafka://h:1?a=x%2By%2Bz%3D1"),
    ],
)
def test_a_cluster_is_a_log_and_its_text_reads_back(text: str, shown: str) -> None:
    log = parse_log(text)
    assert isinstance(log, KafkaLog)
    assert str(log) == shown
    assert parse_log(str(log)) == log


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kafka://", "BAD_SERVERS"),
        ("kafka://h:99999", "BAD_SERVERS"),
        ("kafka://h/orders", "BAD_SERVERS"),
        ("kafka://me:hunter2@h", "BAD_SERVERS"),
        ("kafka://me:hunter2@h/orders", "BAD_SERVERS"),
        ("kafka://h?a", "BAD_CLIENT_OPTION"),
        ("kafka://h?=b", "BAD_CLIENT_OPTION"),
        ("kafka://h?sasl.password=hunter2", "SECRET_IN_PLAIN"),
        ("kafka://h?sasl.pass%77ord=hunter2", "SECRET_IN_PLAIN"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_without_its_secrets(text: str, code: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_log(text)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert "hunter2" not in str(caught.value)


def test_a_cluster_binds_names_with_its_options() -> None:
    log = parse_log("kafka://h:1?linger.ms=5&config=c.properties")
    assert log.bind("orders") == Kafka(
        "orders", servers="h:1", options={"linger.ms": "5"}, config="c.properties"
    )


def test_files_of_a_log_are_named_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert anchored("files:topics") == f"files:{tmp_path}/topics"
    assert anchored("files:/topics") == "files:/topics"
    assert anchored("kafka://h:1?a=b") == "kafka://h:1?a=b"
    assert anchored("kafka://h:1?config=c.p") == f"kafka://h:1?config={tmp_path}/c.p"
    assert anchored("kafka://h:1?config=/c.p") == "kafka://h:1?config=/c.p"


def flow() -> Flow:
    made = Flow("bound")
    table = made.table(Files("users", dir="/elsewhere/u"), "id BIGINT NOT NULL", key="id")
    enriched = made.stream("in", "u BIGINT").enrich("e", table, on="u", into="x")
    enriched.matched.to("out")
    enriched.missing.to(Console())
    return made


def test_names_are_bound_and_topics_bound_on_their_own_stay() -> None:
    graph = bind(flow().graph(), FilesLog(Path("/topics")))
    assert [source.topic for source in graph.tables()] == [Files("users", dir="/elsewhere/u")]
    assert [source.topic for source in graph.streams()] == [Files("in", dir="/topics/in")]
    assert [output.topic for output in graph.outputs()] == [
        Files("out", dir="/topics/out"),
        Console(),
    ]
    assert graph.dead_letters == Files("dead-letters", dir="/topics/dead-letters")


def test_binding_changes_nothing_but_topics() -> None:
    before = flow().graph()
    after = bind(before, FilesLog(Path("/topics")))
    assert [node.id for node in after.nodes] == [node.id for node in before.nodes]
    assert after.schemas() == before.schemas()
    assert bind(after, FilesLog(Path("/other"))) == after
    assert type(after).from_json(after.to_json()) == after
