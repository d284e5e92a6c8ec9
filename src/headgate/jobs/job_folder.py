"""The files of a job's folder.

.headgate/jobs/NAME/
  lock                    held by the job's supervisor; a crash releases it
  job.json                the present run, and the options of the last start
  status.json             the status of the job, written by its supervisor
  events.jsonl            its events, one line each; older ones are in events.old.jsonl
  traces.json             the stack traces of its last failures
  samples.jsonl           its measurements, at most one line a second
  vitals.json             what its driver uses of memory and time, while it runs
  executors.json          the executors of its present attempt, while it runs
  counters.json           what it has done since it exists, for /metrics
  logs/spark.log          Spark's log
  scratch/                temporary files of its driver, emptied at the next start
  runs/LINEAGE/run.json   the run's manifest
  runs/LINEAGE/at-least-once  exists if a start of the run had that delivery
  runs/LINEAGE/checkpoint Spark's folder, unless the user chose another one
  runs/LINEAGE/checkpoints  the kept checkpoints, unless the user chose another folder
  store.json              the object stores that have a record of the job, if there are any
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from headgate._disk import replace_file
from headgate._locations import Location, parse_location, seen_from
from headgate.errors import Domain, HeadgateError
from headgate.jobs.event_files import append_event

FORMAT = 1
# A check whether a job is running holds its lock for an instant; a start waits that long.
_LOOKERS = 0.2
_DELETE = "delete"
# In the lock of a job that is being deleted, after the process.
_DELETES = ", which deletes it"


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The folder of one job."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        return self.root / "jobs" / self.name

    @property
    def log_file(self) -> Path:
        return self.path / "logs" / "spark.log"

    def run_folder(self, lineage: str) -> Path:
        return self.path / "runs" / lineage

    def checkpoints_folder(self, lineage: str) -> Location:
        """Return the folder of a run's kept checkpoints, which is beside Spark's folder."""
        # Up to release 0.8.1 it was in the job's folder, even if Spark's was not.
        kept = self.run_folder(lineage) / "checkpoints"
        return kept if kept.is_dir() else self._spark_folder(lineage).with_name("checkpoints")

    @property
    def savepoints_folder(self) -> Path:
        """The default folder of savepoints."""
        return self.path / "savepoints"

    @property
    def driver_output(self) -> Path:
        """The standard output and error of the driver's process and its JVM."""
        return self.path / "logs" / "driver.out"

    def _spark_folder(self, lineage: str) -> Location:
        """Return the folder that a run's manifest names, or the default one without a manifest."""
        folder = self.run_folder(lineage)
        try:
            manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            checkpoint = str(manifest["checkpoint"])
        except (OSError, ValueError, TypeError, KeyError):
            # Code that needs the manifest itself reports what is wrong with it.
            return folder / "checkpoint"
        return seen_from(folder, parse_location(checkpoint))

    @contextmanager
    def locked(self, *, verb: str = "start") -> Iterator[None]:
        """Lock the job for this process, or raise JOB_RUNNING if another one has the lock.

        Args:
            verb: Why; `delete` does not create the folder, and is named to other processes.
        """
        deletes = verb == _DELETE
        with self._open_lock(verb, create=not deletes) as lock:
            lock.truncate(0)
            lock.write(f"process {os.getpid()}{_DELETES if deletes else ''}")
            lock.flush()
            yield

    def _open_lock(self, verb: str, *, create: bool) -> IO[str]:
        """Return the locked file; FileNotFoundError if the folder is gone and not created."""
        while True:
            if create:
                self.path.mkdir(parents=True, exist_ok=True)
            with contextlib.ExitStack() as opened:
                try:
                    lock = opened.enter_context((self.path / "lock").open("a+"))
                    self._lock(lock, verb)
                    # A delete may have renamed the folder meanwhile, and its lock with it.
                    is_current = os.path.samestat(
                        os.fstat(lock.fileno()), (self.path / "lock").stat()
                    )
                except FileNotFoundError:
                    if not create:
                        raise
                    continue
                if is_current:
                    opened.pop_all()
                    return lock

    def _lock(self, lock: IO[str], verb: str) -> None:
        deadline = time.monotonic() + _LOOKERS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() < deadline:
                    time.sleep(_LOOKERS / 10)
                    continue
                lock.seek(0)
                raise self._refuse(lock.read().strip() or "another process", verb) from error
            return

    def _refuse(self, holder: str, verb: str) -> HeadgateError:
        if holder.endswith(_DELETES):
            return HeadgateError(
                "JOB_BUSY",
                f"cannot {verb} job {self.name!r}: it is being deleted by "
                f"{holder.removesuffix(_DELETES)}",
                hint="headgate jobs",
                retryable=True,
            )
        end = "cancel" if verb == _DELETE else "stop"
        return HeadgateError(
            "JOB_RUNNING",
            f"cannot {verb} job {self.name!r}: it is already running ({holder})",
            hint=f"headgate {end} {self.name}",
        )

    def find_present_run(self) -> str | None:
        """Return the lineage of the present run, or None if the job never ran."""
        content = self.find_json("job.json")
        lineage = None if content is None else content["lineage"]
        return None if lineage is None else str(lineage)

    def forget_run(self) -> None:
        """Make the next start begin a new run; the options of the last start stay known."""
        content = self.find_json("job.json")
        if content is not None:
            self.write_json("job.json", {**content, "lineage": None})

    def write_job(self, lineage: str | None, *, flow: str, options: Mapping[str, Any]) -> None:
        """Make a run the present one, and store the options of its start.

        Args:
            lineage: None while no attempt of the job's first run has run.
        """
        content = {"name": self.name, "lineage": lineage, "flow": flow, "options": dict(options)}
        self.write_json("job.json", content)

    def write_status(self, status: Mapping[str, Any]) -> None:
        self.write_json("status.json", status)

    def add_event(self, at: datetime, kind: str, **facts: Any) -> None:
        event = {"format": FORMAT, "at": at.isoformat(), "event": kind, **facts}
        append_event(self.path, event)

    def find_json(self, name: str) -> dict[str, Any] | None:
        """Return one of the job's files, or None if it does not exist."""
        return read_json(self.path / name)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace one of the job's files atomically."""
        write_json(self.path / name, content)


