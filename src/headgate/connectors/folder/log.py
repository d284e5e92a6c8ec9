"""The place of a folder of data files: it binds no names, and makes no topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from headgate._clock import Clock
from headgate.connectors.contract.connector import KeyValues, Sink
from headgate.connectors.contract.setup import TopicRole
from headgate.connectors.contract.topics import (
    MadeTopic,
    TopicDetails,
    TopicSummary,
    WantedTopic,
)
from headgate.connectors.folder.descriptor import Folder
from headgate.connectors.folder.paths import is_address
from headgate.errors import HeadgateError


@dataclass(frozen=True, slots=True)
class FolderTopics:
    """The one topic in a folder."""

    path: str

    def list_topics(self, *, count: bool) -> list[TopicSummary]:  # noqa: ARG002
        return []

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:  # noqa: ARG002
        raise _unsupported(self.path)

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Return the folder, which is made with its first file."""
        existed = is_address(self.path) or Path(self.path).is_dir()
        if not existed:
            Path(self.path).mkdir(parents=True)
        return MadeTopic(wanted.name, 1, self.path, existed)

    def tail(self, name: str, *, last: int) -> list[bytes]:  # noqa: ARG002
        raise _unsupported(self.path)

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:  # noqa: ARG002
        raise _unsupported(self.path)


@dataclass(frozen=True, slots=True)
class FolderLog:
    """A folder as a log of its own. It is no value of `--on`: a flow names each folder."""

    path: str

    @property
    def folder(self) -> Path | None:
        return None if is_address(self.path) else Path(self.path)

    def bind(self, name: str) -> Folder:
        return Folder(self.path, name)

    def anchored(self) -> FolderLog:
        return self if is_address(self.path) else FolderLog(str(Path(self.path).absolute()))

    def open_topics(self) -> FolderTopics:
        return FolderTopics(self.path)

    def make_topics(
        self,
        roles: Mapping[str, TopicRole],  # noqa: ARG002
        partitions: int | None,  # noqa: ARG002
    ) -> tuple[MadeTopic, ...]:
        """Return nothing: a folder is made with its first file."""
        return ()

    def open_sink(
        self,
        roles: Mapping[str, TopicRole],  # noqa: ARG002
        key_values: KeyValues,  # noqa: ARG002
    ) -> AbstractContextManager[Sink]:
        raise _unsupported(self.path)

    def __str__(self) -> str:
        return self.path


def _unsupported(path: str) -> HeadgateError:
    return HeadgateError(
        "TOPIC_OPTION_UNSUPPORTED",
        f"cannot do this with folder {path}: its files are made by other programs",
        hint="write files into it with another program",
    )
