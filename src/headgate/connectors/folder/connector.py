"""The connector of folders of data files."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors.contract.connector import Positions, SparkEnds, TopicSetup, Writing
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.starts import OFFSETS
from headgate.connectors.contract.topics import WantedTopic
from headgate.connectors.folder import ends, positions, written
from headgate.connectors.folder.descriptor import Folder
from headgate.connectors.folder.log import FolderLog
from headgate.connectors.folder.paths import is_address
from headgate.connectors.folder.places import FolderPlaces
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic


def _wanted(
    topic: Folder, _role: TopicRole, _options: SetupOptions, _schema: Schema | None
) -> WantedTopic:
    """Return the folder as it is: it has no settings."""
    return WantedTopic(name=topic.name, partitions=1)


class FolderConnector:
    """Folders of data files, on this machine or on an object store."""

    kind = Folder.kind
    has_keys = False
    # The source refuses starts that folders do not support.
    starts = OFFSETS
    spark: SparkEnds[Folder] = ends
    positions: Positions[Folder] = positions
    writing: Writing[Folder] = written
    setup = TopicSetup(frozenset(), _wanted)
    # The numbers of files are in a job's checkpoint, and their rows name none of them.
    audit = None

    def find_log(self, _text: str) -> None:
        """Return None: a flow names each folder itself."""

    def log_of(self, topic: Folder) -> FolderLog:
        return FolderLog(topic.where)

    def where(self, topic: Folder) -> str:
        return topic.where

    def find_cluster(self, topic: Folder) -> str:
        """Return the folder as the kernel writes to it."""
        return ends.find_cluster(topic)

    def reach(self, _topic: Folder, _doing: str) -> None:
        """Return at once: a folder has no broker."""

    def reads(self, read: Folder, topic: Topic) -> bool:
        """Return True if two topics are the same folder."""
        if not isinstance(topic, Folder) or is_address(read.where) != is_address(topic.where):
            return False
        if is_address(read.where):
            return read.where == topic.where
        return Path(read.where).resolve() == Path(topic.where).resolve()

    def open_places(self, topic: Folder) -> FolderPlaces:
        return FolderPlaces(topic)
