"""Where checkpoints are kept: the same steps on a folder of this machine and on an object store."""

from __future__ import annotations

from pathlib import Path

from headgate._locations import Location, is_local
from headgate.checkpoints.stores.local import LocalPlace
from headgate.checkpoints.stores.place import KEPT_IN, PREFIX, Draft, Entry, Files, Place

__all__ = [
    "Draft",
    "Entry",
    "Files",
    "Place",
    "files_at",
    "files_in_folder",
    "is_kept_on_store",
    "place_at",
    "spark_folder",
]


def place_at(folder: Location) -> Place:
    """Return a folder as a place where checkpoints are kept."""
    if isinstance(folder, Path):
        return LocalPlace(folder)
    from headgate.checkpoints.stores.objects import ObjectPlace

    return ObjectPlace(folder)


def files_at(folder: Location) -> Files:
    """Return the files of a checkpoint, a savepoint or Spark's own folder, as they are now."""
    return place_at(folder).files()


def files_in_folder(folder: Location) -> Files:
    """Return the files below a folder by their names there, also of a kept checkpoint's own."""
    if isinstance(folder, Path):
        return LocalPlace(folder).files()
    from headgate.checkpoints.stores.objects import ObjectFiles

    return ObjectFiles(folder)


def spark_folder(folder: Location) -> Location:
    """Return the folder in which Spark finds the files of a checkpoint."""
    return files_at(folder).root


def is_kept_on_store(folder: Location) -> bool:
    """Return True for the name of a kept checkpoint on a store, whose files are beside it."""
    number = folder.name.removeprefix(PREFIX)
    is_named = folder.name != number and number.isdigit()
    return is_named and not is_local(folder) and folder.parent.name == KEPT_IN
