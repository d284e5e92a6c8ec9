"""How topics of a flow are made on Pulsar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.setup import SetupOptions, TopicRole, wanted_topic
from headgate.connectors.topics import FOREVER, MadeTopic, WantedTopic
from headgate.flow.schema import Schema

OPTIONS = frozenset({"retention"})


def find_companions(_topic: Pulsar) -> tuple[()]:
    """Return none: brokers remember by themselves what they have."""
    return ()


def wanted(
    topic: Pulsar, role: TopicRole, options: SetupOptions, schema: Schema | None = None
) -> WantedTopic:
    """Return what a topic is to be like."""
    return wanted_on_pulsar(topic.name, role, options, schema)


def wanted_on_pulsar(
    name: str, role: TopicRole, options: SetupOptions, schema: Schema | None = None
) -> WantedTopic:
    """Return what a topic of a name is to be like.

    Jobs read all there is, so that compaction, which is for readers that ask for it, is left out.
    """
    return replace(
        wanted_topic(name, role, options),
        compact=False,
        replication=None,
        deduplicate=role.is_written,
        schema=schema,
        # What records of a topic are like that is only read is its owner's matter.
        amend=role.is_written,
    )


def find_problems(role: TopicRole, made: MadeTopic, options: SetupOptions) -> Iterator[str]:
    """Yield what is wrong with a topic that was there before, in words."""
    wanted = wanted_on_pulsar(made.name, role, options)
    if options.partitions is not None and made.partitions != wanted.partitions:
        yield f"it has {made.partitions} partitions and not {wanted.partitions}"
    kept = made.retention
    assert kept is not None, "Pulsar tells what it keeps"
    if kept.duration == timedelta(0):
        yield "it has no retention, so that records may be gone before they are read"
    elif role is TopicRole.TABLE and kept != FOREVER:
        yield f"its rows are lost after {kept}"
    elif options.retention is not None and kept != wanted.retention:
        yield f"its retention is {kept} and not {wanted.retention}"
    if wanted.deduplicate and not made.deduplicated:
        yield "its deduplication is off, so that exactly-once does not start"
