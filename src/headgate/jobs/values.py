"""A job as values: its options, its progress, and callbacks."""

from __future__ import annotations

import enum
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from headgate._codec import Form, RoundedSeconds, Seconds, alias, left_out_while, shaped
from headgate._locations import Location
from headgate.engine.settings import Delivery, LogFormat, OnDataLoss
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.setting_table import DEFAULTS, OnCancel
from headgate.jobs.totals import Totals

DEFAULT_HOME = Path(".headgate")
# As a checkpoint to restore: where the job is now.
LATEST = "latest"


class OpenBatch(enum.StrEnum):
    """What to do with a batch that was begun and cannot be finished."""

    REPEAT = "repeat"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The user's consent, for one start only.

    Attributes:
        open_batch: Whether to repeat an open batch in a new run, or to skip it.
        allow_repeats: Whether a start may fall back to an older checkpoint, so that rows written
            since then are written again.
    """

    open_batch: OpenBatch | None = field(default=None, metadata=left_out_while(None))
    allow_repeats: bool = field(default=False, metadata=left_out_while(False))


NO_CONSENT = Consent()

# The batch of a checkpoint is written as the checkpoint's id.
_CheckpointNumber = Annotated[
    int, Form(lambda number: f"chk-{number}", lambda text: int(text.removeprefix("chk-")))
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run. `setting_table` describes the fields that are settings.

    Attributes:
        home: The folder of the jobs.
        until_caught_up: End once all records that existed at the start have been read.
        drain: End likewise, and close every window first.
        parallelism: State partitions; by default those of the resumed run, or one per core.
        fresh: Start empty, in a new lineage; the old run stays as it is.
        print_rows: The number of rows of each output and batch that are shown.
        restart: The restart strategy, as `parse_strategy` reads it.
        delete_on_cancel: Whether a cancel deletes the job's checkpoints.
        restore_from: Restore this checkpoint in a new run; as `find_target` reads it.
        restore_at: Likewise, by the moment at which it was completed.
        drop_state: Uids of operators that a restore starts without their state.
        strict: Stop if the newest checkpoint is corrupted, instead of falling back.
        check_determinism: Call every Python function twice, and fail if the results differ.
        start: Start positions of sources without a position; as `parse_starts` reads them.
        settings: The value and the origin of each setting, by its name in headgate.toml.
    """

    on: str = DEFAULTS["on"]
    home: Path = DEFAULT_HOME
    until_caught_up: bool = False
    drain: bool = False
    parallelism: int | None = DEFAULTS["parallelism"]
    batch_every: Seconds = DEFAULTS["batch-every"]
    max_batch: int = DEFAULTS["max-batch"]
    max_record: int = DEFAULTS["max-record"]
    driver_memory: int = DEFAULTS["driver-memory"]
    checkpoints: Location | None = DEFAULTS["checkpoints"]
    lease_expires: Seconds = DEFAULTS["lease-expires"]
    fresh: bool = False
    print_rows: int = 0
    verbose: bool = False
    restart: str = str(DEFAULTS["restart"])
    checkpoint_every: Seconds = DEFAULTS["checkpoint-every"]
    min_pause: Seconds = DEFAULTS["min-pause"]
    retain: int = DEFAULTS["retain"]
    retain_for: Seconds | None = DEFAULTS["retain-for"]
    delete_on_cancel: bool = DEFAULTS["on-cancel"] is OnCancel.DELETE
    strict: bool = False
    check_determinism: bool = False
    restore_from: str | None = None
    restore_at: str | None = None
    drop_state: tuple[str, ...] = ()
    consent: Consent = NO_CONSENT
    master: str = DEFAULTS["master"]
    executors: int | None = DEFAULTS["executors"]
    executor_cores: int | None = DEFAULTS["executor-cores"]
    executor_memory: int = DEFAULTS["executor-memory"]
    executor_wait: Seconds = DEFAULTS["executor-wait"]
    executor_timeout: Seconds = DEFAULTS["executor-timeout"]
    driver_host: str | None = DEFAULTS["driver-host"]
    driver_bind: str | None = DEFAULTS["driver-bind"]
    python: str | None = DEFAULTS["python"]
    py_env: Path | None = DEFAULTS["py-env"]
    state_memory: int = DEFAULTS["state-memory"]
    worker_memory: int = DEFAULTS["worker-memory"]
    metaspace: int | None = DEFAULTS["metaspace"]
    code_cache: int = DEFAULTS["code-cache"]
    direct_memory: int | None = DEFAULTS["direct-memory"]
    off_heap_memory: int | None = DEFAULTS["off-heap-memory"]
    executor_overhead: int | None = DEFAULTS["executor-overhead"]
    call_timeout: Seconds = DEFAULTS["call-timeout"]
    log_level: str = DEFAULTS["log-level"]
    log_format: LogFormat = DEFAULTS["log-format"]
    delivery: Delivery = DEFAULTS["delivery"]
    on_data_loss: OnDataLoss = DEFAULTS["on-data-loss"]
    start: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def for_later_start(self) -> RunOptions:
        """Return the options without those that are for this start alone."""
        return replace(
            self,
            fresh=False,
            restore_from=None,
            restore_at=None,
            drop_state=(),
            consent=NO_CONSENT,
        )

    def with_end(self, *, until_caught_up: bool) -> RunOptions:
        return replace(self, until_caught_up=until_caught_up)


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """The state and the counts of a job at one moment.

    Attributes:
        resumed_from: The checkpoint from which this start resumed; None if it started empty.
        loading: Whether streams wait until the tables have been read.
        attempt: Counts from 1 with each start of the job.
        reason: Why the last attempt, or the job, ended; empty if neither has.
        checkpoint: The newest kept checkpoint.
        notice: A message on this start, such as a corrupted checkpoint.
        names: The names that the flow gives its operators, by uid.
    """

    job: str
    state: JobState
    lineage: str
    resumed_from: _CheckpointNumber | None
    loading: bool = field(metadata=alias("loading_tables"))
    elapsed: RoundedSeconds = field(metadata=alias("elapsed_s"))
    totals: Totals
    folder: Path
    attempt: int = 1
    reason: str = ""
    checkpoint: str | None = None
    notice: str = ""
    names: Mapping[str, str] = field(default_factory=dict, metadata=left_out_while({}))

    __get_pydantic_core_schema__ = shaped(flatten="totals")


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks on the thread that runs the job.

    Attributes:
        on_notice: Called with a message that no state shows, such as lost records of a topic.
        on_stderr_row: Called with rows for standard error; by default `on_row` is.
    """

    on_snapshot: Callable[[JobSnapshot], None] = lambda _: None
    on_notice: Callable[[str], None] = lambda _: None
    on_row: Callable[[str, str], None] = lambda _output, _row: None
    on_stderr_row: Callable[[str, str], None] | None = None

    def split(self, stderr: Container[str]) -> Watcher:
        """Return the same watcher, whose `on_row` passes the rows of some outputs to stderr."""
        on_row, on_stderr_row = self.on_row, self.on_stderr_row
        if on_stderr_row is None:
            return self

        def take(output: str, row: str) -> None:
            (on_stderr_row if output in stderr else on_row)(output, row)

        return replace(self, on_row=take)
