"""The driver's JVM as a process: how it starts, and whether it is alive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from headgate._kernel.archive import find_recording
from headgate._kernel.locales import check_jvm, check_python, utf8_environment
from headgate._kernel.out_of_memory import find_shortage, how_to_raise
from headgate.errors import Domain, HeadgateError

# The methods that the JVM's second compiler skips, with reasons.
DIRECTIVES = Path(__file__).with_name("compiler-directives.json")
# How much of the JVM's output an error quotes.
_LAST_LINES = 3
_TAIL = 16 * 1024


def start_jvm(
    conf: Mapping[str, str], *, streams: Path | None, inherited: Sequence[int] = ()
) -> None:
    """Start the JVM for Spark; this process must not have one.

    Args:
        conf: Spark's configuration; memory and class path are fixed from here on.
        streams: The file for the JVM's standard streams; None keeps the terminal. Spark's own
            launcher has no such option.
        inherited: Descriptors that the JVM keeps open until it exits, such as a lock's.
    """
    check_python()
    settings = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    target: IO[bytes] | None = None if streams is None else streams.open("ab")
    # The JVM's own output must not mix with the command's output.
    options: dict[str, Any] = {"stdout": 2 if target is None else target, "stderr": target}
    options["pass_fds"] = tuple(inherited)
    begin = 0 if target is None else target.tell()
    try:
        # The launcher replaces an environment in the options by this process's own.
        with utf8_environment():
            gateway = launch_gateway(settings, popen_kwargs=options)  # type: ignore[no-untyped-call]
    except (PySparkRuntimeError, Py4JNetworkError, ConnectionError) as error:
        # It exited before it had a port, or between its first answers.
        raise _not_started(read_last_lines(streams, begin=begin)) from error
    finally:
        if target is not None:
            target.close()
    check_jvm(gateway.jvm)
    SparkContext._ensure_initialized(gateway=gateway)
    recording = find_recording()
    if recording is not None:
        class_path = gateway.jvm.java.lang.System.getProperty("java.class.path")
        recording.class_path.write_text(class_path, encoding="utf-8")


def has_jvm() -> bool:
    """Return True if this process has started a JVM."""
    return SparkContext._gateway is not None


def find_jvm_exit(*, wait: timedelta = timedelta(0)) -> int | None:
    """Return the exit code of an ended JVM, or None while it is alive or there is none.

    Args:
        wait: How long an unresponsive JVM may take to exit.
    """
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        return process.wait(wait.total_seconds())
    return process.poll()


def is_silence(error: BaseException) -> bool:
    """Return True if an error means that the JVM no longer responds."""
    lost = isinstance(error, ConnectionError | EOFError | Py4JError)
    return lost and not isinstance(error, Py4JJavaError)


def _not_started(last_lines: Sequence[str]) -> HeadgateError:
    shortage = find_shortage(last_lines)
    if shortage is not None:
        why = shortage["why"]
        return HeadgateError(
            "DRIVER_DIED",
            "cannot start Spark: its driver ran out of memory at its start"
            + (f": {why}" if why else ""),
            hint=how_to_raise(why, heap="run the job with more memory: --driver-memory 2GiB"),
            domain=Domain.EXTERNAL,
        )
    quoted = ": " + " | ".join(last_lines) if last_lines else ""
    return HeadgateError(
        "DRIVER_NOT_STARTED",
        f"cannot start Spark: its JVM exited at once{quoted}",
        hint="headgate doctor",
        domain=Domain.EXTERNAL,
    )


def read_last_lines(file: Path | None, *, begin: int = 0) -> list[str]:
    """Return the last lines of a file of output; empty if there is none.

    Args:
        begin: Lines before this position are left out.
    """
    if file is None or not file.exists():
        return []
    with file.open("rb") as output:
        size = output.seek(0, os.SEEK_END)
        output.seek(max(begin, size - _TAIL))
        lines = output.read().decode("utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip()][-_LAST_LINES:]
