"""Errors of the JVM as HeadgateErrors."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from headgate._kernel.cluster_failures import find_cluster_failure
from headgate._kernel.python_failures import find_worker_failure
from headgate.errors import Domain, HeadgateError, system_refusal

# Spark's errors for data that it cannot read or compute.
SPARK_ERRORS = (PySparkException, Py4JJavaError)

_PLAN = "io.headgate.kernel.plan.PlanException: "
_STOP = "io.headgate.kernel.gate.StopAtBoundary"
_DEEPEST = 20
_HINTS = {
    "BAD_EXPRESSION": "fix the SQL text in the flow",
    "UNKNOWN_COLUMN": "use an existing column",
    "BAD_OUTPUT": "build the text first: .select(\"concat(a, ' ', b) AS line\"), then .to(...)",
    "BAD_AGGREGATE": "use a column of a supported type, or create one with with_columns",
    "KEY_TYPE": "use an integer, string, boolean, date, timestamp or decimal column",
    "KEY_MISMATCH": "cast the column first: .with_columns(id='CAST(id AS BIGINT)')",
}

# Failures that the kernel names at the start of a message: the hint, and whether a retry may
# succeed.
_FAILURES = {
    "DATA_LOST": (
        (
            "restore the missing records; or, on a broker, continue without them: --on-data-loss "
            "continue"
        ),
        False,
    ),
    "TOPIC_MISSING": ("headgate setup FLOW --on LOG creates all topics of a flow", False),
    "TOPIC_UNREADABLE": (
        "restore _topic.json from a copy; or delete _ledger too, and jobs read all records again",
        False,
    ),
    "CHECKPOINT_DAMAGED": ("headgate restore JOB --from latest", False),
    "POSITION_UNREADABLE": ("restore from another checkpoint: headgate checkpoints JOB", False),
    "BROKER_UNREACHABLE": ("headgate broker status KIND, or check the servers named", True),
    "REGISTRY_UNREACHABLE": ("check that the schema registry at that address runs", True),
    "REGISTRY_REFUSED": (
        "fix the registry's address, user, password or token in the flow; curl URL/subjects",
        False,
    ),
    "BROKER_REFUSED": (
        "fix the client's options or the broker's, then: headgate start JOB",
        False,
    ),
    "BAD_CLIENT_OPTION": ("fix the client's options in --on or in the flow", False),
    "BAD_TOPIC": (
        (
            "fix the topic's start: earliest, latest, a time, offsets:0=15 on Kafka, "
            "messages:0=12:5 on Pulsar"
        ),
        False,
    ),
    "CLIENT_CONFIG_UNREADABLE": ("use a readable properties file: ?config=FILE", False),
    "SECRET_NOT_FOUND": ("set the variable, or create the file, that the option names", False),
    "RECORD_TOO_LARGE": (
        "headgate topics show TOPIC --on LOG; raise the topic's max.message.bytes on Kafka, or the "
        "brokers' maxMessageSize on Pulsar",
        False,
    ),
    "OUTPUT_AHEAD": ("continue in a new run: headgate restore JOB --from latest", False),
    "OUTPUT_CHANGED": (
        "run it once unchanged with --until-caught-up, then with the change",
        False,
    ),
    "DEDUPLICATION_OFF": (
        "headgate setup FLOW --on LOG turns it on; or run with --delivery at-least-once",
        False,
    ),
    "DEDUPLICATION_FORGOTTEN": (
        "finish it with --delivery at-least-once: some of its rows may be duplicated",
        False,
    ),
    "MARKS_LOST": (
        "finish it with --delivery at-least-once: some of its rows may be duplicated",
        False,
    ),
    "MARKS_EXPIRE": (
        "kafka-configs.sh --bootstrap-server SERVERS --alter --entity-type topics "
        "--entity-name headgate-epochs --add-config cleanup.policy=compact",
        False,
    ),
    "PRODUCER_BUSY": ("headgate jobs shows which attempt runs; stop the other one", True),
    "TRANSACTION_TIMEOUT": (
        "run with a smaller --max-batch, or raise the option producer.transaction.timeout.ms",
        False,
    ),
    "STATE_INCOMPATIBLE": (
        "keep it unchanged, or give the operator another uid and start with --fresh",
        False,
    ),
    "PATH_NOT_UTF8": ("rename the file, then: headgate start JOB", False),
    "TOPIC_LEDGER_BROKEN": (
        "restore the topic's _ledger folder from a backup, or copy the data files to a new topic",
        False,
    ),
    "FUNCTION_FAILED": (
        "fix the function; or send such rows to the dead letters: on_error='dead-letter'",
        True,
    ),
    "FUNCTION_BAD_RESULT": ("return the declared columns, or change schema= in the flow", False),
    "FUNCTION_NOT_DETERMINISTIC": (
        "let the function depend on its row alone, and a process on its events, its declared "
        "state, ctx.now and ctx.random",
        False,
    ),
    "FUNCTION_NOT_LOADED": ("start the job from its flow's file: headgate run FLOW", False),
    "FUNCTION_OTHER_PYTHON": (
        'name a Python of that version: python = "PATH" in the profile of headgate.toml',
        False,
    ),
    "FUNCTION_CHANGED": (
        "install the version of the package that the job ran with, or start the job from its "
        "flow's file: headgate run FLOW",
        False,
    ),
    "FUNCTION_MESSAGE_TOO_LARGE": (
        "keep less for one key: spread it over several keys, or over smaller items",
        False,
    ),
    "ANSWERS_CORRUPTED": (
        "go back to before the batch, whose calls are then made again: headgate restore JOB --from "
        "latest",
        False,
    ),
    "STAGED_LOST": (
        "restore the folder's _headgate from a backup, or go back to before the batches: headgate "
        "restore JOB --from CHECKPOINT",
        False,
    ),
    "STAGED_CORRUPTED": (
        "restore the folder's _headgate from a backup, or go back to before the batches: headgate "
        "restore JOB --from CHECKPOINT",
        False,
    ),
    "FOLDER_UNSUPPORTED": ("write to a folder, or to s3a://BUCKET/FOLDER", False),
    "LEASE_HELD": (
        "stop the job where it runs; if that driver is gone, start again once the lease expired",
        True,
    ),
    "LEASE_LOST": (
        "headgate show JOB where the other driver runs; this one has written nothing since",
        False,
    ),
    "PACKAGE_MISSING": ("install it, or put the module beside the flow's file", False),
    "PYTHON_WORKER_DIED": ("headgate logs JOB shows what the worker printed", True),
    "TABLE_MISMATCH": (
        "change the table's columns or those of the rows; headgate setup FLOW creates a table that "
        "fits",
        False,
    ),
    "ROW_REFUSED": (
        "keep such rows out with where(...), or change the table's constraint, then: headgate "
        "start JOB",
        False,
    ),
    "BROKER_FAILED": ("see the server's log", False),
    "FENCED": ("headgate jobs shows which attempt runs; this one has written nothing", False),
}
# Failures of the user's code; the others are of the system around the job.
_OF_USER = {
    "FUNCTION_FAILED",
    "FUNCTION_BAD_RESULT",
    "FUNCTION_NOT_DETERMINISTIC",
    "FUNCTION_NOT_LOADED",
    "FUNCTION_OTHER_PYTHON",
    "FUNCTION_CHANGED",
    "FUNCTION_MESSAGE_TOO_LARGE",
    "PACKAGE_MISSING",
    "TABLE_MISMATCH",
    "ROW_REFUSED",
}
_NAMED = re.compile(rf"\b({'|'.join(_FAILURES)}): ")

# Refusals of the system, as Java and RocksDB quote them at the end of a line: the error number.
_REFUSED = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Too many open files": errno.EMFILE,
    "Too many open files in system": errno.ENFILE,
    "Permission denied": errno.EACCES,
    "Read-only file system": errno.EROFS,
}
_REFUSAL = re.compile(
    rf"(?:Exception|Error): (?P<words>[^\n]*?(?P<why>{'|'.join(map(re.escape, _REFUSED))}))\)?$",
    re.MULTILINE,
)
# A name that the JVM's file system cannot represent.
_UNMAPPABLE = re.compile(
    r"InvalidPathException: Malformed input or input contains unmappable characters: (.*)"
)
_NO_STATE = "[CANNOT_LOAD_STATE_STORE."
_LOG_TAKEN = "[CONCURRENT_STREAM_LOG_UPDATE]"


def root_cause(error: BaseException) -> str:
    """Return the first line of the innermost cause of one of Spark's errors."""
    if isinstance(error, Py4JJavaError):
        thrown = error.java_exception
        while thrown.getCause() is not None:
            thrown = thrown.getCause()
        text = str(thrown.getMessage() or thrown.toString())
    else:
        text = str(error)
    return text.strip().partition("\n")[0]


