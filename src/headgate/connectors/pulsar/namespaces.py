"""What a namespace says of its topics."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

from headgate.connectors.pulsar.admin import Admin
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.keeping import Kept, read_retention
from headgate.connectors.pulsar.ledgers import EMPTY, Ledgers, read_ledgers
from headgate.connectors.pulsar.log import PulsarLog
from headgate.connectors.pulsar.message_ids import EntryId
from headgate.connectors.pulsar.names import (
    DEFAULT_NAMESPACE,
    PERSISTENT,
    full_name,
    partition_name,
    topic_path,
)
from headgate.connectors.topics import TopicSubscription, topic_not_found
from headgate.errors import HeadgateError

_APPLIED = {"applied": "true"}
_PUBLISHED = "x-pulsar-publish-time"


@dataclass(frozen=True, slots=True)
class Shape:
    """A topic as it is laid out.

    Attributes:
        full: Its whole name.
        partitioned: Whether it is made of plain topics, one for each partition.
        partitions: How many; a plain topic is one.
    """

    full: str
    partitioned: bool
    partitions: int

    def parts(self) -> list[str]:
        """Return the whole names of the plain topics that hold its records, by partition."""
        if not self.partitioned:
            return [self.full]
        return [partition_name(self.full, number) for number in range(self.partitions)]


class Namespace:
    """One namespace; to be closed, as `with` does.

    Raises:
        HeadgateError: From every method BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """

    def __init__(self, client: ClientSpec, name: str, *, doing: str) -> None:
        self.name = name
        self.where = place(client, name)
        self._on = shlex.quote(str(PulsarLog(client, name)))
        self.admin = Admin(client, doing=doing)

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.admin.close()

    def names(self) -> list[str]:
        """Return the short names of the topics, without those that Pulsar keeps for itself."""
        return sorted(self._layout())

    def shapes(self) -> list[Shape]:
        """Return how all topics are laid out, by name."""
        layout = sorted(self._layout().items())
        return [self.get(name) if parted else self._plain(name) for name, parted in layout]

    def find(self, topic: str) -> Shape | None:
        """Return how a topic is laid out, or None where there is none."""
        full = full_name(self.name, topic)
        told = self.admin.find(f"{topic_path(full)}/partitions")
        if told is None:
            return None
        count = int(told["partitions"])
        return Shape(full, partitioned=count > 0, partitions=max(1, count))

    def get(self, topic: str) -> Shape:
        """Return how a topic is laid out.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        found = self.find(topic)
        if found is None:
            raise self.not_found(topic)
        return found

    def not_found(self, topic: str) -> HeadgateError:
        """Return the error for a topic that is not there."""
        return topic_not_found(topic, self.names(), where=self.where, on=self._on)

    def ledgers(self, shape: Shape) -> list[Ledgers]:
        """Return what each partition keeps; one that was never used is opened by that."""
        if shape.partitioned:
            told = self.admin.get(f"{topic_path(shape.full)}/partitioned-internalStats")
            # Where a partition is not there yet, the answer is a stack trace, and no failure.
            if "partitions" in told:
                # Brokers delete partitions that are empty and idle, and open them when used.
                found = told["partitions"]
                return [
                    read_ledgers(found[part]) if part in found else EMPTY for part in shape.parts()
                ]
        return [self._part_ledgers(part) for part in shape.parts()]

    def kept(self, shape: Shape) -> Kept:
        """Return what applies to a topic."""
        return Kept(
            retention=read_retention(self._applied(shape, "retention")),
            compacted=bool(self._applied(shape, "compactionThreshold")),
            deduplicated=bool(self._applied(shape, "deduplicationEnabled")),
        )

    def find_schema(self, shape: Shape) -> tuple[str, str] | None:
        """Return the kind and the definition of the schema a topic carries; None for none."""
        told = self.admin.find(schema_path(shape.full))
        return None if told is None else (str(told["type"]), str(told.get("data", "")))

    def subscriptions(self, shape: Shape) -> tuple[TopicSubscription, ...]:
        """Return the subscriptions of a topic by name; readers have none."""
        path = topic_path(shape.full)
        if shape.partitioned:
            told = self.admin.get(f"{path}/partitioned-stats", query={"perPartition": "false"})
        else:
            told = self.admin.get(f"{path}/stats")
        return tuple(
            TopicSubscription(name, int(each["msgBacklog"]), len(each["consumers"]))
            for name, each in sorted(told["subscriptions"].items())
            if each.get("durable", True)
        )

    def published(self, part: str, entry: EntryId | None) -> datetime | None:
        """Return when an entry of a partition was published; None where it is gone."""
        if entry is None:
            return None
        path = f"{topic_path(part)}/ledger/{entry.ledger}/entry/{entry.entry}"
        # A batch may be of megabytes, and only its headers are wanted.
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

    def _part_ledgers(self, part: str) -> Ledgers:
        told = self.admin.find(f"{topic_path(part)}/internalStats")
        return EMPTY if told is None else read_ledgers(told)

    def _applied(self, shape: Shape, policy: str) -> Any:
        return self.admin.get(f"{topic_path(shape.full)}/{policy}", query=_APPLIED)


def place(client: ClientSpec, namespace: str) -> str:
    """Return where topics are, as `--on` names it without options."""
    default = namespace == DEFAULT_NAMESPACE
    return client.service if default else f"{client.service}/{namespace}"


def schema_path(full: str) -> str:
    """Return where the admin API has the schema of a topic."""
    return f"schemas/{topic_path(full).removeprefix('persistent/')}/schema"
