"""How the topics of a flow are to be made: what is the same on every log. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from headgate.connectors.topics import (
    FOREVER,
    MadeTopic,
    Retention,
    WantedTopic,
    parse_retention,
)

# As many as the cores of a small machine: tasks can share partitions, never the other way round.
PARTITIONS = 4
RETENTION = Retention(timedelta(days=7))


class TopicRole(enum.StrEnum):
    """What a topic is to a flow."""

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
    """How topics are made; what is None was not asked for, and has a default.

    Attributes:
        retention: Of streams, outputs and dead letters: a duration, or `infinite`.
        replication: How many brokers keep a copy.
    """

    partitions: int | None = None
    retention: str | None = None
    replication: int | None = None


def wanted_topic(name: str, role: TopicRole, options: SetupOptions) -> WantedTopic:
    """Return what a topic is to be like on a log with retention, compaction and replicas."""
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
    """Yield in what a topic that was there is not as `wanted_topic` says, in words."""
    wanted = wanted_topic(made.name, role, options)
    asked = options.partitions is not None or role is TopicRole.EPOCHS
    if asked and made.partitions != wanted.partitions:
        yield f"it has {made.partitions} partitions and not {wanted.partitions}"
    if made.retention is None:
        return
    if options.replication is not None and made.replication != options.replication:
        yield f"it has {made.replication} replicas and not {options.replication}"
    if wanted.compact and not made.compacted:
        yield "it is not compacted, so that rows are lost or old ones pile up"
    elif made.compacted and not wanted.compact:
        yield "it is compacted, so that records with the same key are lost"
    if wanted.compact and made.retention != FOREVER:
        yield f"its rows are lost after {made.retention}"
    elif options.retention is not None and made.retention != wanted.retention:
        yield f"its retention is {made.retention} and not {wanted.retention}"
