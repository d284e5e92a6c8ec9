"""Session mode: the jobs that a server is to keep up.

Every job has a supervisor of its own, a process that outlives the server. What the server owns is
the wish that a job be up: `server/session.json` in the home has one entry for each, written when
it is submitted, started or restored through the server, and removed when it is stopped or
canceled. A job in there whose supervisor is gone is taken up again.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from headgate._codec import Moment, decode, encode, left_out
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import read_json, write_json

_FILE = "session.json"
# A lock for each job, held by the process that starts it.
_STARTS = "starts"


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A job that is to be up.

    Attributes:
        since: When that was wished last.
        by: Who wished it.
        order: How it was to be started; of use until the job itself remembers.
    """

    job: str = field(metadata=left_out())
    since: Moment
    by: str
    order: Mapping[str, Any] | None = None


class Session:
    """The file of the jobs that are to be up; several processes may change it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file = root / "server" / _FILE

    def list(self) -> dict[str, KeptJob]:
        """Return the jobs that are to be up, by name.

        Raises:
            HeadgateError: JOB_FILE_BROKEN or JOB_FORMAT_UNSUPPORTED.
        """
        content = read_json(self._file) or {"jobs": {}}
        try:
            return {
                name: decode(KeptJob, {**entry, "job": name})
                for name, entry in content["jobs"].items()
            }
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise HeadgateError(
                "JOB_FILE_BROKEN",
                f"cannot read {self._file}: it is corrupted ({error!r})",
                hint=f"restore it from a backup, or remove {self._file}",
                domain=Domain.EXTERNAL,
            ) from error

    def keep(self, job: KeptJob) -> KeptJob | None:
        """Write that a job is to be up; return what was written of it before."""
        return self._change(job.job, job)

    def let_go(self, name: str, *, only: KeptJob | None = None) -> KeptJob | None:
        """Write that a job need not be up; return what was written of it before.

        Args:
            only: Nothing is changed where something else than this is written by now.
        """
        if not self._file.is_file():
            return None
        return self._change(name, None, only=only)

    def put_back(self, name: str, before: KeptJob | None) -> None:
        """Undo a change."""
        self._change(name, before)

    @contextlib.contextmanager
    def starting(self, name: str) -> Iterator[None]:
        """Hold a job while an order starts it, so that it is not taken up; a crash lets it go."""
        with self._open_start(name) as lock:
            # Shared: a second order is not kept waiting, and is refused by the job itself.
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield

    def is_starting(self, name: str) -> bool:
        """Return whether a process is starting a job by an order."""
        with self._open_start(name) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def _open_start(self, name: str) -> IO[str]:
        folder = self._file.parent / _STARTS
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return (folder / f"{name}.lock").open("a")

    def _change(
        self, name: str, to: KeptJob | None, *, only: KeptJob | None = None
    ) -> KeptJob | None:
        with self._writing():
            jobs = self.list()
            before = jobs.pop(name, None)
            if only is not None and before != only:
                return before
            if to is not None:
                jobs[name] = to
            if to != before:
                content = {"jobs": {name: encode(jobs[name]) for name in sorted(jobs)}}
                write_json(self._file, content, sync=True)
        return before

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._file.with_suffix(".lock")).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
