"""The file of a job's executors, `executors.json`: written by its supervisor."""

from __future__ import annotations

from headgate._codec import decode, encode
from headgate.engine.attempt.executors import Executors
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder

_FILE = "executors.json"


def find_executors(home: JobFolder) -> Executors | None:
    """Return the executors of a job; None if there are none that can be read."""
    try:
        content = home.find_json(_FILE)
        return None if content is None else decode(Executors, content)
    except (HeadgateError, ValueError):
        return None


def write_executors(home: JobFolder, executors: Executors) -> None:
    """Replace the executors of a job."""
    home.write_json(_FILE, encode(executors))


def forget_executors(home: JobFolder) -> None:
    """Remove the executors of a driver that has ended."""
    (home.path / _FILE).unlink(missing_ok=True)
