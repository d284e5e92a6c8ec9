"""Checkpoints in folders of this machine: hard links, renames, and locks on files."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from headgate.checkpoints import storage
from headgate.checkpoints.stores.place import HELD, MANIFESTS, PINNED, Draft, Entry, Files


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files of a folder on a disk."""

    root: Path

    def has(self, file: str) -> bool:
        return (self.root / file).is_file()

    def size(self, file: str) -> int:
        return (self.root / file).stat().st_size

    def read(self, file: str) -> bytes:
        return (self.root / file).read_bytes()

    def open(self, file: str) -> BinaryIO:
        return (self.root / file).open("rb")

    def children(self, folder: str) -> Sequence[str]:
        path = self.root / folder
        return sorted(child.name for child in path.iterdir()) if path.is_dir() else ()

    def walk(self, folder: str) -> Sequence[str]:
        return [
            file.relative_to(self.root).as_posix()
            for file in sorted((self.root / folder).rglob("*"))
            if file.is_file()
        ]

    def prepare(self, files: Iterable[str], *, most: int | None = None) -> None:
        """A disk needs no preparation."""


@dataclass(frozen=True, slots=True)
class LocalDraft:
    """A folder beside the one that it becomes."""

    folder: Path
    linked: bool

    @property
    def files(self) -> Files:
        return LocalFiles(self.folder)

    def bring(
        self, source: Files, files: Iterable[str], *, known: Mapping[str, int] | None = None
    ) -> None:
        if isinstance(source, LocalFiles):
            storage.link_files(source.root, files, self.folder, copy=not self.linked)
        else:
            from headgate.checkpoints.stores.objects import ObjectFiles

            assert isinstance(source, ObjectFiles)
            source.download(files, self.folder)

    def write(self, file: str, content: str) -> None:
        storage.write_file(self.folder / file, content)


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A folder on a disk."""

    folder: Path

    def files(self) -> Files:
        return LocalFiles(self.folder)

    def list_names(self) -> list[str]:
        try:
            with os.scandir(self.folder) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir() and not storage.is_draft(entry)
                )
        except (FileNotFoundError, NotADirectoryError):
            return []

    def list_entries(self) -> dict[str, Entry | None]:
        return {name: LocalPlace(self.folder / name).find_entry() for name in self.list_names()}

    def find_entry(self) -> Entry | None:
        files = (self.folder / name for name in MANIFESTS)
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            return None
        try:
            status = file.stat()
        except FileNotFoundError:
            return None
        mark = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return Entry(file.name, mark, (self.folder / PINNED).is_file())

    def read_texts(self, files: Sequence[str]) -> list[str | Exception]:
        texts: list[str | Exception] = []
        for file in files:
            try:
                texts.append((self.folder / file).read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                texts.append(error)
        return texts

    @contextlib.contextmanager
    def publishing(
        self, *, linked: bool = True, shared: bool = False, sync: bool = False
    ) -> Iterator[Draft]:
        with storage.publishing(self.folder, sync=sync) as draft:
            yield LocalDraft(draft, linked)

    def pin(self) -> bool:
        try:
            (self.folder / PINNED).touch()
        except FileNotFoundError:
            return False
        return self.folder.is_dir()

    def unpin(self) -> None:
        (self.folder / PINNED).unlink(missing_ok=True)

    @contextlib.contextmanager
    def holding(self) -> Iterator[bool]:
        # The file is empty; a process that needs the checkpoint for a while has a lock on it.
        try:
            descriptor = os.open(self.folder / HELD, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            # Retention may have taken the folder away between the two.
            yield _is_at(descriptor, self.folder / HELD)
        finally:
            os.close(descriptor)

    def is_held(self) -> bool:
        return _is_held(self.folder)

    def remove(self, *, unshared: Callable[[], Iterable[str]], check: Callable[[], None]) -> bool:
        check()

        def saves(folder: Path) -> bool:
            # Asked again under another name, by which it is out of sight.
            return (folder / PINNED).exists() or _is_held(folder)

        return storage.remove_tree(self.folder, unless=saves)

    def remove_tree(self) -> None:
        storage.remove_tree(self.folder)

    def sweep(self, named: Callable[[], set[str] | None]) -> list[str]:
        return storage.sweep(self.folder)


def _is_held(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / HELD, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
