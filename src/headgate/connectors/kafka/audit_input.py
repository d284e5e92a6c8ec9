"""The records that a run read from topics on Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate._units import format_count
from headgate.connectors.audit import (
    InputRecord,
    Meter,
    Standing,
    TopicRange,
    input_gone,
    unknown_begin,
)
from headgate.connectors.kafka.admin import Cluster, TopicFacts
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.kafka.positions import TopicPosition, parse_position
from headgate.connectors.kafka.reading import read_records
from headgate.errors import HeadgateError

_COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True)
class KafkaInput:
    """The records that a run read from one or several topics.

    Attributes:
        spans: The first offset and the end offset over all topics, by partition.
    """

    kafka: Kafka
    ranges: tuple[TopicRange, ...]
    spans: Mapping[int, tuple[int, int]]
    gaps: str
    notes: tuple[str, ...]

    @property
    def topic(self) -> str:
        """The topic, or the pattern for several topics."""
        return self.kafka.name

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partition numbers, with the topic before them if there are several topics."""
        alone = len(self.ranges) == 1
        return tuple(
            str(number) if alone else f"{range_.topic}/{number}"
            for range_ in self.ranges
            for number in range_.ends
        )

    def read(self, meter: Meter) -> Iterator[InputRecord]:
        """Yield every record of the range."""
        first = 0
        for range_ in self.ranges:
            places = {number: first + place for place, number in enumerate(range_.ends)}
            first += len(places)
            records = read_records(
                self.kafka.client, range_.topic, range_.starts, range_.kept, headers=False
            )
            for record in meter.over(records, range_.topic, range_.total):
                number = record.partition
                yield InputRecord(places[number], range_.topic, number, record.offset, record.value)

    def standing(self, number: int, offset: int) -> Standing:
        """Return the location of a position; with several topics, it may be in the range of any."""
        first, end = self.spans.get(number, (0, 0))
        if offset >= end:
            return Standing.AHEAD
        return Standing.WITHIN if offset >= first else Standing.BEFORE


def open_input(job: str, kafka: Kafka, begin: str | None, end: str) -> KafkaInput:
    """Return the records that a run read.

    Args:
        begin: The start position; None for the earliest record.
        end: The end position.

    Raises:
        HeadgateError: AUDIT_INPUT_GONE; what `Cluster` raises.
    """
    reached = parse_position(end)
    began = None if begin is None else parse_position(begin)
    cluster = Cluster(kafka.client, doing=f"audit job {job!r}")
    notes: list[str] = []
    ranges = []
    gaps = ""
    for facts in _describe(job, cluster, list(reached)):
        position = reached[facts.name]
        first = None if began is None else began.get(facts.name, TopicPosition(position.id, ()))
        if not same_topic(position.id, facts.id) or (
            first is not None and not same_topic(first.id, position.id)
        ):
            raise input_gone(job, f"topic {facts.name!r} was recreated after the run read it")
        ends = cluster.next_offsets([(facts.name, part.number) for part in facts.parts])
        there = {number: end for (_, number), end in ends.items()}
        range_, remarks = range_of(facts, there, first, position)
        ranges.append(range_)
        notes += remarks
        if facts.compacted:
            gaps = f"topic {facts.name!r} is compacted"
    if kafka.options.get("isolation.level", _COMMITTED) != _COMMITTED:
        gaps = "the job reads uncommitted records"
    if begin is None:
        notes.append(unknown_begin(kafka.name))
    return KafkaInput(kafka, tuple(ranges), _spans(ranges), gaps, tuple(notes))


def _describe(job: str, cluster: Cluster, topics: Sequence[str]) -> list[TopicFacts]:
    try:
        return cluster.describe(topics)
    except HeadgateError as error:
        if error.code == "TOPIC_NOT_FOUND":
            raise input_gone(job, f"one of {', '.join(topics)} was deleted") from error
        raise


def _spans(ranges: Sequence[TopicRange]) -> dict[int, tuple[int, int]]:
    numbers = {number for range_ in ranges for number in range_.ends}
    return {
        number: (
            min(range_.starts[number] for range_ in ranges if number in range_.starts),
            max(range_.ends[number] for range_ in ranges if number in range_.ends),
        )
        for number in numbers
    }


def range_of(
    facts: TopicFacts,
    there: Mapping[int, int],
    begin: TopicPosition | None,
    end: TopicPosition,
) -> tuple[TopicRange, list[str]]:
    """Return the retained range of a topic, and remarks on missing records.

    Args:
        there: The end of the topic for readers of committed records, by partition.
        begin: None for the earliest record; partitions that it does not name were added later, and
            read from their start.
    """
    first = {part.number: part.first for part in facts.parts}
    starts: dict[int, int] = {}
    kept: dict[int, int] = {}
    notes = []
    for number, last in enumerate(end.next):
        wanted = begin.next[number] if begin is not None and number < len(begin.next) else 0
        starts[number] = min(last, max(wanted, first.get(number, last)))
        kept[number] = max(starts[number], min(last, there.get(number, 0)))
        place = f"{facts.name}/{number}"
        if begin is not None and starts[number] > wanted:
            notes.append(
                f"records of {place} before offset {format_count(starts[number])} have been "
                "deleted: not audited"
            )
        if kept[number] < last:
            notes.append(
                f"{place} ends at offset {format_count(kept[number])}, and was read to "
                f"{format_count(last)}"
            )
    return TopicRange(facts.name, starts, dict(enumerate(end.next)), kept), notes


def same_topic(one: str, other: str) -> bool:
    """Return True if two topic ids are equal: Kafka's clients use two alphabets of base64."""
    return _plain(one) == _plain(other)


def _plain(topic_id: str) -> str:
    return topic_id.replace("+", "-").replace("/", "_").rstrip("=")
