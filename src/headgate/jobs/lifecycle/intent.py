"""Requests to a job, written into its folder for its supervisor.

intent.json holds the last request, with a number. The supervisor follows it and echoes the number
in status.json as `intent`, with `intent_error` if it could not. A writer holds intent.lock, so that
no two requests get the same number.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate._codec import Moment, decode, encode
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.vocabulary import Verb

_FILE = "intent.json"
_LOCK = "intent.lock"


@dataclass(frozen=True, slots=True)
class Intent:
    """One request.

    Attributes:
        number: Rises by one with each intent of a job.
        arguments: JSON values, by name.
        by: The user or program that asked.
    """

    number: int
    verb: Verb
    arguments: Mapping[str, Any]
    by: str
    at: Moment


def write_intent(
    home: JobFolder,
    verb: Verb,
    arguments: Mapping[str, Any] | None = None,
    *,
    by: str,
    clock: Clock | None = None,
) -> int:
    """Ask something of a job, and return the number that its status will echo.

    Refuses with JOB_BUSY while the supervisor has not followed an earlier intent. The intent that a
    dead supervisor left is replaced.
    """
    if not home.path.is_dir():
        raise HeadgateError(
            "JOB_NOT_FOUND",
            f"cannot {verb} job {home.name!r}: there is no such job in {home.root}",
            hint="headgate jobs",
        )
    with _writing(home):
        earlier = find_intent(home)
        echoed = find_echo(home)
        given = 0 if earlier is None else earlier.number
        if earlier is not None and given > echoed and has_supervisor(home):
            raise HeadgateError(
                "JOB_BUSY",
                f"cannot {verb} job {home.name!r}: it was asked to {earlier.verb} by "
                f"{earlier.by} at {earlier.at:%H:%M:%S} UTC, and has not done so yet",
                hint=f"headgate show {home.name}",
                retryable=True,
            )
        number = max(given, echoed) + 1
        now = (clock or SystemClock()).now()
        home.write_json(_FILE, encode(Intent(number, Verb(verb), arguments or {}, by, now)))
    return number


def find_intent(home: JobFolder) -> Intent | None:
    """Return the last intent, followed or not; None if there never was one."""
    content = home.find_json(_FILE)
    try:
        return None if content is None else decode(Intent, content)
    except ValueError as error:
        raise _broken(home.path / _FILE, error) from error


def find_echo(home: JobFolder) -> int:
    """Return the number of the last intent that the supervisor followed or refused; 0 for none."""
    status = home.find_json("status.json") or {}
    try:
        return int(status.get("intent") or 0)
    except (TypeError, ValueError) as error:
        raise _broken(home.path / "status.json", error) from error


def has_supervisor(home: JobFolder) -> bool:
    """Return True if a process holds the job."""
    try:
        lock = (home.path / "lock").open("rb")
    except FileNotFoundError:
        return False
    with lock:
        try:
            # Shared, so that two readers at once do not see each other.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@contextmanager
def _writing(home: JobFolder) -> Iterator[None]:
    """Wait for other writers, which take no longer than writing a small file."""
    with (home.path / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _broken(file: Path, error: Exception) -> HeadgateError:
    return HeadgateError(
        "JOB_FILE_BROKEN",
        f"cannot read {file}: it is corrupted ({type(error).__name__}: {error})",
        hint=f"rm {file}",
        domain=Domain.EXTERNAL,
    )
