"""What a user's Python function says when it fails, in the driver and in Spark's workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate._kernel.python_failures import raised_failure
from headgate._kernel.translate import query_failure
from headgate.engine.session.session import DriverOutput
from headgate.engine.settings import SparkSettings
from headgate.errors import Domain, HeadgateError

# As Spark 4.3.0 words them.
OUTER = "org.apache.spark.SparkException: Job aborted due to stage failure: "
CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
RAISED = (
    "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from "
    "the Python worker: Traceback (most recent call last):\n"
)
WORKER = '  File "/venv/lib/python3.11/site-packages/pyspark/worker.py", line 9, in invoke_udf\n'
USER = '  File "/flows/rules.py", line 4, in divide\n    return n // 0\n           ~~^^~~\n'
END = "\n SQLSTATE: 38000"


def failure_of(*causes: str, last_output: tuple[str, ...] = ()) -> HeadgateError:
    return query_failure("orders", ["StreamingQueryException: x", *causes], last_output=last_output)


def test_a_function_that_raises_is_reported_with_its_line_and_its_exception() -> None:
    library = '  File "/venv/lib/python3.11/site-packages/numpy/core.py", line 5, in divide\n'
    text = f"{RAISED}{WORKER}{USER}{library}ZeroDivisionError: by zero\nand more{END}"
    failure = failure_of(f"{OUTER}Lost task: {text}\n\tat java", text)
    assert (failure.code, failure.domain) == ("FUNCTION_FAILED", Domain.USER)
    assert failure.message == (
        "cannot continue job 'orders': a Python function raised ZeroDivisionError: by zero "
        "(/flows/rules.py, line 4, in divide: return n // 0)"
    )
    assert failure.hint == "fix /flows/rules.py, line 4"
    assert failure.retryable
    assert failure.message.endswith(failure.root_cause)


def test_of_chained_exceptions_the_one_that_was_not_caught_is_reported() -> None:
    chain = "KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
    again = f"Traceback (most recent call last):\n{USER}ValueError: no rule"
    failure = failure_of(f"{RAISED}{USER}{chain}{again}{END}")
    assert "raised ValueError: no rule (/flows/rules.py" in failure.message


@pytest.mark.parametrize(
    ("exception", "package", "hint"),
    [
        (
            "pyspark.errors.exceptions.base.PySparkImportError: [PACKAGE_NOT_INSTALLED] Pandas >= "
            "2.2.0 must be installed; however, it was not found.",
            "pandas 2.2.0 or newer",
            "pip install 'pandas>=2.2.0'",
        ),
        (
            "ModuleNotFoundError: No module named 'geo.shapes'",
            "the module 'geo.shapes'",
            "pip install geo; or put the module beside the flow's file",
        ),
    ],
)
def test_a_missing_package_is_named_and_not_retried(
    exception: str, package: str, hint: str
) -> None:
    failure = failure_of(f"{RAISED}{WORKER}{exception}{END}")
    assert (failure.code, failure.domain) == ("PACKAGE_MISSING", Domain.USER)
    assert f"a Python function needs {package}, which is not installed" in failure.message
    assert (failure.hint, failure.retryable) == (hint, False)


def test_a_worker_that_crashes_shows_the_line_it_was_at() -> None:
    fault = (
        ": Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at\n'
        '  File "/flows/rules.py", line 7 in read\n'
        '  File "/flows/clean.py", line 3 in clean\n'
    )
    failure = failure_of(
        f"{OUTER}{CRASHED}{fault}\tat java", CRASHED + fault, "java.io.EOFException"
    )
    assert (failure.code, failure.domain) == ("PYTHON_WORKER_DIED", Domain.EXTERNAL)
    assert failure.retryable
    assert failure.message == (
        "cannot continue job 'orders': a Python worker of Spark exited: "
        "Fatal Python error: Segmentation fault (/flows/rules.py, line 7, in read)"
    )


def test_a_worker_that_ends_without_a_trace_shows_its_last_output() -> None:
    failure = failure_of(CRASHED, "java.io.EOFException", last_output=("native: assertion failed",))
    assert failure.message.endswith("exited: native: assertion failed")
    silent = failure_of(CRASHED, "java.io.EOFException")
    assert silent.message.endswith("exited, and left no message")
    assert "memory" in silent.hint


def test_a_worker_that_cannot_start_shows_why() -> None:
    missing = 'java.io.IOException: Cannot run program "/no/python3": error=2, No such file'
    failure = failure_of(missing)
    assert failure.code == "PYTHON_WORKER_DIED"
    assert "did not start: Cannot run program" in failure.message
    broken = "Error from python worker:\n  bad interpreter\nPYTHONPATH was:\n  /a:/b\njava.io.EOF"
    failure = failure_of(f"org.apache.spark.SparkException: \n{broken}")
    assert failure.message.endswith("did not start: Error from python worker: bad interpreter")


def test_only_what_was_printed_after_the_start_of_spark_is_quoted(tmp_path: Path) -> None:
    settings = SparkSettings(parallelism=1, log_file=tmp_path / "spark.log")
    assert DriverOutput(settings).last_lines() == []
    file = tmp_path / "spark.out"
    file.write_text("Setting the log level\n")
    output = DriverOutput(settings)
    assert output.last_lines() == []
    with file.open("a") as printed:
        printed.writelines(f"line {number}\n\n" for number in range(5))
    assert output.last_lines() == ["line 2", "line 3", "line 4"]


def test_an_exception_without_a_line_of_the_user_is_reported_without_a_place() -> None:
    failure = failure_of(f"{RAISED}{WORKER}RuntimeError: {'x' * 1000}{END}")
    assert "raised RuntimeError: xxx" in failure.message
    assert len(failure.message) < 700
    assert failure.hint


def test_a_syntax_error_of_a_users_module_has_its_line() -> None:
    try:
        compile("def f(:\n", "/flows/rules.py", "exec")
    except SyntaxError as error:
        failure = raised_failure("cannot import 'rules:f'", error)
    assert "raised SyntaxError: invalid syntax (/flows/rules.py, line 1" in failure.message
    assert not failure.retryable