@contextmanager
def translated() -> Iterator[None]:
    """Raise the kernel's error about a flow as a HeadgateError."""
    try:
        yield
    except Py4JJavaError as error:
        known = _of_plan(error)
        if known is None:
            raise
        raise known from None


def _of_plan(error: Py4JJavaError) -> HeadgateError | None:
    thrown = error.java_exception
    if not str(thrown.toString()).startswith(_PLAN):
        return None
    code = str(thrown.code())
    hint = str(thrown.hint()) or _HINTS.get(code, "")
    return HeadgateError(code, str(thrown.getMessage()), hint=hint)


def query_causes(query: StreamingQuery) -> list[str]:
    """Return the causes of a query's failure, outermost first: class and message; empty if it did
    not fail.

    Reads them from the JVM, since `query.exception()` keeps only the first two causes.
    """
    causes: list[str] = []
    ended = query._jsq.exception()
    thrown = ended.get() if ended.isDefined() else None
    while thrown is not None and len(causes) < _DEEPEST:
        causes.append(str(thrown.toString()))
        thrown = thrown.getCause()
    return causes


def is_clean_stop(causes: Sequence[str]) -> bool:
    """Return True if a query ended because of its gate."""
    return any(cause.startswith(_STOP) for cause in causes)


def query_failure(
    job: str, causes: Sequence[str], *, last_output: Sequence[str] = ()
) -> HeadgateError:
    """Return the failure of a query, named by its root cause.

    Args:
        causes: The exceptions of the JVM, outermost first.
        last_output: The last lines that the driver's JVM and its Python workers printed.
    """
    what = f"cannot continue job {job!r}"
    for cause in causes:
        named = _find_named(cause)
        if named is not None:
            return _named_failure(what, *named)
    known = (
        find_system_failure(what, causes)
        or find_worker_failure(job, causes, last_output)
        or find_cluster_failure(job, causes)
    )
    if known is not None:
        return known
    if any(_LOG_TAKEN in cause for cause in causes):
        return _named_failure(what, "FENCED", "another driver of this run has written the batch")
    if any(_NO_STATE in cause for cause in causes):
        return HeadgateError(
            "STATE_UNREADABLE",
            f"{what}: Spark cannot load its state: {_first_line(causes[-1])}",
            hint=f"headgate verify {job}",
            domain=Domain.EXTERNAL,
            retryable=True,
            root_cause=causes[-1],
        )
    return HeadgateError(
        "QUERY_FAILED",
        f"job {job!r} ended: {_first_line(causes[-1])}",
        hint="see the job's log; --verbose shows it",
        domain=Domain.INTERNAL,
        retryable=True,
        root_cause=causes[-1],
    )


