"""How long an order takes through the job: from its sender to a consumer of its output.

The sender and the consumer are processes of their own. An order's `createdAt` is the moment it is
sent; its `paidAt` is its number, from 0.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka_outputs import find_ends
from store_job import OUTPUTS

from headgate.producers.store import StoreShape, StoreTopic, generate, key_values

# What a producer waits for more records at most, and a broker for a consumer's first one: the
# client's own defaults. Shorter waits show little sooner, and have the broker answer in vain.
LINGER_MS = 5
FETCH_WAIT_MS = 500

_TICK = 0.001
_SILENCE = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """A steady stream of orders.

    Attributes:
        rate: Orders per second.
        seconds: How long orders count.
        warm_up: For how many seconds orders were sent before, which do not.
    """

    users: int
    items: int
    rate: int
    seconds: int
    warm_up: int

    @property
    def unmeasured(self) -> int:
        """How many orders warm up."""
        return self.rate * self.warm_up

    @property
    def orders(self) -> int:
        """How many orders are sent in all."""
        return self.unmeasured + self.rate * self.seconds


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from sending an order to seeing its output.

    Attributes:
        first: The 50th, 95th and 99th percentile of the orders that warmed the job up.
        began: When the measured orders began, in seconds since the epoch.
        behind_ms: How far the sender fell behind its schedule at most.
    """

    p50: float
    p95: float
    p99: float
    longest: float
    first: tuple[float, float, float]
    orders: int
    began: float
    behind_ms: float


@dataclass(frozen=True, slots=True)
class _Sent:
    began: float
    behind_ms: float


@dataclass(frozen=True, slots=True)
class _Position:
    topic: str
    partition: int
    offset: int


def measure_latency(servers: str, load: Load, *, isolation: str) -> Latency:
    """Send a load to a running job, and return what a consumer sees of its outputs.

    Args:
        isolation: The consumer's `isolation.level`.
    """
    ends = [
        _Position(each.topic, each.partition, each.offset) for each in find_ends(servers, OUTPUTS)
    ]
    patience = load.warm_up + load.seconds + 2 * _SILENCE
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        seen = pool.apply_async(_receive, (servers, ends, isolation, load))
        sent = pool.apply_async(_send, (servers, load)).get(patience)
        first, counted = (np.array(each) for each in seen.get(patience))
    p50, p95, p99 = _percentiles(counted)
    return Latency(
        p50=p50,
        p95=p95,
        p99=p99,
        longest=float(counted.max()),
        first=_percentiles(first) if len(first) else (0.0, 0.0, 0.0),
        orders=len(counted),
        began=sent.began,
        behind_ms=sent.behind_ms,
    )


def _percentiles(latencies: np.ndarray) -> tuple[float, float, float]:
    p50, p95, p99 = np.percentile(latencies, (50, 95, 99)).tolist()
    return p50, p95, p99


def _send(servers: str, load: Load) -> _Sent:
    """Send the load, each order when it is due."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": LINGER_MS})
    # All of them beforehand: making some takes long enough to fall behind.
    orders = list(_orders(load))
    start = time.time()
    began, behind, sent = start, 0.0, 0
    while sent < load.orders:
        now = time.time()
        due = min(load.orders, int((now - start) * load.rate) + 1)
        if sent > load.unmeasured:
            behind = max(behind, now - start - sent / load.rate)
        for number in range(sent, due):
            key, front = orders[number]
            moment = time.time()
            if number == load.unmeasured:
                began = moment
            value = front + b',"createdAt":%d,"paidAt":%d}' % (int(moment * 1000), number)
            producer.produce(StoreTopic.ORDERS.value, value, key)
        sent = due
        producer.poll(0)
        time.sleep(_TICK)
    producer.flush()
    return _Sent(began, behind * 1000)


def _orders(load: Load) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield keys and orders of the made-up store; the orders without their times and their end."""
    shape = StoreShape(load.users, load.items, load.orders, bad=0.0, round=1)
    for chunk in generate(shape):
        for key, value in key_values(chunk.topic, chunk.lines):
            yield key, bytes(value or b"").partition(b',"createdAt":')[0]


def _receive(
    servers: str, since: list[_Position], isolation: str, load: Load
) -> tuple[list[int], list[int]]:
    """Return the milliseconds that each order took: those that warmed up, and those that count."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "headgate-bench",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": FETCH_WAIT_MS,
        }
    )
    consumer.assign([TopicPartition(each.topic, each.partition, each.offset) for each in since])
    arrived: list[tuple[int, bytes]] = []
    while len(arrived) < load.orders:
        message = consumer.poll(_SILENCE)
        moment = time.time_ns() // 1_000_000
        if message is None:
            raise RuntimeError(f"{len(arrived):,} of {load.orders:,} orders came out, then none")
        error: KafkaError | None = message.error()
        if error is not None:
            raise KafkaException(error)
        arrived.append((moment, bytes(message.value() or b"")))
    consumer.close()
    return _latencies(arrived, load)


def _latencies(arrived: list[tuple[int, bytes]], load: Load) -> tuple[list[int], list[int]]:
    took: dict[int, int] = {}
    for moment, value in arrived:
        row = json.loads(value)
        took.setdefault(row["paidAt"], moment - row["createdAt"])
    if len(took) != load.orders:
        raise RuntimeError(f"{len(took):,} orders came out, not all of them")
    first = [ms for number, ms in took.items() if number < load.unmeasured]
    return first, [ms for number, ms in took.items() if number >= load.unmeasured]
