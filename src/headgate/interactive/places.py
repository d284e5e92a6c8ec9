"""`headgate.connect`: the jobs of a folder or a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.interactive.jobs import Jobs


def connect(place: str | Path = ".headgate", *, token: str | None = None) -> Jobs:
    """Return the jobs of a place: the same methods for a folder and for a server.

    Args:
        place: A server's URL, such as `http://localhost:8270`, or a folder of jobs.
        token: The token of a server that needs one; by default that of HEADGATE_TOKEN.
    """
    from headgate.interactive import jobs

    return jobs.connect(place, token)
