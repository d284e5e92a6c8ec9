"""Embedded topics: a topic is a folder, and every `*.jsonl` file in it is part of it.

The layout, which the reader and the writer inside Spark share:

    DIR/<topic>/_topic.json          the topic's id and its number of partitions
    DIR/<topic>/_ledger/             the order of its files; only the reader writes it
    DIR/<topic>/_tmp/                unfinished files
    DIR/<topic>/part-<p>/*.jsonl     published files; one JSON object per line

A file counts at any depth, no matter who renamed it into the folder, unless a part of its path
begins with `_` or `.`. Files never change. `_topic.json` may be missing in a folder created by
hand; then the topic has one partition until a reader or `create` writes the file.
"""

import contextlib
import json
import os
import re
import time
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from headgate.connectors.contract.topics import (
    check_partitions,
    check_topic_name,
    topic_not_found,
)
from headgate.connectors.files.folder import ledger
from headgate.connectors.files.folder.atomic import unique_name, write_new
from headgate.connectors.files.folder.ledger import LedgerEntry
from headgate.errors import Domain, HeadgateError
from headgate.flow.names import is_topic_name

FORMAT = 1
META_FILE = "_topic.json"
STAGING_FOLDER = "_tmp"
SUFFIX = ".jsonl"

_FILE_NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._=+-]*\.jsonl")
_PARTITION = re.compile(r"part-([0-9]{1,9})/")


@dataclass(frozen=True, slots=True)
class TopicMeta:
    """The content of `_topic.json`: the topic's id, its creation in epoch ms, its partitions."""

    id: str
    created: int
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicFile:
    """One file of a topic.

    Attributes:
        path: The file's path.
        relative: Its path in the topic's folder, with forward slashes.
        size: In bytes.
        modified_ns: Its time of modification, in nanoseconds since the epoch.
        number: Its number in the ledger, or None if no reader has seen it.
    """

    path: Path
    relative: str
    size: int
    modified_ns: int
    number: int | None = None


