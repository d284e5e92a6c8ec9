"""Failures of a user's Python functions: where they were raised, and what they say."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import Domain, HeadgateError

_START = "Traceback (most recent call last):"
# A frame of a traceback, of a SyntaxError, and of Python's fault handler.
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?'
    r'(?:\n +(?!File ")(?P<code>\S.*))?',
    re.MULTILINE,
)
# Frames in these files are not the user's.
_LIBRARIES = re.compile(
    r"[/\\](?:(?:site|dist)-packages|lib[/\\]python3[^/\\]*|pyspark\.zip)[/\\]|<"
)
_OURS = str(Path(__file__).parents[1])
# Spark's own words for a package that it needs, and Python's for a module.
_PACKAGE = re.compile(
    r"\[(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] "
    r"(?P<name>\S+) >= (?P<version>\S+) must"
)
_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[^']+)'")
_LONGEST = 500

_RAISED = "org.apache.spark.api.python.PythonException: "
_CRASHED = re.compile(
    r"Python worker exited unexpectedly \(crashed\)(?:: (?P<words>.*))?", re.DOTALL
)
_NOT_STARTED = re.compile(
    r"(?:Error from python worker:|Python worker failed to connect back|"
    r"Cannot run program \"[^\"]*python).*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of the user's code."""

    file: str
    line: str
    function: str
    code: str

    def __str__(self) -> str:
        function = f", in {self.function}" if self.function else ""
        code = f": {self.code}" if self.code else ""
        return f"{self.file}, line {self.line}{function}{code}"


def raised_failure(what: str, error: BaseException) -> HeadgateError:
    """Return the failure of a user's function in this process.

    Args:
        what: What could not be done.
    """
    return _failure(what, "".join(traceback.format_exception(error)), retryable=False)


def find_worker_failure(
    job: str, causes: Sequence[str], last_output: Sequence[str]
) -> HeadgateError | None:
    """Return the failure of a Python worker of Spark, or None for other causes.

    Args:
        causes: The exceptions of the JVM, outermost first.
        last_output: The last lines that the driver's JVM and its workers printed.
    """
    # The outer ones quote the inner ones, with stack traces of the JVM.
    for cause in reversed(causes):
        if cause.startswith(_RAISED) and _START in cause:
            # The function may depend on something that comes back, such as a service.
            text = cause[cause.index(_START) :]
            return _failure(f"cannot continue job {job!r}", text, retryable=True)
        crashed = _CRASHED.search(cause)
        if crashed is not None:
            return _worker_died(job, "exited", crashed["words"] or "", last_output)
        failed = _NOT_STARTED.search(cause)
        if failed is not None:
            words = failed[0].partition("PYTHONPATH was:")[0]
            return _worker_died(job, "did not start", " ".join(words.split()), last_output)
    return None


def _failure(what: str, text: str, *, retryable: bool) -> HeadgateError:
    """Return the failure that a traceback describes."""
    # Of exceptions in a chain, the last one was not caught.
    last = text[text.rfind(_START) :]
    place = _find_place(last)
    message = _exception_line(last)
    where = f" ({place})" if place else ""
    missing = _find_missing(message)
    if missing is not None:
        return HeadgateError(
            "PACKAGE_MISSING",
            f"{what}: a Python function needs {missing[0]}, which is not installed{where}",
            hint=missing[1],
            root_cause=f"{message}{where}",
        )
    return HeadgateError(
        "FUNCTION_FAILED",
        f"{what}: a Python function raised {message}{where}",
        hint=f"fix {place.file}, line {place.line}" if place else "see the job's log",
        retryable=retryable,
        root_cause=f"{message}{where}",
    )


def _find_missing(message: str) -> tuple[str, str] | None:
    """Return the package that an exception misses, and how to get it."""
    package = _PACKAGE.search(message)
    if package is not None:
        name, version = package["name"].lower(), package["version"]
        return f"{name} {version} or newer", f"pip install '{name}>={version}'"
    module = _MODULE.search(message)
    if module is None:
        return None
    name = module["name"].partition(".")[0]
    return (
        f"the module {module['name']!r}",
        f"pip install {name}; or put the module beside the flow's file",
    )


def _worker_died(job: str, how: str, words: str, last_output: Sequence[str]) -> HeadgateError:
    """Return the end of a worker's process, with its own last lines if it left any."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    place = _find_place(words, newest_first=True)
    said = lines[0] if lines else " | ".join(last_output)
    return HeadgateError(
        "PYTHON_WORKER_DIED",
        f"cannot continue job {job!r}: a Python worker of Spark {how}"
        + (f": {_shortened(said)}" if said else ", and left no message")
        + (f" ({place})" if place else ""),
        hint=f"headgate logs {job}"
        + ("" if said else "; the system may have killed it for its memory"),
        domain=Domain.EXTERNAL,
        retryable=True,
        root_cause=_shortened(said),
    )


def _find_place(text: str, *, newest_first: bool = False) -> _Place | None:
    """Return the line of the user's code that failed, or None if there is none."""
    frames = [
        _Place(frame["file"], frame["line"], frame["function"] or "", frame["code"] or "")
        for frame in _FRAME.finditer(text)
    ]
    own = [
        frame
        for frame in (frames if newest_first else reversed(frames))
        if not _LIBRARIES.search(frame.file) and not frame.file.startswith(_OURS)
    ]
    return own[0] if own else None


def _exception_line(text: str) -> str:
    """Return the first line of a traceback's exception: its type and its message."""
    frames = list(_FRAME.finditer(text))
    rest = text[frames[-1].end() :] if frames else text.removeprefix(_START)
    lines = [line for line in rest.splitlines() if line and not line.startswith(" ")]
    # Python prints the module of a type, too; those of Spark are long.
    line = re.sub(r"^pyspark\.[\w.]+\.(?=\w+:)", "", lines[0]) if lines else "an exception"
    return _shortened(line)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
