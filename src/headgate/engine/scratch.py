"""Where a driver keeps what is of no use after it: shuffles, the local copy of state, libraries."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

from headgate.engine.driver_lock import take_lock
from headgate.errors import HeadgateError

_FOLDER = "scratch"
# A JVM that was killed takes a moment to give back its memory, and only then its lock.
_LAST_BREATH = timedelta(seconds=5)


def make_scratch(lock_file: Path, lock: int) -> Path:
    """Return an empty folder for the driver that holds the lock.

    A driver that was killed leaves what it had, gigabytes where state is large, and the system's
    folder for temporary files may never be emptied. Its successor has the same lock, and so the
    same folder: one with another lock, on another machine say, may still be at work in its own.

    Args:
        lock: The lock's descriptor, held.
    """
    folder = _folder(lock_file, lock)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_scratch(lock_file: Path) -> None:
    """Remove what a driver has left that was ended; one that still lives keeps what it has."""
    if not lock_file.exists():
        return
    try:
        lock = take_lock(lock_file, wait=_LAST_BREATH)
    except (HeadgateError, OSError):
        return
    try:
        shutil.rmtree(_folder(lock_file, lock), ignore_errors=True)
    finally:
        os.close(lock)


def _folder(lock_file: Path, lock: int) -> Path:
    return lock_file.absolute().parent / _FOLDER / str(os.fstat(lock).st_ino)


def scratch_conf(folder: Path, java_options: str) -> dict[str, str]:
    """Return the settings that make Spark and its JVM use the folder.

    Args:
        java_options: What the JVM is started with besides.
    """
    name = str(folder)
    if any(mark in name for mark in ',"\\'):
        # Spark takes a list of folders, and options in quotes: it would see another name.
        return {}
    return {
        "spark.local.dir": name,
        "spark.driver.extraJavaOptions": f'{java_options} "-Djava.io.tmpdir={name}"',
    }
