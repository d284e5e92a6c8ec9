"""Topics as a user sees them: which there are, what is in them, their last records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate.connectors.files import records
from headgate.connectors.files import topic as folders
from headgate.connectors.files.topic import TopicFile, TopicFolder
from headgate.connectors.logs import FilesLog, parse_log
from headgate.errors import HeadgateError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a line.

    Attributes:
        size: In bytes.
        records: How many there are, or None if they were not counted.
        newest: When the last file was published; None while there is none.
    """

    name: str
    partitions: int
    files: int
    size: int
    records: int | None
    newest: datetime | None

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON values; records only where they were counted."""
        counted = {} if self.records is None else {"records": self.records}
        return {
            "name": self.name,
            "partitions": self.partitions,
            "files": self.files,
            "size": self.size,
            **counted,
            "newest": None if self.newest is None else self.newest.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file of a topic.

    Attributes:
        path: Relative to the topic's folder.
        number: Its place in the reading order, or None if no reader has seen it.
    """

    path: str
    size: int
    published: datetime
    number: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the file as JSON values."""
        return {
            "path": self.path,
            "size": self.size,
            "published": self.published.isoformat(),
            "number": self.number,
        }


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """All there is to tell about a topic.

    Attributes:
        id: Made with the topic; None for a folder made by hand that nobody has read yet.
        ledger: How many files have been numbered by readers, those since deleted among them.
        last_files: The last ones in reading order.
    """

    summary: TopicSummary
    where: Path
    id: str | None
    created: datetime | None
    ledger: int
    last_files: tuple[PublishedFile, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the topic as JSON values."""
        return {
            **self.summary.to_json(),
            "where": str(self.where),
            "id": self.id,
            "created": None if self.created is None else self.created.isoformat(),
            "ledger": self.ledger,
            "last_files": [file.to_json() for file in self.last_files],
        }


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that is there now, and whether it was there before."""

    name: str
    partitions: int
    where: Path
    existed: bool

    def to_json(self) -> dict[str, Any]:
        """Return the topic as JSON values."""
        return {
            "name": self.name,
            "partitions": self.partitions,
            "where": str(self.where),
            "existed": self.existed,
        }


def list_topics(on: str, *, count: bool = False) -> list[TopicSummary]:
    """Return the topics of a log by name.

    Args:
        on: The log, as `--on` names it.
        count: Count records too, which reads every file.
    """
    return [
        _summary(folder, folder.files(), count=count)
        for folder in folders.list_topics(topics_root(on))
    ]


def show_topic(on: str, name: str, *, count: bool = False, last_files: int = 10) -> TopicDetails:
    """Return all about one topic, or raise TOPIC_NOT_FOUND."""
    folder = folders.get_topic(topics_root(on), name)
    meta = folder.find_meta()
    files = folder.files()
    return TopicDetails(
        summary=_summary(folder, files, count=count),
        where=folder.path,
        id=None if meta is None else meta.id,
        created=None if meta is None else _EPOCH + timedelta(milliseconds=meta.created),
        ledger=len(folder.read_ledger()),
        last_files=tuple(
            PublishedFile(file.relative, file.size, _published(file), file.number)
            for file in files[max(0, len(files) - last_files) :]
        ),
    )


def create_topic(on: str, name: str, *, partitions: int | None = None) -> CreatedTopic:
    """Make a topic unless it is there.

    Args:
        on: The log, as `--on` names it.
        name: The topic's name.
        partitions: Refused with TOPIC_EXISTS where the topic has another number; by default 1,
            or what the topic has.
    """
    folder = TopicFolder(topics_root(on) / folders.check_topic_name(name))
    made = folder.create(folder.partitions if partitions is None else partitions)
    return CreatedTopic(name, folder.partitions, folder.path, existed=not made)


def tail_topic(on: str, name: str, *, last: int) -> list[bytes]:
    """Return the last records of a topic in reading order, without their newlines."""
    return records.tail(folders.get_topic(topics_root(on), name), last)


def follow_topic(on: str, name: str, *, last: int, clock: Clock | None = None) -> Iterator[bytes]:
    """Yield the last records of a topic, then every new one, for ever."""
    folder = folders.get_topic(topics_root(on), name)
    return records.follow(folder, clock=clock or SystemClock(), last=last)


def topics_root(on: str) -> Path:
    """Return the folder of the topics that `--on` names; refuse a log that is no folder."""
    log = parse_log(on)
    if isinstance(log, FilesLog):
        return log.root
    raise HeadgateError(
        "LOG_UNSUPPORTED",
        f"cannot look into {on}: only embedded topics can be listed, read and filled from here",
        hint="use --on files:DIR",
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
