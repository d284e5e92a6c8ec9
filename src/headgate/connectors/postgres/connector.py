"""The connector of tables in PostgreSQL databases."""

from __future__ import annotations

from headgate.connectors.contract.connector import Positions, SparkEnds, TopicSetup, Writing
from headgate.connectors.contract.places import Places
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.starts import OFFSETS
from headgate.connectors.contract.topics import WantedTopic
from headgate.connectors.postgres import ends, positions, written
from headgate.connectors.postgres.column_types import quoted
from headgate.connectors.postgres.descriptor import SCHEME, Postgres, PostgresLog
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic


def _wanted(
    topic: Postgres, role: TopicRole, options: SetupOptions, schema: Schema | None
) -> WantedTopic:
    """Return the settings of a table: its columns, if the flow writes it."""
    partitions = 1 if role is TopicRole.EPOCHS else options.partitions
    name = topic.name if topic.table is None else ".".join(map(quoted, topic.target))
    key = () if topic.key is None else tuple(topic.key)
    columns = schema if role.is_written else None
    return WantedTopic(name=name, partitions=partitions, schema=columns, key=key)


class PostgresConnector:
    """Tables of PostgreSQL databases."""

    kind = Postgres.kind
    has_keys = True
    # The source refuses starts that tables do not support.
    starts = OFFSETS
    spark: SparkEnds[Postgres] = ends
    positions: Positions[Postgres] = positions
    writing: Writing[Postgres] = written
    setup = TopicSetup(frozenset(), _wanted)
    # Rows that replace each other cannot be compared with the records they come from.
    audit = None

    def find_log(self, text: str) -> PostgresLog | None:
        return PostgresLog.parse(text) if text.startswith(SCHEME) else None

    def log_of(self, topic: Postgres) -> PostgresLog:
        return topic.log

    def where(self, topic: Postgres) -> str:
        return topic.log.address

    def find_cluster(self, topic: Postgres) -> str:
        return topic.log.to_text()

    def reach(self, topic: Postgres, doing: str) -> None:
        """Return when the database responds."""
        from headgate.connectors.postgres.access import connect

        with connect(topic.log, doing=doing):
            pass

    def reads(self, read: Postgres, topic: Topic) -> bool:
        """Return True if two topics are the same table."""
        return (
            isinstance(topic, Postgres)
            and read.log.cluster == topic.log.cluster
            and (read.target, read.query) == (topic.target, topic.query)
        )

    def open_places(self, topic: Postgres) -> Places:
        from headgate.connectors.postgres.places import PostgresPlaces

        return PostgresPlaces(topic.log, *topic.target)
