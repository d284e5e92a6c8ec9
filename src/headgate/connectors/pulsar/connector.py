"""The connector of topics on Pulsar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.connectors.audit import AuditedRun, Input, OutputRows
from headgate.connectors.connector import Positions, SparkEnds, TopicSetup
from headgate.connectors.patterns import has_name, share_server
from headgate.connectors.places import Places
from headgate.connectors.pulsar import _spark, positions, setup, written
from headgate.connectors.pulsar.admin import Admin
from headgate.connectors.pulsar.clients import connect
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.log import SCHEMES, PulsarLog, parse_pulsar_log
from headgate.connectors.pulsar.names import DEFAULT_NAMESPACE
from headgate.connectors.pulsar.starts import STARTS
from headgate.connectors.written import MAYBE_ALIVE, UNMARKED, Batches, Writers, Written
from headgate.flow.topics import Topic


class PulsarWriting:
    """Rows with sequence numbers, of which brokers remember the last."""

    rests_on = "the broker's deduplication"
    can_repeat = True
    has_transactions = False

    def end_transactions(self, _topic: Pulsar, _ids: Iterable[str]) -> None:
        """Do nothing: acknowledged rows are visible at once."""

    def find_written(
        self, topics: Mapping[str, Pulsar], writers: Writers, batches: Batches
    ) -> dict[str, Written]:
        """Return what each topic holds of a run's batches."""
        if not writers.are_gone or not writers.leave_marks:
            return dict.fromkeys(topics, UNMARKED if writers.are_gone else MAYBE_ALIVE)
        return {
            name: written.find_written(topic, writers, batches) for name, topic in topics.items()
        }


class PulsarAudit:
    """Topics on Pulsar as an audit reads them."""

    shows_places = False

    def open_input(self, job: str, topic: Pulsar, begin: str | None, end: str) -> Input:
        """Return what a run read."""
        from headgate.connectors.pulsar.audit_input import open_input

        return open_input(job, topic, begin, end)

    def open_rows(self, run: AuditedRun, topic: Pulsar) -> OutputRows:
        """Return the rows of an output."""
        from headgate.connectors.pulsar.audit_rows import open_rows

        return open_rows(run, topic)


class PulsarConnector:
    """Topics of Pulsar namespaces."""

    kind = Pulsar.kind
    has_keys = True
    spark: SparkEnds[Pulsar] = _spark
    starts = STARTS
    positions: Positions[Pulsar] = positions
    writing = PulsarWriting()
    setup: TopicSetup[Pulsar] = setup
    audit = PulsarAudit()

    def find_log(self, text: str) -> PulsarLog | None:
        """Return the namespace for a value of `--on`."""
        return parse_pulsar_log(text) if text.startswith(SCHEMES) else None

    def log_of(self, topic: Pulsar) -> PulsarLog:
        """Return the topic's namespace."""
        return PulsarLog(topic.client, topic.namespace)

    def where(self, topic: Pulsar) -> str:
        """Return the service, and the namespace if it is not the default."""
        is_default = topic.namespace == DEFAULT_NAMESPACE
        return topic.service if is_default else f"{topic.service}/{topic.namespace}"

    def find_cluster(self, topic: Pulsar) -> str:
        """Return the connection of the topic's cluster."""
        return topic.client.to_text()

    def reach(self, topic: Pulsar, doing: str) -> None:
        """Return when the service accepts connections and its admin API responds."""
        connect(topic.client, doing=doing)
        with Admin(topic.client, doing=doing) as admin:
            admin.get("clusters")

    def reads(self, read: Pulsar, topic: Topic) -> bool:
        """Return True if a topic of the same namespace has the name or matches the pattern."""
        return (
            isinstance(topic, Pulsar)
            and share_server(read.service, topic.service)
            and read.namespace == topic.namespace
            and has_name(read, topic.name)
        )

    def open_places(self, topic: Pulsar) -> Places:
        """Return the messages of the topic's partitions."""
        from headgate.connectors.pulsar.places import PulsarPlaces

        return PulsarPlaces(topic.client, topic.namespace, topic.name)
