"""The rows that a run wrote to a topic on Pulsar, each with the mark of its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headgate.connectors.audit import AuditedRun, Meter, Passed, Row
from headgate.connectors.places import Stretch
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.namespaces import Namespace
from headgate.connectors.pulsar.places import PulsarPlaces
from headgate.connectors.row_marks import rows_of
from headgate.connectors.topics import FOREVER


@dataclass(frozen=True, slots=True)
class PulsarRows:
    """The rows of a topic, as of the moment it was opened."""

    places: PulsarPlaces
    lineage: str
    earlier: Mapping[str, int] = field(default_factory=dict)
    stretches: tuple[Stretch, ...] = ()
    doubts: tuple[str, ...] = ()

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all rows of the topic."""
        for stretch in self.stretches:
            metered = meter.over(self.places.read(stretch), self.places.topic, None)
            yield from rows_of(metered, self.lineage, self.earlier, passed)


def open_rows(run: AuditedRun, topic: Pulsar) -> PulsarRows:
    """Return the rows of an output as it is now.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    places = PulsarPlaces(topic.client, topic.namespace, topic.name)
    with Namespace(topic.client, topic.namespace, doing=f"audit job {run.job!r}") as namespace:
        shape = namespace.find(topic.name)
        if shape is None:
            return PulsarRows(places, run.lineage, doubts=(f"topic {topic.name!r} is not there",))
        kept = namespace.kept(shape)
    doubts = []
    if kept.compacted:
        doubts.append(f"topic {topic.name!r} is compacted")
    if kept.retention != FOREVER:
        doubts.append(f"the broker deletes old rows of topic {topic.name!r}")
    return PulsarRows(places, run.lineage, run.earlier, tuple(places.stretches()), tuple(doubts))
