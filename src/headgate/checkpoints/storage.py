"""Folders that appear whole or not at all, linked instead of copied where that is possible."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import Domain, HeadgateError

_DRAFT = ".tmp-"
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
)


@contextmanager
def publishing(folder: Path, *, sync: bool = False) -> Iterator[Path]:
    """Give an empty folder to fill; at the end of the block it appears under its name.

    What goes wrong in the block leaves nothing behind but, after a crash, a draft that `sweep`
    removes.

    Args:
        sync: Wait until the disk has it all, so that it outlives a power failure.

    Raises:
        HeadgateError: CHECKPOINT_EXISTS if the name is taken, CHECKPOINT_NOT_WRITTEN if the disk
            refuses.
    """
    draft = folder.with_name(f"{folder.name}{_DRAFT}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        _check_free(folder)
        draft.mkdir(parents=True)
        yield draft
        if sync:
            _sync(draft)
        _check_free(folder)
        draft.rename(folder)
        if sync:
            _sync_one(folder.parent)
    except OSError as error:
        raise HeadgateError(
            "CHECKPOINT_NOT_WRITTEN",
            f"cannot write {folder}: {error}",
            hint=f"df -h {folder.parent}",
            domain=Domain.EXTERNAL,
            retryable=True,
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def link_files(source: Path, files: Iterable[str], into: Path, *, copy: bool = False) -> None:
    """Bring files of one folder into another, under the same relative names.

    Args:
        copy: Never link, so that the two folders share nothing.
    """
    made: set[Path] = set()
    for file in files:
        target = into / file
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        _bring(source / file, target, copy=copy)


def write_file(file: Path, content: str) -> None:
    """Replace a file by writing another and renaming it: a hard link to the old one keeps it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}{_DRAFT}{os.getpid()}-{secrets.token_hex(4)}")
    try:
        draft.write_text(content, encoding="utf-8")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def remove_tree(folder: Path, *, unless: Callable[[Path], bool] | None = None) -> bool:
    """Remove a folder, which is out of sight before the first of its files is gone.

    Args:
        unless: Whether something saves the folder; asked again once it is out of sight.

    Returns:
        Whether the folder is gone.
    """
    doomed = folder.with_name(f"{folder.name}{_DRAFT}{os.getpid()}-{secrets.token_hex(4)}")
    if unless is not None and unless(folder):
        return False
    try:
        folder.rename(doomed)
    except FileNotFoundError:
        return True
    if unless is not None and unless(doomed):
        doomed.rename(folder)
        return False
    shutil.rmtree(doomed, ignore_errors=True)
    return True


def sweep(folder: Path) -> list[str]:
    """Remove the drafts that a crash left in a folder; no other process may be writing there.

    Returns:
        The names that were removed.
    """
    drafts = [child for child in _children(folder) if _DRAFT in child.name]
    for draft in drafts:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
    return [draft.name for draft in drafts]


def is_draft(path: Path | os.DirEntry[str]) -> bool:
    """Tell whether a file or folder was never finished, or is being removed."""
    return _DRAFT in path.name


def _bring(source: Path, target: Path, *, copy: bool) -> None:
    if not copy:
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            return
    shutil.copy2(source, target)


def _check_free(folder: Path) -> None:
    if folder.exists():
        raise HeadgateError(
            "CHECKPOINT_EXISTS",
            f"cannot write {folder}: there is something already",
            hint="choose a folder that does not exist",
        )


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync_one(path)
    _sync_one(folder)


def _sync_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
