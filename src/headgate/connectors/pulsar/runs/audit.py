"""Topics on Pulsar as input of an audit: records by their entries, and rows by their marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.connectors.contract.audit import (
    AuditedRun,
    Input,
    InputRecord,
    Meter,
    OutputRows,
    Passed,
    Row,
    Standing,
    input_gone,
    name_partitions,
    read_marked_rows,
    unknown_begin,
)
from headgate.connectors.contract.topics import FOREVER
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.names import BEGINNING, EntryId, full_name
from headgate.connectors.pulsar.runs.positions import parse_position
from headgate.connectors.pulsar.topics.ledgers import Ledgers
from headgate.connectors.pulsar.topics.namespaces import Namespace
from headgate.connectors.pulsar.topics.places import PulsarPlaces, entries_of, sequence_of
from headgate.connectors.pulsar.topics.records import read_ranges

shows_places = False


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The range that a run read from one partition.

    Attributes:
        topic: The short name of its topic.
        number: The partition's number in the topic.
        first: The first entry that was read and is still retained.
        end: The entry after the last one that was read.
        kept: The entries that the partition retains now.
    """

    topic: str
    number: int
    first: EntryId
    end: EntryId
    kept: Ledgers

    @property
    def last(self) -> EntryId | None:
        """The last entry that was read and is still retained; None if there is none."""
        entries = [
            EntryId(ledger, min(count, self.end.entry if ledger == self.end.ledger else count) - 1)
            for ledger, count in self.kept.counts
            if self.first.ledger <= ledger <= self.end.ledger
        ]
        return max((entry for entry in entries if entry >= self.first), default=None)

    def standing(self, sequence: int) -> Standing:
        """Return the location of a record, given the kernel's number of its place."""
        entries = list(entries_of(self.kept, sequence))
        if any(self.first <= entry < self.end for entry in entries):
            return Standing.WITHIN
        return Standing.AHEAD if any(entry >= self.end for entry in entries) else Standing.BEFORE


def open_input(job: str, pulsar: Pulsar, begin: str | None, end: str) -> Input:
    """Return the records that a run read.

    Raises:
        HeadgateError: AUDIT_INPUT_GONE; errors of the broker.
    """
    began = {} if begin is None else parse_position(begin)
    notes = [] if begin is not None else [unknown_begin(pulsar.name)]
    parts: list[PartitionRange] = []
    gaps = ""
    with Namespace(pulsar.log, doing=f"audit job {job!r}") as namespace:
        for full, reached in parse_position(end).items():
            name = full.removeprefix(full_name(pulsar.namespace, ""))
            shape = namespace.find(name)
            if shape is None or shape.partitions < len(reached.next):
                raise input_gone(job, f"topic {name!r} or a partition of it was deleted")
            if namespace.kept(shape).compacted:
                gaps = f"topic {name!r} is compacted"
            starts = began[full].next if full in began else ()
            ledgers = namespace.ledgers(shape)
            for number, (last, kept) in enumerate(zip(reached.next, ledgers, strict=False)):
                first = starts[number] if number < len(starts) else BEGINNING
                range_ = PartitionRange(name, number, max(first, kept.first), last, kept)
                parts.append(range_)
                if begin is not None:
                    notes += _deleted(range_, first)

    def read(meter: Meter) -> Iterator[InputRecord]:
        for place, part in enumerate(parts):
            if part.last is None:
                continue
            name = part.kept.part
            records = read_ranges(pulsar.log, [(part.number, name, part.first, part.last)])
            for record in meter.over(records, name, None):
                sequence = sequence_of(record.entry, record.index)
                yield InputRecord(place, part.topic, part.number, sequence, record.value)

    def standing(number: int, offset: int) -> Standing:
        # With several topics, the position may be in the range of any of them.
        standings = {part.standing(offset) for part in parts if part.number == number}
        order = (Standing.WITHIN, Standing.BEFORE)
        return next((standing for standing in order if standing in standings), Standing.AHEAD)

    partitions = name_partitions((part.topic, part.number) for part in parts)
    return Input(pulsar.name, read, standing, partitions, gaps=gaps, notes=tuple(notes))


def _deleted(part: PartitionRange, first: EntryId) -> Iterator[str]:
    """Yield a note if the broker may have deleted records that the run read."""
    if first.ledger >= 0 and first < part.end and first.ledger not in dict(part.kept.counts):
        yield (
            f"ledger {first.ledger} of {part.topic}/{part.number} was deleted: its records, if "
            "there were any, are not audited"
        )


def open_rows(run: AuditedRun, topic: Pulsar) -> OutputRows:
    """Return the rows of an output at this moment.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    with Namespace(topic.log, doing=f"audit job {run.job!r}") as namespace:
        shape = namespace.find(topic.name)
        if shape is None:
            return OutputRows(lambda *_: iter(()), (f"topic {topic.name!r} does not exist",))
        kept = namespace.kept(shape)
    doubts = []
    if kept.compacted:
        doubts.append(f"topic {topic.name!r} is compacted")
    if kept.retention != FOREVER:
        doubts.append(f"the broker deletes old rows of topic {topic.name!r}")
    places = PulsarPlaces(topic.log, topic.name)
    stretches = places.stretches()

    def read(passed: Passed, meter: Meter) -> Iterator[Row]:
        for stretch in stretches:
            records = meter.over(places.read(stretch), topic.name, None)
            yield from read_marked_rows(run, records, passed)

    return OutputRows(read, tuple(doubts))
