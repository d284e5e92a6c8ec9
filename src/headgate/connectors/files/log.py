"""A folder as a log: `files:DIR`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.connectors.contract.connector import KeyValues, Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.files.topics import FilesTopics

SCHEME = "files:"


@dataclass(frozen=True, slots=True)
class FilesLog:
    """A folder with one folder per topic."""

    folder: Path

    def bind(self, name: str) -> Files:
        return Files(name, dir=self.folder / name)

    def anchored(self) -> FilesLog:
        return FilesLog(self.folder.absolute())

    def open_topics(self) -> FilesTopics:
        return FilesTopics(self.folder)

    def make_topics(self, roles: Mapping[str, TopicRole], partitions: int | None) -> tuple[()]:
        """Create the missing topics; only streams get more than one partition."""
        for name, role in roles.items():
            folder = TopicFolder(self.folder / name)
            asked = partitions if role is TopicRole.STREAM else None
            is_missing = folder.find_meta() is None
            folder.create(asked if asked is not None and is_missing else folder.partitions)
        return ()

    @contextmanager
    def open_sink(self, roles: Mapping[str, TopicRole], _key_values: KeyValues) -> Iterator[Sink]:
        """Open a sink for existing topics.

        Changelogs go to partition 0, so that the changes of a key stay in order. Slices of a stream
        rotate over its partitions.
        """
        topics = {name: TopicFolder(self.folder / name) for name in roles}
        turns = {
            name: itertools.cycle(range(topics[name].partitions if role is TopicRole.STREAM else 1))
            for name, role in roles.items()
        }

        def publish(topic: str, lines: bytes, _records: int) -> None:
            topics[topic].publish(lines, partition=next(turns[topic]))

        yield publish

    def __str__(self) -> str:
        return f"{SCHEME}{self.folder}"
