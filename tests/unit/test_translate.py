"""What the JVM throws becomes an error of the house: its code, one line, a next step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql.streaming.query import StreamingQuery

from headgate import HeadgateError
from headgate._kernel.translate import (
    is_clean_stop,
    naming_failures,
    query_causes,
    query_failure,
    translated,
)
from headgate.errors import Domain


@dataclass
class Thrown:
    """An exception of the JVM, as far as it is asked."""

    kind: str
    message: str
    cause: Thrown | None = None
    own_hint: str = ""
    _target_id: str = "o1"

    def toString(self) -> str:  # noqa: N802
        return f"{self.kind}: {self.message}"

    def getMessage(self) -> str:  # noqa: N802
        return self.message

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self.cause

    def code(self) -> str:
        return "BAD_EXPRESSION"

    def hint(self) -> str:
        return self.own_hint


@dataclass
class Ended:
    """A query that has ended, with an exception or without."""

    thrown: Thrown | None

    @property
    def _jsq(self) -> Ended:
        return self

    def exception(self) -> Ended:
        return self

    def isDefined(self) -> bool:  # noqa: N802
        return self.thrown is not None

    def get(self) -> Thrown | None:
        return self.thrown


def causes(thrown: Thrown | None) -> list[str]:
    return query_causes(cast("StreamingQuery", Ended(thrown)))


def test_what_the_kernel_says_of_a_flow_is_raised_as_our_error() -> None:
    thrown = Thrown("io.headgate.kernel.plan.PlanException", "cannot plan where 'w': no")
    with pytest.raises(HeadgateError) as caught, translated():
        raise Py4JJavaError("an error", cast("Any", thrown))
    assert (caught.value.code, caught.value.message) == ("BAD_EXPRESSION", thrown.message)
    assert caught.value.hint
    assert caught.value.__cause__ is None


def test_a_hint_of_the_kernel_takes_the_place_of_the_hint_of_the_code() -> None:
    thrown = Thrown("io.headgate.kernel.plan.PlanException", "no", own_hint="CAST(NULL AS STRING)")
    with pytest.raises(HeadgateError) as caught, translated():
        raise Py4JJavaError("an error", cast("Any", thrown))
    assert caught.value.hint == "CAST(NULL AS STRING)"


def test_whatever_else_is_thrown_stays_as_it_is() -> None:
    with pytest.raises(Py4JJavaError), translated():
        raise Py4JJavaError("an error", cast("Any", Thrown("java.lang.Error", "x")))
    with pytest.raises(KeyError), translated():
        raise KeyError("x")


def test_every_cause_is_told_from_the_outermost_in() -> None:
    deep = Thrown("A", "a", Thrown("B", "b", Thrown("C", "c")))
    assert causes(deep) == ["A: a", "B: b", "C: c"]
    assert causes(None) == []


def test_causes_that_lead_in_a_circle_end() -> None:
    thrown = Thrown("A", "a")
    thrown.cause = thrown
    assert 1 < len(causes(thrown)) < 100


def test_a_gate_that_ended_the_query_is_a_clean_stop() -> None:
    assert is_clean_stop(
        ["StreamingQueryException: x", "io.headgate.kernel.gate.StopAtBoundary: y"]
    )
    assert not is_clean_stop(["java.lang.Error: StopAtBoundary"])
    assert not is_clean_stop([])


def test_lost_data_is_told_by_the_file_and_is_not_retried() -> None:
    failure = query_failure(
        "orders",
        [
            "org.apache.spark.SparkException: Job aborted",
            "java.io.IOException: DATA_LOST: file /t/a.jsonl is gone\n\tat x.y.Z\nCaused by: q",
        ],
    )
    assert (failure.code, failure.domain) == ("DATA_LOST", Domain.EXTERNAL)
    assert failure.message == "cannot continue job 'orders': file /t/a.jsonl is gone"
    assert not failure.retryable


def test_any_other_end_is_named_by_its_root_and_may_be_tried_again() -> None:
    failure = query_failure("orders", ["A: outer", "B: root\n\tat x"])
    assert (failure.code, failure.exit_code) == ("QUERY_FAILED", 70)
    assert failure.message == "job 'orders' ended: B: root"
    assert failure.retryable


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("TOPIC_MISSING", False),
        ("BROKER_UNREACHABLE", True),
        ("BROKER_REFUSED", False),
        ("RECORD_TOO_LARGE", False),
        ("FENCED", False),
    ],
)
def test_what_the_kernel_names_itself_is_told_by_that_name(code: str, retryable: bool) -> None:
    failure = query_failure(
        "orders", ["SparkException: Job aborted", f"java.lang.IllegalStateException: {code}: why"]
    )
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.message == "cannot continue job 'orders': why"
    assert failure.hint


@pytest.mark.parametrize(
    ("root", "code", "retryable"),
    [
        # As Java, Hadoop, RocksDB and Python word it.
        ("java.io.IOException: No space left on device", "DISK_FULL", True),
        (
            "java.io.IOException: cannot write /t/_tmp/x.1-2: No space left on device",
            "DISK_FULL",
            True,
        ),
        (
            "java.nio.file.FileSystemException: /c/offsets/.9.tmp: No space left on device",
            "DISK_FULL",
            True,
        ),
        (
            "org.rocksdb.RocksDBException: While appending to file: /s/000012.sst: "
            "No space left on device",
            "DISK_FULL",
            True,
        ),
        (
            "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "clean.py", line 3, in run\nOSError: [Errno 28] No space left on device\n',
            "DISK_FULL",
            True,
        ),
        ("java.io.IOException: Disk quota exceeded", "DISK_FULL", True),
        (
            "java.io.FileNotFoundException: /c/commits/.3.tmp (Too many open files)",
            "TOO_MANY_FILES",
            True,
        ),
        ("java.io.FileNotFoundException: /c/offsets/4 (Permission denied)", "NO_ACCESS", False),
        (
            "java.nio.file.FileSystemException: /t/out/_tmp/x: Read-only file system",
            "NO_ACCESS",
            False,
        ),
        (
            "java.nio.file.InvalidPathException: Malformed input or input contains unmappable "
            "characters: /t/ü.jsonl",
            "LOCALE_UNSUPPORTED",
            False,
        ),
    ],
)
def test_what_the_system_refuses_is_told_by_its_code(root: str, code: str, retryable: bool) -> None:
    outer = "org.apache.spark.SparkException: Job aborted due to stage failure"
    failure = query_failure("orders", ["StreamingQueryException: it failed", outer, root])
    assert (failure.code, failure.domain) == (code, Domain.EXTERNAL)
    assert failure.retryable is retryable
    assert failure.hint
    path = re.search(r"/[a-z]/[^ :]+", root)
    assert path is None or path[0] in failure.message


def test_state_that_spark_cannot_load_is_told_as_such() -> None:
    failure = query_failure(
        "orders",
        [
            "StreamingQueryException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred",
            "net.jpountz.lz4.LZ4Exception: Error decoding offset 42 of input buffer",
        ],
    )
    assert (failure.code, failure.hint) == ("STATE_UNREADABLE", "headgate verify orders")
    assert "LZ4Exception" in failure.message


def test_what_keeps_a_query_from_starting_is_told_by_its_name() -> None:
    thrown = Thrown("A", "outer", Thrown("B", "TOPIC_MISSING: there is no topic 'orders'"))
    with pytest.raises(HeadgateError) as caught, naming_failures("cannot start job 'store'"):
        raise Py4JJavaError("an error", cast("Any", thrown))
    assert caught.value.code == "TOPIC_MISSING"
    assert caught.value.message == "cannot start job 'store': there is no topic 'orders'"


def test_any_other_thing_that_keeps_a_query_from_starting_stays_as_it_is() -> None:
    with pytest.raises(Py4JJavaError), naming_failures("cannot start job 'store'"):
        raise Py4JJavaError("an error", cast("Any", Thrown("java.lang.Error", "x")))
