"""The connector of topics on Pulsar."""

from __future__ import annotations

from headgate.connectors.broker.connector import BrokerConnector, BrokerEnds
from headgate.connectors.contract.connector import Audit, Positions, Reading, TopicSetup, Writing
from headgate.connectors.contract.places import Places
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.topics import WantedTopic
from headgate.connectors.pulsar.access.admin import Admin
from headgate.connectors.pulsar.access.clients import connect
from headgate.connectors.pulsar.descriptor import SCHEMES, Pulsar, PulsarLog
from headgate.connectors.pulsar.keeping import find_problems, wanted_on_pulsar
from headgate.connectors.pulsar.runs import positions, written
from headgate.flow.schemas.schema import Schema


class PulsarEnds(BrokerEnds[Pulsar]):
    """Topics on Pulsar as options of the kernel's source and sink."""

    SOURCE = "io.headgate.kernel.pulsar.PulsarSource"

    def own_options(self, topic: Pulsar, reading: Reading) -> dict[str, str]:
        """Return the subscription, and the namespace of a pattern."""
        namespace = {} if topic.pattern is None else {"namespace": topic.namespace}
        return {**namespace, "subscription": reading.job}


def _wanted(
    topic: Pulsar, role: TopicRole, options: SetupOptions, schema: Schema | None
) -> WantedTopic:
    return wanted_on_pulsar(topic.name, role, options, schema)


class PulsarConnector(BrokerConnector[Pulsar]):
    """Topics of Pulsar namespaces."""

    kind = Pulsar.kind
    starts = Pulsar.starts
    spark = PulsarEnds()
    positions: Positions[Pulsar] = positions
    writing: Writing[Pulsar] = written
    setup = TopicSetup(frozenset({"retention"}), _wanted, find_problems)

    @property
    def audit(self) -> Audit[Pulsar]:
        from headgate.connectors.pulsar.runs import audit

        return audit

    def find_log(self, text: str) -> PulsarLog | None:
        return PulsarLog.parse(text) if text.startswith(SCHEMES) else None

    def reach(self, topic: Pulsar, doing: str) -> None:
        """Return when the service accepts connections and its admin API responds."""
        connect(topic.log, doing=doing)
        with Admin(topic.log, doing=doing) as admin:
            admin.get("clusters")

    def open_places(self, topic: Pulsar) -> Places:
        from headgate.connectors.pulsar.topics.places import PulsarPlaces

        return PulsarPlaces(topic.log, topic.name)
