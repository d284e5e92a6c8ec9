"""One driver at a time on a job's checkpoint: its lock, and the folder of its temporary files.

The JVM holds the lock until it exits. Temporary files are shuffles, local copies of state and
libraries.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import time
import uuid
from datetime import timedelta
from pathlib import Path

from headgate.errors import Domain, HeadgateError

# An old driver exits with its supervisor; stopping Spark takes a moment.
LONGEST_END = timedelta(seconds=60)

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TRY_EVERY = 0.1
_SCRATCH = "scratch"
# A killed JVM takes a moment to release its memory, and only then its lock.
_LAST_BREATH = timedelta(seconds=5)


def take_lock(file: Path, *, wait: timedelta) -> int:
    """Return the descriptor of the lock, held by this process and its children.

    A killed supervisor may leave a driver that is still stopping. Two drivers would corrupt the
    checkpoint, so the second waits.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + wait.total_seconds()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() < deadline:
                time.sleep(_TRY_EVERY)
                continue
            os.close(descriptor)
            raise HeadgateError(
                "DRIVER_STILL_RUNNING",
                f"cannot start Spark: a driver of an earlier attempt still holds {file}",
                hint=f"fuser -k {file}",
                domain=Domain.EXTERNAL,
                retryable=True,
            ) from error
        return descriptor


def holder_of(lock_file: Path | None) -> str:
    """Return a text that is equal for processes of which the lock file lets only one be alive.

    A process that was killed here a moment ago is gone, since its successor has the lock.
    """
    if lock_file is None or not lock_file.exists():
        return uuid.uuid4().hex
    boot = _BOOT.read_text().strip() if _BOOT.exists() else socket.gethostname()
    facts = lock_file.stat()
    return f"{boot}:{facts.st_dev}:{facts.st_ino}:{lock_file.absolute()}"


def await_drivers(file: Path, *, wait: timedelta = LONGEST_END) -> None:
    """Return when no driver of an earlier attempt is alive.

    Raises:
        HeadgateError: DRIVER_STILL_RUNNING.
    """
    # Imported here, since it loads pyspark, which a supervisor does not need.
    from headgate._kernel.gateway import has_jvm

    # The JVM of this process keeps the lock, and runs no attempt between two starts.
    if file.exists() and not has_jvm():
        os.close(take_lock(file, wait=wait))


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
    return lock_file.absolute().parent / _SCRATCH / str(os.fstat(lock).st_ino)


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
