"""The kernel's writers to Pulsar, driven as its sink drives them: task by task, epoch by epoch."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulsar_broker import PulsarBroker
from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel

JOB = "shop"
_OUTPUT = 3


@dataclass(frozen=True, slots=True)
class Row:
    """An encoded row on its way to an output.

    Attributes:
        output: Which of the sink's topics it goes to.
        sequence: With `lane`, tells rows of one place apart.
    """

    value: bytes
    key: bytes | None = None
    offset: int = 0
    partition: int = 0
    output: int = 0
    sequence: int = 0
    lane: int = 0

    def envelope(self) -> bytes:
        """Return the row as operators hand it to the sink."""
        parts = [self.value] if self.key is None else [self.value, self.key]
        head = struct.pack("<BBHHBBq", 1, _OUTPUT, self.output, 0, len(parts), 0, 0)
        place = struct.pack("<iiqqq", self.partition, self.lane, self.offset, 0, self.sequence)
        lengths = struct.pack("<ii", len(self.value), len(self.key or b""))
        return head + place + lengths + b"".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """One query that writes to topics of a broker; a second one of the same lineage is its restart.

    Attributes:
        topics: Their names, in the order in which rows name them.
        options: Those of the client.
        unfinished_since: When the batch was begun that may be half written, in epoch milliseconds.
        placed_since: The first epoch whose rows are numbered in the present order.
        fenced: Earlier lineages, with their numbers of tasks.
        over: Those of them of which no process can be left.
    """

    spark: SparkSession
    broker: PulsarBroker
    topics: Sequence[str]
    lineage: str
    delivery: str = "exactly-once"
    options: Mapping[str, str] = field(default_factory=dict)
    unfinished_since: int = 0
    placed_since: int = 0
    fenced: Sequence[tuple[str, int]] = ()
    over: Sequence[str] = ()

    def write(self, rows: Sequence[Row], *, epoch: int = 0, task: int = 0, tasks: int = 1) -> None:
        """Write a task's rows of one epoch in a process that ends behind it."""
        run = self.start()
        try:
            run.write(rows, epoch=epoch, task=task, tasks=tasks)
        finally:
            run.end()

    def start(self) -> Running:
        """Make the cluster ready, and return what writes to it."""
        core, java = kernel(self.spark), self.spark._jvm.java.util  # type: ignore[union-attr]
        sources, fenced, topics = java.ArrayList(), java.ArrayList(), java.HashMap()
        sources.add("orders")
        for lineage, tasks in self.fenced:
            fenced.add(core.sink.LogSpec.Fenced(lineage, tasks, lineage in self.over, -1))
        for output, topic in enumerate(self.topics):
            topics.put(output, f"persistent://public/default/{topic}")
        client = {"service": self.broker.service, "admin": self.broker.admin}
        query = core.sink.LogSpec.Query(
            uuid.uuid4().hex,
            JOB,
            self.lineage,
            1,
            sources,
            fenced,
            core.plan.Placement(self.placed_since),
            self.unfinished_since,
        )
        text = json.dumps({**client, "options": dict(self.options), "config": None})
        writers = core.pulsar.PulsarWriters(
            core.sink.LogSpec(query, 0, text, self.delivery, topics, java.HashMap())
        )
        writers.prepare(java.ArrayList())
        return Running(writers)


@dataclass(frozen=True, slots=True)
class Running:
    """A query that has begun."""

    writers: Any

    def write(self, rows: Sequence[Row], *, epoch: int, task: int = 0, tasks: int = 1) -> None:
        """Write a task's rows of one epoch; one that fails is given up, as Spark does it."""
        writer = self.open(rows, epoch=epoch, task=task, tasks=tasks)
        try:
            writer.commit()
        finally:
            writer.abort()

    def open(self, rows: Sequence[Row], *, epoch: int, task: int = 0, tasks: int = 1) -> Any:
        """Return a writer that has a task's rows and has not committed them."""
        writer = self.writers.open(task, tasks, epoch)
        for row in rows:
            writer.write(row.output, row.envelope())
        return writer

    def end(self) -> None:
        """Let go of what is kept from epoch to epoch."""
        self.writers.close()
