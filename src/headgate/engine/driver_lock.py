"""One driver at a time on a job's checkpoint: a lock that lives as long as the JVM does."""

from __future__ import annotations

import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

from headgate.errors import Domain, HeadgateError

# An old driver ends with its supervisor; stopping Spark takes it a moment.
LONGEST_END = timedelta(seconds=60)

_TRY_EVERY = 0.1


def take_lock(file: Path, *, wait: timedelta) -> int:
    """Return the descriptor of the lock, held by this process and by whoever inherits it.

    A supervisor that was killed may leave a driver that is still ending; two of them on one
    checkpoint would spoil it, so the second waits.
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
    """Return once no driver of an earlier attempt is alive.

    Raises:
        HeadgateError: DRIVER_STILL_RUNNING.
    """
    # Not at the top: it brings pyspark, which a supervisor does without.
    from headgate._kernel.gateway import has_jvm

    # A JVM of this process holds the lock for good, and runs no attempt between two starts.
    if file.exists() and not has_jvm():
        os.close(take_lock(file, wait=wait))
