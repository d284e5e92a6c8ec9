"""Settings of topics on Pulsar: from our settings to a topic's policies, and back.

Pulsar counts in minutes and megabytes. Records that no subscription needs are kept for the
retention period; without one they are deleted with their ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from headgate.connectors.contract.setup import SetupOptions, TopicRole, wanted_topic
from headgate.connectors.contract.topics import FOREVER, MadeTopic, Retention, WantedTopic
from headgate.flow.schemas.schema import Schema

NOTHING = Retention(timedelta(0))

# The size at which Pulsar compacts a topic, as in its documentation.
COMPACTION_BYTES = 100 << 20

_MINUTES = "retentionTimeInMinutes"
_MEGABYTES = "retentionSizeInMB"
_MINUTE = timedelta(minutes=1)
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """The effective policies of a topic, whether set on it, its namespace or the brokers.

    Attributes:
        compacted: True if readers can ask for the last record of each key only.
        deduplicated: True if a producer's duplicates are dropped.
    """

    retention: Retention
    compacted: bool
    deduplicated: bool


def retention_policies(retention: Retention) -> dict[str, int]:
    """Return a topic's policies; retention is rounded up to whole minutes."""
    minutes = -1 if retention.duration is None else -(-retention.duration // _MINUTE)
    return {_MINUTES: minutes, _MEGABYTES: -1}


def read_retention(policies: Mapping[str, int] | None) -> Retention:
    """Return how long a topic keeps records that no subscription needs."""
    minutes, megabytes = (policies or {}).get(_MINUTES, 0), (policies or {}).get(_MEGABYTES, 0)
    if minutes == 0 or megabytes == 0:
        return NOTHING
    size = None if megabytes < 0 else megabytes * _MEGABYTE
    return Retention(None if minutes < 0 else minutes * _MINUTE, size)


def wanted_retention(wanted: WantedTopic) -> Retention | None:
    """Return the retention of a new topic; None keeps the namespace's policy."""
    return FOREVER if wanted.compact and wanted.retention is None else wanted.retention


def differences(wanted: WantedTopic, *, partitions: int, kept: Kept) -> tuple[str, ...]:
    """Return the differences between a topic and the wanted settings; None settings are ignored."""
    lines = []
    if wanted.partitions is not None and wanted.partitions != partitions:
        lines.append(f"it has {partitions} partitions instead of {wanted.partitions}")
    if wanted.compact and not kept.compacted:
        lines.append("it is not compacted")
    retention = wanted_retention(wanted)
    if retention is not None and retention_policies(retention) != _policies(kept.retention):
        lines.append(f"its retention is {kept.retention} instead of {retention}")
    if wanted.deduplicate and not kept.deduplicated:
        lines.append("its deduplication is off")
    return tuple(lines)


def _policies(retention: Retention) -> dict[str, int]:
    policies = retention_policies(retention)
    return (
        policies
        if retention.size is None
        else {**policies, _MEGABYTES: retention.size // _MEGABYTE}
    )


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
    if kept.duration == NOTHING.duration:
        yield "it has no retention, so records may be deleted before they are read"
    elif role is TopicRole.TABLE and kept != FOREVER:
        yield f"its rows are deleted after {kept}"
    elif options.retention is not None and kept != wanted.retention:
        yield f"its retention is {kept} instead of {wanted.retention}"
    if wanted.deduplicate and not made.deduplicated:
        yield "its deduplication is off, which exactly-once needs"
