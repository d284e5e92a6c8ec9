"""Embedded topics: a topic is a folder, and every `*.jsonl` file in it is part of it.

The layout, which the reader and the writer inside Spark share:

    DIR/<topic>/_topic.json          the topic's id and its number of partitions
    DIR/<topic>/_ledger/             the order of its files; written by the reader alone
    DIR/<topic>/_tmp/                files in the making
    DIR/<topic>/part-<p>/*.jsonl     where writers publish; one JSON object a line

A file counts at any depth, whoever renamed it into the folder, unless a part of its path begins
with `_` or `.`. Files never change once they are in. `_topic.json` may be missing (a folder
somebody made by hand); then the topic has one partition until a reader or `create` says more.
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

from headgate.connectors.files import ledger
from headgate.connectors.files.atomic import unique_name, write_new
from headgate.connectors.files.ledger import LedgerEntry
from headgate.errors import Domain, HeadgateError

FORMAT = 1
META_FILE = "_topic.json"
STAGING_FOLDER = "_tmp"
SUFFIX = ".jsonl"

_NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._-]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._=+-]*\.jsonl")
_LONGEST_NAME = 249


def check_topic_name(text: str) -> str:
    """Return the name unchanged if a topic may have it.

    Raises:
        HeadgateError: BAD_TOPIC_NAME.
    """
    if _NAME.fullmatch(text) and len(text) <= _LONGEST_NAME:
        return text
    suggestion = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("_.")[:_LONGEST_NAME].rstrip("-")
    raise HeadgateError(
        "BAD_TOPIC_NAME",
        f"cannot use {text!r} as the name of a topic: a name has 1 to {_LONGEST_NAME} letters, "
        "digits, '.', '_' and '-', and does not begin with '_' or '.'",
        hint=f"try {suggestion or 'orders'}",
    )


@dataclass(frozen=True, slots=True)
class TopicMeta:
    """What `_topic.json` says: an id made with the topic, its birth in epoch ms, its partitions."""

    id: str
    created: int
    partitions: int


@dataclass(frozen=True, slots=True)
class TopicFile:
    """One file of a topic.

    Attributes:
        path: Where it is.
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
    """An embedded topic on disk. Safe to use from several threads and processes at once.

    Nothing is remembered between calls: each looks at the disk.
    """

    path: Path

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.path.name

    @property
    def exists(self) -> bool:
        """Whether the folder is there, made by `create` or by hand."""
        return self.path.is_dir()

    @property
    def partitions(self) -> int:
        """The number of partitions; 1 for a folder made by hand."""
        meta = self.find_meta()
        return 1 if meta is None else meta.partitions

    @property
    def size(self) -> int:
        """The sizes of all files in bytes, added up."""
        return sum(file.size for file in list_files(self.path))

    def create(self, partitions: int = 1) -> bool:
        """Make the topic, and return whether this call made it: False if it was there already.

        Of several callers at once exactly one is told True. A folder made by hand becomes a
        topic with that many partitions, and its files stay.

        Raises:
            HeadgateError: TOPIC_EXISTS: it is there with another number of partitions.
                BAD_PARTITIONS: a number below 1. TOPIC_UNREADABLE: it has a ledger and no id.
        """
        check_topic_name(self.name)
        if partitions < 1:
            raise HeadgateError(
                "BAD_PARTITIONS",
                f"cannot create topic '{self.name}' with {partitions} partitions: "
                "a topic has at least 1",
                hint="use 1 or more partitions",
            )
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
        """Return what `_topic.json` says, or None if there is none.

        Raises:
            HeadgateError: TOPIC_UNREADABLE: it is damaged, or of another format.
        """
        try:
            content = json.loads((self.path / META_FILE).read_bytes())
            if content["format"] != FORMAT:
                raise self._unreadable(f"its format is {content['format']}, and {FORMAT} is known")
            return TopicMeta(
                id=str(content["id"]),
                created=int(content["created"]),
                partitions=int(content["partitions"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise self._unreadable(f"it is damaged ({error})") from error

    def get_meta(self) -> TopicMeta:
        """Return what `_topic.json` says.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND: there is none. TOPIC_UNREADABLE.
        """
        meta = self.find_meta()
        if meta is None:
            raise _not_found(self.path)
        return meta

    def files(self) -> list[TopicFile]:
        """Return the topic's files in reading order; empty if there is no folder.

        Files in the ledger come first, by number; then those no reader has seen, by time of
        modification, then by path.
        """
        numbers = {entry.path: entry.number for entry in self.read_ledger()}
        return list_files(self.path, numbers=numbers)

    def read_ledger(self) -> list[LedgerEntry]:
        """Return the numbered files by number, those that are gone from disk among them."""
        return ledger.read_ledger(self.path)

    def publish(
        self,
        data: bytes | Iterable[bytes],
        *,
        partition: int = 0,
        name: str | None = None,
        sync: bool = False,
    ) -> Path:
        """Add one file to the topic, and return its path. Readers see it whole or not at all.

        Args:
            data: Lines, each with its newline, whole or in pieces.
            partition: The partition; lines in one partition are read in the order they came.
            name: The file's name, which ends in `.jsonl`; by default a new one that sorts by time.
            sync: Wait for the disk. Off by default: a published file outlives a crash of any
                process, but may be lost in a power failure.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND: there is no folder. BAD_PARTITIONS: the topic has no
                such partition. BAD_FILE_NAME. TOPIC_FILE_EXISTS: a file of that name is there,
                and is left as it is.
        """
        if not self.exists:
            raise _not_found(self.path)
        partitions = self.partitions
        if not 0 <= partition < partitions:
            raise HeadgateError(
                "BAD_PARTITIONS",
                f"cannot publish to partition {partition} of topic '{self.name}': "
                f"it has {partitions}, counted from 0",
                hint=f"use a partition from 0 to {partitions - 1}",
            )
        if name is not None and not _FILE_NAME.fullmatch(name):
            raise HeadgateError(
                "BAD_FILE_NAME",
                f"cannot publish a file named {name!r} to topic '{self.name}': a name ends in "
                f"'{SUFFIX}', has no '/' and does not begin with '_' or '.'",
                hint="leave out the name to get a new one",
            )
        folder = self.path / f"part-{partition}"
        folder.mkdir(exist_ok=True)
        path = folder / (name or unique_name() + SUFFIX)
        try:
            write_new(path, data, staging=self.path / STAGING_FOLDER, sync=sync)
        except FileExistsError as error:
            raise HeadgateError(
                "TOPIC_FILE_EXISTS",
                f"cannot publish {path.name} to topic '{self.name}': partition {partition} has a "
                "file of that name, and files are never replaced",
                hint="leave out the name to get a new one",
            ) from error
        return path

    def _check_new(self) -> None:
        """Refuse a new id over a ledger: jobs would read every record once more."""
        # The file is made before the first page, so that a second look tells who was faster.
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

    def _unreadable(self, found: str) -> HeadgateError:
        return HeadgateError(
            "TOPIC_UNREADABLE",
            f"cannot read {META_FILE} of topic '{self.name}': {found}",
            hint=f"restore {self.path / META_FILE} from a backup, or remove it and _ledger to have "
            "the topic made anew (jobs then read all of it once more)",
            domain=Domain.EXTERNAL,
        )


def list_topics(root: Path) -> list[TopicFolder]:
    """Return the topics under a folder by name; empty if there is no such folder."""
    if not root.is_dir():
        return []
    return [
        TopicFolder(path)
        for path in sorted(root.iterdir())
        if path.is_dir() and _NAME.fullmatch(path.name)
    ]


def get_topic(root: Path, name: str) -> TopicFolder:
    """Return a topic that is there.

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
        path: The topic's folder; it may be missing.
        numbers: The ledger's numbers by relative path.
        without: Relative paths to leave out.
    """
    files = []
    for relative, entry in _walk(path):
        if relative in without:
            continue
        # A file may be deleted between the listing and the look at it.
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
            found = list(entries)
    except FileNotFoundError:
        return
    for entry in found:
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{below}{entry.name}/")
        elif entry.name.endswith(SUFFIX) and entry.is_file():
            yield f"{below}{entry.name}", entry


def _reading_order(file: TopicFile) -> tuple[bool, int, int, str]:
    if file.number is not None:
        return (False, file.number, 0, "")
    return (True, 0, file.modified_ns, file.relative)


def _not_found(path: Path) -> HeadgateError:
    found = [folder.name for folder in list_topics(path.parent)]
    listing = f"it has {', '.join(found)}" if found else "it has no topics"
    return HeadgateError(
        "TOPIC_NOT_FOUND",
        f"cannot find topic '{path.name}' in {path.parent}: {listing}",
        hint=f"headgate topics create {path.name} --on files:{path.parent}",
    )
