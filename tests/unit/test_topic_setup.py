"""The topics of a flow, made before its first run; what Kafka is told, and what is warned of."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from cli_runs import run

from headgate.connectors.contract.places import merge
from headgate.connectors.contract.setup import SetupOptions, TopicRole, wanted_topic
from headgate.connectors.contract.topics import (
    FOREVER,
    MadeTopic,
    Retention,
    WantedTopic,
    parse_retention,
)
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.kafka.connector import KafkaConnector
from headgate.connectors.kafka.keeping import (
    differences,
    is_compacted,
    read_retention,
    topic_config,
)
from headgate.connectors.kafka.topics.records import Record
from headgate.errors import HeadgateError
from headgate.jobs.topics.setup import judge

WEEK = Retention(timedelta(days=7))
FLOW = """
from headgate import Console, Files, Flow

flow = Flow("small")
users = flow.table(Files("users", dir="elsewhere/people"), "id BIGINT NOT NULL", key="id")
enriched = flow.stream("orders", "user BIGINT").enrich("with-user", users, on="user", into="who")
enriched.matched.to("out")
enriched.missing.to(Console())
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW)
    return tmp_path


def test_setup_makes_every_topic_once_and_says_so(here: Path) -> None:
    first = json.loads(run("setup", "flow.py", "--json").stdout)
    again = json.loads(run("setup", "flow.py", "--json").stdout)
    shown = [(each["role"], each["name"], each["existed"]) for each in first["topics"]]
    assert shown == [
        ("stream", "orders", False),
        ("table", "people", False),
        ("output", "out", False),
        ("dead letters", "dead-letters", False),
    ]
    assert all(each["existed"] for each in again["topics"])
    assert first["left_out"] == ["console (20 rows)"]
    assert TopicFolder(here / "elsewhere/people").partitions == 4
    assert TopicFolder(here / ".headgate/topics/orders").partitions == 4


def test_setup_tells_people_what_it_made() -> None:
    lines = [line.split() for line in run("setup", "flow.py").stdout.splitlines()]
    assert lines[0] == ["topic", "is", "state", "partitions", "kept", "where"]
    assert " ".join(lines[1]) == "orders stream made 4 for ever .headgate/topics/orders"
    assert run("setup", "flow.py").stdout.splitlines()[1].split()[2] == "existed"


def test_setup_uses_the_log_of_headgate_toml(here: Path) -> None:
    (here / "headgate.toml").write_text('[job]\non = "files:data"\n')
    assert run("setup", "flow.py").exit_code == 0
    assert TopicFolder(here / "data/orders").exists
    assert run("setup", "flow.py", "--on", "files:other").exit_code == 0
    assert TopicFolder(here / "other/orders").exists


def test_another_number_of_partitions_that_was_asked_for_is_warned_of() -> None:
    TopicFolder(Path(".headgate/topics/orders")).create(2)
    asked = run("setup", "flow.py", "--partitions", "3")
    assert asked.exit_code == 0
    assert asked.stderr == "warning: topic 'orders' existed, and it has 2 partitions instead of 3\n"
    assert run("setup", "flow.py").stderr == ""


@pytest.mark.parametrize("option", ["--retention", "--replication"])
def test_an_option_of_kafkas_is_refused_where_no_topic_is_on_kafka(option: str) -> None:
    result = run("setup", "flow.py", option, "3" if option == "--replication" else "7d")
    assert result.exit_code == 2
    assert result.stderr.startswith("error TOPIC_OPTION_UNSUPPORTED: cannot set up topics with")
    assert not Path(".headgate").exists()


@pytest.mark.parametrize("option", [("--retention", "7d"), ("--compact",), ("--replication", "1")])
def test_an_embedded_topic_is_not_created_with_kafkas_options(option: tuple[str, ...]) -> None:
    result = run("topics", "create", "orders", *option)
    assert result.exit_code == 2
    assert f"cannot create topic 'orders' with {option[0]}" in result.stderr
    assert not Path(".headgate").exists()


@pytest.mark.parametrize(
    ("text", "retention"),
    [
        ("7d", WEEK),
        ("infinite", FOREVER),
        ("Infinite", FOREVER),
        ("1h", Retention(timedelta(0, 3600))),
    ],
)
def test_a_retention_is_a_duration_or_infinite(text: str, retention: Retention) -> None:
    assert parse_retention(text) == retention
    assert parse_retention(str(retention)) == retention


def test_a_retention_that_is_none_is_refused() -> None:
    with pytest.raises(HeadgateError) as caught:
        parse_retention("a week")
    assert caught.value.code == "BAD_DURATION"
    assert "infinite" in caught.value.hint


