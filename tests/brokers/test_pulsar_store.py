"""The store's flow on Pulsar and on Pulsar with Kafka: the outputs of plain Python."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, refused
from broker_shop import BrokerShop
from kafka_broker import KafkaBroker
from pulsar_broker import PulsarBroker
from shop import JOB
from store_reference import canonical

from headgate import Flow, Kafka, Pulsar
from headgate._codec import encode
from headgate.brokers.pulsar_settings import TOKEN
from headgate.engine.settings import Delivery
from headgate.jobs.startup.plan import plan_job
from headgate.jobs.topics.listing import show_topic, tail_topic

ROW = "id BIGINT NOT NULL, v STRING"
ORDER = "id BIGINT NOT NULL, userId BIGINT NOT NULL"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def lines(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def bag(values: Sequence[bytes]) -> Counter[str]:
    return Counter(canonical(json.loads(value)) for value in values)


def test_outputs_are_those_of_plain_python_with_uneven_keys_and_an_empty_partition(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    orders, users = pulsar.make_topic(partitions=4), pulsar.make_topic(partitions=4)
    joined, missing, letters = (
        pulsar.make_topic(partitions=2, deduplicated=True) for _ in range(3)
    )
    known = {key: f"u{key}" for key in range(50)}
    for partition in range(4):
        some = [{"id": key, "v": known[key]} for key in known if key % 4 == partition]
        pulsar.send(users, lines(some), partition=partition)
    # Nine in ten orders are of one user, and nothing is in partition 3.
    rows = [{"id": each, "userId": each % 60 if each % 10 == 0 else 7} for each in range(3_000)]
    for partition in range(3):
        pulsar.send(orders, lines(rows[partition::3]), partition=partition)

    def bound(topic: str) -> Pulsar:
        return Pulsar(topic, service=pulsar.service, admin=pulsar.admin)

    flow = Flow("uneven", dead_letters=bound(letters))
    stream = flow.stream(bound(orders), ORDER, uid="orders")
    table = flow.table(bound(users), ROW, key="id", uid="users")
    found = stream.enrich("with-user", table, on="userId", into="user")
    found.matched.to(bound(joined), key="id")
    found.missing.to(bound(missing))
    bench.run(flow)

    wanted = [{**row, "user": known.get(row["userId"])} for row in rows]
    assert bag(pulsar.values(joined)) == Counter(
        canonical({**row, "user": {"id": row["userId"], "v": row["user"]}})
        for row in wanted
        if row["user"] is not None
    )
    assert bag(pulsar.values(missing)) == Counter(
        canonical({"id": row["id"], "userId": row["userId"]})
        for row in wanted
        if row["user"] is None
    )
    assert pulsar.values(letters) == []


def test_one_flow_reads_pulsar_and_kafka_and_writes_to_both(
    pulsar: PulsarBroker, kafka: KafkaBroker, bench: Bench
) -> None:
    orders, users = pulsar.make_topic(partitions=2), kafka.make_topic(partitions=2)
    joined = pulsar.make_topic(deduplicated=True)
    missing, letters = kafka.make_topic(), kafka.make_topic()
    kafka.send(users, lines([{"id": each, "v": f"u{each}"} for each in range(10)]), key="k")
    pulsar.send(orders, lines([{"id": each, "userId": each % 12} for each in range(600)]))

    flow = Flow("mixed", dead_letters=Kafka(letters, servers=kafka.address))
    stream = flow.stream(
        Pulsar(orders, service=pulsar.service, admin=pulsar.admin), ORDER, uid="orders"
    )
    table = flow.table(Kafka(users, servers=kafka.address), ROW, key="id", uid="users")
    found = stream.enrich("with-user", table, on="userId", into="user")
    found.matched.to(Pulsar(joined, service=pulsar.service, admin=pulsar.admin), key="id")
    found.missing.to(Kafka(missing, servers=kafka.address), key="id")
    bench.run(flow)
    pulsar.send(orders, lines([{"id": each, "userId": each % 12} for each in range(600, 720)]))
    bench.run(flow)

    ids = sorted(json.loads(value)["id"] for value in pulsar.values(joined) if value)
    assert ids == [each for each in range(720) if each % 12 < 10]
    ids = sorted(json.loads(value)["id"] for value in kafka.values(missing) if value)
    assert ids == [each for each in range(720) if each % 12 >= 10]


def test_the_store_runs_on_a_broker_that_wants_tls_and_a_token_which_nothing_tells(
    secure_pulsar: PulsarBroker, tmp_path: Path
) -> None:
    shop = BrokerShop(tmp_path, secure_pulsar)
    shop.set_up()
    shop.produce(0, 2_000)
    # What a process of its own writes down, and where, is checked on Kafka.
    Bench(tmp_path).run(Path(shop.flow), on=shop.on, home=shop.home)
    shop.assert_exactly_once()
    assert len(tail_topic(shop.on, "enriched-orders", last=5)) == 5
    (mark,) = encode(show_topic(shop.on, "orders"))["subscriptions"]
    assert (mark["name"], mark["unread"]) == (JOB, 0)
    token = (secure_pulsar.data / TOKEN).read_text().strip().encode()
    told = [file for file in shop.home.rglob("*") if file.is_file() and token in file.read_bytes()]
    assert token
    assert told == []


def test_the_plan_says_what_each_output_of_a_mixed_flow_rests_on(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    file.write_text(
        "from headgate import Files, Flow, Kafka, Pulsar\n"
        "flow = Flow('mixed', dead_letters=Files('letters', dir='letters'))\n"
        "rows = flow.stream(Pulsar('in', service='pulsar://h:6650'), 'id BIGINT NOT NULL')\n"
        "rows.to(Pulsar('p', service='pulsar://h:6650'))\n"
        "rows.to(Kafka('k', servers='h:9092'))\n"
    )

    def rests_on(delivery: Delivery) -> dict[str, tuple[str, str]]:
        plan = plan_job(str(file), "files:x", delivery=delivery, with_spark=False, check=False)
        return {name: (each.delivery, each.rests_on) for name, each in plan.deliveries.items()}

    files = ("exactly-once", "files named by run, batch and task")
    assert rests_on(Delivery.EXACTLY_ONCE) == {
        "p": ("exactly-once", "the broker's deduplication"),
        "k": ("exactly-once", "transactions"),
        "letters": files,
    }
    assert rests_on(Delivery.AT_LEAST_ONCE) == {
        "p": ("at-least-once", "acknowledgements"),
        "k": ("at-least-once", "acknowledgements"),
        "letters": files,
    }


def test_what_is_no_row_is_a_dead_letter_and_an_empty_topic_is_caught_up_with(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    source, target = pulsar.make_topic(partitions=2), pulsar.make_topic(deduplicated=True)
    letters = pulsar.make_topic(deduplicated=True)

    def bound(topic: str) -> Pulsar:
        return Pulsar(topic, service=pulsar.service, admin=pulsar.admin)

    flow = Flow("copy", dead_letters=bound(letters))
    flow.stream(bound(source), ROW, uid="in").to(bound(target))
    bench.run(flow)
    assert pulsar.values(target) == []
    pulsar.send(source, [b"no json", None, b'{"id": "one"}', b'{"id": 1, "v": "x"}'], key="k")
    bench.run(flow)
    codes = Counter(json.loads(value)["code"] for value in pulsar.values(letters) if value)
    assert codes == Counter({"BAD_JSON": 2, "WRONG_TYPE": 1})
    assert [json.loads(value)["id"] for value in pulsar.values(target) if value] == [1]


def test_a_topic_that_is_not_there_is_refused_with_the_command_that_makes_it(
    pulsar: PulsarBroker, bench: Bench
) -> None:
    def bound(topic: str) -> Pulsar:
        return Pulsar(topic, service=pulsar.service, admin=pulsar.admin)

    flow = Flow("nowhere", dead_letters=bound("nowhere-letters"))
    flow.stream(bound("nowhere-in"), ROW).to(bound("nowhere-out"))
    with refused("TOPIC_MISSING") as caught:
        bench.run(flow)
    assert "headgate setup" in f"{caught.value.message} {caught.value.hint}"
