"""Store data on a real Kafka broker: every record that is counted is there, with its key."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from cli_runs import run
from kafka_broker import KafkaBroker

from headgate import HeadgateError
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.topics.producing import KafkaSender
from headgate.connectors.logs import parse_log
from headgate.producers.store import StoreShape, StoreTopic, generate, key_values
from headgate.producers.visits import VisitsShape, generate_visits, visit_key_values

SHAPE = StoreShape(users=300, items=50, orders=30_000, updates=200, deletes=0.1, bad=0.01)
ARGS = (
    *("produce", "store", "--users", "300", "--items", "50", "--orders", "30000"),
    *("--updates", "200", "--deletes", "0.1", "--bad", "0.01"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Give a broker of this module's own: the topics of a store have fixed names."""
    broker = KafkaBroker(tmp_path_factory.mktemp("store"))
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def told(store: KafkaBroker) -> dict[str, Any]:
    """Give what was said of a store that was produced."""
    result = run(*ARGS, "--partitions", "3", "--json", "--on", store.url)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def sender(broker: KafkaBroker) -> KafkaSender:
    log = parse_log(broker.url)
    assert isinstance(log, KafkaLog)
    return KafkaSender(log)


def test_topics_that_are_missing_are_made_and_told_of(told: dict[str, Any]) -> None:
    made = {each["name"]: each for each in told["made"]}
    assert [*made] == ["users", "items", "orders"]
    assert {each["partitions"] for each in made.values()} == {3}
    assert [made[name]["compacted"] for name in made] == [True, True, False]
    assert [made[name]["retention"] for name in made] == ["infinite", "infinite", "7d"]


def test_every_record_that_was_counted_is_read_with_its_key(
    store: KafkaBroker, told: dict[str, Any]
) -> None:
    assert (told["users"], told["items"], told["orders"]) == (500, 50, 30_000)
    wanted: dict[StoreTopic, Counter[tuple[bytes | None, bytes | None]]] = {}
    for chunk in generate(SHAPE):
        wanted.setdefault(chunk.topic, Counter()).update(key_values(chunk.topic, chunk.lines))
    for topic in StoreTopic:
        found = Counter((each.key(), each.value()) for each in store.read(topic.value))
        assert found == wanted[topic], topic


@pytest.mark.usefixtures("told")
def test_changes_of_a_user_stay_in_order_and_deletions_have_no_value(store: KafkaBroker) -> None:
    by_key: dict[bytes | None, list[tuple[int | None, bytes | None]]] = {}
    for each in store.read("users"):
        by_key.setdefault(each.key(), []).append((each.partition(), each.value()))
    sent: dict[bytes | None, list[bytes | None]] = {}
    for chunk in generate(SHAPE):
        if chunk.topic is StoreTopic.USERS:
            for key, value in key_values(chunk.topic, chunk.lines):
                sent.setdefault(key, []).append(value)
    assert {key: [value for _, value in rows] for key, rows in by_key.items()} == sent
    assert all(len({partition for partition, _ in rows}) == 1 for rows in by_key.values())
    assert any(value is None for rows in by_key.values() for _, value in rows)


def test_topics_that_are_there_stay_as_they_are_and_people_are_told(
    own_kafka: KafkaBroker,
) -> None:
    own_kafka.make_topic("orders", partitions=1)
    result = run(*ARGS, "--on", own_kafka.url, "--round", "1")
    assert result.exit_code == 0, result.stderr
    assert "Created topic 'users' with 4 partitions, compacted, kept for ever" in result.stdout
    assert "Created topic 'orders'" not in result.stdout
    assert "Sent '200' user records and '30000' order records" in result.stdout
    assert len(own_kafka.read("orders")) == 30_000


def test_a_record_that_the_broker_refuses_is_an_error_and_not_counted(store: KafkaBroker) -> None:
    topic = store.make_topic(config={"max.message.bytes": "1000"})
    with sender(store) as sending:
        assert sending.send(topic, [(b"k", b"small")]) == 1
        with pytest.raises(HeadgateError) as caught:
            sending.send(topic, [(b"k", b"x" * 5000)])
        assert (caught.value.code, caught.value.exit_code) == ("BROKER_FAILED", 3)
        assert f"send 1 records to topic '{topic}'" in caught.value.message
        assert sending.send(topic, [(b"k", None)]) == 1
    assert store.values(topic) == [b"small", None]


def test_records_go_where_javas_clients_put_their_key(store: KafkaBroker) -> None:
    topic = store.make_topic(partitions=7)
    with sender(store) as sending:
        sending.send(topic, [(b"headgate", b"a"), (b"kafka", b"b")])
    # What org.apache.kafka's murmur2 gives for these keys and 7 partitions.
    assert {(each.key(), each.partition()) for each in store.read(topic)} == {
        (key, (_murmur2(key) & 0x7FFFFFFF) % 7) for key in (b"headgate", b"kafka")
    }


def _murmur2(data: bytes) -> int:
    """Return the hash of a key as Kafka's Java client computes it."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    state = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for first in range(0, whole, 4):
        word = int.from_bytes(data[first : first + 4], "little") * multiplier & mask
        word = (word ^ (word >> 24)) * multiplier & mask
        state = (state * multiplier & mask) ^ word
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    state = (state ^ (state >> 13)) * multiplier & mask
    return state ^ (state >> 15)


def test_the_rate_holds_for_orders(own_kafka: KafkaBroker) -> None:
    args = ("--users", "5", "--items", "5", "--orders", "400", "--rate", "200")
    result = run("produce", "store", *args, "--json", "--on", own_kafka.url)
    assert result.exit_code == 0, result.stderr
    assert 1.5 < json.loads(result.stdout)["seconds"] < 10


def test_every_visit_that_was_counted_is_read_with_its_visit_as_the_key(store: KafkaBroker) -> None:
    args = ("--count", "25000", "--visits", "40", "--late", "0.1", "--json", "--on", store.url)
    result = run("produce", "visits", *args)
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["visits"], told["late"]) == (25_000, 2_500)
    assert [(each["name"], each["partitions"], each["retention"]) for each in told["made"]] == [
        ("visits", 4, "7d")
    ]
    shape = VisitsShape(25_000, visits=40, late=0.1)
    wanted = [pair for chunk in generate_visits(shape) for pair in visit_key_values(chunk.lines)]
    read = store.read("visits")
    assert Counter((each.key(), each.value()) for each in read) == Counter(wanted)
    # The events of a visit stay in the order they were made.
    by_key: dict[bytes | str | None, list[bytes | str | None]] = {}
    for each in read:
        by_key.setdefault(each.key(), []).append(each.value())
    assert all(by_key[key] == [value for whose, value in wanted if whose == key] for key in by_key)
