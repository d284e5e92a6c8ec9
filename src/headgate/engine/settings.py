"""The settings of one attempt."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from headgate._codec import Form, Seconds
from headgate._locations import Location
from headgate.flow.operators.nodes import (
    CoProcess,
    Dedupe,
    Enrich,
    Join,
    Label,
    Node,
    Process,
    Window,
)
from headgate.flow.schemas.schema import Schema

MIB = 1024 * 1024
# The rows of a broadcast; each task has a copy.
RULES = "rules"
_STATE_VARIABLES = {
    Enrich.operator: "table",
    Window.operator: "windows",
    Dedupe.operator: "seen",
    Join.operator: "rows",
    Label.operator: RULES,
    Process.operator: "state",
    CoProcess.operator: "state",
}
# The kernel numbers the variables of an operator in this order, its state first.
_OTHER_VARIABLES = {
    Join.operator: ("due",),
    Process.operator: ("timers", "alarms", "expiries"),
    CoProcess.operator: ("timers", "alarms", "expiries"),
}

# A schema as a flow's JSON has it.
SchemaForm = Annotated[Schema, Form(Schema.to_json, Schema.from_json)]


class LogFormat(enum.StrEnum):
    """The form of a line of Spark's log."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The settings of Spark itself.

    Attributes:
        parallelism: State partitions and tasks per stage; fixed for the life of a run.
        driver_memory: In bytes.
        executors: The number of executors of a cluster; None for as many as it gives.
        executor_cores: The number of tasks that an executor runs at a time; None for 1 if the
            number of executors is set, else for all cores of a worker.
        executor_memory: In bytes; on a cluster.
        executor_wait: The maximum time without any executor on a cluster.
        executor_timeout: The time after which an executor that reports nothing is lost.
        driver_host: The driver's address for executors; None for the one that reaches the master.
        driver_bind: The address at which the driver listens; None for `driver_host`.
        python: The Python of executors, by its path there; None for this one.
        py_env: An archive with the Python environment of executors, or None.
        state_memory: The memory of RocksDB beside the heap of a process with tasks, in bytes.
        worker_memory: The memory of each process that calls Python functions, in bytes.
        metaspace: The limit of classes in each JVM, in bytes; None for no limit.
        code_cache: The limit of compiled code in each JVM, in bytes.
        direct_memory: The limit of buffers beside the heap of each JVM, in bytes; None for as much
            as the heap.
        off_heap_memory: The memory beside the heap of each JVM in which Spark sorts rows, in bytes;
            None to sort in the heap.
        executor_overhead: The memory of an executor's container beside its heap, in bytes; None for
            Spark's default and the state.
        call_timeout: The maximum time of one call of a Python function with a batch of rows.
        log_file: The file of Spark's log.
        lock_file: Held by the JVM until it exits, so that no second driver runs beside it.
        log_level: The level of Spark's log: error, warn, info or debug.
        log_format: The form of its lines.
        job: The job's name, for lines in JSON.
        attempt: Likewise the number of the attempt.
        verbose: True to show the log on the terminal too.
    """

    parallelism: int
    master: str = "local[*]"
    driver_memory: int = 2048 * MIB
    executors: int | None = None
    executor_cores: int | None = None
    executor_memory: int = 1024 * MIB
    executor_wait: Seconds = timedelta(minutes=2)
    executor_timeout: Seconds = timedelta(seconds=40)
    driver_host: str | None = None
    driver_bind: str | None = None
    python: str | None = None
    py_env: Path | None = None
    state_memory: int = 512 * MIB
    worker_memory: int = 1024 * MIB
    metaspace: int | None = None
    code_cache: int = 512 * MIB
    direct_memory: int | None = None
    off_heap_memory: int | None = None
    executor_overhead: int | None = None
    call_timeout: Seconds = timedelta(minutes=10)
    log_file: Path
    lock_file: Path | None = None
    log_level: str = "info"
    log_format: LogFormat = LogFormat.TEXT
    job: str = ""
    attempt: int = 0
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class HeldState:
    """State that an operator takes over from an earlier query.

    Attributes:
        checkpoint: A checkpoint folder that Spark can read; kept until the first commit.
        operator: Spark's number of the operator.
        batch: The batch after which the state is read.
        variable: The kernel's name of the operator's state.
        others: The names of what it keeps beside that; mostly none.
    """

    checkpoint: Location
    operator: int
    batch: int
    variable: str = "table"
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """State that an operator takes over from Parquet files of any tool.

    Attributes:
        folder: Contains nothing else; kept until the first commit.
    """

    folder: Location


def state_variable(node: Node) -> str:
    """Return the kernel's name of an operator's state."""
    return _STATE_VARIABLES[node.operator]


def state_variables(node: Node) -> tuple[str, ...]:
    """Return the kernel's names of all that an operator keeps, its state first."""
    rules = (RULES,) if isinstance(node, Process) and node.table is not None else ()
    return (state_variable(node), *_OTHER_VARIABLES.get(node.operator, ()), *rules)


