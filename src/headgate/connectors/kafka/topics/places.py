"""The records of a topic on Kafka by place: the partition and the offset."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headgate.connectors.contract.places import PlacedRecord, Send, Spot, Stretch
from headgate.connectors.kafka.access.admin import Cluster
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.topics.producing import KafkaSender
from headgate.connectors.kafka.topics.records import Record, read_records, tail

_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,18})")
# Skipping this many records takes about as long as a second consumer needs to start.
_GAP = 5_000
# The producer must not refuse a record that the topic once took; the brokers decide.
_TUNING = {"message.max.bytes": str(100 << 20)}


@dataclass(frozen=True, slots=True)
class KafkaPlaces:
    """One topic; committed records only."""

    log: KafkaLog
    topic: str

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the last records over all partitions, by timestamp."""
        return [_placed(record) for record in tail(self.log, self.topic, count)]

    def stretches(self, at_most: int | None = None) -> list[Stretch]:
        """Return the partitions; offsets have gaps, so each may hold fewer records."""
        first, end = self._bounds()
        share = None if at_most is None else max(1, at_most // max(1, len(end)))
        return [
            Stretch(
                str(number),
                first[number] if share is None else max(first[number], end[number] - share),
                end[number],
                first[number],
            )
            for number in sorted(end)
        ]

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:
        number = int(stretch.part)
        start, end = {number: stretch.first}, {number: stretch.end}
        for record in read_records(self.log, self.topic, start, end):
            yield _placed(record)

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:
        matches = (_PLACE.fullmatch(place) for place in places)
        spots = {(int(match[1]), int(match[2])) for match in matches if match is not None}
        return {record.place: record for record in self.find_spots(spots).values()}

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:
        if not spots:
            return {}
        first, end = self._bounds()
        kept = {
            spot for spot in spots if spot[0] in end and first[spot[0]] <= spot[1] < end[spot[0]]
        }
        records = {}
        for start, stop in _rounds(kept):
            for record in read_records(self.log, self.topic, start, stop):
                if (record.partition, record.offset) in kept:
                    records[record.partition, record.offset] = _placed(record)
        return records

    @contextmanager
    def sending(self) -> Iterator[Send]:
        """Open a sender of records with keys and headers, each to its partition."""
        with KafkaSender(self.log, _TUNING) as sender:
            yield lambda records: sender.send_each(self.topic, map(_message, records))

    def _bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        return Cluster(self.log, doing=f"read topic {self.topic!r}").bounds(self.topic)


def _rounds(spots: Collection[Spot]) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
    """Yield start and end offsets by partition until all positions are covered."""
    by_partition: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for partition, offset in sorted(spots):
        ranges = by_partition[partition]
        if ranges and offset - ranges[-1][1] <= _GAP:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    for turn in range(max(map(len, by_partition.values()), default=0)):
        now = {part: ranges[turn] for part, ranges in by_partition.items() if turn < len(ranges)}
        yield (
            {part: first for part, (first, _) in now.items()},
            {part: end for part, (_, end) in now.items()},
        )


def _placed(record: Record) -> PlacedRecord:
    return PlacedRecord(
        place=f"{record.partition}:{record.offset}",
        partition=record.partition,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def _message(record: PlacedRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "value": record.value,
        "partition": record.partition,
        **({"headers": list(record.headers)} if record.headers else {}),
    }
