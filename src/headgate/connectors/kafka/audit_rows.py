"""The rows that a run wrote to a topic on Kafka, each with its mark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headgate.connectors.audit import AuditedRun, Meter, Passed, Row
from headgate.connectors.kafka.admin import Cluster, TopicFacts
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.kafka.reading import read_records
from headgate.connectors.row_marks import rows_of
from headgate.errors import HeadgateError


@dataclass(frozen=True, slots=True)
class KafkaRows:
    """The committed rows of a topic at the time it was opened.

    Attributes:
        starts: The first offset, by partition.
        ends: The end offset, by partition.
    """

    topic: Kafka
    lineage: str
    earlier: Mapping[str, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The maximum number of rows."""
        return sum(end - self.starts[number] for number, end in self.ends.items())

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all rows."""
        records = read_records(self.topic.client, self.topic.name, self.starts, self.ends)
        metered = meter.over(records, self.topic.name, self.total)
        yield from rows_of(metered, self.lineage, self.earlier, passed)


def open_rows(run: AuditedRun, topic: Kafka) -> KafkaRows:
    """Return the current rows of an output.

    Raises:
        HeadgateError: What `Cluster` raises.
    """
    cluster = Cluster(topic.client, doing=f"audit job {run.job!r}")
    try:
        (facts,) = cluster.describe([topic.name])
    except HeadgateError as error:
        if error.code != "TOPIC_NOT_FOUND":
            raise
        return KafkaRows(topic, run.lineage, doubts=(f"topic {topic.name!r} does not exist",))
    ends = cluster.next_offsets([(topic.name, part.number) for part in facts.parts])
    committed = {number: end for (_, number), end in ends.items()}
    return KafkaRows(
        topic,
        run.lineage,
        run.earlier,
        {part.number: part.first for part in facts.parts},
        committed,
        tuple(doubts_of(facts, committed)),
    )


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
