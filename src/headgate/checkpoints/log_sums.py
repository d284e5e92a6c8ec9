"""The checksums of Spark's logs: `NAME.crc` beside NAME, in the form that state files have.

The kernel writes the checksum before the file, so that a file that is there has one. Release 0.7
wrote none: a run says from which batch on they are there.
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
    """Tell whether the kernel writes a checksum with a file, as seen from the checkpoint."""
    return _BATCH.fullmatch(file) is not None or _ONCE.fullmatch(file) is not None


def render_sums(content: bytes) -> str:
    """Return the checksum of a file's content as the kernel writes it."""
    # numpy takes a while to import, and few verbs get here.
    from headgate.checkpoints._crc32c import crc32c

    value = crc32c(content)
    told = {
        "algorithm": "CRC32C",
        "value": value - 2 * _SIGN if value >= _SIGN else value,
        "mainFileSize": len(content),
        "timestampMs": 0,
        "creator": {"executorId": "", "taskInfo": ""},
    }
    return json.dumps(told, separators=(",", ":"))


def find_unsummed(
    files: Iterable[str], present: Collection[str], since: int | None
) -> list[Problem]:
    """Return the checksums that should lie beside files and do not.

    Args:
        files: As seen from the checkpoint's folder; those that have no checksum are passed over.
        present: The files that are there, checksums among them.
        since: The first batch whose files have checksums; None where nothing has to have one.
    """
    if since is None:
        return []
    return [
        gone(sums_name(file))
        for file in files
        if is_summed(file) and _batch(file) >= since and sums_name(file) not in present
    ]


def find_left_behind(files: Collection[str], read: Collection[str]) -> list[Problem]:
    """Return what sources wrote for themselves and is gone, while its checksum is there.

    Args:
        read: The sources that a committed batch has read, whose files were whole by then: a crash
            at a source's first start leaves a checksum alone, too.
    """
    alone = (each.removesuffix(".crc") for each in files if each.endswith(".json.crc"))
    return [gone(each) for each in alone if each not in files and each.split("/")[1] in read]


def _batch(file: str) -> int:
    """Return the batch that a file is of; what is written once belongs to the first."""
    found = _BATCH.fullmatch(file)
    return 0 if found is None else int(found[1])
