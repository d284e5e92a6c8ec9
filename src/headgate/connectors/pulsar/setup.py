"""Creation of a flow's topics on Pulsar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from headgate.connectors.setup import SetupOptions, TopicRole, wanted_topic
from headgate.connectors.topics import FOREVER, MadeTopic, WantedTopic
from headgate.flow.schema import Schema


def wanted_on_pulsar(
    name: str, role: TopicRole, options: SetupOptions, schema: Schema | None = None
) -> WantedTopic:
    """Return the settings of a topic with a name.

    Jobs read all records, so compaction, which readers have to ask for, is omitted.
    """
    return replace(
        wanted_topic(name, role, options),
        compact=False,
        replication=None,
        deduplicate=role.is_written,
        schema=schema,
        # The schema of a topic that is only read belongs to its owner.
        amend=role.is_written,
    )


def find_problems(role: TopicRole, made: MadeTopic, options: SetupOptions) -> Iterator[str]:
    """Yield the problems of a topic that already existed."""
    wanted = wanted_on_pulsar(made.name, role, options)
    if options.partitions is not None and made.partitions != wanted.partitions:
        yield f"it has {made.partitions} partitions instead of {wanted.partitions}"
    kept = made.retention
    assert kept is not None, "every topic on Pulsar has a retention"
    if kept.duration == timedelta(0):
        yield "it has no retention, so records may be deleted before they are read"
    elif role is TopicRole.TABLE and kept != FOREVER:
        yield f"its rows are deleted after {kept}"
    elif options.retention is not None and kept != wanted.retention:
        yield f"its retention is {kept} instead of {wanted.retention}"
    if wanted.deduplicate and not made.deduplicated:
        yield "its deduplication is off, which exactly-once needs"
