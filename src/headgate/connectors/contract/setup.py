"""Creation of a flow's topics: the part that all logs share. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from headgate.connectors.contract.topics import (
    FOREVER,
    MadeTopic,
    Retention,
    WantedTopic,
    parse_retention,
)

# As many as the cores of a small machine: tasks can share partitions, but not the reverse.
PARTITIONS = 4
RETENTION = Retention(timedelta(days=7))


class TopicRole(enum.StrEnum):
    """The role of a topic in a flow."""

    TABLE = "table"
    STREAM = "stream"
    OUTPUT = "output"
    DEAD_LETTERS = "dead letters"
    EPOCHS = "epochs"

    @property
    def is_written(self) -> bool:
        """Whether the flow writes it."""
        return self in (TopicRole.OUTPUT, TopicRole.DEAD_LETTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """Settings of new topics; None means the default.

    Attributes:
        retention: For streams, outputs and dead letters: a duration, or `infinite`.
        replication: The number of replicas.
    """

    partitions: int | None = None
    retention: str | None = None
    replication: int | None = None


def wanted_topic(name: str, role: TopicRole, options: SetupOptions) -> WantedTopic:
    """Return the settings of a topic on a log with retention, compaction and replicas."""
    keeps = role in (TopicRole.TABLE, TopicRole.EPOCHS)
    asked = RETENTION if options.retention is None else parse_retention(options.retention)
    one = role is TopicRole.EPOCHS
    return WantedTopic(
        name=name,
        partitions=1 if one else options.partitions or PARTITIONS,
        retention=FOREVER if keeps else asked,
        compact=keeps,
        replication=options.replication,
    )


def find_problems(role: TopicRole, made: MadeTopic, options: SetupOptions) -> Iterator[str]:
    """Yield the differences between an existing topic and `wanted_topic`."""
    wanted = wanted_topic(made.name, role, options)
    asked = options.partitions is not None or role is TopicRole.EPOCHS
    if asked and made.partitions != wanted.partitions:
        yield f"it has {made.partitions} partitions instead of {wanted.partitions}"
    if made.retention is None:
        return
    if options.replication is not None and made.replication != options.replication:
        yield f"it has {made.replication} replicas instead of {options.replication}"
    if wanted.compact and not made.compacted:
        yield "it is not compacted, so rows get lost or old rows pile up"
    elif made.compacted and not wanted.compact:
        yield "it is compacted, so records with the same key get lost"
    if wanted.compact and made.retention != FOREVER:
        yield f"its rows are deleted after {made.retention}"
    elif options.retention is not None and made.retention != wanted.retention:
        yield f"its retention is {made.retention} instead of {wanted.retention}"
