"""The batches that runs have written to Kafka clusters, by the marks of their transactions.

The kernel's `Marks` writes them: a mark is the committed offset of a group named like the
transactional id, and also a record in a compacted topic, since brokers forget idle groups.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping

from headgate.connectors.contract.written import (
    UNMARKED,
    Batches,
    Writers,
    Written,
    by_tasks,
    unknown,
)
from headgate.connectors.kafka.access.clients import read_metadata
from headgate.connectors.kafka.descriptor import Kafka, KafkaLog
from headgate.connectors.kafka.runs import groups
from headgate.errors import HeadgateError

rests_on = "transactions"
can_repeat = True
has_transactions = True

TOPIC = "headgate-epochs"

_PLACE = (TOPIC, 0)
_TIMEOUT_S = 10.0
_PATIENCE_S = 30.0
_PAUSE_S = 0.1
# Not the text of any query: tasks that read it stop.
_OWNER = '{"format":1,"run":"none"}'


def end_transactions(topic: Kafka, ids: Iterable[str]) -> None:
    """End the transactions of tasks on the topic's cluster, and fence the tasks."""
    groups.fence(topic.log, ids)


def find_hidden(_topic: Kafka, _lineage: str) -> None:
    """Return None: readers see what a batch has written."""


def find_written(
    topics: Mapping[str, Kafka], writers: Writers, batches: Batches
) -> dict[str, Written]:
    """Return what each topic's cluster holds of a run's batches."""
    if not writers.leave_marks:
        return dict.fromkeys(topics, UNMARKED)
    logs = dict.fromkeys(topic.log for topic in topics.values())
    answers = {log: find_on_cluster(log, writers, batches) for log in logs}
    return {name: answers[topic.log] for name, topic in topics.items()}


def find_on_cluster(log: KafkaLog, writers: Writers, batches: Batches) -> Written:
    """Return what a cluster holds of a run's batches, after fencing the run's tasks.

    Open transactions of the tasks are aborted, and live tasks cannot commit. A transaction spans
    all topics of a cluster, so the answer is the same for all of them.
    """
    from confluent_kafka import TopicPartition

    doing = f"find out what run {writers.lineage} has written"
    try:
        cluster = groups.Groups(log, doing=doing, timeout_s=_TIMEOUT_S, patience_s=_PATIENCE_S)
        if TOPIC not in read_metadata(cluster.admin, cluster.troubles, doing=doing).topics:
            # Every start with transactions creates it before its first batch, so it was deleted.
            return unknown(f"topic {TOPIC!r}, which holds the marks, is missing")
        # Earlier starts may have had more tasks.
        started = [name for name in cluster.names() if _is_task(name, writers.run)]
        ids = sorted({*writers.tasks, *started})
        # Detach the run from its query, so that a task without a producer stops.
        cluster.set_offsets(writers.run, [TopicPartition(*_PLACE, 0, _OWNER)])
        groups.fence(log, ids)
        marks = {id_: epoch for id_ in ids if (epoch := _find_mark(cluster, id_)) is not None}
        if len(marks) < len(ids):
            marks = {**_read_topic(log, writers.run, doing), **marks}
    except HeadgateError as error:
        return unknown(error.message)
    except (ValueError, KeyError, TypeError) as error:
        return unknown(f"a mark in topic {TOPIC!r} is not readable ({error})")
    # Only a task's newest mark is left: a mark after the batches implies earlier ones.
    return by_tasks(sum(1 for epoch in marks.values() if epoch >= batches.first))


def _find_mark(cluster: groups.Groups, group: str) -> int | None:
    """Return the epoch of a group's mark."""
    from confluent_kafka import TopicPartition

    committed = cluster.get_offset(group, TopicPartition(*_PLACE))
    if committed.offset < 0:
        return None
    try:
        return _epoch(committed.metadata)
    except UnicodeDecodeError:
        # The client may read beyond the text (seen in confluent-kafka 2.16). The topic of marks has
        # the same mark.
        return None


def _read_topic(log: KafkaLog, run: str, doing: str) -> Mapping[str, int]:
    """Return the newest committed mark of each of a run's tasks from the topic of marks."""
    from headgate.connectors.kafka.access.admin import Cluster
    from headgate.connectors.kafka.topics.records import read_records

    cluster = Cluster(log, doing=doing)
    end = cluster.next_offsets([_PLACE], committed=False)[_PLACE]
    deadline = time.monotonic() + _PATIENCE_S
    while cluster.next_offsets([_PLACE])[_PLACE] < end:
        if time.monotonic() > deadline:
            raise HeadgateError(
                "BROKER_FAILED",
                f"an open transaction of another job hides the end of topic {TOPIC!r}",
                hint="try again once it has ended",
            )
        time.sleep(_PAUSE_S)
    first = cluster.first_offsets([_PLACE])[_PLACE]
    epochs: dict[str, int] = {}
    for record in read_records(log, TOPIC, {0: first}, {0: end}, headers=False):
        name = (record.key or b"").decode(errors="replace")
        if record.value is not None and _is_task(name, run):
            epochs[name] = max(epochs.get(name, -1), _epoch(record.value.decode()))
    return epochs


def _is_task(group: str, run: str) -> bool:
    return re.fullmatch(rf"{re.escape(run)}\.[0-9]+(-[0-9]+)?", group) is not None


def _epoch(text: str) -> int:
    # The client may return extra bytes after a group's text (seen in confluent-kafka 2.16).
    content, _ = json.JSONDecoder().raw_decode(text)
    if content["format"] != 1:
        raise ValueError(f"its format is {content['format']}, and this release reads 1")
    return int(content["epoch"])
