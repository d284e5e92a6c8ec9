"""`headgate broker`: a real Pulsar that starts, is found again, and keeps what it was given."""

from __future__ import annotations

import json
import os
import re
import socket
import urllib.error
from pathlib import Path

import pulsar as client
import pytest
from cli_runs import refused, run, run_json
from pulsar_broker import PulsarBroker

from headgate import HeadgateError
from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions, BrokerState
from headgate.brokers.pulsar import PULSAR


def test_a_second_start_finds_the_broker_that_runs(pulsar: PulsarBroker) -> None:
    data = ("--data", str(pulsar.data))
    first = run_json("broker", "status", "pulsar", *data)
    again = run_json("broker", "start", "pulsar", *data)
    assert not again.pop("started")
    assert again == first
    assert (first["state"], first["address"]) == ("running", pulsar.address)
    assert first["url"] == f"pulsar://{pulsar.address}?admin={pulsar.admin}"
    # A session of its own: neither the terminal's signals nor its end reach it.
    assert os.getsid(first["pid"]) == first["pid"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="Linux shows what a process has mapped")
def test_it_runs_with_the_archive_of_its_classes(pulsar: PulsarBroker) -> None:
    pid = run_json("broker", "status", "pulsar", "--data", str(pulsar.data))["pid"]
    mapped = Path(f"/proc/{pid}/maps").read_text()
    assert re.search(r"/pulsar-[\d.]+/classes-\w+\.jsa$", mapped, re.MULTILINE)


def test_people_are_told_where_it_is_and_what_to_try(pulsar: PulsarBroker) -> None:
    data = ("--data", str(pulsar.data))
    done = run("broker", "start", "pulsar", *data)
    assert f"Pulsar is already running at {pulsar.address}" in done.stdout
    assert f"headgate run examples/orders/flow.py --on '{pulsar.url}'" in done.stdout
    status = run("broker", "status", "pulsar", *data)
    assert status.stdout.startswith(f"Pulsar is running at {pulsar.address}\n")
    last = run("broker", "logs", "pulsar", "-n", "3", *data)
    assert len(last.stdout.splitlines()) == 3


def test_other_ports_for_a_broker_that_runs_are_refused(pulsar: PulsarBroker) -> None:
    for option in ("--port", "--admin-port"):
        error = refused("broker", "start", "pulsar", option, "1", "--data", str(pulsar.data))
        assert error["code"] == "BROKER_RUNNING"
        assert error["hint"] == f"headgate broker stop pulsar --data {pulsar.data}"


def test_a_port_of_another_program_is_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        for ports in (["--port", port], ["--port", "0", "--admin-port", port]):
            error = refused("broker", "start", "pulsar", *ports, "--data", str(tmp_path))
            assert error["code"] == "BROKER_PORT_TAKEN"
            assert port in error["message"]


def test_kafka_has_no_port_for_its_administration(tmp_path: Path) -> None:
    done = run("broker", "start", "kafka", "--admin-port", "1", "--data", str(tmp_path))
    assert done.exit_code == 2


def test_a_broker_that_never_started_is_stopped_and_has_no_log(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "none"))
    assert run_json("broker", "status", "pulsar", *data)["state"] == "stopped"
    assert not run_json("broker", "stop", "pulsar", *data)["stopped"]
    assert refused("broker", "logs", "pulsar", *data)["code"] == "LOG_NOT_FOUND"
    assert not (tmp_path / "none").exists()


# It is the same code for Kafka, whose broker starts in less time.
@pytest.mark.long
@pytest.mark.parametrize("is_stopped", [False, True], ids=["kill", "stop"])
def test_records_outlive_a_stop_and_a_kill_and_the_address_stays(
    own_pulsar: PulsarBroker, is_stopped: bool
) -> None:
    topic, url = own_pulsar.make_topic(partitions=2, deduplicated=True), own_pulsar.url
    own_pulsar.send(topic, ["a", "b"], partition=0, key="k", properties={"x": "y"}, event_ms=7)
    if is_stopped:
        own_pulsar.stop()
        assert lifecycle.look(PULSAR, own_pulsar.data).state is BrokerState.STOPPED
        own_pulsar.start()
    own_pulsar.send(topic, ["c", "d"], partition=1, batching_enabled=True)
    own_pulsar.kill()
    assert own_pulsar.start().url == url
    records = own_pulsar.read(topic)
    assert [each.value for each in records] == [b"a", b"b", b"c", b"d"]
    assert [each.partition for each in records] == [0, 0, 1, 1]
    first = records[0]
    assert (first.key, first.properties, first.event_ms) == ("k", {"x": "y"}, 7)
    path = f"persistent/public/default/{topic}/deduplicationEnabled"
    assert own_pulsar.ask("GET", path) is True
    assert (own_pulsar.data / "pulsar" / "metadata").is_dir()
    # The library that a killed process unpacked does not stay behind.
    assert len(list((own_pulsar.data / "tmp").glob("librocksdb*"))) == 1


def test_topics_are_not_made_by_asking_for_them(pulsar: PulsarBroker) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        pulsar.read("no-such-topic")
    with pytest.raises(client.PulsarException):
        pulsar.send("no-such-topic", ["a"])


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    options = BrokerOptions(data=tmp_path, port=0, settings={"ledgerStorageClass": "no.such.Class"})
    with pytest.raises(HeadgateError, match=r"no\.such\.Class") as caught:
        lifecycle.start(PULSAR, options)
    assert caught.value.code == "BROKER_NOT_STARTED"
    assert lifecycle.look(PULSAR, tmp_path).state is BrokerState.STOPPED


@pytest.mark.long
def test_a_secured_broker_takes_nobody_without_the_token(secure_pulsar: PulsarBroker) -> None:
    topic = secure_pulsar.make_topic(partitions=0)
    secure_pulsar.send(topic, ["a"])
    assert secure_pulsar.values(topic) == [b"a"]
    forged = client.AuthenticationToken("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJoZWFkZ2F0ZSJ9.AAAA")
    stranger = secure_pulsar.client(authentication=forged, operation_timeout_seconds=3)
    with pytest.raises(client.PulsarException):
        stranger.create_producer(f"persistent://public/default/{topic}")
    stranger.close()


def test_what_clients_of_a_secured_broker_need_is_for_its_owner_alone(
    secure_pulsar: PulsarBroker,
) -> None:
    broker = lifecycle.look(PULSAR, secure_pulsar.data)
    assert broker.client is not None
    query = f"admin={secure_pulsar.admin}&config={broker.client}"
    assert broker.url == f"pulsar+ssl://{broker.address}?{query}"
    assert secure_pulsar.admin.startswith("https://")
    secrets = [*broker.client.parent.glob("[!cb]*"), broker.client, broker.data / "standalone.conf"]
    assert {file.stat().st_mode & 0o077 for file in secrets} == {0}
    written = broker.log.read_text() + (broker.data / "log" / "broker.out").read_text()
    password = json.loads((broker.client.parent / "security.json").read_text())["keystore_password"]
    assert password not in written
    assert (broker.client.parent / "token").read_text() not in written


def test_a_broker_that_was_made_open_is_not_secured_later(pulsar: PulsarBroker) -> None:
    error = refused("broker", "start", "pulsar", "--secure", "--data", str(pulsar.data))
    assert error["code"] == "BROKER_SECURITY_FIXED"
