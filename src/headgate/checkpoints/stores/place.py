"""What checkpoints need of the place where they are kept, on a disk and on an object store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from headgate._locations import Location

# The first part of the name of a kept checkpoint's folder.
PREFIX = "chk-"
# The folder of a run's kept checkpoints.
KEPT_IN = "checkpoints"
PINNED = "pinned"
HELD = "held"
# The manifests of kept checkpoints and of savepoints.
MANIFESTS = ("checkpoint.json", "manifest.json")


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder with a manifest.

    Attributes:
        manifest: The name of the manifest's file.
        mark: Differs once the manifest has changed.
    """

    manifest: str
    mark: Hashable
    pinned: bool


class Files(Protocol):
    """The files of a folder, by their names relative to it, with slashes."""

    @property
    def root(self) -> Location: ...

    def has(self, file: str) -> bool:
        """Return True if a file exists."""
        ...

    def size(self, file: str) -> int:
        """Return the size of a file in bytes; FileNotFoundError if it does not exist."""
        ...

    def read(self, file: str) -> bytes:
        """Return the content of a file."""
        ...

    def open(self, file: str) -> BinaryIO:
        """Open a file for reading."""
        ...

    def children(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, sorted; none if it does not exist."""
        ...

    def walk(self, folder: str) -> Sequence[str]:
        """Return all files below a folder, sorted, relative to the root."""
        ...

    def prepare(self, files: Iterable[str], *, most: int | None = None) -> None:
        """Read files together, which are asked for one by one soon.

        Args:
            most: The number of bytes of each that are certainly needed; all if left out.
        """
        ...


class Draft(Protocol):
    """A folder that is being filled, and appears at the end."""

    @property
    def files(self) -> Files:
        """What has been brought so far."""
        ...

    def bring(
        self, source: Files, files: Iterable[str], *, known: Mapping[str, int] | None = None
    ) -> None:
        """Bring files of another folder, under the same names.

        Args:
            known: The sizes of the files that a kept checkpoint of the same run has already.
        """
        ...

    def write(self, file: str, content: str) -> None:
        """Write a file, or replace a file that was brought, without changing its source."""
        ...


class Place(Protocol):
    """A folder of a checkpoint, or of several."""

    def files(self) -> Files:
        """Return the files of the checkpoint that the folder is, as they are now."""
        ...

    def list_names(self) -> list[str]:
        """Return the names of the checkpoints' folders in the folder."""
        ...

    def list_entries(self) -> dict[str, Entry | None]:
        """Return the folders in the folder by name; None for those without a manifest."""
        ...

    def find_entry(self) -> Entry | None:
        """Return what the folder itself is; None if it has no manifest."""
        ...

    def read_texts(self, files: Sequence[str]) -> list[str | Exception]:
        """Return the contents of files in the folder, or why they cannot be read."""
        ...

    def publishing(
        self, *, linked: bool = True, shared: bool = False, sync: bool = False
    ) -> AbstractContextManager[Draft]:
        """Give a draft to fill; at the end of the block it appears under the folder's name.

        Args:
            linked: Files may be the very files of their source, which must not change then.
            shared: The folder is a kept checkpoint of a run, which may share files with others.
            sync: Wait until the disk has it all, so that it outlives a power failure.

        Raises:
            HeadgateError: CHECKPOINT_EXISTS if the name is taken, CHECKPOINT_NOT_WRITTEN if the
                disk or the store refuses.
        """
        ...

    def pin(self) -> bool:
        """Mark the checkpoint; return whether it is still there."""
        ...

    def unpin(self) -> None:
        """Remove the mark."""
        ...

    def holding(self) -> AbstractContextManager[bool]:
        """Keep the checkpoint from being removed in the block; give whether it is still there."""
        ...

    def is_held(self) -> bool:
        """Return True if a process holds the checkpoint."""
        ...

    def remove(self, *, unshared: Callable[[], Iterable[str]], check: Callable[[], None]) -> bool:
        """Remove the checkpoint, unless it is pinned or held, and return whether it is gone.

        Args:
            unshared: Returns the files of the checkpoint that no other checkpoint of its run has.
            check: Raises once another process may be keeping checkpoints of the run.
        """
        ...

    def remove_tree(self) -> None:
        """Remove the folder, whatever is in it."""
        ...

    def sweep(self, named: Callable[[], set[str] | None]) -> list[str]:
        """Remove what a crash left in the folder; no other process may be writing there.

        Args:
            named: The files that the manifests of the folder name; None if one cannot be read.

        Returns:
            The names that were removed.
        """
        ...
