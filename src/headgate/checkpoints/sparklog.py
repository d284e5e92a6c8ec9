"""Spark's checkpoint folder as files: the one module that knows its layout (seen in 4.3.0)."""

from __future__ import annotations

from pathlib import Path


def find_last_commit(checkpoint: Path) -> int | None:
    """Return the number of the newest batch that committed, or None before the first."""
    return max(_numbers(checkpoint / "commits"), default=None)


def find_open_batch(checkpoint: Path) -> int | None:
    """Return the batch that was begun and not committed, which Spark repeats at a start."""
    begun = max(_numbers(checkpoint / "offsets"), default=None)
    done = find_last_commit(checkpoint)
    return begun if begun is not None and (done is None or begun > done) else None


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(file.name) for file in folder.iterdir() if file.name.isdigit()]