def broken_file(file: Path, problem: Exception) -> HeadgateError:
    """Return the error for a file of a job that cannot be read."""
    return HeadgateError(
        "JOB_FILE_BROKEN",
        f"cannot read {file}: it is corrupted ({problem})",
        hint="restore it from a backup, or start empty with --fresh",
        domain=Domain.EXTERNAL,
    )


def unsupported_format(file: Path, version: object, known: str) -> HeadgateError:
    """Return the error for a file of a job whose format this release does not read."""
    return HeadgateError(
        "JOB_FORMAT_UNSUPPORTED",
        f"cannot read {file}: its format is {version!r}, and this release reads {known}",
        hint="use the release of headgate that wrote it, or a newer one",
    )


def read_json(file: Path, *, newest: int = FORMAT) -> dict[str, Any] | None:
    """Return a JSON file of Headgate, or None if it does not exist; other formats are refused.

    Args:
        newest: The newest format of such a file; older ones are read, too.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        version = content["format"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise broken_file(file, error) from error
    if version not in range(FORMAT, newest + 1):
        known = f"{FORMAT}" if newest == FORMAT else f"{FORMAT} to {newest}"
        raise unsupported_format(file, version, known)
    return dict(content)


def write_json(file: Path, content: Mapping[str, Any], *, sync: bool = False) -> None:
    """Replace a JSON file of Headgate by writing another one and renaming it.

    Args:
        content: With its `format`, unless that is the first one.
        sync: Wait until the disk has the content and the name, so that the file survives a power
            failure.
    """
    text = json.dumps({"format": FORMAT, **content}, indent=2) + "\n"
    replace_file(file, text, sync=sync)
