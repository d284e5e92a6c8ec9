"""One driver at a time on a job's checkpoint: a lock that the JVM holds until it exits."""

from __future__ import annotations

import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

from headgate.errors import Domain, HeadgateError

# An old driver exits with its supervisor; stopping Spark takes a moment.
LONGEST_END = timedelta(seconds=60)

_TRY_EVERY = 0.1


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
