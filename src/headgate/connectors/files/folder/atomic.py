"""Files that appear complete or not at all, and never replace another file.

A file is written in a staging folder and then placed under its final name. Placing is a hard link,
which the file system refuses if the name is taken: of several writers exactly one wins. Without
hard links, an exclusive claim in the staging folder takes their place.
"""

import errno
import itertools
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from headgate._disk import sync_path

_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
)

_numbers = itertools.count()


def unique_name() -> str:
    """Return a globally unique name; names sort by time."""
    micros = time.time_ns() // 1000
    number = next(_numbers) % 1_000_000
    return f"{micros:017d}-{os.getpid()}-{number:06d}-{secrets.token_hex(4)}"


def write_new(
    path: Path, data: bytes | Iterable[bytes], *, staging: Path, sync: bool = False
) -> None:
    """Write a file that readers see complete or not at all.

    Args:
        path: The final name; its folder must exist.
        data: The content, whole or in pieces.
        staging: A folder on the same file system; created if missing.
        sync: Wait until the content and the name are on disk. Without it, a file survives a crash
            of this process, but may be lost or empty after a power failure.

    Raises:
        FileExistsError: The name is taken; the existing file is unchanged.
    """
    staging.mkdir(parents=True, exist_ok=True)
    draft = staging / unique_name()
    try:
        with draft.open("xb") as out:
            if isinstance(data, bytes):
                out.write(data)
            else:
                out.writelines(data)
            if sync:
                out.flush()
                os.fsync(out.fileno())
        _place(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    if sync:
        sync_path(path.parent)


def _place(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _place_by_claim(draft, path)


def _place_by_claim(draft: Path, path: Path) -> None:
    # Opening the final name would show readers an empty file. So the name is claimed beside the
    # draft, and renamed only while the claim is held and the name is free.
    claim = draft.with_name(f"claim-{path.parent.name}-{path.name}")
    os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    try:
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        draft.rename(path)
    finally:
        claim.unlink()
