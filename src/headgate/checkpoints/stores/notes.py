"""Small files on an object store, written under conditions: who owns a job, and its lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headgate._locations import Location
from headgate.checkpoints.stores.objects import list_objects, write_object

if TYPE_CHECKING:
    from upath import UPath


@dataclass(frozen=True, slots=True)
class Note:
    """A small file.

    Attributes:
        mark: Differs once the file has changed.
    """

    content: bytes
    mark: str


class Notes(Protocol):
    """The small files in a folder of a store, by their names relative to it."""

    @property
    def folder(self) -> str:
        """The address of the folder."""
        ...

    def list_times(self, folder: str) -> Mapping[str, datetime]:
        """Return when each file in a folder was stored, by the store's clock."""
        ...

    def find(self, name: str) -> Note | None:
        """Return a file, or None if it does not exist."""
        ...

    def put(self, name: str, content: bytes, *, mark: str | None) -> str | None:
        """Write a file under a condition; return its mark, or None if the condition does not hold.

        Args:
            mark: Of the file that is replaced; None to write it only if there is none.
        """
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; nothing happens if one is gone."""
        ...


class StoreNotes:
    """The small files in a folder of an object store."""

    def __init__(self, folder: Location) -> None:
        assert not isinstance(folder, Path), "a disk has locks and renames"
        self._folder: UPath = folder

    @property
    def folder(self) -> str:
        return str(self._folder)

    def list_times(self, folder: str) -> Mapping[str, datetime]:
        found = list_objects(self._folder / folder)
        return {name: info["LastModified"] for name, info in found.items()}

    def find(self, name: str) -> Note | None:
        try:
            content, mark = self._folder.fs.get_marked(self._path(name))
        except FileNotFoundError:
            return None
        return Note(content, mark)

    def put(self, name: str, content: bytes, *, mark: str | None) -> str | None:
        written = self._folder.fs.put_if(self._path(name), content, mark)
        if written is None:
            # The answer to an earlier try may have been lost.
            present = self.find(name)
            if present is not None and present.content == content and present.mark != mark:
                return present.mark
        return None if written is None else str(written)

    def write(self, name: str, content: bytes) -> None:
        write_object(self._folder / name, content)

    def remove(self, names: Iterable[str]) -> None:
        paths = [self._path(name) for name in names]
        if paths:
            self._folder.fs.rm(paths)

    def _path(self, name: str) -> str:
        return str((self._folder / name).path)
