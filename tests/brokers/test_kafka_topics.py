"""The verbs on topics of a real Kafka broker: made, listed, shown, read, followed and set up."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from cli_runs import run, run_json
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from eventually import eventually
from kafka_broker import KafkaBroker

import headgate
from headgate import HeadgateError, Kafka
from headgate.cli.topics import topics
from headgate.connectors.kafka.access.admin import Cluster
from headgate.connectors.kafka.access.clients import open_consumer
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.runs.groups import fence, publish_positions
from headgate.connectors.kafka.topics import records
from headgate.connectors.kafka.topics.records import read_records
from headgate.connectors.kafka.topics.topics import KafkaTopics
from headgate.connectors.logs import parse_log
from headgate.connectors.registry import get_connector

COMMAND = [sys.executable, "-c", "from headgate.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(headgate.__file__).parents[1])}
SETTLED_S = 20.0
# A client that never gives up would go on for minutes.
UNREACHABLE_S = 60.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def new_name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def client(broker: KafkaBroker) -> KafkaLog:
    log = parse_log(broker.url)
    assert isinstance(log, KafkaLog)
    return log


def test_create_makes_a_topic_once_as_it_was_asked_for(kafka: KafkaBroker) -> None:
    name, on = new_name(), ("--on", kafka.url)
    args = ("topics", "create", name, "--partitions", "3", "--retention", "2d", *on)
    made, again = run(*args), run(*args)
    assert made.stdout == (
        f"Created topic '{name}' with 3 partitions, kept for 2d, in kafka://{kafka.address}\n"
    )
    assert again.stdout.startswith(f"Topic '{name}' exists already, with 3 partitions, kept for 2d")
    assert run_json("topics", "create", name, *on) == {
        "name": name,
        "partitions": 3,
        "replication": 1,
        "retention": "2d",
        "compacted": False,
        "where": f"kafka://{kafka.address}",
        "existed": True,
    }


def test_a_table_is_compacted_and_kept_for_ever(kafka: KafkaBroker) -> None:
    name = new_name()
    made = run_json("topics", "create", name, "--compact", "--on", kafka.url)
    assert (made["compacted"], made["retention"]) == (True, "infinite")
    assert KafkaTopics(client(kafka)).show(name, count=False, last_files=0).summary.compacted


def test_a_topic_that_is_there_in_another_way_is_refused_with_what_differs(
    kafka: KafkaBroker,
) -> None:
    name = kafka.make_topic(partitions=2)
    result = run("topics", "create", name, "--partitions", "4", "--compact", "--on", kafka.url)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error TOPIC_EXISTS: cannot create topic '{name}'")
    assert "it has 2 partitions instead of 4, it is not compacted" in result.stderr


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (("topics", "create", "t", "--partitions", "0"), "BAD_PARTITIONS", 2),
        (("topics", "create", "_t"), "BAD_TOPIC_NAME", 2),
        (("topics", "create", "t", "--retention", "soon"), "BAD_DURATION", 2),
        (("topics", "create", "t", "--replication", "9"), "BROKER_FAILED", 3),
        (("topics", "show", "not-there-at-all"), "TOPIC_NOT_FOUND", 2),
        (("tail", "not-there-at-all"), "TOPIC_NOT_FOUND", 2),
        (("tail", "not-there-at-all", "-f"), "TOPIC_NOT_FOUND", 2),
    ],
)
def test_what_kafka_cannot_do_is_a_code_a_message_and_a_hint(
    kafka: KafkaBroker, args: tuple[str, ...], code: str, exit_code: int
) -> None:
    result = run(*args, "--on", kafka.url)
    assert result.exit_code == exit_code
    assert result.stderr.startswith(f"error {code}: cannot ")
    assert "\nhint: " in result.stderr


def test_a_topic_that_is_not_found_is_offered_by_its_nearest_name(kafka: KafkaBroker) -> None:
    name = kafka.make_topic()
    missing = f"{name}x"
    assert f"hint: did you mean '{name}'?" in run("tail", missing, "--on", kafka.url).stderr
    hint = run("tail", "zzz", "--on", kafka.url).stderr.splitlines()[1]
    assert hint == f"hint: headgate topics create zzz --on kafka://{kafka.address}"


def test_asking_for_a_topic_does_not_make_it(kafka: KafkaBroker) -> None:
    run("tail", "never-made", "--on", kafka.url)
    run("topics", "show", "never-made", "--on", kafka.url)
    assert "never-made" not in run("topics", "--on", kafka.url).stdout


def test_list_and_show_tell_what_kafka_knows(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, other = kafka.make_topic(partitions=2), kafka.make_topic()
    kafka.send(name, [b"1", b"2", b"3"], partition=1)
    kafka.send(other, [b"1"])
    opened: list[KafkaLog] = []

    def open_counted(log: KafkaLog, tuning: dict[str, str]) -> Any:
        opened.append(log)
        return open_consumer(log, tuning)

    monkeypatch.setattr(records, "open_consumer", open_counted)
    listed = json.loads(run("topics", "--json", "--count", "--on", kafka.url).stdout)
    (found,) = (each for each in listed if each["name"] == name)
    assert (found["partitions"], found["records_at_most"], found["records"]) == (2, 3, 3)
    assert found["newest"] is not None
    assert {each["name"]: each["records"] for each in listed}[other] == 1
    assert len(opened) == 1, "one client counts the records of all topics"
    assert not any(each["name"].startswith("__") for each in listed)

    shown = run_json("topics", "show", name, "--on", kafka.url)
    assert [(part["first"], part["next"]) for part in shown["parts"]] == [(0, 0), (0, 3)]
    text = run("topics", "show", name, "--on", kafka.url).stdout
    assert "offsets    3, an upper bound of the records" in text
    assert "1 of 1" in text


def test_counting_leaves_out_what_was_aborted_and_the_marks_of_transactions(
    kafka: KafkaBroker,
) -> None:
    name = kafka.make_topic()
    for values, commit in (([b"a"], True), ([b"b", b"c"], False), ([b"d"], True)):
        send_in_transaction(kafka, name, values, commit=commit)
    details = KafkaTopics(client(kafka)).show(name, count=True, last_files=0)
    assert (details.summary.at_most, details.summary.records) == (7, 2)
    assert run("tail", name, "--on", kafka.url).stdout.split() == ["a", "d"]
    assert run("tail", name, "-n", "1", "--on", kafka.url).stdout.split() == ["d"]


def send_in_transaction(
    kafka: KafkaBroker, topic: str, values: list[bytes], *, commit: bool
) -> None:
    producer = Producer({**kafka.client, "transactional.id": new_name()})
    producer.init_transactions(SETTLED_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    if commit:
        producer.commit_transaction(SETTLED_S)
    else:
        producer.flush(SETTLED_S)
        producer.abort_transaction(SETTLED_S)


def test_tail_gives_the_last_records_over_all_partitions_by_time(kafka: KafkaBroker) -> None:
    name = kafka.make_topic(partitions=3)
    for number in range(12):
        kafka.send(name, [b"%d" % number], partition=number % 3, timestamp_ms=1000 + number)
    kafka.send(name, [None], key=b"k", partition=0, timestamp_ms=5000)
    result = run("tail", name, "-n", "4", "--on", kafka.url)
    assert result.stdout.split() == ["9", "10", "11", "null"]
    assert len(run("tail", name, "-n", "100", "--on", kafka.url).stdout.split()) == 13
    assert run("tail", name, "-n", "0", "--on", kafka.url).stdout == ""


def test_reading_ends_by_position_and_gives_all_that_a_record_has(kafka: KafkaBroker) -> None:
    name = kafka.make_topic(partitions=2)
    kafka.send(name, [b"x"], key=b"k", partition=0, headers=[("h", b"v")], timestamp_ms=1234)
    kafka.send(name, [b"%d" % number for number in range(10)], partition=1)
    found = list(read_records(client(kafka), name, {0: 0, 1: 2}, {0: 1, 1: 5}))
    first = next(each for each in found if each.partition == 0)
    assert first == (0, 0, 1234, b"k", b"x", (("h", b"v"),))
    assert [each.value for each in found if each.partition == 1] == [b"2", b"3", b"4"]
    assert list(read_records(client(kafka), name, {0: 1}, {0: 1})) == []


def test_reading_what_is_not_kept_any_more_is_told(kafka: KafkaBroker) -> None:
    name = kafka.make_topic()
    kafka.send(name, [b"x"])
    with pytest.raises(HeadgateError) as caught:
        list(read_records(client(kafka), name, {0: 5}, {0: 9}))
    assert caught.value.code == "DATA_LOST"


def test_follow_prints_what_comes_and_ends_well_with_control_c(kafka: KafkaBroker) -> None:
    name = kafka.make_topic()
    kafka.send(name, [b"first"])
    process = subprocess.Popen(
        [*COMMAND, "tail", name, "-f", "--on", kafka.url],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == b"first\n"
    kafka.send(name, [b"second"])
    assert process.stdout.readline() == b"second\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=180) == 0
    assert process.stderr.read() == b""


def test_the_examples_of_the_verbs_work(kafka: KafkaBroker) -> None:
    names = {"orders": kafka.make_topic(), "users": new_name()}
    lines = [
        line.strip()
        for each in (topics.list_all, topics.show_one, topics.create, topics.tail)
        for line in (inspect.getdoc(each) or "").splitlines()
        if "kafka://localhost:9092" in line
    ]
    assert len(lines) == 4
    for line in lines:
        _, *args = shlex.split(line.replace("kafka://localhost:9092", kafka.url))
        assert run(*(names.get(arg, arg) for arg in args)).exit_code == 0, line


FLOW = """
from headgate import Console, Flow