def held_state(node: Node, checkpoint: Location, operator: int, batch: int) -> HeldState:
    """Return the state that an operator had after a batch; `operator` is Spark's number of it."""
    variable, *others = state_variables(node)
    return HeldState(checkpoint, operator, batch, variable, tuple(others))


class Delivery(enum.StrEnum):
    """The delivery guarantee of the outputs, as their readers see it after any crash."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class OnDataLoss(enum.StrEnum):
    """What to do when unread records have been deleted."""

    FAIL = "fail"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Fenced:
    """An earlier run whose tasks must not write any more.

    Attributes:
        tasks: Its maximum number of tasks.
        is_over: True if none of its tasks is alive while this driver holds its lock.
        last: The last of its batches whose rows belong to the job's output; -1 for none.
    """

    lineage: str
    tasks: int
    is_over: bool = False
    last: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSettings:
    """The settings of one query.

    Attributes:
        job: The job's name, for messages.
        lineage: The part of output file names that identifies the run; a resumed run keeps it.
        checkpoint: Spark's checkpoint folder of this run, on a disk or an object store.
        lease: Where the drivers of the job claim the checkpoint, if it is on an object store; None
            for a checkpoint on disk, which the lock file keeps.
        lease_expires: The time after which the lease of a driver that no longer renews it ends.
        batch_every: The interval of the trigger; zero for as fast as possible.
        min_pause: The minimum time between the end of a batch and the next one.
        max_batch: The maximum number of bytes per topic and batch.
        max_record: The size above which a record is a dead letter.
        shown: The number of rows per output and batch that are printed on the terminal.
        until_caught_up: End the query after reading all records that existed at its start.
        drain: End it likewise, and close every window first.
        drain_begun: Whether an earlier attempt of the run has ended event time by its drain.
        check_determinism: Call every Python function twice, and fail if the results differ.
        history: Every schema that each table has had in this run, by source id.
        held: The initial state of operators, by uid; only before the first commit.
        starts: The starts of sources without a stored position, by source id: the JSON of a
            position, or a start in the topic's syntax.
        kept: What sources kept in the checkpoint that their positions are from, by source id: a
            folder or an address.
        delivery: For logs that support both guarantees.
        fenced: Runs whose open transactions are aborted before this one writes.
        loaded: Tables that streams do not wait for, since their rows are taken over.
        watermark_ms: The initial watermark if state is taken over; 0 for none.
        times: The event time of each stream at that position, in epoch milliseconds, by source id.
        partition_times: The same for each stream's partitions, by name.
        unfinished_since_ms: When the batch that must be finished first was begun; 0 for none.
            Brokers forget producers that are idle for long.
        placed_since: The first batch whose rows are distributed and ordered by the current rules;
            earlier ones were begun by release 0.7, and finish by its rules.
    """

    job: str
    lineage: str
    checkpoint: Location
    spark: SparkSettings
    lease: Location | None = None
    lease_expires: Seconds = timedelta(seconds=30)
    batch_every: Seconds = timedelta(seconds=1)
    min_pause: Seconds = timedelta(0)
    max_batch: int = 64 * MIB
    max_record: int = MIB
    shown: int = 0
    until_caught_up: bool = False
    check_determinism: bool = False
    drain: bool = False
    drain_begun: bool = False
    history: Mapping[str, tuple[SchemaForm, ...]] = field(default_factory=dict)
    held: Mapping[str, HeldState | HeldFiles] = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery = Delivery.EXACTLY_ONCE
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    fenced: tuple[Fenced, ...] = ()
    loaded: tuple[str, ...] = ()
    watermark_ms: int = 0
    times: Mapping[str, int] = field(default_factory=dict)
    partition_times: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unfinished_since_ms: int = 0
    placed_since: int = 0
