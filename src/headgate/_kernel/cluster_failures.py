"""Failures of Spark's executors and of the cluster they run on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headgate._kernel.out_of_memory import find_shortage, how_to_raise
from headgate.errors import Domain, HeadgateError

_LOST = re.compile(
    r"ExecutorLostFailure \(executor (?P<id>\S+) exited[^)]*\)(?: Reason: (?P<reason>[^\n]*))?"
)
_EXIT_CODE = re.compile(r"exited with code (\d+)")
# What the exit code of an executor means, as Spark 4.3.0 (`ExecutorExitCode`) and shells define it.
_MEANINGS = {
    50: "it had an uncaught exception",
    52: "it ran out of memory",
    56: "it lost the driver",
    134: "it was aborted",
    137: "it was killed by signal 9, usually for its memory",
    139: "it crashed in native code",
    143: "it was ended by signal 15",
}
# The task of a driver that computes the tasks itself.
_LOCAL_TASK = "executor driver)"
_STOPPED = re.compile(
    r"(?:All masters are unresponsive|Master removed our application|"
    r"SparkContext was shut ?down|SparkContext has been shut ?down|stopped SparkContext)[^\n]*"
)
_MORE_MEMORY = 'give each executor more: executor-memory = "4GiB" in the profile of headgate.toml'


def find_cluster_failure(job: str, causes: Sequence[str]) -> HeadgateError | None:
    """Return the end of an executor or of the cluster as an error, or None for other causes.

    Args:
        causes: The exceptions of the JVM, outermost first.
    """
    what = f"cannot continue job {job!r}"
    if (lost := _find(_LOST, causes)) is not None:
        return _executor_died(what, lost)
    if (memory := find_shortage(causes)) is not None:
        return _out_of_memory(what, memory, causes)
    if (stopped := _find(_STOPPED, causes)) is not None:
        return _spark_stopped(what, stopped)
    return None


def _find(pattern: re.Pattern[str], causes: Sequence[str]) -> re.Match[str] | None:
    return next(filter(None, map(pattern.search, causes)), None)


def explain_exit(reason: str) -> str:
    """Return why an executor was lost, with the meaning of its exit code if that is known."""
    code = _EXIT_CODE.search(reason)
    meaning = _MEANINGS.get(int(code[1]), "") if code is not None else ""
    return reason + (f" ({meaning})" if meaning else "")


def _executor_died(what: str, lost: re.Match[str]) -> HeadgateError:
    reason = explain_exit((lost["reason"] or "no reason is known").strip())
    is_memory = "memory" in reason.lower()
    return _failure(
        code="EXECUTOR_DIED",
        message=f"{what}: Spark's executor {lost['id']} was lost: {reason}",
        hint=_MORE_MEMORY
        if is_memory
        else "see the executor's stderr in the work folder of Spark's worker",
        root_cause=lost[0],
    )


def _out_of_memory(what: str, memory: re.Match[str], causes: Sequence[str]) -> HeadgateError:
    # Without a task, the driver failed itself.
    is_executor = any("Lost task" in cause for cause in causes) and not any(
        _LOCAL_TASK in cause for cause in causes
    )
    return _failure(
        code="OUT_OF_MEMORY",
        message=f"{what}: Spark's {'executor' if is_executor else 'driver'} ran out of memory"
        + (f": {memory['why']}" if memory["why"] else ""),
        hint=how_to_raise(
            memory["why"],
            heap=_MORE_MEMORY if is_executor else "run it with more memory: --driver-memory 4GiB",
        ),
        root_cause=memory[0],
    )


def _spark_stopped(what: str, stopped: re.Match[str]) -> HeadgateError:
    return _failure(
        code="CLUSTER_UNREACHABLE",
        message=f"{what}: Spark stopped: {stopped[0].strip()}",
        hint="check that Spark's master runs; the job's log says why it stopped",
        root_cause=stopped[0].strip(),
    )


def _failure(*, code: str, message: str, hint: str, root_cause: str) -> HeadgateError:
    return HeadgateError(
        code, message, hint=hint, domain=Domain.EXTERNAL, retryable=True, root_cause=root_cause
    )
