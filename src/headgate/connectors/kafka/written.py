"""The batches that a run has written to a Kafka cluster, by the marks of its transactions.

The kernel's `Marks` writes them: a mark is the committed offset of a group named like the
transactional id, and also a record in a compacted topic, since brokers forget idle groups.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.clients import Troubles, open_admin, read_metadata
from headgate.connectors.kafka.groups import fence
from headgate.connectors.written import Batches, Writers, Written, by_tasks, unknown
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

TOPIC = "headgate-epochs"

_PLACE = (TOPIC, 0)
_TIMEOUT_S = 10.0
# A transaction that just ended is decided a moment later.
_PATIENCE_S = 30.0
_PAUSE_S = 0.1
_PASSING = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "UNSTABLE_OFFSET_COMMIT",
        "_WAIT_COORD",
    }
)
# Not the text of any query: tasks that read it stop.
_OWNER = '{"format":1,"run":"none"}'


def find_written(client: ClientSpec, writers: Writers, batches: Batches) -> Written:
    """Return what a cluster holds of a run's batches, after fencing the run's tasks.

    Open transactions of the tasks are aborted, and live tasks cannot commit. A transaction spans
    all topics of a client, so the answer is the same for all of them.
    """
    doing = f"find out what run {writers.lineage} has written"
    try:
        admin, troubles = open_admin(client, doing=doing)
        asking = _Asking(admin, troubles, doing)
        if TOPIC not in read_metadata(admin, troubles, doing=doing).topics:
            # Every start with transactions creates it before its first batch, so it was deleted.
            return unknown(f"topic {TOPIC!r}, which holds the marks, is missing")
        ids = sorted({*writers.tasks, *asking.tasks_of(writers.run)})
        asking.claim(writers.run)
        fence(client, ids)
        marks = asking.marks(ids)
        if len(marks) < len(ids):
            marks = {**_read_topic(client, writers.run, doing), **marks}
    except HeadgateError as error:
        return unknown(error.message)
    except (ValueError, KeyError, TypeError) as error:
        return unknown(f"a mark in topic {TOPIC!r} is not readable ({error})")
    # Only a task's newest mark is left: a mark after the batches implies earlier ones.
    return by_tasks(sum(1 for epoch in marks.values() if epoch >= batches.first))


class _Asking:
    """Requests about a cluster's groups, repeated after temporary errors."""

    def __init__(self, admin: AdminClient, troubles: Troubles, doing: str) -> None:
        self._admin = admin
        self._troubles = troubles
        self._doing = doing

    def tasks_of(self, run: str) -> list[str]:
        """Return the groups of a run's tasks; earlier starts may have had more tasks."""
        groups = self._patiently(
            lambda: self._admin.list_consumer_groups(request_timeout=_TIMEOUT_S).result(
                timeout=_TIMEOUT_S + 1
            )
        )
        return [group.group_id for group in groups.valid if _is_task(group.group_id, run)]

    def claim(self, run: str) -> None:
        """Detach the run from its query, so that a task without a producer stops."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = ConsumerGroupTopicPartitions(run, [TopicPartition(*_PLACE, 0, _OWNER)])

        def ask() -> None:
            asked = self._admin.alter_consumer_group_offsets([wanted], request_timeout=_TIMEOUT_S)
            _checked(asked[run].result(timeout=_TIMEOUT_S + 1))

        self._patiently(ask)

    def marks(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the epoch of each group's mark; groups without a mark are absent."""
        return {group: epoch for group in ids if (epoch := self._mark(group)) is not None}

    def _mark(self, group: str) -> int | None:
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*_PLACE)])

        def ask() -> Any:
            # Stable offsets: wait until a pending transaction is decided.
            asked = self._admin.list_consumer_group_offsets(
                [wanted], require_stable=True, request_timeout=_TIMEOUT_S
            )
            return _checked(asked[group].result(timeout=_TIMEOUT_S + 1))

        (place,) = self._patiently(ask)
        if place.offset < 0:
            return None
        try:
            return _epoch(place.metadata)
        except UnicodeDecodeError:
            # The client may read beyond the text (seen in confluent-kafka 2.16). The topic of marks
            # has the same mark.
            return None

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return ask()
            except KafkaException as error:
                if error.args[0].name() not in _PASSING or time.monotonic() > deadline:
                    raise self._troubles.explain(self._doing, error) from error
            except TimeoutError as error:
                if time.monotonic() > deadline:
                    raise HeadgateError(
                        "BROKER_UNREACHABLE", f"cannot {self._doing}: no response", hint="try again"
                    ) from error
            time.sleep(_PAUSE_S)


def _checked(answer: Any) -> Any:
    from confluent_kafka import KafkaException

    for place in answer.topic_partitions:
        if place.error is not None:
            raise KafkaException(place.error)
    return answer.topic_partitions


def _read_topic(client: ClientSpec, run: str, doing: str) -> Mapping[str, int]:
    """Return the newest committed mark of each of a run's tasks from the topic of marks."""
    from headgate.connectors.kafka.admin import Cluster
    from headgate.connectors.kafka.reading import read_records

    cluster = Cluster(client, doing=doing)
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
    for record in read_records(client, TOPIC, {0: first}, {0: end}, headers=False):
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
