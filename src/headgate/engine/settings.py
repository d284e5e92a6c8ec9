"""What one attempt is told from outside."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from headgate._codec import Form, Seconds
from headgate.flow.schema import Schema

MIB = 1024 * 1024

# A schema as a flow's JSON has it.
SchemaForm = Annotated[Schema, Form(Schema.to_json, Schema.from_json)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """How Spark itself is run.

    Attributes:
        parallelism: State partitions and tasks of a stage; fixed for the life of a run.
        driver_memory: In bytes.
        executor_memory: In bytes; where the master starts executors of their own.
        state_memory: What RocksDB may take beside it, in bytes, for all state together.
        log_file: Where Spark's log goes.
        lock_file: Held by the JVM as long as it lives, so that no second one works beside it.
        log_level: How much Spark says in its log: error, warn, info or debug.
        verbose: Whether the log is shown on the terminal too.
    """

    parallelism: int
    master: str = "local[*]"
    driver_memory: int = 2048 * MIB
    executor_memory: int = 1024 * MIB
    state_memory: int = 512 * MIB
    log_file: Path
    lock_file: Path | None = None
    log_level: str = "info"
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class HeldState:
    """State that an operator takes over from an earlier query.

    Attributes:
        checkpoint: A checkpoint folder that Spark can read, which stays until the first commit.
        operator: The number Spark knew the operator by.
        batch: The batch after which the state is taken.
        variable: What the kernel calls the operator's state.
    """

    checkpoint: Path
    operator: int
    batch: int
    variable: str = "table"


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """State that an operator takes over from Parquet files, whoever wrote them.

    Attributes:
        folder: Holds nothing else, and stays until the first commit.
    """

    folder: Path


class Delivery(enum.StrEnum):
    """How often a row is in an output, as its readers see it, whatever was killed."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class OnDataLoss(enum.StrEnum):
    """What becomes of a job whose unread records are gone."""

    FAIL = "fail"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Fenced:
    """An earlier run, none of whose tasks may write any more.

    Attributes:
        tasks: How many it had at most.
    """

    lineage: str
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSettings:
    """How one query is run.

    Attributes:
        job: The job's name, for messages.
        lineage: What output files are named after; a run that is resumed keeps it.
        checkpoint: Spark's folder of this run.
        batch_every: The trigger's interval; zero is as fast as possible.
        min_pause: No batch begins sooner than this after the one before was written.
        max_batch: How many bytes of a topic one batch reads at most.
        max_record: The size above which a record is a dead letter.
        shown: Rows of each output and batch that are handed to the terminal.
        history: Every schema each table has had in this run, by source id.
        held: What operators begin with, by uid; only where nothing has been committed yet.
        starts: Where sources begin to be read that have no position yet, by source id: a
            position's JSON, or what `parse_start` reads.
        delivery: Where a log serves both.
        fenced: Runs whose open transactions are ended before this one writes.
        loaded: Tables that streams need not wait for, since their rows are taken over.
        watermark_ms: What event time goes on from where state is taken over; 0 for none.
        times: The event time each stream had reached there, in epoch milliseconds, by source id.
        partition_times: Likewise of each stream's partitions, by their names.
        unfinished_since_ms: When the batch was begun that is to be finished first; 0 for none.
            Brokers forget what they know of producers that are silent for long.
        placed_since: The first batch whose rows are given to tasks, and put in order there, by the
            present rules; earlier ones were begun by release 0.7, and are finished by its rules.
    """

    job: str
    lineage: str
    checkpoint: Path
    spark: SparkSettings
    batch_every: Seconds = timedelta(seconds=1)
    min_pause: Seconds = timedelta(0)
    max_batch: int = 64 * MIB
    max_record: int = MIB
    shown: int = 0
    until_caught_up: bool = False
    history: Mapping[str, tuple[SchemaForm, ...]] = field(default_factory=dict)
    held: Mapping[str, HeldState | HeldFiles] = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery = Delivery.EXACTLY_ONCE
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    fenced: tuple[Fenced, ...] = ()
    loaded: tuple[str, ...] = ()
    watermark_ms: int = 0
    times: Mapping[str, int] = field(default_factory=dict)
    partition_times: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unfinished_since_ms: int = 0
    placed_since: int = 0
