"""The rows of a folder by place: the file, and the number of the row."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from headgate.connectors.contract.places import PlacedRecord, Send, Spot, Stretch
from headgate.connectors.folder.descriptor import Folder
from headgate.connectors.folder.tail import read_last, unsupported


@dataclass(frozen=True, slots=True)
class FolderPlaces:
    """The files of one folder."""

    folder: Folder

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the last rows of the newest visible files."""
        return read_last(self.folder, count)

    def stretches(self, at_most: int | None = None) -> list[Stretch]:  # noqa: ARG002
        raise unsupported(self.folder, "list the rows of")

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:  # noqa: ARG002
        raise unsupported(self.folder, "read the rows of")

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:  # noqa: ARG002
        raise unsupported(self.folder, "find rows of")

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:  # noqa: ARG002
        """Return nothing: the numbers of files are in the job's checkpoint."""
        return {}

    def sending(self) -> AbstractContextManager[Send]:
        raise unsupported(self.folder, "append rows to")
