"""Problems of a checkpoint's files, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate._locations import Location
from headgate.errors import HeadgateError

# The code, by whether files are only missing.
_CODES = {True: "CHECKPOINT_INCOMPLETE", False: "CHECKPOINT_DAMAGED"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One file with a problem.

    Attributes:
        file: Relative to the checkpoint's folder.
        missing: True if the file does not exist.
    """

    file: str
    what: str
    missing: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def gone(file: str) -> Problem:
    """Return the problem of a missing file."""
    return Problem(file, "it is missing", missing=True)


def refuse(what: str, problems: Sequence[Problem], folder: Location, *, hint: str) -> HeadgateError:
    """Return the error for a checkpoint that cannot be used.

    Args:
        what: What could not be done and to what, as in `cannot restore from checkpoint 17`.
        problems: Never empty; the message describes the first one.
    """
    first = problems[0]
    if first.missing and first.file.startswith("commits/"):
        reason = f"{first.file} is missing, so it never completed"
    elif first.missing:
        reason = f"{first.file} is missing"
    else:
        reason = f"{first.file} is corrupted ({first.what})"
    more = f"; and {len(problems) - 1} more files" if len(problems) > 1 else ""
    code = _CODES[all(problem.missing for problem in problems)]
    return HeadgateError(code, f"{what}: {reason}{more} (in {folder})", hint=hint)
