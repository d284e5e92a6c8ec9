"""The temporary files of a driver: shuffles, local copies of state, libraries."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

from headgate.engine.driver_lock import take_lock
from headgate.errors import HeadgateError

_FOLDER = "scratch"
# A killed JVM takes a moment to release its memory, and only then its lock.
_LAST_BREATH = timedelta(seconds=5)


def make_scratch(lock_file: Path, lock: int) -> Path:
    """Return an empty folder for the driver that holds the lock.

    A killed driver leaves its files, gigabytes if state is large, and the system's temporary folder
    may never be emptied. Its successor has the same lock, and so the same folder. A driver with
    another lock, perhaps on another machine, may still use its own folder.

    Args:
        lock: The descriptor of the held lock.
    """
    folder = _folder(lock_file, lock)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_scratch(lock_file: Path) -> None:
    """Delete the files of drivers that have exited; files of a live driver stay."""
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
    """Return the settings that direct Spark and its JVM to the folder.

    Args:
        java_options: Further options of the JVM.
    """
    name = str(folder)
    if any(mark in name for mark in ',"\\'):
        # Spark splits lists of folders and quoted options, and would read another name.
        return {}
    return {
        "spark.local.dir": name,
        "spark.driver.extraJavaOptions": f'{java_options} "-Djava.io.tmpdir={name}"',
    }
