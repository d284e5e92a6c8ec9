"""Retention on Kafka: from our settings to a topic's settings, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from headgate.connectors.contract.topics import FOREVER, MadeTopic, Retention, WantedTopic

_RETENTION = "retention.ms"
_POLICY = "cleanup.policy"
_MS = timedelta(milliseconds=1)


def topic_config(wanted: WantedTopic) -> dict[str, str]:
    """Return the settings of a new topic; settings that are None keep the brokers' defaults."""
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
    """Return the retention of a topic; without deletion, compaction keeps the last record of a key
    for ever."""
    millis = int(config[_RETENTION])
    if millis < 0 or "delete" not in config[_POLICY]:
        return FOREVER
    try:
        return Retention(timedelta(milliseconds=millis))
    except OverflowError:
        return FOREVER


def is_compacted(config: Mapping[str, str]) -> bool:
    """Return True if only the last record of each key is sure to be retained."""
    return "compact" in config[_POLICY]


def differences(wanted: WantedTopic, made: MadeTopic) -> tuple[str, ...]:
    """Return the differences between a topic and the wanted settings; None settings are ignored."""
    lines = []
    if wanted.partitions is not None and wanted.partitions != made.partitions:
        lines.append(f"it has {made.partitions} partitions instead of {wanted.partitions}")
    if wanted.replication is not None and wanted.replication != made.replication:
        lines.append(f"it has {made.replication} replicas instead of {wanted.replication}")
    if wanted.compact and not made.compacted:
        lines.append("it is not compacted")
    elif made.compacted and not wanted.compact and wanted.retention is not None:
        lines.append("it is compacted")
    if wanted.retention is not None and wanted.retention != made.retention:
        lines.append(f"its retention is {made.retention} instead of {wanted.retention}")
    return tuple(lines)
