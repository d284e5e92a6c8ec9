"""How far a run has come, written down in its folder: `runs/LINEAGE/reached.json`.

A checkpoint that is behind it has lost files, and going on from there would write batches under
numbers that the outputs have already. The record may be behind the checkpoint by the batches whose
report was not taken yet. Where the checkpoint is on an object store, a copy lies beside it. It is
behind by the batches since the newest kept checkpoint; only an empty home reads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from headgate._codec import DecodeError, decode, encode
from headgate._locations import is_local
from headgate.checkpoints.sparklog import find_begun, read_query_id
from headgate.checkpoints.stores.notes import StoreNotes
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import FORMAT, JobFolder, read_json, write_json
from headgate.jobs.runs.lineage import Run

REACHED = "reached.json"


@dataclass(frozen=True, slots=True)
class Reached:
    """What a run has certainly reached.

    Attributes:
        query: Spark's id of the query, which is in the checkpoint's `metadata`.
        batch: The newest batch known to have begun; None before the first.
    """

    query: str
    batch: int | None


class ReachedNote:
    """Writes down how far a run has come; one supervisor at a time has it."""

    def __init__(self, home: JobFolder, run: Run) -> None:
        self._home = home
        self._run = run
        self._known: Reached | None = None

    def attempt_running(self) -> None:
        """Take note of the query that has started; its first batch has yet to begin."""
        before = find_reached(self._home, self._run.lineage)
        begun = find_begun(self._run.checkpoint)
        if before is not None and before.batch is not None:
            begun = max(before.batch, -1 if begun is None else begun)
        self._write(Reached(read_query_id(self._run.checkpoint), begun))
        self.publish()

    def batch_committed(self, batch: int) -> None:
        """Take note of a batch."""
        if self._known is not None:
            self._write(Reached(self._known.query, batch))

    def publish(self) -> None:
        """Write the copy beside a checkpoint on an object store; on any thread."""
        known = self._known
        if known is not None and not is_local(self._run.checkpoint):
            content = {"format": FORMAT, **encode(known)}
            notes = StoreNotes(self._run.checkpoint.parent)
            notes.write(REACHED, json.dumps(content).encode())

    def _write(self, reached: Reached) -> None:
        if reached == self._known:
            return
        write_json(_file(self._home, self._run.lineage), encode(reached))
        self._known = reached


def find_reached(home: JobFolder, lineage: str) -> Reached | None:
    """Return what a run has reached; None if it never ran, or with release 0.7 only.

    Raises:
        HeadgateError: JOB_FILE_BROKEN, JOB_FORMAT_UNSUPPORTED.
    """
    file = _file(home, lineage)
    try:
        content = read_json(file)
        return None if content is None else decode(Reached, content)
    except (DecodeError, HeadgateError) as error:
        if isinstance(error, HeadgateError) and error.code != "JOB_FILE_BROKEN":
            raise
        raise HeadgateError(
            "JOB_FILE_BROKEN",
            f"cannot read {file}: it is corrupted ({error})",
            hint=f"if the checkpoint beside it is valid: rm {file}",
            domain=Domain.EXTERNAL,
        ) from error


def _file(home: JobFolder, lineage: str) -> Path:
    return home.run_folder(lineage) / REACHED
