"""The event time of each stream and of its partitions. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate._codec import Moment

_EPOCH = datetime.fromtimestamp(0, UTC)
# The time of a drained stream is after the last moment with a date.
_LAST_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """The event time of one partition.

    Attributes:
        time: Its greatest event time; None before its first event.
        idle: True if the watermark does not wait for it.
    """

    time: Moment | None
    idle: bool


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The event time of one stream.

    Attributes:
        watermark: Its limit for the flow's watermark; None before its first event.
        held_back_by: The slowest partition that is not idle; None if all are idle.
        partitions: By name, such as `orders-3`.
    """

    watermark: Moment | None
    held_back_by: str | None
    partitions: Mapping[str, PartitionTime]


def parse_stream_times(text: str) -> tuple[str, StreamTimes]:
    """Return a stream's id and its times from a clock's report in the kernel's format."""
    report = json.loads(text)
    partitions = {
        name: PartitionTime(_of_millis(partition["time"]), bool(partition["idle"]))
        for name, partition in report["partitions"].items()
    }
    return report["stream"], StreamTimes(
        _of_millis(report["watermark"]), report["slowest"], partitions
    )


def find_holder(streams: Mapping[str, StreamTimes]) -> str | None:
    """Return the partition that holds back the flow's watermark; None if there is only one."""
    if sum(len(stream.partitions) for stream in streams.values()) < 2:
        return None
    slowest = min(streams.values(), key=lambda stream: stream.watermark or _EPOCH)
    return slowest.held_back_by


def _of_millis(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=min(ms, _LAST_MS))
