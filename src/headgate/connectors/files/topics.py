"""The embedded topics in a folder, as the CLI shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate._clock import Clock
from headgate.connectors.contract.topics import (
    MadeTopic,
    PublishedFile,
    TopicDetails,
    TopicSummary,
    WantedTopic,
    check_partitions,
    check_topic_name,
)
from headgate.connectors.files.folder import records
from headgate.connectors.files.folder import topic as folders
from headgate.connectors.files.folder.topic import TopicFile, TopicFolder
from headgate.errors import HeadgateError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FilesTopics:
    """The topics in a folder's subfolders."""

    root: Path

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name; counting reads every file."""
        return [
            _summary(folder, folder.files(), count=count)
            for folder in folders.list_topics(self.root)
        ]

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:
        folder = folders.get_topic(self.root, name)
        meta = folder.find_meta()
        files = folder.files()
        return TopicDetails(
            summary=_summary(folder, files, count=count),
            where=str(folder.path),
            id=None if meta is None else meta.id,
            created=None if meta is None else _EPOCH + timedelta(milliseconds=meta.created),
            ledger=len(folder.read_ledger()),
            last_files=tuple(
                PublishedFile(file.relative, file.size, _published(file), file.number)
                for file in files[max(0, len(files) - last_files) :]
            ),
        )

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Create a topic if it is missing; by default with 1 partition.

        Raises:
            HeadgateError: TOPIC_OPTION_UNSUPPORTED: embedded topics have no retention and no
                replicas.
        """
        _check_supported(wanted)
        folder = TopicFolder(self.root / check_topic_name(wanted.name))
        asked = wanted.partitions
        if asked is not None:
            check_partitions(wanted.name, asked)
        existed = folder.find_meta() is not None
        made = not existed and folder.create(folder.partitions if asked is None else asked)
        has = folder.partitions
        differs = asked is not None and has != asked
        return MadeTopic(
            wanted.name,
            has,
            str(folder.path),
            existed=not made,
            differences=(f"it has {has} partitions instead of {asked}",) if differs else (),
        )

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return the last records in reading order, without their newlines."""
        return records.tail(folders.get_topic(self.root, name), last)

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:
        return records.follow(folders.get_topic(self.root, name), clock=clock, last=last)


def _check_supported(wanted: WantedTopic) -> None:
    for option, given in (
        ("--retention", wanted.retention is not None),
        ("--compact", wanted.compact),
        ("--replication", wanted.replication is not None),
        ("--deduplicate", wanted.deduplicate),
    ):
        if given:
            raise HeadgateError(
                "TOPIC_OPTION_UNSUPPORTED",
                f"cannot create topic '{wanted.name}' with {option}: embedded topics keep one "
                "copy of every file until it is deleted",
                hint=f"omit {option}, or create the topic on Kafka: --on kafka://HOST:9092",
            )


def _summary(folder: TopicFolder, files: list[TopicFile], *, count: bool) -> TopicSummary:
    return TopicSummary(
        name=folder.name,
        partitions=folder.partitions,
        files=len(files),
        size=sum(file.size for file in files),
        records=records.count_records(folder) if count else None,
        newest=max((_published(file) for file in files), default=None),
    )


def _published(file: TopicFile) -> datetime:
    return _EPOCH + timedelta(microseconds=file.modified_ns // 1000)
