"""`headgate broker`: a real Kafka that starts, is found again, and keeps what it was given."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import refused, run, run_json
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka_broker import KafkaBroker

from headgate import HeadgateError
from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions, BrokerState
from headgate.brokers.kafka import KAFKA


def test_a_second_start_finds_the_broker_that_runs(kafka: KafkaBroker) -> None:
    data = ("--data", str(kafka.data))
    first = run_json("broker", "status", "kafka", *data)
    again = run_json("broker", "start", "kafka", *data)
    assert not again.pop("started")
    assert again == first
    assert (first["state"], first["address"]) == ("running", kafka.address)
    assert first["url"] == f"kafka://{kafka.address}"
    assert not run_json("broker", "start", "kafka", "--port", "0", *data)["started"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="Linux shows what a process has mapped")
def test_it_runs_with_the_archive_of_its_classes(kafka: KafkaBroker) -> None:
    pid = run_json("broker", "status", "kafka", "--data", str(kafka.data))["pid"]
    mapped = Path(f"/proc/{pid}/maps").read_text()
    assert re.search(r"/kafka-[\d.]+/classes-\w+\.jsa$", mapped, re.MULTILINE)


def test_people_are_told_where_it_is_and_what_to_try(kafka: KafkaBroker) -> None:
    done = run("broker", "start", "kafka", "--data", str(kafka.data))
    assert f"is already running at {kafka.address}" in done.stdout
    assert f"headgate run examples/orders/flow.py --on kafka://{kafka.address}" in done.stdout
    status = run("broker", "status", "kafka", "--data", str(kafka.data))
    assert status.stdout.startswith(f"Kafka is running at {kafka.address}\n")


def test_another_port_for_a_broker_that_runs_is_refused(kafka: KafkaBroker) -> None:
    error = refused("broker", "start", "kafka", "--port", "1", "--data", str(kafka.data))
    assert error["code"] == "BROKER_RUNNING"
    assert kafka.address.rpartition(":")[2] in error["message"]
    assert error["hint"] == f"headgate broker stop kafka --data {kafka.data}"


def test_a_port_of_another_program_is_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        error = refused("broker", "start", "kafka", "--port", port, "--data", str(tmp_path))
    assert error["code"] == "BROKER_PORT_TAKEN"
    assert port in error["message"]
    assert error["hint"] == f"headgate broker start kafka --port 0 --data {tmp_path}"


def test_the_log_of_the_broker_is_written_and_shown(own_kafka: KafkaBroker) -> None:
    # A broker of its own: the start of one that serves many tests is far up in its log.
    data = ("--data", str(own_kafka.data))
    done = run("broker", "logs", "kafka", "-n", "2000", *data)
    assert "Kafka Server started" in done.stdout
    last = run("broker", "logs", "kafka", "-n", "3", *data)
    assert len(last.stdout.splitlines()) == 3


def test_a_broker_that_never_started_is_stopped_and_has_no_log(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "none"))
    assert run_json("broker", "status", "kafka", *data)["state"] == "stopped"
    assert not run_json("broker", "stop", "kafka", *data)["stopped"]
    assert refused("broker", "logs", "kafka", *data)["code"] == "LOG_NOT_FOUND"
    assert not (tmp_path / "none").exists()


def test_records_outlive_a_stop_and_a_kill_and_the_address_stays(own_kafka: KafkaBroker) -> None:
    topic, address = own_kafka.make_topic(partitions=2), own_kafka.address
    own_kafka.send(topic, ["a", "b"], partition=0)
    own_kafka.stop()
    assert lifecycle.look(KAFKA, own_kafka.data).state is BrokerState.STOPPED
    own_kafka.start()
    own_kafka.send(topic, ["c"], partition=1)
    own_kafka.kill()
    assert own_kafka.start().address == address
    assert own_kafka.values(topic) == [b"a", b"b", b"c"]


def test_transactions_and_their_abort_are_seen_by_readers(kafka: KafkaBroker) -> None:
    topic = kafka.make_topic()
    producer = Producer(
        {**kafka.client, "transactional.id": topic, "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(180)
    for value, is_kept in ((b"kept", True), (b"dropped", False)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(180)
        if is_kept:
            producer.commit_transaction(180)
        else:
            producer.abort_transaction(180)
    assert kafka.values(topic) == [b"kept"]
    assert kafka.values(topic, committed=False) == [b"kept", b"dropped"]


def test_no_collector_marks_beside_the_broker(kafka: KafkaBroker) -> None:
    threads = set()
    for task in Path(f"/proc/{lifecycle.look(KAFKA, kafka.data).pid}/task").iterdir():
        # Threads come and go.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            threads.add((task / "comm").read_text().strip())
    assert any(name.startswith("GC Thread") for name in threads)
    assert not [name for name in threads if name.startswith("G1")]


def test_topics_are_not_made_by_asking_for_them(kafka: KafkaBroker) -> None:
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        kafka.read("no-such-topic")


def test_the_broker_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    words = ["-m", "headgate", "broker", "start", "kafka", "--port", "0", "--json"]
    done = subprocess.run(
        [sys.executable, *words, "--data", str(tmp_path)], capture_output=True, check=True
    )
    try:
        broker = lifecycle.look(KAFKA, tmp_path)
        assert broker.state is BrokerState.RUNNING
        assert broker.pid is not None
        assert broker.pid == json.loads(done.stdout)["pid"]
        # A session of its own: neither the terminal's signals nor its end reach it.
        assert os.getsid(broker.pid) == broker.pid
    finally:
        lifecycle.stop(KAFKA, tmp_path)


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    options = BrokerOptions(data=tmp_path, port=0, settings={"log.retention.hours": "soon"})
    with pytest.raises(HeadgateError, match=r"log\.retention\.hours") as caught:
        lifecycle.start(KAFKA, options)
    assert caught.value.code == "BROKER_NOT_STARTED"
    assert lifecycle.look(KAFKA, tmp_path).state is BrokerState.STOPPED


def test_a_secured_broker_takes_nobody_without_the_password(secure_kafka: KafkaBroker) -> None:
    topic = secure_kafka.make_topic()
    secure_kafka.send(topic, ["a"])
    assert secure_kafka.values(topic) == [b"a"]
    stranger = AdminClient({**secure_kafka.client, "sasl.password": "guess"})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=2)
    plain = AdminClient({"bootstrap.servers": secure_kafka.address, "log_level": "2"})
    with pytest.raises(KafkaException):
        plain.list_topics(timeout=2)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_secured_broker_knows_its_user_by_other_mechanisms_too(
    secure_kafka: KafkaBroker, mechanism: str
) -> None:
    client = AdminClient({**secure_kafka.client, "sasl.mechanism": mechanism})
    assert client.list_topics(timeout=20).brokers


def test_what_clients_of_a_secured_broker_need_is_for_its_owner_alone(
    secure_kafka: KafkaBroker,
) -> None:
    broker = lifecycle.look(KAFKA, secure_kafka.data)
    assert broker.client is not None
    assert broker.url == f"kafka://{broker.address}?config={broker.client}"
    assert broker.client.stat().st_mode & 0o077 == 0
    assert (secure_kafka.data / "server.properties").stat().st_mode & 0o077 == 0


def test_a_broker_that_was_made_open_is_not_secured_later(kafka: KafkaBroker) -> None:
    error = refused("broker", "start", "kafka", "--secure", "--data", str(kafka.data))
    assert error["code"] == "BROKER_SECURITY_FIXED"