def find_system_failure(what: str, causes: Sequence[str]) -> HeadgateError | None:
    """Return the system's refusal in the JVM as an error; None for other causes.

    Args:
        what: What could not be done.
        causes: The exceptions, outermost first, with or without stack traces.
    """
    for cause in reversed(causes):
        refused = _REFUSAL.search(cause)
        if refused is not None:
            return system_refusal(_REFUSED[refused["why"]], f"{what}: {refused['words']}")
        unmappable = _UNMAPPABLE.search(cause)
        if unmappable is not None:
            return HeadgateError(
                "LOCALE_UNSUPPORTED",
                f"{what}: a JVM does not read file names as UTF-8, as in {unmappable[1]}",
                hint="export LC_ALL=C.UTF-8",
                domain=Domain.EXTERNAL,
            )
    return None


@contextmanager
def creating_session(master: str) -> Iterator[None]:
    """Raise the error that keeps Spark's session from starting as a HeadgateError."""
    try:
        yield
    except SPARK_ERRORS as error:
        refused = find_system_failure("cannot start Spark", [str(error)])
        if refused is not None:
            raise refused from error
        cause = root_cause(error)
        if master.startswith("local"):
            raise HeadgateError(
                "DRIVER_NOT_STARTED",
                f"cannot start Spark: {cause}",
                hint="headgate doctor",
                domain=Domain.EXTERNAL,
                # Such as too little memory, which stays the same.
                retryable="IllegalArgumentException" not in f"{type(error)} {error}",
            ) from error
        if "stopped SparkContext" in cause:
            # Spark reports that it gave up in its log alone.
            cause = "the master did not accept the application"
        raise HeadgateError(
            "CLUSTER_UNREACHABLE",
            f"cannot start Spark on {master}: {cause}",
            hint="check that it is the address of a Spark master, of this version of Spark",
            domain=Domain.EXTERNAL,
            retryable=True,
        ) from error


@contextmanager
def naming_failures(what: str) -> Iterator[None]:
    """Raise the failures that the kernel names as HeadgateErrors.

    Args:
        what: What could not be done.
    """
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        for _ in range(_DEEPEST):
            if thrown is None:
                break
            named = _find_named(str(thrown.toString()))
            if named is not None:
                raise _named_failure(what, *named) from None
            thrown = thrown.getCause()
        raise


def _find_named(cause: str) -> tuple[str, str] | None:
    """Return the code and the message of a failure that the kernel has named, or None."""
    match = _NAMED.search(cause)
    return None if match is None else (match[1], _first_line(cause[match.end() :]))


def _named_failure(what: str, code: str, message: str) -> HeadgateError:
    hint, retryable = _FAILURES[code]
    return HeadgateError(
        code,
        f"{what}: {message}",
        hint=hint,
        domain=Domain.USER if code in _OF_USER else Domain.EXTERNAL,
        retryable=retryable,
        root_cause=f"{code}: {message}",
    )


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else text
