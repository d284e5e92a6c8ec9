"""Topics on Kafka as input of an audit: records by their offsets, and rows by their headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headgate._units import format_count
from headgate.connectors.contract.audit import (
    AuditedRun,
    Input,
    InputRecord,
    Meter,
    OutputRows,
    Passed,
    Row,
    Standing,
    TopicRange,
    input_gone,
    name_partitions,
    read_marked_rows,
    unknown_begin,
)
from headgate.connectors.kafka.access.admin import Cluster, TopicFacts
from headgate.connectors.kafka.descriptor import READ_COMMITTED, Kafka
from headgate.connectors.kafka.runs.positions import TopicPosition, parse_position
from headgate.connectors.kafka.topics.records import read_records
from headgate.errors import HeadgateError

shows_places = True


def open_input(job: str, kafka: Kafka, begin: str | None, end: str) -> Input:
    """Return the records that a run read.

    Raises:
        HeadgateError: AUDIT_INPUT_GONE; what `Cluster` raises.
    """
    reached = parse_position(end)
    began = None if begin is None else parse_position(begin)
    cluster = Cluster(kafka.log, doing=f"audit job {job!r}")
    notes: list[str] = []
    ranges = []
    topics = _describe(job, cluster, list(reached))
    for facts in topics:
        position = reached[facts.name]
        first = None if began is None else began.get(facts.name, TopicPosition(position.id, ()))
        if not same_topic(position.id, facts.id) or (
            first is not None and not same_topic(first.id, position.id)
        ):
            raise input_gone(job, f"topic {facts.name!r} was recreated after the run read it")
        range_, remarks = range_of(facts, cluster.committed_ends(facts), first, position)
        ranges.append(range_)
        notes += remarks
    if begin is None:
        notes.append(unknown_begin(kafka.name))
    return input_of(kafka, ranges, gaps_of(kafka, topics), notes)


def input_of(
    kafka: Kafka, ranges: Sequence[TopicRange], gaps: str = "", notes: Sequence[str] = ()
) -> Input:
    """Return the records of some ranges."""
    spans = _spans(ranges)

    def read(meter: Meter) -> Iterator[InputRecord]:
        first = 0
        for range_ in ranges:
            places = {number: first + place for place, number in enumerate(range_.ends)}
            first += len(places)
            records = read_records(
                kafka.log, range_.topic, range_.starts, range_.kept, headers=False
            )
            for record in meter.over(records, range_.topic, range_.total):
                number = record.partition
                yield InputRecord(places[number], range_.topic, number, record.offset, record.value)

    def standing(number: int, offset: int) -> Standing:
        # With several topics, the position may be in the range of any of them.
        first, end = spans.get(number, (0, 0))
        if offset >= end:
            return Standing.AHEAD
        return Standing.WITHIN if offset >= first else Standing.BEFORE

    partitions = name_partitions(
        (range_.topic, number) for range_ in ranges for number in range_.ends
    )
    return Input(kafka.name, read, standing, partitions, tuple(ranges), gaps, tuple(notes))


def gaps_of(kafka: Kafka, topics: Iterable[TopicFacts]) -> str:
    """Return why the job may have read records that are not there any more; empty if it did not."""
    if kafka.isolation != READ_COMMITTED:
        return "the job reads uncommitted records"
    compacted = next((facts.name for facts in topics if facts.compacted), None)
    return "" if compacted is None else f"topic {compacted!r} is compacted"


def _describe(job: str, cluster: Cluster, topics: Sequence[str]) -> list[TopicFacts]:
    try:
        return cluster.describe(topics)
    except HeadgateError as error:
        if error.code == "TOPIC_NOT_FOUND":
            raise input_gone(job, f"one of {', '.join(topics)} was deleted") from error
        raise


def _spans(ranges: Sequence[TopicRange]) -> dict[int, tuple[int, int]]:
    """Return the first offset and the end offset over all topics, by partition."""
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
    committed: Mapping[int, int],
    begin: TopicPosition | None,
    end: TopicPosition,
) -> tuple[TopicRange, list[str]]:
    """Return the retained range of a topic, and remarks on missing records.

    Args:
        committed: The end of the topic for readers of committed records, by partition.
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
        kept[number] = max(starts[number], min(last, committed.get(number, 0)))
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


def same_topic(first: str, second: str) -> bool:
    """Return True if two topic ids are equal: Kafka's clients use two alphabets of base64."""
    plain = [id_.replace("+", "-").replace("/", "_").rstrip("=") for id_ in (first, second)]
    return plain[0] == plain[1]


def open_rows(run: AuditedRun, topic: Kafka) -> OutputRows:
    """Return the committed rows of an output at this moment.

    Raises:
        HeadgateError: What `Cluster` raises.
    """
    cluster = Cluster(topic.log, doing=f"audit job {run.job!r}")
    try:
        (facts,) = cluster.describe([topic.name])
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        return OutputRows(lambda *_: iter(()), (f"topic {topic.name!r} does not exist",))
    starts = {part.number: part.first for part in facts.parts}
    ends = cluster.committed_ends(facts)
    total = sum(end - starts[number] for number, end in ends.items())

    def read(passed: Passed, meter: Meter) -> Iterator[Row]:
        records = read_records(topic.log, topic.name, starts, ends)
        return read_marked_rows(run, meter.over(records, topic.name, total), passed)

    return OutputRows(read, tuple(doubts_of(facts, ends)))


def doubts_of(facts: TopicFacts, committed: Mapping[int, int]) -> Iterator[str]:
    """Yield reasons why a written row may not have been read.

    Args:
        committed: The end of the readable rows, by partition.
    """
    expired = [str(part.number) for part in facts.parts if part.first > 0]
    if expired:
        yield (
            f"the first rows of topic {facts.name!r}, partition {', '.join(expired)}, have "
            "been deleted"
        )
    if facts.compacted:
        yield f"topic {facts.name!r} is compacted"
    hidden = [str(part.number) for part in facts.parts if committed[part.number] < part.next]
    if hidden:
        yield (
            f"an open transaction in topic {facts.name!r}, partition {', '.join(hidden)}, "
            "hides the rows after its first row"
        )
