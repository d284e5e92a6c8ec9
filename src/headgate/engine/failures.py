"""What ended an attempt, where the words of whoever raised it do not tell."""

from __future__ import annotations

from datetime import timedelta

from headgate._kernel.gateway import find_jvm_exit, is_silence
from headgate._kernel.translate import find_system_failure
from headgate.errors import Domain, HeadgateError, find_refusal

# What the JVM exits with under -XX:+ExitOnOutOfMemoryError.
_OUT_OF_MEMORY = 3
# The sockets of a JVM that was killed are closed before its memory is given back, and only then
# has it ended.
_LAST_BREATH = timedelta(seconds=20)


def explain(error: Exception, *, job: str) -> Exception:
    """Return the error by the name of its cause: the driver's death, a full disk; or as it is."""
    death = _find_death(job, wait=_LAST_BREATH if is_silence(error) else timedelta(0))
    if death is not None:
        return death
    if isinstance(error, HeadgateError):
        return error
    what = f"cannot go on with job {job!r}"
    known = find_refusal(error, what) if isinstance(error, OSError) else None
    return known or find_system_failure(what, [str(error)]) or error


def _find_death(job: str, *, wait: timedelta) -> HeadgateError | None:
    """Return the end of the driver itself as an error, or None if it lives."""
    code = find_jvm_exit(wait=wait)
    if code is None:
        return None
    memory = code == _OUT_OF_MEMORY
    if memory:
        how = "ran out of memory"
    elif code < 0:
        how = f"was killed by signal {-code}"
    else:
        how = f"ended with exit code {code}"
    return HeadgateError(
        "DRIVER_DIED",
        f"job {job!r} ended: Spark's driver {how}",
        hint="run it again to go on where it was"
        + (", with more memory: --driver-memory 4GiB" if memory else ""),
        domain=Domain.EXTERNAL,
        retryable=True,
    )
