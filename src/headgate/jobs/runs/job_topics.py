"""The topics of a job as it was last run, wherever they are."""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run


def get_flow(home: JobFolder, *, doing: str) -> Graph:
    """Return the flow of a job as it was last run, its topics bound.

    Args:
        doing: What cannot be done where there is none, up to the job's name.

    Raises:
        HeadgateError: JOB_NEVER_RAN.
    """
    lineage = home.find_present_run() or (home.find_json("status.json") or {}).get("lineage")
    run = None if lineage is None else find_run(home, str(lineage))
    if run is None:
        raise HeadgateError(
            "JOB_NEVER_RAN",
            f"cannot {doing} job {home.name!r}: it has never run",
            hint=f"headgate show {home.name}",
        )
    return run.flow


def is_missing(error: HeadgateError) -> bool:
    """Tell whether a topic could not be read because nobody has made it yet."""
    return error.code == "TOPIC_NOT_FOUND"
