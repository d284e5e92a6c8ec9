"""The file of the last vitals of a job's driver, `vitals.json`: written by its supervisor."""

from __future__ import annotations

from headgate._codec import decode, encode
from headgate.engine.attempt.vitals import Vitals
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder

_FILE = "vitals.json"


def find_vitals(home: JobFolder) -> Vitals | None:
    """Return the last vitals of a job; None if there are none that can be read."""
    try:
        content = home.find_json(_FILE)
        return None if content is None else decode(Vitals, content)
    except (HeadgateError, ValueError):
        return None


def write_vitals(home: JobFolder, vitals: Vitals) -> None:
    """Replace the last vitals of a job."""
    home.write_json(_FILE, encode(vitals))


def forget_vitals(home: JobFolder) -> None:
    """Remove the vitals of a driver that has ended."""
    (home.path / _FILE).unlink(missing_ok=True)
