"""What is wrong with a checkpoint's files, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import HeadgateError

# By whether all that is wrong is that files are missing.
_CODES = {True: "CHECKPOINT_INCOMPLETE", False: "CHECKPOINT_DAMAGED"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that is not as it was written.

    Attributes:
        file: As seen from the checkpoint's folder.
        missing: Whether the file is not there at all.
    """

    file: str
    what: str
    missing: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def gone(file: str) -> Problem:
    """Return the problem of a file that is not there."""
    return Problem(file, "it is missing", missing=True)


def refuse(what: str, problems: Sequence[Problem], folder: Path, *, hint: str) -> HeadgateError:
    """Return the error that tells why a checkpoint cannot be used.

    Args:
        what: What could not be done and to what, as in `cannot restore from checkpoint 17`.
        problems: Never empty; the first one is told in full.
    """
    first = problems[0]
    if first.missing and first.file.startswith("commits/"):
        found = f"{first.file} is missing, so it never completed"
    elif first.missing:
        found = f"{first.file} is missing"
    else:
        found = f"{first.file} is damaged ({first.what})"
    more = f"; and {len(problems) - 1} more files" if len(problems) > 1 else ""
    code = _CODES[all(each.missing for each in problems)]
    return HeadgateError(code, f"{what}: {found}{more} (in {folder})", hint=hint)
