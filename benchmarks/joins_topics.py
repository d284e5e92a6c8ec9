"""Orders and payments on Kafka, and what must become of them in a join."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer
from kafka_outputs import KafkaReader, read_records

BEGIN = 1_767_225_600_000
MINUTE = 60_000
HOURS = 4
WITHIN = 15 * MINUTE
# Rows are at most so much out of order, half of what the flow allows.
JITTER = 30_000

Ints = npt.NDArray[np.int64]
_SHIFT = 32
_PIECE = 50_000


def produce_orders(servers: str, count: int, *, partitions: int) -> None:
    """Write so many orders and as many payments, the times of both in the same hours.

    Of the orders, 92 % are paid within ten minutes, 4 % of all in two parts; 4 % are paid after
    20 minutes, and 4 % never. A last row of each partition, a day later, lets all others go.

    Args:
        count: A multiple of the number of partitions.
    """
    draw = np.random.default_rng(23)
    ids = np.arange(count)
    ordered = BEGIN + ids * (HOURS * 60 * MINUTE) // count
    kind = draw.random(count)
    paid = ids[kind >= 0.04]
    delay = draw.integers(1_000, 10 * MINUTE, paid.size)
    delay[kind[paid] < 0.08] += 20 * MINUTE
    twice = ids[kind >= 0.96]
    payer = np.concatenate([paid, twice])
    at = np.concatenate([ordered[paid] + delay, ordered[twice] + 10 * MINUTE])
    # As many as there are orders: the others are payments of orders that are not known.
    strange = count - payer.size
    if strange > 0:
        payer = np.concatenate([payer, count + np.arange(strange)])
        at = np.concatenate([at, draw.choice(ordered, strange)])
    chosen = np.argsort(at, kind="stable")[:count]
    last = BEGIN + 24 * 60 * MINUTE
    amounts = draw.integers(100, 100_000, count) / 100
    lines = (
        f'{{"id":{n},"customer":"c{n % 9973}","amount":{amount},"at":{time}}}'
        for n, amount, time in _rows(ids, amounts, ordered - draw.integers(0, JITTER, count))
    )
    _send(servers, "orders", lines, count, partitions, last)
    lines = (
        f'{{"id":{n},"orderId":{order},"amount":{amount},"at":{time}}}'
        for n, (order, amount, time) in enumerate(
            _rows(payer[chosen], amounts, at[chosen] - draw.integers(0, JITTER, count))
        )
    )
    _send(servers, "payments", lines, count, partitions, last)


def _rows(*columns: npt.NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    for begin in range(0, columns[0].size, _PIECE):
        yield from zip(*(each[begin : begin + _PIECE].tolist() for each in columns), strict=True)


def _send(
    servers: str, topic: str, lines: Iterator[str], count: int, partitions: int, last: int
) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % partitions)
        if number % 10_000 == 0:
            producer.flush()
    for partition in range(partitions):
        # Neither matches anything, and both wait at the end.
        line = f'{{"id":{count + partition},"orderId":-1,"customer":"","amount":0,"at":{last}}}'
        producer.produce(topic, line, partition=partition)
    producer.flush()


@dataclass(frozen=True, slots=True)
class Expected:
    """What a join must write: each pair and each unpaid order as one number, sorted."""

    rows: Ints
    unpaid: int

    def check(self, name: str, found: Ints, *, times: int) -> None:
        """Raise RuntimeError unless all rows are there so many times, and nothing else."""
        if not np.array_equal(found, np.repeat(self.rows, times)):
            wanted = self.rows.size * times
            raise RuntimeError(f"{name}: {found.size:,} rows are not the {wanted:,} wanted")


def expect(servers: str) -> Expected:
    """Return what plain Python makes of the orders and payments."""
    times: dict[int, int] = {}
    latest = 0
    for _, value in _records(servers, "orders"):
        at = _number(value, b'"at":')
        times[_number(value, b'"id":')] = at
        latest = max(latest, at)
    rows = array("q")
    waiting = {order for order, at in times.items() if at < latest - WITHIN}
    for _, value in _records(servers, "payments"):
        order = _number(value, b'"orderId":')
        ordered = times.get(order)
        if ordered is not None and abs(_number(value, b'"at":') - ordered) <= WITHIN:
            rows.append(_row(order, _number(value, b'"id":') + 1))
            waiting.discard(order)
    rows.extend(_row(order, 0) for order in waiting)
    return Expected(_sorted(rows), len(waiting))


def find_rows(servers: str, *topics: str) -> Ints:
    """Return the rows in topics, each pair and each unpaid order as one number, sorted."""
    rows = array("q")
    for topic in topics:
        for _, value in _records(servers, topic):
            paid = b'"paymentId":' in value
            payment = _number(value, b'"paymentId":') + 1 if paid else 0
            rows.append(_row(_number(value, b'"id":'), payment))
    return _sorted(rows)


def _records(servers: str, topic: str) -> Iterator[tuple[str, bytes]]:
    return read_records(servers, KafkaReader(servers).beginning(topic))


def _row(order: int, payment: int) -> int:
    return order << _SHIFT | payment


def _number(value: bytes, name: bytes) -> int:
    begin = end = value.index(name) + len(name)
    while value[end : end + 1] in b"-0123456789" and end < len(value):
        end += 1
    return int(value[begin:end])


def _sorted(numbers: array[int]) -> Ints:
    return np.sort(np.frombuffer(numbers, dtype=np.int64))
