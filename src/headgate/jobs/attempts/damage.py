"""Whether an attempt failed because files of its checkpoint are corrupted.

Spark and its libraries report corruption in many ways, and seldom name the file, so the files are
verified.
"""

from __future__ import annotations

import re
from pathlib import Path

from headgate._locations import is_local
from headgate.checkpoints.problems import Problem, refuse
from headgate.checkpoints.sparklog import find_last_commit
from headgate.checkpoints.verify import verify_batch
from headgate.engine.settings import AttemptSettings
from headgate.errors import Domain, HeadgateError

# Failures that have no better name.
_VAGUE = frozenset({"QUERY_FAILED", "STATE_UNREADABLE"})
# Words of errors for which all of the state is read, which may be large.
_CORRUPT = re.compile(
    r"CANNOT_LOAD_STATE_STORE|LZ4|Zstd|ZipException|RocksDB|EOFException|corrupt|[Cc]hecksum"
)


def find_damage(settings: AttemptSettings, error: Exception) -> HeadgateError | None:
    """Return the corruption that explains a failure, with its file; None if there is none.

    It is not retryable.
    """
    if isinstance(error, HeadgateError) and error.code not in _VAGUE:
        return None
    said = f"{error} {error.root_cause}" if isinstance(error, HeadgateError) else str(error)
    checkpoint = settings.checkpoint
    if not is_local(checkpoint):
        # A store checks its objects itself.
        return None
    problems = _problems(checkpoint, quick=_CORRUPT.search(said) is None)
    if not problems:
        return None
    refused = refuse(
        f"cannot continue job {settings.job!r}",
        problems,
        checkpoint,
        hint=f"headgate verify {settings.job}",
    )
    return HeadgateError(
        refused.code,
        refused.message,
        hint=refused.hint,
        domain=Domain.EXTERNAL,
        root_cause=said.strip().splitlines()[0],
    )


def _problems(checkpoint: Path, *, quick: bool) -> list[Problem]:
    try:
        last = find_last_commit(checkpoint)
        if last is None:
            return []
        return verify_batch(checkpoint, last, quick=quick)
    except OSError:
        # Unreadable files explain nothing here.
        return []
