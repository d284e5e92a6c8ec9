"""The connector of embedded topics."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors.contract.connector import Audit, Positions, SparkEnds, TopicSetup, Writing
from headgate.connectors.contract.setup import SetupOptions, TopicRole, wanted_topic
from headgate.connectors.contract.starts import OFFSETS
from headgate.connectors.contract.topics import WantedTopic
from headgate.connectors.files import audit, ends, positions, written
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.log import SCHEME, FilesLog
from headgate.connectors.files.places import FilesPlaces
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic


def _wanted(
    topic: Files, role: TopicRole, options: SetupOptions, _schema: Schema | None
) -> WantedTopic:
    """Return the settings of a topic; it keeps every record, and has no other settings."""
    partitions = wanted_topic(topic.name, role, options).partitions
    return WantedTopic(name=Path(topic.path).name, partitions=partitions)


class FilesConnector:
    """Topics in folders."""

    kind = Files.kind
    has_keys = False
    # The source refuses starts that embedded topics do not support.
    starts = OFFSETS
    spark: SparkEnds[Files] = ends
    positions: Positions[Files] = positions
    writing: Writing[Files] = written
    setup = TopicSetup(frozenset(), _wanted)
    audit: Audit[Files] = audit

    def find_log(self, text: str) -> FilesLog | None:
        root = text.removeprefix(SCHEME)
        return FilesLog(Path(root)) if text.startswith(SCHEME) and root else None

    def log_of(self, topic: Files) -> FilesLog:
        return FilesLog(Path(topic.path).parent)

    def where(self, topic: Files) -> str:
        """Return the folder of the log, or the topic's folder if it has another name."""
        path = Path(topic.path)
        return f"{SCHEME}{path.parent if path.name == topic.name else path}"

    def find_cluster(self, _topic: Files) -> None:
        """Return None: there is no broker."""

    def reach(self, _topic: Files, _doing: str) -> None:
        """Return at once: a folder has no broker."""

    def reads(self, read: Files, topic: Topic) -> bool:
        """Return True if two topics are the same folder."""
        return isinstance(topic, Files) and Path(read.path).resolve() == Path(topic.path).resolve()

    def open_places(self, topic: Files) -> FilesPlaces:
        return FilesPlaces(Path(topic.path))
