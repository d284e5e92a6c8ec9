"""How far each stream and each of its partitions has come in event time. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headgate._codec import Moment

_EPOCH = datetime.fromtimestamp(0, UTC)
# A drained stream's time lies behind the last moment that has a date.
_LAST_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """How far one partition has come.

    Attributes:
        time: Its greatest event time; None where it has brought no event.
        idle: Whether the watermark does not wait for it.
    """

    time: Moment | None
    idle: bool


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """How far one stream has come.

    Attributes:
        watermark: What it allows the flow's watermark to be; None before its first event.
        held_back_by: The slowest partition that is not idle; None where all are idle.
        partitions: By name, such as `orders-3`.
    """

    watermark: Moment | None
    held_back_by: str | None
    partitions: Mapping[str, PartitionTime]


def parse_stream_times(text: str) -> tuple[str, StreamTimes]:
    """Return a stream's id and its times, out of what its clock tells in the kernel's form."""
    told = json.loads(text)
    partitions = {
        name: PartitionTime(_of_millis(each["time"]), bool(each["idle"]))
        for name, each in told["partitions"].items()
    }
    return told["stream"], StreamTimes(_of_millis(told["watermark"]), told["slowest"], partitions)


def find_holder(streams: Mapping[str, StreamTimes]) -> str | None:
    """Return the partition that the flow's watermark waits for; None where there is no choice."""
    if sum(len(each.partitions) for each in streams.values()) < 2:
        return None
    slowest = min(streams.values(), key=lambda each: each.watermark or _EPOCH)
    return slowest.held_back_by


def _of_millis(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=min(ms, _LAST_MS))
