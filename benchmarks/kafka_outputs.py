"""What is in the store's topics on Kafka: whether each order came out where it belongs."""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from kafka_job import OUTPUTS

Orders: TypeAlias = npt.NDArray[np.int64]
"""Orders by number, sorted: the invoice and the line item in one."""

_ORDER = re.compile(rb'\{"invoiceId":(\d+),"lineItemId":(\d+),')
_REFERRED = re.compile(rb'.*?"userId":(\d+),"itemId":(\d+),')
_LINE_ITEMS = 10  # an invoice has fewer
_PIECE = 5_000
_LOOK = 0.2
_SILENCE = 30.0


def find_ends(servers: str, topics: Sequence[str]) -> list[TopicPartition]:
    """Return where each partition of some topics ends now."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "headgate-bench"})
    try:
        found = []
        for topic in topics:
            for partition in consumer.list_topics(topic, timeout=_SILENCE).topics[topic].partitions:
                _, end = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=_SILENCE
                )
                found.append(TopicPartition(topic, partition, end))
        return found
    finally:
        consumer.close()


def read_reference(servers: str, *, users: int, items: int) -> dict[str, Orders]:
    """Return which orders belong to which output, out of the orders themselves."""
    belong = {output: array("q") for output in OUTPUTS}
    start = [
        TopicPartition(each.topic, each.partition, 0) for each in find_ends(servers, ["orders"])
    ]
    for _, value in _records(servers, start):
        order, rest = _number(value)
        referred = _REFERRED.match(value, rest)
        if referred is None:
            raise RuntimeError(f"this is no order: {value!r}")
        if int(referred[1]) > users:
            belong["missing-users"].append(order)
        elif int(referred[2]) > items:
            belong["missing-items"].append(order)
        else:
            belong["enriched-orders"].append(order)
    return {output: _sorted(orders) for output, orders in belong.items()}


def check_outputs(
    servers: str,
    since: list[TopicPartition],
    reference: Mapping[str, Orders],
    *,
    exactly_once: bool,
) -> dict[str, int]:
    """Count the rows that a committed reader finds in each output, and refuse wrong ones.

    Args:
        since: Where the outputs ended before the run.
        exactly_once: Whether an order may not be there twice.

    Raises:
        RuntimeError: An order is missing, is where it does not belong, or is there twice.
    """
    found = {output: array("q") for output in OUTPUTS}
    for topic, value in _records(servers, since):
        found[topic].append(_number(value)[0])
    for output, wanted in reference.items():
        orders = _sorted(found[output])
        distinct = np.unique(orders)
        if not np.array_equal(distinct, wanted) or (exactly_once and len(orders) > len(distinct)):
            missing = len(np.setdiff1d(wanted, distinct))
            foreign = len(np.setdiff1d(distinct, wanted))
            raise RuntimeError(
                f"{output} has {len(orders):,} rows and should have {len(wanted):,}: {missing:,} "
                f"are missing, {foreign:,} are foreign, {len(orders) - len(distinct):,} are twice"
            )
    return {output: len(orders) for output, orders in found.items()}


def _records(servers: str, since: list[TopicPartition]) -> Iterator[tuple[str, bytes]]:
    """Yield topic and value of all records a committed reader finds up to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "headgate-bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            # Offsets are no counts where there are transactions: the end is told, not computed.
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign(since)
        left, heard = len(since), time.monotonic()
        while left:
            # A piece that does not fill up is waited for all the same.
            messages = consumer.consume(_PIECE, timeout=_LOOK)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                raise RuntimeError(f"no record came within {_SILENCE:.0f} s")
            for message in messages:
                if _is_end(message):
                    left -= 1
                else:
                    yield str(message.topic()), bytes(message.value() or b"")
    finally:
        consumer.close()


def _is_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return True


def _number(value: bytes) -> tuple[int, int]:
    """Return the number of the order a record is of, and where in the record its rest begins."""
    found = _ORDER.match(value)
    if found is None:
        raise RuntimeError(f"this is no order: {value!r}")
    return int(found[1]) * _LINE_ITEMS + int(found[2]), found.end() - 1


def _sorted(orders: array[int]) -> Orders:
    return np.sort(np.frombuffer(orders, dtype=np.int64)) if orders else np.empty(0, np.int64)
