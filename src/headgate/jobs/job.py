"""A job as values: what was asked for, what it is doing, and who is told."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate.connectors.logs import DEFAULT_LOG
from headgate.engine.settings import MIB
from headgate.jobs.home import DEFAULT_HOME
from headgate.jobs.totals import Totals


class JobState(enum.StrEnum):
    """What a job is doing."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FINISHED = "FINISHED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asks for.

    Attributes:
        on: The log of topics that are known by name alone.
        home: Where jobs live.
        parallelism: State partitions; by default as many as there are cores, and what a run that
            is resumed has.
        checkpoints: A folder for the checkpoints of new runs, in place of the job's own.
        fresh: Start empty, in a new lineage; the old run stays as it is.
        print_rows: Rows of each output and batch that are shown.
    """

    on: str = DEFAULT_LOG
    home: Path = DEFAULT_HOME
    until_caught_up: bool = False
    parallelism: int | None = None
    batch_every: timedelta = timedelta(seconds=1)
    max_batch: int = 64 * MIB
    max_record: int = MIB
    driver_memory: int = 2048 * MIB
    checkpoints: Path | None = None
    fresh: bool = False
    print_rows: int = 0
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """What a job is and has done, at one moment.

    Attributes:
        resumed_from: The checkpoint this start went on from; None if it started empty.
        loading: Whether streams wait for tables to be read.
    """

    job: str
    state: JobState
    lineage: str
    resumed_from: int | None
    loading: bool
    elapsed: timedelta
    totals: Totals
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot as JSON values."""
        return {
            "job": self.job,
            "state": self.state.value,
            "lineage": self.lineage,
            "resumed_from": None if self.resumed_from is None else f"chk-{self.resumed_from}",
            "loading_tables": self.loading,
            "elapsed_s": round(self.elapsed.total_seconds(), 3),
            "folder": str(self.folder),
            **self.totals.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Watcher:
    """Is told what happens, on the thread that runs the job."""

    on_snapshot: Callable[[JobSnapshot], None] = lambda _: None
    on_row: Callable[[str, str], None] = lambda _output, _row: None
