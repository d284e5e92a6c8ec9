"""How long Pulsar keeps records: our words to a topic's policies, and back.

Pulsar counts in minutes and megabytes. What no subscription waits for is kept as long as its
retention says; without one it goes with the ledger it is in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from headgate.connectors.topics import FOREVER, Retention, WantedTopic

NOTHING = Retention(timedelta(0))

# How much may come in before Pulsar compacts a topic, as its own documentation has it.
COMPACTION_BYTES = 100 << 20

_MINUTES = "retentionTimeInMinutes"
_MEGABYTES = "retentionSizeInMB"
_MINUTE = timedelta(minutes=1)
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """What applies to a topic, be it its own policy, its namespace's or the brokers'.

    Attributes:
        compacted: Whether readers that ask for it get the last record of each key alone.
        deduplicated: Whether what a producer sends again is dropped.
    """

    retention: Retention
    compacted: bool
    deduplicated: bool


def retention_policies(retention: Retention) -> dict[str, int]:
    """Return a topic's policies; what is no whole number of minutes is kept for one more."""
    minutes = -1 if retention.duration is None else -(-retention.duration // _MINUTE)
    return {_MINUTES: minutes, _MEGABYTES: -1}


def read_retention(policies: Mapping[str, int] | None) -> Retention:
    """Return how long a topic keeps records that no subscription waits for."""
    minutes, megabytes = (policies or {}).get(_MINUTES, 0), (policies or {}).get(_MEGABYTES, 0)
    if minutes == 0 or megabytes == 0:
        return NOTHING
    size = None if megabytes < 0 else megabytes * _MEGABYTE
    return Retention(None if minutes < 0 else minutes * _MINUTE, size)


def wanted_retention(wanted: WantedTopic) -> Retention | None:
    """Return the retention that a topic is to have; None leaves it to its namespace."""
    return FOREVER if wanted.compact and wanted.retention is None else wanted.retention


def differences(wanted: WantedTopic, *, partitions: int, kept: Kept) -> tuple[str, ...]:
    """Return in what a topic is not as it was wanted, in words; what was not said is no matter."""
    found = []
    if wanted.partitions is not None and wanted.partitions != partitions:
        found.append(f"it has {partitions} partitions and not {wanted.partitions}")
    if wanted.compact and not kept.compacted:
        found.append("it is not compacted")
    retention = wanted_retention(wanted)
    if retention is not None and retention_policies(retention) != _policies(kept.retention):
        found.append(f"its retention is {kept.retention} and not {retention}")
    if wanted.deduplicate and not kept.deduplicated:
        found.append("its deduplication is off")
    return tuple(found)


def _policies(retention: Retention) -> dict[str, int]:
    told = retention_policies(retention)
    return told if retention.size is None else {**told, _MEGABYTES: retention.size // _MEGABYTE}
