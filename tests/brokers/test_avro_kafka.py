"""Avro on Kafka with a schema registry: schemas change while a job runs, and none of it is lost."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from bench import Bench, refused, stop_now
from eventually import eventually
from kafka_broker import KafkaBroker
from schema_registry import SchemaRegistry

from headgate import Flow
from headgate._artifacts import Artifact, find_java, resolve
from headgate.connectors import Kafka
from headgate.formats import Avro, Registry
from headgate.jobs.values import JobSnapshot

PARTITIONS = 3
EACH = 200
# A registry that speaks Confluent's REST API and keeps schemas in memory.
APICURIO = Artifact(
    "io.apicurio",
    "apicurio-registry-app",
    "2.6.13.Final",
    "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba",
    142_198_683,
    classifier="all",
    extension="tar.gz",
)


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a record."""
    return {"type": "record", "name": name, "fields": list(fields)}


ID, USER_ID = {"name": "id", "type": "long"}, {"name": "user_id", "type": "long"}
USER = record("User", ID, {"name": "name", "type": "string"})
ORDER_1 = record("Order", ID, USER_ID, {"name": "price", "type": "int"})
# It has other fields in another order, and prices of another type.
ORDER_2 = record(
    "Order",
    {"name": "coupon", "type": ["null", "string"], "default": None},
    {"name": "price", "type": "double"},
    USER_ID,
    ID,
    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def served() -> Iterator[SchemaRegistry]:
    """Give a registry of the test's own, which checks nothing."""
    with SchemaRegistry(level="NONE").serving() as registry:
        yield registry


class AvroShop:
    """Orders and users in Avro on Kafka, and a job that joins them."""

    def __init__(self, broker: KafkaBroker, bench: Bench, registry: Any) -> None:
        self.broker = broker
        self.bench = bench
        self.registry = registry
        self.orders = broker.make_topic(partitions=PARTITIONS)
        self.users = broker.make_topic()
        self.out = broker.make_topic(partitions=PARTITIONS)
        self.expected: Counter[tuple[int, str, float]] = Counter()
        self.sent = 0
        self._ids: dict[tuple[str, str], int] = {}

    def send_users(self) -> None:
        """Send three users, of whom one is deleted."""
        users = [{"id": number, "name": f"user {number}"} for number in range(3)]
        for user in users:
            self.broker.send(
                self.users, [self._framed(self.users, USER, user)], key=str(user["id"])
            )
        self.broker.send(self.users, [None], key="2")

    def send_orders(self, schema: Any, price: float) -> None:
        """Send orders of one schema, to all partitions."""
        for number in range(self.sent, self.sent + EACH):
            order = {"id": number, "user_id": number % 3, "price": price}
            value = self._framed(self.orders, schema, order)
            self.broker.send(self.orders, [value], partition=number % PARTITIONS)
            if number % 3 < 2:
                self.expected[number, f"user {number % 3}", float(price)] += 1
        self.sent += EACH

    def _framed(self, topic: str, schema: Any, value: Any) -> bytes:
        of = (topic, json.dumps(schema))
        if of not in self._ids:
            self._ids[of] = self.registry.add(f"{topic}-value", schema)
        out = io.BytesIO()
        out.write(b"\0" + self._ids[of].to_bytes(4, "big"))
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
        return out.getvalue()

    def flow(self, price: str = "DOUBLE NOT NULL") -> Flow:
        """Return the flow."""
        registry, servers = Registry(self.registry.url), self.broker.address
        flow = Flow("avro-shop")
        orders = flow.stream(
            Kafka(self.orders, servers=servers),
            f"id BIGINT NOT NULL, user_id BIGINT NOT NULL, price {price}",
            uid="orders",
            format="avro",
            registry=registry,
        )
        users = flow.table(
            Kafka(self.users, servers=servers),
            "id BIGINT NOT NULL, name STRING NOT NULL",
            uid="users",
            key="id",
            format="avro",
            registry=registry,
        )
        found = orders.enrich("with-user", users, on="user_id", into="user")
        found.matched.select("id", "user.name", "price").to(
            Kafka(self.out, servers=servers), format=Avro(registry=registry)
        )
        found.missing.to("missing")
        return flow

    def written(self) -> Counter[tuple[int, str, float]]:
        """Return the rows that a committed reader finds, as fastavro reads them."""
        rows: Counter[tuple[int, str, float]] = Counter()
        for value in self.broker.values(self.out):
            assert value is not None
            schema = self.registry.get(int.from_bytes(value[1:5], "big"))
            source = io.BytesIO(value[5:])
            row: Any = fastavro.schemaless_reader(source, fastavro.parse_schema(schema), None)
            assert source.tell() == len(value) - 5
            rows[row["id"], row["name"], row["price"]] += 1
        return rows


def test_a_schema_changes_in_mid_stream_without_a_restart(
    kafka: KafkaBroker, bench: Bench, served: SchemaRegistry
) -> None:
    shop = AvroShop(kafka, bench, served)
    shop.send_users()
    shop.send_orders(ORDER_1, 5)

    stopped: list[int] = []

    def watch(now: JobSnapshot) -> None:
        read = now.totals.inputs.get("orders", 0)
        if read == EACH and shop.sent == EACH:
            shop.send_orders(ORDER_2, 7.25)
        elif read == 2 * EACH and not stopped:
            stopped.append(read)
            stop_now()

    bench.run(shop.flow(), watch=watch, until_caught_up=False, max_batch=4096)
    assert shop.written() == shop.expected
    assert len(bench.read("missing")) == 2 * EACH - shop.expected.total()
    assert bench.read("dead-letters") == []
    # A task asks for a schema that its process does not have, and no task asks again.
    asked = Counter(path for path in served.requests if path.startswith("/schemas/ids/"))
    assert asked
    assert max(asked.values()) <= PARTITIONS

    # A restart is a start: what became of the subject meanwhile counts.
    served.add(f"{shop.orders}-value", record("Order", ID, USER_ID))
    with refused("SCHEMA_INCOMPATIBLE") as raised:
        bench.run(shop.flow())
    assert f"version 3 of subject '{shop.orders}-value'" in raised.value.message
    assert "field 'price' is not written" in raised.value.message


def test_a_registry_that_dies_fails_the_attempt_and_loses_nothing(
    kafka: KafkaBroker, bench: Bench
) -> None:
    registry = SchemaRegistry(level="NONE")
    shop = AvroShop(kafka, bench, registry)
    with registry.serving():
        shop.send_users()
        shop.send_orders(ORDER_1, 5)
        bench.run(shop.flow())
    shop.send_orders(ORDER_2, 7.25)
    with refused("REGISTRY_UNREACHABLE") as raised:
        bench.run(shop.flow())
    assert raised.value.retryable
    assert registry.url in raised.value.message
    with registry.serving():
        bench.run(shop.flow())
    assert shop.written() == shop.expected
    assert bench.read("dead-letters") == []


class Apicurio:
    """Apicurio's registry in a process of its own, in place of the small one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def add(self, subject: str, schema: Any) -> int:
        """Register a schema, and return its id."""
        id_: int = self._ask(f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})["id"]
        return id_

    def get(self, id_: int) -> Any:
        """Return a schema."""
        return json.loads(self._ask(f"/schemas/ids/{id_}")["schema"])

    def demand(self, level: str) -> None:
        """Have all versions be compatible."""
        self._ask("/config", {"compatibility": level}, method="PUT")

    def is_up(self) -> bool:
        """Return True once it answers."""
        try:
            self._ask("/subjects")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _ask(self, path: str, body: Any = None, *, method: str | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())


@pytest.fixture
def apicurio(tmp_path: Path) -> Iterator[Apicurio]:
    """Start Apicurio's registry, which is downloaded once."""
    (archive,) = resolve([APICURIO])
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    jar = next(tmp_path.glob("*-runner.jar"))
    port = _free_port()
    log = tmp_path / "registry.log"
    command = [find_java() or "java", "-Xmx256m", f"-Dquarkus.http.port={port}"]
    command += ["-Dquarkus.http.host=127.0.0.1", "-jar", str(jar)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out)
    registry = Apicurio(f"http://127.0.0.1:{port}/apis/ccompat/v7")
    try:
        eventually(registry.is_up, what="the registry", alive=process)
        yield registry
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.long
def test_a_real_registry_gives_schemas_and_refuses_them(
    kafka: KafkaBroker, bench: Bench, apicurio: Apicurio
) -> None:
    shop = AvroShop(kafka, bench, apicurio)
    shop.send_users()
    shop.send_orders(ORDER_1, 5)
    bench.run(shop.flow())
    shop.send_orders(ORDER_2, 7.25)
    bench.run(shop.flow())
    assert shop.written() == shop.expected

    apicurio.demand("BACKWARD")
    taken = kafka.make_topic()
    apicurio.add(f"{taken}-value", record("Other", {"name": "id", "type": "string"}))
    shop.out = taken
    with refused("SCHEMA_REFUSED") as raised:
        bench.run(shop.flow())
    assert f"'{taken}-value' (BACKWARD)" in raised.value.message
