"""What ended an attempt, where the error that was raised does not say it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from stored_run import unpack

from headgate.engine.attempt.failures import explain
from headgate.engine.settings import AttemptSettings, SparkSettings
from headgate.errors import HeadgateError
from headgate.jobs.attempts.damage import find_damage


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that stands for the JVM of this one."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    "silence",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        Py4JNetworkError("Answer from Java side is empty"),
        EOFError(),
    ],
)
def test_a_driver_that_stops_answering_and_then_ends_has_died(
    jvm: subprocess.Popen[bytes], silence: Exception
) -> None:
    # The connection is gone before the process is.
    threading.Timer(0.2, jvm.kill).start()
    died = explain(silence, job="orders")
    assert isinstance(died, HeadgateError)
    assert (died.code, died.retryable) == ("DRIVER_DIED", True)
    assert died.message == "job 'orders' ended: Spark's driver was killed by signal 9"


def test_a_driver_that_reports_that_it_has_no_memory_and_then_exits_has_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Spark ends its driver with this code if Java's own code runs out of memory.
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2); exit(52)"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    died = explain(HeadgateError("OUT_OF_MEMORY", "the driver ran out of memory"), job="orders")
    assert isinstance(died, HeadgateError)
    assert died.code == "DRIVER_DIED"
    assert died.message == "job 'orders' ended: Spark's driver ran out of memory"
    printed = ["Terminating due to java.lang.OutOfMemoryError: Metaspace"]
    died = explain(HeadgateError("QUERY_FAILED", "gone"), job="orders", last_output=printed)
    assert isinstance(died, HeadgateError)
    assert died.message == "job 'orders' ended: Spark's driver ran out of memory: Metaspace"
    assert 'metaspace = "' in died.hint


def test_any_other_error_is_not_held_up_by_a_driver_that_lives(
    jvm: subprocess.Popen[bytes],
) -> None:
    began = time.monotonic()
    error = KeyError("x")
    assert explain(error, job="orders") is error
    assert time.monotonic() - began < 5
    assert jvm.poll() is None


def test_a_full_disk_is_told_by_its_code_and_tried_again() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/jobs/orders/logs/spark.log")
    told = explain(full, job="orders")
    assert isinstance(told, HeadgateError)
    assert (told.code, told.retryable) == ("DISK_FULL", True)
    assert "/jobs/orders/logs/spark.log" in told.message
    refused = explain(PermissionError(errno.EACCES, "no", "/jobs"), job="orders")
    assert isinstance(refused, HeadgateError)
    assert (refused.code, refused.retryable) == ("NO_ACCESS", False)


def test_damage_is_named_only_where_a_failure_has_no_better_name(tmp_path: Path) -> None:
    checkpoint = unpack(tmp_path)
    settings = AttemptSettings(
        job="orders",
        lineage="first",
        checkpoint=checkpoint,
        spark=SparkSettings(parallelism=2, log_file=tmp_path / "spark.log"),
    )
    vague = HeadgateError("QUERY_FAILED", "job ended: LZ4Exception", retryable=True)
    assert find_damage(settings, vague) is None

    (checkpoint / "commits" / "20").write_bytes(b"v1\n{")
    found = find_damage(settings, vague)
    assert found is not None
    assert (found.code, found.retryable) == ("CHECKPOINT_DAMAGED", False)
    assert "commits/20" in found.message
    assert "LZ4Exception" in found.root_cause
    assert find_damage(settings, KeyError("x")) is not None
    assert find_damage(settings, HeadgateError("DISK_FULL", "no")) is None


def test_a_run_without_a_commit_has_no_damage(tmp_path: Path) -> None:
    settings = AttemptSettings(
        job="orders",
        lineage="first",
        checkpoint=tmp_path / "none",
        spark=SparkSettings(parallelism=2, log_file=tmp_path / "spark.log"),
    )
    assert find_damage(settings, KeyError("x")) is None
