"""The rows that a run wrote, on any log, each with what it says of its record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from headgate.connectors import Files, Kafka
from headgate.connectors.files.records import read_records as read_lines
from headgate.connectors.files.topic import list_files
from headgate.connectors.files.written import FILE
from headgate.connectors.kafka.admin import Cluster, TopicFacts
from headgate.connectors.kafka.reading import read_records
from headgate.errors import HeadgateError
from headgate.flow.topics import Topic
from headgate.jobs.audit.progress import Meter
from headgate.jobs.audit.records.marks import find_mark
from headgate.jobs.audit.report import OutputAudit
from headgate.jobs.audit.scope import Scope

# Behind every batch: nothing of a run counts that is not of the audited one's past.
_ALL = 1 << 62


class Row(NamedTuple):
    """A row of the run that is audited.

    Attributes:
        source: The source of its record; None where the log does not tell, and then neither
            where the record was.
        is_ahead: Whether the log itself tells that its batch does not count yet.
        is_earlier: Whether a run wrote it that the audited one comes from.
    """

    source: str | None
    partition: int
    offset: int
    value: bytes | None
    is_ahead: bool = False
    is_earlier: bool = False


@dataclass(slots=True)
class Passed:
    """Counts what is in an output, as it is read."""

    rows: int = 0
    other_runs: int = 0
    foreign: int = 0
    keyless: int = 0

    def to_audit(self) -> OutputAudit:
        """Return the counts as they are now."""
        return OutputAudit(self.rows, self.other_runs, self.foreign, self.keyless)


class OutputRows(Protocol):
    """The rows of one output.

    Attributes:
        doubts: Why a row that was written may not be among them, in words.
    """

    @property
    def doubts(self) -> tuple[str, ...]: ...

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all there are."""


@dataclass(frozen=True, slots=True)
class KafkaRows:
    """The committed rows of a topic, as of the moment it was opened.

    Attributes:
        starts: The first offset, by partition.
        ends: The offset behind the last, by partition.
    """

    topic: Kafka
    lineage: str
    earlier: Mapping[str, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many rows there are at most."""
        return sum(end - self.starts[number] for number, end in self.ends.items())

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all there are."""
        found = read_records(self.topic.client, self.topic.name, self.starts, self.ends)
        for record in meter.over(found, self.topic.name, self.total):
            mark = find_mark(record.headers)
            if mark is None:
                passed.foreign += 1
            elif mark.lineage != self.lineage:
                passed.other_runs += 1
                if mark.lineage in self.earlier:
                    yield Row(
                        mark.source, mark.partition, mark.offset, record.value, is_earlier=True
                    )
            else:
                passed.rows += 1
                yield Row(mark.source, mark.partition, mark.offset, record.value)


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of an embedded topic: files are named after the run and the batch."""

    topic: Files
    lineage: str
    batch: int
    earlier: Mapping[str, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all there are."""
        for line, match in meter.over(self._lines(), self.topic.name, None):
            if match is None:
                passed.foreign += 1
            elif match["lineage"] != self.lineage:
                passed.other_runs += 1
                if int(match["batch"]) > self.earlier.get(match["lineage"], _ALL):
                    yield Row(None, -1, -1, line, is_earlier=True)
            else:
                passed.rows += 1
                yield Row(None, -1, -1, line, int(match["batch"]) > self.batch)

    def _lines(self) -> Iterator[tuple[bytes, re.Match[str] | None]]:
        for file in list_files(Path(self.topic.path)):
            match = FILE.fullmatch(file.path.name)
            for line in read_lines(file.path):
                yield line, match


def can_read(topic: Topic) -> bool:
    """Tell whether a topic's rows stay where they can be read."""
    return isinstance(topic, Kafka | Files)


def open_rows(scope: Scope, topic: Topic) -> OutputRows:
    """Return the rows of an output as it is now.

    Args:
        topic: One that can be read.

    Raises:
        HeadgateError: What `Cluster` raises.
    """
    if isinstance(topic, Files):
        return FileRows(topic, scope.lineage, scope.batch, scope.earlier)
    assert isinstance(topic, Kafka), "a topic that can be read is on one of these"
    cluster = Cluster(topic.client, doing=f"audit job {scope.job!r}")
    try:
        (facts,) = cluster.describe([topic.name])
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        return KafkaRows(topic, scope.lineage, doubts=(f"topic {topic.name!r} is not there",))
    ends = cluster.next_offsets([(topic.name, part.number) for part in facts.parts])
    committed = {number: end for (_, number), end in ends.items()}
    return KafkaRows(
        topic,
        scope.lineage,
        scope.earlier,
        {part.number: part.first for part in facts.parts},
        committed,
        tuple(doubts_of(facts, committed)),
    )


def doubts_of(facts: TopicFacts, committed: Mapping[int, int]) -> Iterator[str]:
    """Yield why a row that was written may not have been read.

    Args:
        committed: The offset up to which rows can be read, by partition.
    """
    expired = [str(part.number) for part in facts.parts if part.first > 0]
    if expired:
        yield (
            f"the first rows of topic {facts.name!r}, partition {', '.join(expired)}, are not "
            "kept any more"
        )
    if facts.compacted:
        yield f"topic {facts.name!r} is compacted"
    hidden = [str(part.number) for part in facts.parts if committed[part.number] < part.next]
    if hidden:
        yield (
            f"a transaction is open in topic {facts.name!r}, partition {', '.join(hidden)}, and "
            "hides what comes after its first row"
        )
