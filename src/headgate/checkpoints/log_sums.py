"""The checksums of Spark's logs: `NAME.crc` beside NAME, in the format of state files.

The kernel writes the checksum before the file, so every file has one. Release 0.7 wrote none: a run
records the first batch with checksums.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

from headgate.checkpoints.problems import Problem, gone

_BATCH = re.compile(r"(?:offsets|commits)/(\d+)")
_ONCE = re.compile(r"metadata|sources/[^/]+/[^/]+\.json")
# Java's integers are signed.
_SIGN = 1 << 31


def sums_name(file: str) -> str:
    """Return the name of a file's checksum."""
    return f"{file}.crc"


def is_summed(file: str) -> bool:
    """Return True if the kernel writes a checksum for a file, given relative to the checkpoint."""
    return _BATCH.fullmatch(file) is not None or _ONCE.fullmatch(file) is not None


def render_sums(content: bytes) -> str:
    """Return the checksum of a file's content in the kernel's format."""
    # numpy takes a while to import, and few commands get here.
    from headgate.checkpoints._crc32c import crc32c

    value = crc32c(content)
    sums = {
        "algorithm": "CRC32C",
        "value": value - 2 * _SIGN if value >= _SIGN else value,
        "mainFileSize": len(content),
        "timestampMs": 0,
        "creator": {"executorId": "", "taskInfo": ""},
    }
    return json.dumps(sums, separators=(",", ":"))


def find_unsummed(
    files: Iterable[str], present: Collection[str], since: int | None
) -> list[Problem]:
    """Return the missing checksums of files.

    Args:
        files: Relative to the checkpoint's folder; files without checksums are ignored.
        present: The existing files, including checksums.
        since: The first batch whose files have checksums; None if none must.
    """
    if since is None:
        return []
    return [
        gone(sums_name(file))
        for file in files
        if is_summed(file) and _batch(file) >= since and sums_name(file) not in present
    ]


def find_left_behind(files: Collection[str], read: Collection[str]) -> list[Problem]:
    """Return deleted files of sources whose checksum still exists.

    Args:
        read: The sources that a committed batch has read, whose files were complete by then: a
            crash at a source's first start also leaves a checksum alone.
    """
    alone = (file.removesuffix(".crc") for file in files if file.endswith(".json.crc"))
    return [gone(file) for file in alone if file not in files and file.split("/")[1] in read]


def _batch(file: str) -> int:
    """Return the batch of a file; files that are written once belong to the first."""
    match = _BATCH.fullmatch(file)
    return 0 if match is None else int(match[1])
