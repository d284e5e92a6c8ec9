"""The file of a job's counters, `counters.json`: written by its supervisor, read by servers."""

from __future__ import annotations

from headgate._codec import decode, encode
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.metrics.counters import Counters

_FILE = "counters.json"
# The cause of restarts that were counted without one, up to release 0.11.
_UNKNOWN = "UNKNOWN"


def read_counters(home: JobFolder) -> Counters:
    """Return the counters of a job; zeros if its file cannot be read.

    A job that a release up to 0.11 supervises has no such file: its counters are those of its
    status, which begin anew with each start.
    """
    try:
        content = home.find_json(_FILE)
        return _from_status(home) if content is None else decode(Counters, content)
    except (HeadgateError, ValueError):
        # To a monitoring system, that is a counter that was reset.
        return Counters()


def write_counters(home: JobFolder, counters: Counters) -> None:
    """Replace the counters of a job."""
    home.write_json(_FILE, encode(counters))


def _from_status(home: JobFolder) -> Counters:
    status = home.find_json("status.json") or {}
    restarts = int(status.get("restarts") or 0)
    return Counters(
        records_in=status.get("inputs") or {},
        records_out=status.get("outputs") or {},
        restarts={_UNKNOWN: restarts} if restarts else {},
    )
