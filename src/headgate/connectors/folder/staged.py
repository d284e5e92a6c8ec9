"""The hidden files below `_headgate/LINEAGE` of a folder: what a run has staged and published."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate._locations import Location

# Readers of a folder ignore names that begin so.
HIDDEN = "_headgate"
_STAGED = re.compile(r"(?P<batch>[0-9]{10})-(?P<task>[0-9]{5})\.rows")
_ROLL = re.compile(r"[0-9]{10}\.json")
# The number of rows, at the end of a file.
_ROWS = 8


@dataclass(frozen=True, slots=True)
class StagedFile:
    """The rows of one task and batch that are not visible yet.

    Attributes:
        size: In bytes, compressed.
        since: When it was written, in epoch seconds.
    """

    batch: int
    task: int
    rows: int
    size: int
    since: float


def list_staged(folder: Location) -> Iterator[StagedFile]:
    """Yield the staged files of a run, by batch and task.

    Args:
        folder: The run's own, `_headgate/LINEAGE`.
    """
    for name in _names(folder / "staged"):
        match = _STAGED.fullmatch(name)
        if match is None:
            continue
        path = folder / "staged" / name
        try:
            stat = path.stat()
            with path.open("rb") as file:
                file.seek(stat.st_size - _ROWS)
                rows = int.from_bytes(file.read(_ROWS), "big")
        except FileNotFoundError:
            # It was published since.
            continue
        yield StagedFile(int(match["batch"]), int(match["task"]), rows, stat.st_size, stat.st_mtime)


def find_published(folder: Location) -> int | None:
    """Return the last batch of a run whose rows are visible, or being made so; None for none."""
    rolls = [name for name in _names(folder / "rolls") if _ROLL.fullmatch(name)]
    if not rolls:
        return None
    return int(json.loads((folder / "rolls" / rolls[-1]).read_text(encoding="utf-8"))["last"])


def _names(folder: Location) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
