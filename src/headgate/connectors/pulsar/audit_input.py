"""What a run read from topics on Pulsar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.connectors.audit import (
    InputRecord,
    Meter,
    Standing,
    TopicRange,
    input_gone,
    unknown_begin,
)
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.ledgers import Ledgers
from headgate.connectors.pulsar.message_ids import BEGINNING, EntryId
from headgate.connectors.pulsar.names import full_name
from headgate.connectors.pulsar.namespaces import Namespace
from headgate.connectors.pulsar.places import entries_of, sequence_of
from headgate.connectors.pulsar.positions import parse_position
from headgate.connectors.pulsar.records import read_ranges


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """From where to where a run read one partition.

    Attributes:
        topic: The short name of its topic.
        number: The partition's number in the topic.
        part: The whole name of the plain topic that holds its records.
        first: The first entry that was read and is still kept.
        end: The entry after the last one that was read.
        kept: What the partition keeps now.
    """

    topic: str
    number: int
    part: str
    first: EntryId
    end: EntryId
    kept: Ledgers

    @property
    def last(self) -> EntryId | None:
        """The last entry that was read and is still kept; None if there is none."""
        entries = [
            EntryId(ledger, min(count, self.end.entry if ledger == self.end.ledger else count) - 1)
            for ledger, count in self.kept.counts
            if self.first.ledger <= ledger <= self.end.ledger
        ]
        return max((entry for entry in entries if entry >= self.first), default=None)

    def standing(self, sequence: int) -> Standing:
        """Return where a record lies, given the number that the kernel makes of its place."""
        entries = list(entries_of(self.kept, sequence))
        if any(self.first <= entry < self.end for entry in entries):
            return Standing.WITHIN
        return Standing.AHEAD if any(entry >= self.end for entry in entries) else Standing.BEFORE


@dataclass(frozen=True, slots=True)
class PulsarInput:
    """The records that a run read from one or several topics."""

    pulsar: Pulsar
    parts: tuple[PartitionRange, ...]
    gaps: str
    notes: tuple[str, ...]
    ranges: tuple[TopicRange, ...] = ()

    @property
    def topic(self) -> str:
        """The topic, or the name of the pattern."""
        return self.pulsar.name

    @property
    def partitions(self) -> tuple[str, ...]:
        """Numbers; with the topic before them if there are several topics."""
        is_alone = len({part.topic for part in self.parts}) == 1
        return tuple(
            str(part.number) if is_alone else f"{part.topic}/{part.number}" for part in self.parts
        )

    def read(self, meter: Meter) -> Iterator[InputRecord]:
        """Yield every record of the range."""
        for place, part in enumerate(self.parts):
            if part.last is None:
                continue
            span = (part.number, part.part, part.first, part.last)
            records = read_ranges(self.pulsar.client, [span])
            for record in meter.over(records, part.part, None):
                sequence = sequence_of(record.entry, record.index)
                yield InputRecord(place, part.topic, part.number, sequence, record.value)

    def standing(self, number: int, offset: int) -> Standing:
        """Return where a record lies; of several topics, the range of any of them will do."""
        standings = {part.standing(offset) for part in self.parts if part.number == number}
        for standing in (Standing.WITHIN, Standing.BEFORE):
            if standing in standings:
                return standing
        return Standing.AHEAD


def open_input(job: str, pulsar: Pulsar, begin: str | None, end: str) -> PulsarInput:
    """Return what a run read.

    Args:
        begin: Where it began; None for the earliest record that is kept.
        end: How far it came.

    Raises:
        HeadgateError: AUDIT_INPUT_GONE; errors of the broker.
    """
    began = {} if begin is None else parse_position(begin)
    notes = [] if begin is not None else [unknown_begin(pulsar.name)]
    parts: list[PartitionRange] = []
    gaps = ""
    with Namespace(pulsar.client, pulsar.namespace, doing=f"audit job {job!r}") as namespace:
        for full, reached in parse_position(end).items():
            name = full.removeprefix(full_name(pulsar.namespace, ""))
            shape = namespace.find(name)
            if shape is None or shape.partitions < len(reached.next):
                raise input_gone(job, f"topic {name!r} or a partition of it was deleted")
            if namespace.kept(shape).compacted:
                gaps = f"topic {name!r} is compacted"
            kept = namespace.ledgers(shape)
            starts = began[full].next if full in began else ()
            for number, last in enumerate(reached.next):
                first = starts[number] if number < len(starts) else BEGINNING
                part = PartitionRange(
                    name,
                    number,
                    shape.parts()[number],
                    max(first, kept[number].first),
                    last,
                    kept[number],
                )
                parts.append(part)
                if begin is not None:
                    notes += _deleted(part, first)
    return PulsarInput(pulsar, tuple(parts), gaps, tuple(notes))


def _deleted(part: PartitionRange, first: EntryId) -> Iterator[str]:
    """Yield a note if the broker may have deleted records that the run read."""
    if first.ledger >= 0 and first < part.end and first.ledger not in dict(part.kept.counts):
        yield (
            f"ledger {first.ledger} of {part.topic}/{part.number} was deleted: its records, if "
            "there were any, are not audited"
        )
