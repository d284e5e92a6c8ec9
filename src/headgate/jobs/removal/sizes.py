"""The size that removing files frees: checkpoints share files by hard links."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate._locations import Location, is_local
from headgate.checkpoints.stores import files_in_folder


@dataclass(slots=True)
class _File:
    owner: str
    size: int
    links: int
    removed: int = 0


def measure(parts: Mapping[str, Iterable[Location]]) -> dict[str, int]:
    """Return the bytes that each part frees if all of them are removed.

    A file that several parts have counts for the first one. A file that has another name
    elsewhere frees nothing.

    Args:
        parts: Files and folders, by the name of the part.
    """
    files: dict[tuple[int, int], _File] = {}
    stored: dict[str, int] = {}
    for name, paths in parts.items():
        for path in paths:
            if not is_local(path):
                stored[name] = stored.get(name, 0) + _size(path)
                continue
            for status in _walk(path):
                key = (status.st_dev, status.st_ino)
                file = files.setdefault(key, _File(name, status.st_size, status.st_nlink))
                file.removed += 1
    freed = {name: stored.get(name, 0) for name in parts}
    for file in files.values():
        if file.removed >= file.links:
            freed[file.owner] += file.size
    return freed


def _size(folder: Location) -> int:
    """Return the size of all objects below a folder of a store."""
    files = files_in_folder(folder)
    return sum(files.size(file) for file in files.walk(""))


def _walk(path: Path) -> Iterator[os.stat_result]:
    """Yield the status of a file, or of every file in a folder; a job may remove some meanwhile."""
    try:
        if not path.is_dir():
            yield path.lstat()
            return
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(Path(entry.path))
                else:
                    yield entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
