"""Made-up data and its sender on a real Pulsar broker: what is counted has arrived, in order."""

from __future__ import annotations

import json
import uuid
from collections import Counter

import pytest
from pulsar_broker import PulsarBroker
from typer.testing import CliRunner

from headgate import HeadgateError
from headgate.cli.app import app
from headgate.connectors.logs import parse_log
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.topics.producing import PulsarSender, partition_of
from headgate.connectors.pulsar.topics.schemas import json_schema
from headgate.flow.schemas.schema import schema_of


def open_sender(broker: PulsarBroker) -> PulsarSender:
    log = parse_log(broker.url)
    assert isinstance(log, PulsarLog)
    return PulsarSender(log)


def test_a_store_arrives_with_keys_and_deleted_users_as_tombstones(pulsar: PulsarBroker) -> None:
    namespace = f"shops/{uuid.uuid4().hex[:12]}"
    on = pulsar.url.replace("?", f"/{namespace}?")
    args = ["--users", "300", "--items", "20", "--orders", "2000", "--updates", "100"]
    made = CliRunner().invoke(
        app, ["produce", "store", *args, "--deletes", "0.3", "--json", "--on", on]
    )
    assert made.exit_code == 0, made.stderr
    told = json.loads(made.stdout)
    assert [each["retention"] for each in told["made"]] == ["infinite", "infinite", "7d"]

    users = pulsar.read("users", namespace=namespace)
    assert len(users) == told["users"] == 400
    assert len(pulsar.values("items", namespace=namespace)) == told["items"] == 20
    assert len(pulsar.values("orders", namespace=namespace)) == told["orders"] == 2000
    assert all(each.partition == partition_of(each.key.encode(), 4) for each in users)
    rows = [each for each in users if each.value]
    assert all(str(json.loads(each.value)["id"]) == each.key for each in rows)
    assert 10 < len(users) - len(rows) < 50
    assert {each.partition for each in users} == {0, 1, 2, 3}


def test_visits_are_keyed_by_visit(pulsar: PulsarBroker) -> None:
    namespace = f"shops/{uuid.uuid4().hex[:12]}"
    on = pulsar.url.replace("?", f"/{namespace}?")
    args = ["produce", "visits", "--count", "500", "--partitions", "2", "--json", "--on", on]
    made = CliRunner().invoke(app, args)
    assert made.exit_code == 0, made.stderr
    (topic,) = json.loads(made.stdout)["made"]
    read = pulsar.read(topic["name"], namespace=namespace)
    assert len(read) == 500
    assert all(each.key for each in read)


def test_records_of_a_key_keep_their_order_over_calls(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic(partitions=3)
    keys = [str(number % 7).encode() for number in range(1000)]
    with open_sender(pulsar) as sender:
        for first in range(0, 1000, 300):
            some = [(keys[i], str(i).encode()) for i in range(first, min(first + 300, 1000))]
            assert sender.send(name, some) == len(some)
        assert sender.send(name, [(None, b"x"), (b"1", None)]) == 2
        assert sender.send(name, []) == 0
    seen: dict[str, list[int]] = {}
    for record in pulsar.read(name):
        if record.value.isdigit():
            seen.setdefault(record.key, []).append(int(record.value))
    assert all(values == sorted(values) for values in seen.values())
    assert sum(map(len, seen.values())) == 1000


def test_a_record_that_is_too_large_fails_its_call_and_not_the_next(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic()
    large = b"x" * (6 << 20)
    with open_sender(pulsar) as sender:
        with pytest.raises(HeadgateError) as caught:
            sender.send(name, [(b"1", b"a"), (b"1", large), (b"1", b"b")])
        assert caught.value.code == "BROKER_FAILED"
        assert "MessageTooBig" in caught.value.message
        assert sender.send(name, [(b"1", b"c")]) == 1
    assert Counter(pulsar.values(name)) == Counter([b"a", b"b", b"c"])


def test_a_topic_that_carries_a_json_schema_is_written_with_it(pulsar: PulsarBroker) -> None:
    name = pulsar.make_topic()
    path = f"schemas/public/default/{name}/schema"
    pulsar.ask("POST", path, json_schema(name, schema_of("id BIGINT NOT NULL")))
    with open_sender(pulsar) as sender:
        assert sender.send(name, [(b"1", b'{"id":1}')]) == 1
    assert pulsar.ask("GET", path)["version"] == 0
    last = pulsar.ask("GET", f"persistent/public/default/{name}-partition-0/internalStats")
    assert last["schemaLedgers"]
    assert pulsar.values(name) == [b'{"id":1}']


def test_a_topic_that_is_not_there_is_not_made_by_sending(pulsar: PulsarBroker) -> None:
    with open_sender(pulsar) as sender, pytest.raises(HeadgateError) as caught:
        sender.send("never-made-here", [(b"1", b"a")])
    assert caught.value.code == "TOPIC_NOT_FOUND"
