"""The jobs of a home."""

from __future__ import annotations

from pathlib import Path

from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor

_SHOWN = 12


def list_job_names(root: Path) -> list[str]:
    """Return the names of the jobs of a home; a refused start does not create a job."""
    jobs = root / "jobs"
    if not jobs.is_dir():
        return []
    # A name with a dot first is of a job that is being deleted.
    names = [job.name for job in jobs.iterdir() if not job.name.startswith(".")]
    return sorted(name for name in names if _is_job(JobFolder(root, name)))


def get_job(root: Path, name: str, *, verb: str) -> JobFolder:
    """Return the folder of a job, or raise JOB_NOT_FOUND with the names of those that exist.

    Args:
        verb: For the error, as in `cannot stop job 'orders'`.
    """
    names = list_job_names(root)
    if name in names:
        return JobFolder(root, name)
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise HeadgateError(
        "JOB_NOT_FOUND",
        f"cannot {verb} job {name!r}: "
        + (f"the jobs in {root} are {shown}" if names else f"there are no jobs in {root}"),
        hint=did_you_mean(name, names) if names else "headgate run FLOW",
    )


def _is_job(home: JobFolder) -> bool:
    files = (home.path / "status.json", home.path / "job.json")
    return any(file.is_file() for file in files) or has_supervisor(home)
