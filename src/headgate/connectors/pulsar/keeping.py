"""Retention on Pulsar: from our settings to a topic's policies, and back.

Pulsar counts in minutes and megabytes. Records that no subscription needs are kept for the
retention period; without one they are deleted with their ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from headgate.connectors.topics import FOREVER, Retention, WantedTopic

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