@pytest.mark.parametrize(
    ("wanted", "config"),
    [
        (WantedTopic(name="t"), {}),
        (
            WantedTopic(name="t", retention=WEEK),
            {"cleanup.policy": "delete", "retention.ms": "604800000"},
        ),
        (
            WantedTopic(name="t", retention=FOREVER),
            {"cleanup.policy": "delete", "retention.ms": "-1"},
        ),
        (WantedTopic(name="t", compact=True), {"cleanup.policy": "compact"}),
        (
            WantedTopic(name="t", compact=True, retention=WEEK),
            {"cleanup.policy": "compact,delete", "retention.ms": "604800000"},
        ),
    ],
)
def test_what_is_wanted_becomes_the_settings_of_a_topic(
    wanted: WantedTopic, config: dict[str, str]
) -> None:
    assert topic_config(wanted) == config


@pytest.mark.parametrize(
    ("policy", "millis", "retention", "compacted"),
    [
        ("delete", "604800000", WEEK, False),
        ("delete", "-1", FOREVER, False),
        ("compact", "604800000", FOREVER, True),
        ("compact,delete", "604800000", WEEK, True),
        ("delete", str(2**63 - 1), FOREVER, False),
    ],
)
def test_the_settings_of_a_topic_say_how_long_records_are_kept(
    policy: str, millis: str, retention: Retention, compacted: bool
) -> None:
    config = {"cleanup.policy": policy, "retention.ms": millis}
    assert read_retention(config) == retention
    assert is_compacted(config) is compacted


def test_a_topic_that_is_there_differs_only_in_what_was_said() -> None:
    made = MadeTopic("t", 4, "kafka://h", existed=True, replication=1, retention=WEEK)

    def found(**asked: object) -> tuple[str, ...]:
        wanted = WantedTopic(name="t", **asked)  # type: ignore[arg-type]
        return differences(wanted, made)

    assert found() == ()
    assert found(partitions=4, replication=1, retention=WEEK) == ()
    assert found(partitions=3, replication=3) == (
        "it has 4 partitions instead of 3",
        "it has 1 replicas instead of 3",
    )
    assert found(compact=True) == ("it is not compacted",)
    assert found(retention=FOREVER) == ("its retention is 7d instead of infinite",)


@pytest.mark.parametrize(
    ("role", "retention", "compacted", "told"),
    [
        (TopicRole.TABLE, FOREVER, True, ""),
        (TopicRole.TABLE, WEEK, False, "it is not compacted"),
        (TopicRole.TABLE, WEEK, True, "its rows are deleted after 7d"),
        (TopicRole.STREAM, WEEK, False, ""),
        (TopicRole.STREAM, FOREVER, True, "it is compacted"),
        (TopicRole.OUTPUT, FOREVER, False, ""),
        (TopicRole.EPOCHS, FOREVER, True, "it has 4 partitions instead of 1"),
    ],
)
def test_a_topic_on_kafka_that_will_not_do_is_warned_of(
    role: TopicRole, retention: Retention, compacted: bool, told: str
) -> None:
    made = MadeTopic("t", 4, "w", True, (), 1, retention, compacted)
    warnings = judge(KafkaConnector(), role, made, SetupOptions())
    assert bool(warnings) is bool(told)
    assert told in "; ".join(warnings)


def test_a_topic_that_was_made_is_as_it_was_asked_for() -> None:
    made = MadeTopic("t", 4, "w", False, (), 1, WEEK, False)
    assert judge(KafkaConnector(), TopicRole.TABLE, made, SetupOptions()) == ()


def test_tables_are_compacted_and_the_rest_is_kept_for_a_while() -> None:
    options = SetupOptions(retention="1d")
    table = wanted_topic("t", TopicRole.TABLE, options)
    stream = wanted_topic("t", TopicRole.STREAM, options)
    epochs = wanted_topic("t", TopicRole.EPOCHS, SetupOptions(partitions=8))
    assert (table.compact, table.retention, table.partitions) == (True, FOREVER, 4)
    assert (stream.compact, stream.retention) == (False, Retention(timedelta(days=1)))
    assert (epochs.compact, epochs.partitions) == (True, 1)


def test_records_of_partitions_are_merged_by_time_and_keep_their_order() -> None:
    def record(partition: int, offset: int, timestamp: int) -> Record:
        return Record(partition, offset, timestamp, None, None, ())

    first = [record(0, 0, 10), record(0, 1, 5), record(0, 2, 30)]
    second = [record(1, 0, 8), record(1, 1, 20)]
    found = merge([first, second], time=lambda each: each.timestamp)
    merged = [(each.partition, each.offset) for each in found]
    assert merged == [(1, 0), (0, 0), (0, 1), (1, 1), (0, 2)]
