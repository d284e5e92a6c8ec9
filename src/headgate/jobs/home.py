"""The job's folder: what lies where, and who may write it.

.headgate/jobs/NAME/
  lock                    held by whoever runs the job; a crash releases it
  job.json                which run is the present one
  status.json             what the job is doing, written by its supervisor
  events.jsonl            what happened to it, one line each
  logs/spark.log          what Spark says
  runs/LINEAGE/run.json   the run's manifest
  runs/LINEAGE/checkpoint Spark's folder, unless the user chose another place
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.errors import Domain, HeadgateError

FORMAT = 1
DEFAULT_HOME = Path(".headgate")


@dataclass(frozen=True, slots=True)
class JobHome:
    """The folder of one job."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The job's folder."""
        return self.root / "jobs" / self.name

    @property
    def log_file(self) -> Path:
        """Where Spark's log goes."""
        return self.path / "logs" / "spark.log"

    def run_folder(self, lineage: str) -> Path:
        """Return the folder of one run."""
        return self.path / "runs" / lineage

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the job for this process; refuse if another one does."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                lock.seek(0)
                holder = lock.read().strip() or "another process"
                raise HeadgateError(
                    "JOB_RUNNING",
                    f"cannot start job {self.name!r}: it is running already ({holder})",
                    hint="stop that one first with Ctrl-C, or give the flow another name",
                ) from error
            lock.truncate(0)
            lock.write(f"process {os.getpid()}")
            lock.flush()
            yield

    def find_present_run(self) -> str | None:
        """Return the lineage of the present run, or None if the job never ran."""
        content = self.find_json("job.json")
        return None if content is None else str(content["lineage"])

    def write_present_run(self, lineage: str) -> None:
        """Make a run the present one."""
        self.write_json("job.json", {"name": self.name, "lineage": lineage})

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace what the job says of itself."""
        self.write_json("status.json", status)

    def add_event(self, at: datetime, kind: str, **facts: Any) -> None:
        """Add a line to the job's history."""
        line = json.dumps({"format": FORMAT, "at": at.isoformat(), "event": kind, **facts})
        with (self.path / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def find_json(self, name: str) -> dict[str, Any] | None:
        """Return one of the job's files, or None if it is not there."""
        return read_json(self.path / name)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace one of the job's files; readers see the old one or the new one, whole."""
        write_json(self.path / name, content)


def read_json(file: Path) -> dict[str, Any] | None:
    """Return a file of ours, or None if it is not there; one of another format is refused."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        found = content["format"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise HeadgateError(
            "JOB_FILE_BROKEN",
            f"cannot read {file}: it is damaged ({error})",
            hint="restore it from a backup, or start anew with --fresh",
            domain=Domain.EXTERNAL,
        ) from error
    if found != FORMAT:
        raise HeadgateError(
            "JOB_FORMAT_UNSUPPORTED",
            f"cannot read {file}: its format is {found!r}, and this release reads {FORMAT}",
            hint="use the release of headgate that wrote it, or a newer one",
        )
    return dict(content)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Replace a file of ours by writing another and renaming it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    making = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    making.write_text(json.dumps({"format": FORMAT, **content}, indent=2) + "\n", encoding="utf-8")
    making.replace(file)
