"""What a run read from topics on Kafka."""

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
        spans: The first offset and the one behind the last of all topics, by partition.
    """

    kafka: Kafka
    ranges: tuple[TopicRange, ...]
    spans: Mapping[int, tuple[int, int]]
    gaps: str
    notes: tuple[str, ...]

    @property
    def topic(self) -> str:
        """The topic, or what stands for several."""
        return self.kafka.name

    @property
    def partitions(self) -> tuple[str, ...]:
        """Numbers; with the topic before them where there are several."""
        alone = len(self.ranges) == 1
        return tuple(
            str(number) if alone else f"{each.topic}/{number}"
            for each in self.ranges
            for number in each.ends
        )

    def read(self, meter: Meter) -> Iterator[InputRecord]:
        """Yield every record of the range."""
        first = 0
        for each in self.ranges:
            places = {number: first + place for place, number in enumerate(each.ends)}
            first += len(places)
            found = read_records(
                self.kafka.client, each.topic, each.starts, each.kept, headers=False
            )
            for record in meter.over(found, each.topic, each.total):
                number = record.partition
                yield InputRecord(places[number], each.topic, number, record.offset, record.value)

    def standing(self, number: int, offset: int) -> Standing:
        """Tell where a place lies; of several topics, the range of any will do."""
        first, end = self.spans.get(number, (0, 0))
        if offset >= end:
            return Standing.AHEAD
        return Standing.WITHIN if offset >= first else Standing.BEFORE


def open_input(job: str, kafka: Kafka, begin: str | None, end: str) -> KafkaInput:
    """Return what a run read.

    Args:
        begin: Where it began; None for the earliest record there is.
        end: How far it came.

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
            raise input_gone(job, f"topic {facts.name!r} was made anew since the run read it")
        ends = cluster.next_offsets([(facts.name, part.number) for part in facts.parts])
        there = {number: end for (_, number), end in ends.items()}
        found, told = range_of(facts, there, first, position)
        ranges.append(found)
        notes += told
        if facts.compacted:
            gaps = f"topic {facts.name!r} is compacted"
    if kafka.options.get("isolation.level", _COMMITTED) != _COMMITTED:
        gaps = "the job reads records that are not committed"
    if begin is None:
        notes.append(unknown_begin(kafka.name))
    return KafkaInput(kafka, tuple(ranges), _spans(ranges), gaps, tuple(notes))


def _describe(job: str, cluster: Cluster, topics: Sequence[str]) -> list[TopicFacts]:
    try:
        return cluster.describe(topics)
    except HeadgateError as error:
        if error.code == "TOPIC_NOT_FOUND":
            raise input_gone(job, f"one of {', '.join(topics)} is not there any more") from error
        raise


def _spans(ranges: Sequence[TopicRange]) -> dict[int, tuple[int, int]]:
    numbers = {number for each in ranges for number in each.ends}
    return {
        number: (
            min(each.starts[number] for each in ranges if number in each.starts),
            max(each.ends[number] for each in ranges if number in each.ends),
        )
        for number in numbers
    }


def range_of(
    facts: TopicFacts,
    there: Mapping[int, int],
    begin: TopicPosition | None,
    end: TopicPosition,
) -> tuple[TopicRange, list[str]]:
    """Return the range of a topic as far as its records are kept, and what is not.

    Args:
        there: Where the topic ends for readers of committed records, by partition.
        begin: None for the earliest record there is; partitions it does not name were added
            later, and read from their beginning.
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
                f"records of {place} before offset {format_count(starts[number])} are not kept "
                "any more: not audited"
            )
        if kept[number] < last:
            notes.append(
                f"{place} ends at offset {format_count(kept[number])}, and was read to "
                f"{format_count(last)}"
            )
    return TopicRange(facts.name, starts, dict(enumerate(end.next)), kept), notes


def same_topic(one: str, other: str) -> bool:
    """Tell whether two ids are one: Kafka's clients write them in two alphabets of base64."""
    return _plain(one) == _plain(other)


def _plain(topic_id: str) -> str:
    return topic_id.replace("+", "-").replace("/", "_").rstrip("=")
