"""One driver at a time on a job's checkpoint: a lock that lives as long as the JVM does."""

from __future__ import annotations

import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

from headgate.errors import Domain, HeadgateError

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