@dataclass(frozen=True, slots=True)
class TopicFolder:
    """An embedded topic on disk. Safe for concurrent threads and processes.

    Nothing is cached: every call reads the disk.
    """

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def exists(self) -> bool:
        """Whether the folder exists, created by `create` or by hand."""
        return self.path.is_dir()

    @property
    def partitions(self) -> int:
        """The number of partitions; 1 for a folder created by hand."""
        meta = self.find_meta()
        return 1 if meta is None else meta.partitions

    def create(self, partitions: int = 1) -> bool:
        """Create the topic; return False if it already existed.

        Of several concurrent callers exactly one gets True. A folder created by hand becomes a
        topic with that many partitions and keeps its files.

        Raises:
            HeadgateError: TOPIC_EXISTS: it exists with another number of partitions.
                BAD_PARTITIONS: a number below 1. TOPIC_UNREADABLE: it has a ledger and no id.
        """
        check_topic_name(self.name)
        check_partitions(self.name, partitions)
        meta = self.find_meta()
        if meta is None:
            self._check_new()
            if self._write_meta(partitions):
                return True
            meta = self.get_meta()
        if meta.partitions != partitions:
            raise HeadgateError(
                "TOPIC_EXISTS",
                f"cannot create topic '{self.name}' with {partitions} partitions: "
                f"it exists with {meta.partitions}",
                hint=f"use --partitions {meta.partitions}, or choose another name",
            )
        return False

    def find_meta(self) -> TopicMeta | None:
        """Return the content of `_topic.json`, or None if it is missing.

        Raises:
            HeadgateError: TOPIC_UNREADABLE: it is corrupted, or of another format.
        """
        try:
            content = json.loads((self.path / META_FILE).read_bytes())
            if content["format"] != FORMAT:
                raise self._unreadable(
                    f"its format is {content['format']}, and this release reads {FORMAT}"
                )
            return TopicMeta(
                id=str(content["id"]),
                created=int(content["created"]),
                partitions=int(content["partitions"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise self._unreadable(f"it is corrupted ({error})") from error

    def get_meta(self) -> TopicMeta:
        """Return the content of `_topic.json`.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND: it is missing. TOPIC_UNREADABLE.
        """
        meta = self.find_meta()
        if meta is None:
            raise _not_found(self.path)
        return meta

    def files(self) -> list[TopicFile]:
        """Return the topic's files in reading order; empty without a folder.

        Files in the ledger come first, by number; then new files by modification time and path.
        """
        numbers = {entry.path: entry.number for entry in self.read_ledger()}
        return list_files(self.path, numbers=numbers)

    def read_ledger(self) -> list[LedgerEntry]:
        """Return the numbered files by number, including deleted ones."""
        return ledger.read_ledger(self.path)

    def publish(
        self,
        data: bytes | Iterable[bytes],
        *,
        partition: int = 0,
        name: str | None = None,
        sync: bool = False,
    ) -> Path:
        """Add one file to the topic, and return its path. Readers see it complete or not at all.

        Args:
            data: Lines, each with its newline, whole or in pieces.
            partition: The partition; its lines are read in the order they were published.
            name: The file's name, ending in `.jsonl`; by default a new name that sorts by time.
            sync: Wait for the disk. Off by default: a published file survives a crash of any
                process, but may be lost in a power failure.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND: the folder is missing. BAD_PARTITIONS: the topic has no
                such partition. BAD_FILE_NAME. TOPIC_FILE_EXISTS: a file with that name exists and
                is unchanged.
        """
        if not self.exists:
            raise _not_found(self.path)
        partitions = self.partitions
        if not 0 <= partition < partitions:
            raise HeadgateError(
                "BAD_PARTITIONS",
                f"cannot publish to partition {partition} of topic '{self.name}': its "
                f"partitions are 0 to {partitions - 1}",
                hint=f"use a partition from 0 to {partitions - 1}",
            )
        if name is not None and not _FILE_NAME.fullmatch(name):
            raise HeadgateError(
                "BAD_FILE_NAME",
                f"cannot publish a file named {name!r} to topic '{self.name}': a name must "
                f"end in '{SUFFIX}', must not contain '/' and must not begin with '_' or '.'",
                hint="omit the name to get a new one",
            )
        folder = self.path / f"part-{partition}"
        folder.mkdir(exist_ok=True)
        path = folder / (name or unique_name() + SUFFIX)
        try:
            write_new(path, data, staging=self.path / STAGING_FOLDER, sync=sync)
        except FileExistsError as error:
            raise HeadgateError(
                "TOPIC_FILE_EXISTS",
                f"cannot publish {path.name} to topic '{self.name}': partition {partition} "
                "already has a file of that name, and files are never replaced",
                hint="omit the name to get a new one",
            ) from error
        return path

    def _check_new(self) -> None:
        """Refuse a new id if a ledger exists: jobs would read every record again."""
        # A concurrent creator writes the file before the first page, so a second look finds it.
        if self.read_ledger() and self.find_meta() is None:
            raise self._unreadable("it is missing, and the topic has a ledger")

    def _write_meta(self, partitions: int) -> bool:
        content = {
            "format": FORMAT,
            "id": uuid.uuid4().hex,
            "created": time.time_ns() // 1_000_000,
            "partitions": partitions,
        }
        text = json.dumps(content) + "\n"
        try:
            write_new(
                self.path / META_FILE, text.encode(), staging=self.path / STAGING_FOLDER, sync=True
            )
        except FileExistsError:
            return False
        return True

    def _unreadable(self, problem: str) -> HeadgateError:
        return HeadgateError(
            "TOPIC_UNREADABLE",
            f"cannot read {META_FILE} of topic '{self.name}': {problem}",
            hint=f"restore {self.path / META_FILE} from a backup, or delete it and _ledger to "
            "recreate the topic (jobs then read all records again)",
            domain=Domain.EXTERNAL,
        )


def list_topics(root: Path) -> list[TopicFolder]:
    """Return the topics in a folder by name; empty if the folder is missing."""
    if not root.is_dir():
        return []
    return [
        TopicFolder(path)
        for path in sorted(root.iterdir())
        if path.is_dir() and is_topic_name(path.name)
    ]


def get_topic(root: Path, name: str) -> TopicFolder:
    """Return an existing topic.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND, BAD_TOPIC_NAME.
    """
    folder = TopicFolder(root / check_topic_name(name))
    if not folder.exists:
        raise _not_found(folder.path)
    return folder


def list_files(
    path: Path,
    *,
    numbers: Mapping[str, int] = MappingProxyType({}),
    without: Container[str] = (),
) -> list[TopicFile]:
    """Return the data files in a topic's folder in reading order.

    Args:
        path: The topic's folder; may be missing.
        numbers: The ledger's numbers by relative path.
        without: Relative paths to skip.
    """
    files = []
    for relative, entry in _walk(path):
        if relative in without:
            continue
        # A file may be deleted between the listing and this call.
        with contextlib.suppress(FileNotFoundError):
            stat = entry.stat()
            number = numbers.get(relative)
            files.append(
                TopicFile(Path(entry.path), relative, stat.st_size, stat.st_mtime_ns, number)
            )
    return sorted(files, key=_reading_order)


def _walk(path: Path, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        with os.scandir(path) as entries:
            files = list(entries)
    except FileNotFoundError:
        return
    for entry in files:
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{below}{entry.name}/")
        elif entry.name.endswith(SUFFIX) and entry.is_file():
            yield f"{below}{entry.name}", entry


def partition_of(relative: str) -> int:
    """Return the partition of a file; 0 for a file in a folder of another name."""
    match = _PARTITION.match(relative)
    return 0 if match is None else int(match[1])


def _reading_order(file: TopicFile) -> tuple[bool, int, int, str]:
    if file.number is not None:
        return (False, file.number, 0, "")
    return (True, 0, file.modified_ns, file.relative)


def _not_found(path: Path) -> HeadgateError:
    names = [folder.name for folder in list_topics(path.parent)]
    return topic_not_found(path.name, names, where=str(path.parent), on=f"files:{path.parent}")
