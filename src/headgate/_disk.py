"""Files that readers see as a whole, and that survive a power failure where it matters."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(file: Path, text: str, *, mode: int = 0o666, sync: bool = False) -> None:
    """Replace a file by writing another one and renaming it; its folder is made if missing.

    Args:
        mode: The permissions of the file, less the process's umask.
        sync: Wait until the disk has the content and the name.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            if sync:
                out.flush()
                os.fsync(handle)
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if sync:
        sync_path(file.parent)


def sync_path(path: Path) -> None:
    """Return when the disk has a file's content, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
