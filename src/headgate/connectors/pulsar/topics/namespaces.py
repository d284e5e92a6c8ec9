"""Requests to a namespace about its topics."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.connectors.contract.topics import TopicSubscription, topic_not_found
from headgate.connectors.pulsar.access.admin import Admin
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.keeping import Kept, read_retention
from headgate.connectors.pulsar.names import (
    PERSISTENT,
    full_name,
    partition_name,
    topic_path,
)
from headgate.connectors.pulsar.topics.ledgers import Ledgers, read_ledgers

_APPLIED = {"applied": "true"}
_PUBLISHED = "x-pulsar-publish-time"


@dataclass(frozen=True, slots=True)
class Shape:
    """The layout of a topic.

    Attributes:
        full: Its full name.
        partitioned: True if it consists of one plain topic per partition.
        partitions: The number of partitions; 1 for a plain topic.
    """

    full: str
    partitioned: bool
    partitions: int

    def parts(self) -> list[str]:
        """Return the full names of the plain topics that hold its records, by partition."""
        if not self.partitioned:
            return [self.full]
        return [partition_name(self.full, number) for number in range(self.partitions)]


class Namespace:
    """One namespace; close it, or use `with`.

    Raises:
        HeadgateError: From every method BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """

    def __init__(self, log: PulsarLog, *, doing: str) -> None:
        self.name = log.namespace
        self.where = log.address
        self._on = shlex.quote(str(log))
        self.admin = Admin(log, doing=doing)

    def __enter__(self) -> Namespace:
        return self

    def __exit__(self, *_: object) -> None:
        self.admin.close()

    def names(self) -> list[str]:
        """Return the short names of the topics, without Pulsar's internal ones."""
        return sorted(self._layout())

    def shapes(self) -> list[Shape]:
        """Return the layout of all topics, by name."""
        layout = sorted(self._layout().items())
        return [self.get(name) if parted else self._plain(name) for name, parted in layout]

    def find(self, topic: str) -> Shape | None:
        """Return the layout of a topic, or None if it does not exist."""
        full = full_name(self.name, topic)
        response = self.admin.find(f"{topic_path(full)}/partitions")
        if response is None:
            return None
        count = int(response["partitions"])
        return Shape(full, partitioned=count > 0, partitions=max(1, count))

    def get(self, topic: str) -> Shape:
        """Return the layout of a topic.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        shape = self.find(topic)
        if shape is None:
            raise topic_not_found(topic, self.names(), where=self.where, on=self._on)
        return shape

    def ledgers(self, shape: Shape) -> list[Ledgers]:
        """Return the retained entries of each partition; this opens unused partitions."""
        if shape.partitioned:
            stats = self.admin.get(f"{topic_path(shape.full)}/partitioned-internalStats")
            # For a partition that does not exist yet, the response is a stack trace.
            if "partitions" in stats:
                # Brokers delete empty and idle partitions, and open them on use.
                partitions = stats["partitions"]
                return [read_ledgers(part, partitions.get(part)) for part in shape.parts()]
        return [
            read_ledgers(part, self.admin.find(f"{topic_path(part)}/internalStats"))
            for part in shape.parts()
        ]

    def kept(self, shape: Shape) -> Kept:
        """Return the effective policies of a topic."""
        return Kept(
            retention=read_retention(self._applied(shape, "retention")),
            compacted=bool(self._applied(shape, "compactionThreshold")),
            deduplicated=bool(self._applied(shape, "deduplicationEnabled")),
        )

    def find_schema(self, shape: Shape) -> tuple[str, str] | None:
        """Return the kind and the definition of a topic's schema; None for none."""
        schema = self.admin.find(schema_path(shape.full))
        return None if schema is None else (str(schema["type"]), str(schema.get("data", "")))

    def subscriptions(self, shape: Shape) -> tuple[TopicSubscription, ...]:
        """Return the subscriptions of a topic by name; readers have none."""
        path = topic_path(shape.full)
        if shape.partitioned:
            stats = self.admin.get(f"{path}/partitioned-stats", query={"perPartition": "false"})
        else:
            stats = self.admin.get(f"{path}/stats")
        return tuple(
            TopicSubscription(name, int(subscription["msgBacklog"]), len(subscription["consumers"]))
            for name, subscription in sorted(stats["subscriptions"].items())
            if subscription.get("durable", True)
        )

    def find_newest(self, kept: Ledgers) -> datetime | None:
        """Return when the last entry of a partition was published; None if it was deleted."""
        if kept.last is None:
            return None
        ledger, entry = kept.last.ledger, kept.last.entry
        path = f"{topic_path(kept.part)}/ledger/{ledger}/entry/{entry}"
        # A batch may have megabytes, and only its headers are needed.
        answer = self.admin.send("HEAD", path, accepts={404, 500})
        moment = answer.headers.get(_PUBLISHED)
        return None if moment is None else datetime.fromisoformat(moment)

    def _layout(self) -> dict[str, bool]:
        """Return the topics, and whether each is partitioned."""
        partitioned = set(self._listed("/partitioned"))
        plain = (
            name
            for name in self._listed("")
            if name.rpartition("-partition-")[0] not in partitioned
        )
        layout = dict.fromkeys(plain, False) | dict.fromkeys(partitioned, True)
        return {name: parted for name, parted in layout.items() if not name.startswith("__")}

    def _listed(self, kind: str) -> Iterator[str]:
        prefix = f"{PERSISTENT}{self.name}/"
        for full in self.admin.find(f"persistent/{self.name}{kind}") or ():
            yield full.removeprefix(prefix)

    def _plain(self, name: str) -> Shape:
        return Shape(full_name(self.name, name), partitioned=False, partitions=1)

    def _applied(self, shape: Shape, policy: str) -> Any:
        return self.admin.get(f"{topic_path(shape.full)}/{policy}", query=_APPLIED)


def schema_path(full: str) -> str:
    """Return the path of a topic's schema in the admin API."""
    return f"schemas/{topic_path(full).removeprefix('persistent/')}/schema"
