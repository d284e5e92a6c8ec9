"""The jobs of one place: a folder on this machine, or a server."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

from headgate.client.home import Home
from headgate.flow.drawing.html import table
from headgate.interactive.job import Job
from headgate.interactive.tables import text_table
from headgate.jobs.folder_home import FolderHome

_COLUMNS = ("job", "state", "records/s", "checkpoint", "reason")


class Jobs:
    """The jobs of one place.

    Attributes:
        home: All that can be asked of them, by name.
    """

    def __init__(self, home: Home) -> None:
        self.home = home

    def job(self, name: str) -> Job:
        """Return a job, or raise JOB_NOT_FOUND with the names of those that exist."""
        self.home.job(name)
        return Job(self.home, name)

    def names(self) -> list[str]:
        """Return the names of the jobs."""
        return self.home.names()

    def __iter__(self) -> Iterator[Job]:
        return (Job(self.home, name) for name in self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"jobs in {self.home.where}\n{text_table(_COLUMNS, self._rows())}"

    def _repr_html_(self) -> str:
        return table(_COLUMNS, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (view.name, view.state, str(view.records_per_s), view.checkpoint or "-", view.reason)
            for view in self.home.jobs()
        ]


def connect(place: str | Path, token: str | None) -> Jobs:
    """Return the jobs of a place; `headgate.connect` describes it."""
    if not str(place).startswith(("http://", "https://")):
        return Jobs(FolderHome(Path(place).absolute()))
    # Jobs of this machine need no HTTP client.
    from headgate.client.connection import Connection
    from headgate.client.server_home import ServerHome
    from headgate.client.tokens import read_token

    connection = Connection(str(place), token or read_token(None))
    if connection.exposes_token:
        warnings.warn(
            f"{connection.url} is plain HTTP: anyone on the network path can read the token",
            stacklevel=3,
        )
    return Jobs(ServerHome(connection))
