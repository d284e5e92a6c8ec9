"""The batches that a run has written to a topic on Pulsar, by the sequence numbers of its tasks.

A broker tells a new producer the last number it accepted under that name. Only that is reliable:
the admin API shows a snapshot from up to a thousand entries ago.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.connectors.contract.written import (
    MAYBE_ALIVE,
    NOTHING,
    UNMARKED,
    Batches,
    Writers,
    Written,
    by_tasks,
    unknown,
)
from headgate.connectors.pulsar.access.admin import Admin
from headgate.connectors.pulsar.access.clients import open_client
from headgate.connectors.pulsar.descriptor import Pulsar, PulsarLog
from headgate.connectors.pulsar.failures import explain
from headgate.connectors.pulsar.topics.namespaces import Namespace, Shape
from headgate.connectors.pulsar.topics.schemas import JSON, plain_schema
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from pulsar import Client

rests_on = "the broker's deduplication"
can_repeat = True
has_transactions = False

# A number is the epoch, then 32 bits that identify a row within the epoch: SequenceId.java.
_EPOCH_SHIFT = 32
_MEMORY = "brokerDeduplicationProducerInactivityTimeoutMinutes"
_MEMORY_MINUTES = 360
# A broker notices a lost connection after two pings, 30 s apart.
_PATIENCE_S = 75.0
_PAUSE_S = 0.1


def end_transactions(_topic: Pulsar, _ids: Iterable[str]) -> None:
    """Do nothing: acknowledged rows are visible at once."""


def find_hidden(_topic: Pulsar, _lineage: str) -> None:
    """Return None: readers see what a batch has written."""


def find_written(
    topics: Mapping[str, Pulsar], writers: Writers, batches: Batches
) -> dict[str, Written]:
    """Return what each topic holds of a run's batches."""
    if not writers.are_gone or not writers.leave_marks:
        return dict.fromkeys(topics, UNMARKED if writers.are_gone else MAYBE_ALIVE)
    return {name: find_in_topic(topic, writers, batches) for name, topic in topics.items()}


def find_in_topic(topic: Pulsar, writers: Writers, batches: Batches) -> Written:
    """Return what a topic holds of a run's batches; none of the run's drivers may be alive."""
    doing = f"find out what run {writers.lineage} has written to topic {topic.name!r}"
    try:
        with Namespace(topic.log, doing=doing) as namespace:
            shape = namespace.find(topic.name)
            if shape is None:
                return NOTHING
            if not namespace.kept(shape).deduplicated:
                return unknown("deduplication is off, so brokers do not store sequence numbers")
            minutes = _memory_minutes(namespace.admin)
            if datetime.now(UTC) - batches.since >= timedelta(minutes=minutes):
                return unknown(f"brokers forget producers after {minutes} idle minutes")
            carried = namespace.find_schema(shape)
        schema = None if carried is None or carried[0] != JSON else carried[1]
        return _ask(topic.log, shape, schema, writers, batches, doing)
    except HeadgateError as error:
        return unknown(error.message)


def _memory_minutes(admin: Admin) -> int:
    try:
        settings = admin.get("brokers/configuration/runtime")
        return int(settings.get(_MEMORY, _MEMORY_MINUTES))
    except (HeadgateError, ValueError, AttributeError):
        # Not every user may read a broker's settings.
        return _MEMORY_MINUTES


def _ask(
    log: PulsarLog,
    shape: Shape,
    schema: str | None,
    writers: Writers,
    batches: Batches,
    doing: str,
) -> Written:
    import pulsar

    options = {} if schema is None else {"schema": plain_schema(schema)}
    client = open_client(log, doing=doing)
    try:
        wrote = [
            name
            for name in writers.tasks
            if any(
                _last_number(client, part, name, options) >> _EPOCH_SHIFT >= batches.first
                for part in shape.parts()
            )
        ]
    except pulsar.PulsarException as error:
        raise explain(doing, error, service=log.service) from error
    finally:
        client.close()
    return by_tasks(len(wrote))


def _last_number(client: Client, part: str, name: str, options: dict[str, Any]) -> int:
    """Return the last sequence number that a broker accepted from a producer; -1 for none."""
    import pulsar

    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            producer = client.create_producer(part, producer_name=name, **options)
        except pulsar.ProducerBusy:
            # The old connection of a dead process, which the broker has not noticed yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
            continue
        try:
            return int(producer.last_sequence_id())
        finally:
            producer.close()
