"""The cause of an attempt's end, if its error does not name it."""

from __future__ import annotations

from datetime import timedelta

from headgate._kernel.gateway import find_jvm_exit, is_silence
from headgate._kernel.translate import find_system_failure
from headgate.errors import Domain, HeadgateError, find_refusal

# The exit code of the JVM under -XX:+ExitOnOutOfMemoryError.
_OUT_OF_MEMORY = 3
# The sockets of a killed JVM close before its memory is released, and only then has it exited.
_LAST_BREATH = timedelta(seconds=20)


def explain(error: Exception, *, job: str) -> Exception:
    """Return the error of the real cause, such as the driver's death or a full disk, or the error
    itself."""
    death = _find_death(job, wait=_LAST_BREATH if is_silence(error) else timedelta(0))
    if death is not None:
        return death
    if isinstance(error, HeadgateError):
        return error
    what = f"cannot continue job {job!r}"
    known = find_refusal(error, what) if isinstance(error, OSError) else None
    return known or find_system_failure(what, [str(error)]) or error


def _find_death(job: str, *, wait: timedelta) -> HeadgateError | None:
    """Return the end of the driver as an error, or None if it is alive."""
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
        hint="run the job again to resume it"
        + (", with more memory: --driver-memory 4GiB" if memory else ""),
        domain=Domain.EXTERNAL,
        retryable=True,
    )