flow = Flow("small")
users = flow.table("{prefix}-users", "id BIGINT NOT NULL", key="id")
enriched = flow.stream("{prefix}-orders", "user BIGINT").enrich("e", users, on="user", into="who")
enriched.matched.to("{prefix}-out")
enriched.missing.to(Console())
"""


def test_setup_makes_the_topics_of_a_flow_and_warns_of_those_that_will_not_do(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    prefix = new_name()
    (tmp_path / "flow.py").write_text(FLOW.format(prefix=prefix))
    week = {"retention.ms": str(7 * 24 * 60 * 60 * 1000)}
    kafka.make_topic(f"{prefix}-users", partitions=2, config=week)
    args = ("setup", "flow.py", "--on", kafka.url, "--retention", "1d", "--partitions", "3")
    first, again = run_json(*args), run_json(*args)
    found = {each["name"]: each for each in first["topics"]}
    assert [*found] == [
        *(f"{prefix}-orders", f"{prefix}-users", f"{prefix}-out"),
        *("dead-letters", "headgate-epochs"),
    ]
    orders, users = found[f"{prefix}-orders"], found[f"{prefix}-users"]
    assert (orders["partitions"], orders["retention"], orders["warnings"]) == (3, "1d", [])
    assert users["existed"] is True
    assert [warning.partition(",")[0] for warning in users["warnings"]] == [
        "it has 2 partitions instead of 3",
        "it is not compacted",
        "its rows are deleted after 7d",
    ]
    assert found["headgate-epochs"]["compacted"] is True
    assert found["headgate-epochs"]["partitions"] == 1
    assert all(each["existed"] for each in again["topics"])
    shown = run(*args)
    assert f"warning: topic '{prefix}-users' existed, and it is not compacted" in shown.stderr
    assert "Not created: console" in shown.stdout


def test_positions_are_published_as_a_groups_offsets(kafka: KafkaBroker) -> None:
    name, group = kafka.make_topic(partitions=2), new_name()
    for following in (3, 5):
        publish_positions(client(kafka), group, {(name, 0): following, (name, 1): 0})
    admin = kafka.admin()
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(SETTLED_S).topic_partitions
    assert sorted((each.partition, each.offset) for each in found) == [(0, 5), (1, 0)]


def test_a_fence_ends_an_open_transaction_and_shuts_its_producer_out(kafka: KafkaBroker) -> None:
    name, mine = kafka.make_topic(), new_name()
    producer = Producer({**kafka.client, "transactional.id": mine})
    producer.init_transactions(SETTLED_S)
    producer.begin_transaction()
    producer.produce(name, b"never")
    producer.flush(SETTLED_S)
    kafka.send(name, [b"hidden until then"])
    assert run("tail", name, "--on", kafka.url).stdout == ""

    fence(client(kafka), [mine, new_name()])
    # Long before the broker itself ends a transaction that was left open.
    shown = eventually(lambda: run("tail", name, "--on", kafka.url).stdout, within=SETTLED_S)
    assert shown == "hidden until then\n"
    with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
        producer.commit_transaction(SETTLED_S)


def test_a_broker_that_is_not_there_is_told_in_seconds_and_by_name() -> None:
    asking = [
        ("topics",),
        ("topics", "show", "orders"),
        ("topics", "create", "orders"),
        ("tail", "orders"),
        ("tail", "orders", "-f"),
        ("produce", "store", "--orders", "10", "--users", "1", "--items", "1"),
    ]
    # Together, since each of them waits for most of its time.
    started = [
        subprocess.Popen(
            [*COMMAND, *args, "--on", "kafka://127.0.0.1:1"],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for args in asking
    ]
    for args, process in zip(asking, started, strict=True):
        try:
            printed, told = process.communicate(timeout=UNREACHABLE_S)
        finally:
            process.kill()
        assert (process.returncode, printed) == (3, ""), args
        error, hint, _more = told.splitlines()
        assert error.startswith("error BROKER_UNREACHABLE: cannot ")
        assert "127.0.0.1:1" in error
        assert "Connection refused" in error
        assert hint.startswith("hint: headgate broker start kafka")


def test_a_position_holds_on_the_same_cluster_by_another_address(kafka: KafkaBroker) -> None:
    name, port = kafka.make_topic(), kafka.address.rpartition(":")[2]
    (topic_id,) = Cluster(client(kafka), doing="test").ids([name, "missing"]).values()

    def mismatch(on: str, id_: str, reads: str = name) -> str | None:
        position = json.dumps({"format": 1, "topics": {name: {"id": id_, "next": [5]}}})
        topic = parse_log(on).bind(reads)
        return get_connector(topic).positions.find_mismatch(topic, position, "job")

    for address in (kafka.url, f"kafka://localhost:{port}"):
        assert mismatch(address, topic_id) is None
    assert mismatch(kafka.url, "other") == f"topic '{name}' has another id at {kafka.address}"
    assert mismatch(kafka.url, topic_id, reads="other") == f"the job had read {name}"
    wider = Kafka("any", servers=kafka.address, pattern=f"{name}|more")
    position = json.dumps({"format": 1, "topics": {name: {"id": topic_id, "next": [5]}}})
    assert get_connector(wider).positions.find_mismatch(wider, position, "job") is None
    position = position.replace(name, "gone-for-good")
    gone = parse_log(kafka.url).bind("gone-for-good")
    told = get_connector(gone).positions.find_mismatch(gone, position, "job")
    assert told == f"topic 'gone-for-good' does not exist at {kafka.address}"
    with pytest.raises(HeadgateError) as caught:
        mismatch("kafka://127.0.0.1:1", topic_id)
    assert caught.value.code == "BROKER_UNREACHABLE"


@pytest.fixture
def secrets(secure_kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KAFKA_SECRET", secure_kafka.client["sasl.password"])
    return (
        f"kafka://{secure_kafka.address}?security.protocol=SASL_SSL"
        f"&sasl.mechanism={secure_kafka.client['sasl.mechanism']}"
        f"&sasl.username={secure_kafka.client['sasl.username']}"
        "&sasl.password=${env:KAFKA_SECRET}"
        f"&ssl.ca.location={secure_kafka.client['ssl.ca.location']}"
    )


def test_a_secured_broker_is_reached_by_its_file_and_by_references(
    secure_kafka: KafkaBroker, secrets: str
) -> None:
    name = secure_kafka.make_topic()
    secure_kafka.send(name, [b"x"])
    for on in (secure_kafka.url, secrets):
        assert run("tail", name, "--on", on).stdout == "x\n"


def test_a_wrong_password_is_told_as_such_and_never_shown(
    secrets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SECRET", "hunter2-is-wrong")
    result = run("topics", "--on", secrets)
    assert result.exit_code == 3
    assert result.stderr.startswith("error BROKER_REFUSED: cannot list topics: Kafka at ")
    assert "hunter2" not in result.stderr


def test_a_client_without_tls_is_refused(secure_kafka: KafkaBroker) -> None:
    result = run("topics", "--on", f"kafka://{secure_kafka.address}")
    assert result.exit_code == 3
    assert result.stderr.startswith(("error BROKER_REFUSED", "error BROKER_UNREACHABLE"))
