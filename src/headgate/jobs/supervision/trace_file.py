"""The stack traces of a job's last failures: `traces.json` in its folder.

They are not part of the events, which a job that fails again and again would fill with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate._codec import DecodeError, Moment, decode, encode
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.secrets import find_secrets, hide_secrets

_FILE = "traces.json"
# With their longest size, half a megabyte.
_MOST = 20


@dataclass(frozen=True, slots=True)
class Trace:
    """The stack trace of a failure.

    Attributes:
        at: The time of the failure's event.
    """

    at: Moment
    trace: str


def add_trace(home: JobFolder, at: datetime, trace: str) -> None:
    """Store the stack trace of a failure without secrets; the oldest one goes."""
    hidden = hide_secrets(trace, find_secrets([home]))
    traces = [*_list_traces(home), Trace(at, hidden)]
    home.write_json(_FILE, {"traces": [encode(known) for known in traces[-_MOST:]]})


def read_traces(home: JobFolder) -> dict[datetime, str]:
    """Return the stack traces of a job's last failures, by the time of their event."""
    return {known.at: known.trace for known in _list_traces(home)}


def _list_traces(home: JobFolder) -> list[Trace]:
    try:
        content = home.find_json(_FILE) or {}
        return [decode(Trace, trace) for trace in content.get("traces", [])]
    except (HeadgateError, DecodeError, TypeError):
        # A corrupted file must not hide the failures themselves.
        return []
