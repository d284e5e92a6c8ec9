"""How long Kafka keeps records: our words to a topic's settings, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from headgate.connectors.topics import FOREVER, Retention, WantedTopic

_RETENTION = "retention.ms"
_POLICY = "cleanup.policy"
_MS = timedelta(milliseconds=1)


def topic_config(wanted: WantedTopic) -> dict[str, str]:
    """Return the settings of a topic to be made; what is not said is left to the brokers."""
    config = {}
    if wanted.compact:
        is_kept = wanted.retention is None or wanted.retention == FOREVER
        config[_POLICY] = "compact" if is_kept else "compact,delete"
    elif wanted.retention is not None:
        config[_POLICY] = "delete"
    if wanted.retention is not None:
        duration = wanted.retention.duration
        config[_RETENTION] = str(-1 if duration is None else duration // _MS)
    return config


def read_retention(config: Mapping[str, str]) -> Retention:
    """Return how long a topic keeps records; compaction alone keeps the last of a key for ever."""
    millis = int(config[_RETENTION])
    if millis < 0 or "delete" not in config[_POLICY]:
        return FOREVER
    try:
        return Retention(timedelta(milliseconds=millis))
    except OverflowError:
        return FOREVER


def is_compacted(config: Mapping[str, str]) -> bool:
    """Tell whether only the last record of each key is sure to be kept."""
    return "compact" in config[_POLICY]


def differences(
    wanted: WantedTopic, *, partitions: int, replication: int, config: Mapping[str, str]
) -> tuple[str, ...]:
    """Return in what a topic is not as it was wanted, in words; what was not said is no matter."""
    retention, compacted = read_retention(config), is_compacted(config)
    found = []
    if wanted.partitions is not None and wanted.partitions != partitions:
        found.append(f"it has {partitions} partitions and not {wanted.partitions}")
    if wanted.replication is not None and wanted.replication != replication:
        found.append(f"it has {replication} replicas and not {wanted.replication}")
    if wanted.compact and not compacted:
        found.append("it is not compacted")
    elif compacted and not wanted.compact and wanted.retention is not None:
        found.append("it is compacted")
    if wanted.retention is not None and wanted.retention != retention:
        found.append(f"its retention is {retention} and not {wanted.retention}")
    return tuple(found)
