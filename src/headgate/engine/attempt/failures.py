"""The cause of an attempt's end, if its error does not name it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headgate._kernel.gateway import find_jvm_exit, is_silence
from headgate._kernel.out_of_memory import find_shortage, how_to_raise
from headgate._kernel.translate import find_system_failure
from headgate.errors import Domain, HeadgateError, find_refusal

# The exit codes of a JVM without memory: under -XX:+ExitOnOutOfMemoryError, and Spark's own.
_OUT_OF_MEMORY = frozenset({3, 52})
# Errors that a driver may report while it exits: how it exits says more.
_LAST_WORDS = frozenset({"OUT_OF_MEMORY", "CLUSTER_UNREACHABLE"})
_EXITS_WITHIN = timedelta(seconds=5)
# The sockets of a killed JVM close before its memory is released, and only then has it exited.
_LAST_BREATH = timedelta(seconds=20)


def explain(error: Exception, *, job: str, last_output: Sequence[str] = ()) -> Exception:
    """Return the error of the real cause, such as the driver's death or a full disk, or the error
    itself.

    Args:
        last_output: The last lines that the driver's JVM printed.
    """
    death = _find_death(job, last_output, wait=_time_to_exit(error))
    if death is not None:
        return death
    if isinstance(error, HeadgateError):
        return error
    what = f"cannot continue job {job!r}"
    known = find_refusal(error, what) if isinstance(error, OSError) else None
    return known or find_system_failure(what, [str(error)]) or error


def _time_to_exit(error: Exception) -> timedelta:
    """Return how long a driver may still take to exit after an error."""
    if isinstance(error, HeadgateError):
        return _EXITS_WITHIN if error.code in _LAST_WORDS else timedelta(0)
    return _LAST_BREATH if is_silence(error) else timedelta(0)


def _find_death(job: str, last_output: Sequence[str], *, wait: timedelta) -> HeadgateError | None:
    """Return the end of the driver as an error, or None if it is alive."""
    code = find_jvm_exit(wait=wait)
    if code is None:
        return None
    hint = "run the job again to resume it"
    if code in _OUT_OF_MEMORY:
        shortage = find_shortage(last_output)
        why = None if shortage is None else shortage["why"]
        how = "ran out of memory" + (f": {why}" if why else "")
        hint = how_to_raise(why, heap=f"{hint}, with more memory: --driver-memory 4GiB")
    elif code < 0:
        how = f"was killed by signal {-code}"
    else:
        how = f"ended with exit code {code}"
    return HeadgateError(
        "DRIVER_DIED",
        f"job {job!r} ended: Spark's driver {how}",
        hint=hint,
        domain=Domain.EXTERNAL,
        retryable=True,
    )
