"""Flows in memory: the operators of a job, batch by batch, without a query and without topics."""

from __future__ import annotations

import atexit
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate._kernel.memory_query import MemoryQuery, MemoryRecord
from headgate._kernel.translate import naming_failures
from headgate._units import to_millis
from headgate.engine.memory.records import in_plain_formats, read_record, write_record
from headgate.engine.plan.flow_plan import FlowPlan
from headgate.engine.plan.plan import plan_flow
from headgate.engine.session.session import open_session
from headgate.engine.settings import MIB, AttemptSettings, SparkSettings
from headgate.engine.user_code.functions import worker_spec
from headgate.errors import HeadgateError
from headgate.flow.formats.plain import JSON
from headgate.flow.graph.graph import Graph
from headgate.flow.names import did_you_mean
from headgate.flow.operators.nodes import Output, Source, SourceKind, label

# The end of event time: every window is closed.
_END_MS = 253_402_300_799_999
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Pace:
    """How a flow in memory is run.

    Attributes:
        batches: The number of batches in which streams are read.
        now: The clock of the first batch.
        every: How far the clock moves from one batch to the next.
        idle: How far it moves on behind the last record.
        crashes: The batches, from 1 on, that are lost and run again.
    """

    batches: int
    now: datetime
    every: timedelta = timedelta(0)
    idle: timedelta = timedelta(0)
    crashes: frozenset[int] = frozenset()


def run_in_memory(
    graph: Graph, inputs: Mapping[str, Iterable[Any]], pace: Pace
) -> dict[str, list[Any]]:
    """Return the rows of each output, by name, and the dead letters.

    Tables are read first, in one batch. Then the records of each stream are read in their order, in
    so many batches. Then the clock moves on, and timers fire. At the end event time ends, and every
    window is closed. Avro is replaced by JSON, so no registry is asked.

    Args:
        graph: A flow; its topics are neither read nor written.
        inputs: The records of its sources, by name: dicts, dataclasses, or records of the source's
            format as text or bytes.
    """
    _check_inputs(graph, inputs)
    graph = in_plain_formats(graph)
    plan = plan_flow(graph, history={}, max_record=_max_record(), job=graph.name, in_memory=True)
    with _LOCK:
        spark, settings = _session()
        answers = tempfile.TemporaryDirectory(prefix="headgate-answers-")
        with answers, naming_failures(f"cannot run flow {graph.name!r}"):
            worker = worker_spec(settings, None, answers=Path(answers.name))
            query = MemoryQuery(spark, {**plan.spec, "worker": worker})
            return _Run(plan, query, pace).run(inputs)


class _Run:
    def __init__(self, plan: FlowPlan, query: MemoryQuery, pace: Pace) -> None:
        self._plan = plan
        self._query = query
        self._pace = pace
        self._clock = round(pace.now.timestamp() * 1000)
        self._watermark = 0
        self._times: dict[str, int] = {}
        self._formats = {node.id: node.format for node in plan.graph.outputs()}
        self._rows: dict[str, list[Any]] = {
            exit_.id: [] for exit_ in plan.destinations if exit_.topic is not None
        }

    def run(self, inputs: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
        pace = self._pace
        sources = [node for node in self._plan.graph.nodes if isinstance(node, Source)]
        records = {node.id: _records(node, inputs.get(node.id, ())) for node in sources}
        tables = [node.id for node in sources if node.kind is SourceKind.TABLE]
        self._batch([record for name in tables for record in records[name]])
        streams = [records[node.id] for node in sources if node.kind is SourceKind.STREAM]
        for number in range(pace.batches):
            if number:
                self._clock += to_millis(pace.every)
            batch = [one for stream in streams for one in _part(stream, number, pace.batches)]
            if number + 1 in pace.crashes:
                self._lose(batch)
            self._batch(batch)
        self._idle()
        self._watermark = _END_MS
        self._batch([])
        return self._rows

    def _idle(self) -> None:
        """Move the clock on, with a batch for each moment at which a timer is due."""
        end = self._clock + to_millis(self._pace.idle)
        while self._clock < end:
            alarm = self._query.next_alarm()
            due = end if alarm is None else max(alarm, self._clock + 1)
            self._clock = min(due, end)
            self._batch([])

    def _lose(self, records: Sequence[MemoryRecord]) -> None:
        """Run a batch and lose what it did, as a job does that is killed before the commit."""
        self._query.save()
        self._query.batch(records, watermark=self._watermark, clock=self._clock)
        self._query.crash()

    def _batch(self, records: Sequence[MemoryRecord]) -> None:
        made = self._query.batch(records, watermark=self._watermark, clock=self._clock)
        for address, record in made:
            exit_ = self._plan.destinations[address]
            if record is not None:
                form = self._formats.get(exit_.id, JSON)
                self._rows[exit_.id].append(read_record(form, record))
        self._advance()

    def _advance(self) -> None:
        """Move the watermark to the slowest of the streams that have had records."""
        for stream in self._plan.timed:
            for time in self._query.times(stream.id).values():
                late = to_millis(stream.out_of_orderness or timedelta(0))
                self._times[stream.id] = max(self._times.get(stream.id, 0), time - late)
        if self._times:
            self._watermark = max(self._watermark, min(self._times.values()))


def _records(node: Source, values: Iterable[Any]) -> list[MemoryRecord]:
    return [
        MemoryRecord(node.id, write_record(node, value), sequence=place, offset=place)
        for place, value in enumerate(values)
    ]


def _part(records: Sequence[MemoryRecord], number: int, batches: int) -> Sequence[MemoryRecord]:
    size = -(-len(records) // batches)
    return records[number * size : (number + 1) * size]


def _check_inputs(graph: Graph, inputs: Mapping[str, Iterable[Any]]) -> None:
    names = [node.id for node in graph.nodes if isinstance(node, Source)]
    what = f"cannot run flow {graph.name!r} in memory"
    for name in inputs:
        if name not in names:
            raise HeadgateError(
                "INPUT_UNKNOWN",
                f"{what}: it has no source {name!r}",
                hint=did_you_mean(name, names),
            )
    for node in graph.nodes:
        if not isinstance(node, Source | Output) and node.operator == "transform":
            raise HeadgateError(
                "MEMORY_UNSUPPORTED",
                f"{what}: {label(node)} takes a DataFrame, which only a job has",
                hint="use map or map_batches, or run it as a job with --until-caught-up",
            )


def _max_record() -> int:
    default = AttemptSettings.__dataclass_fields__["max_record"].default
    assert isinstance(default, int)
    return default


@cache
def _session() -> tuple[SparkSession, SparkSettings]:
    """Return the session of this process; it lives as long as the process."""
    folder = tempfile.TemporaryDirectory(prefix="headgate-memory-")
    settings = SparkSettings(
        parallelism=1,
        master="local[1]",
        driver_memory=1024 * MIB,
        log_file=Path(folder.name) / "spark.log",
        log_level="warn",
    )
    spark = open_session(settings)

    def end() -> None:
        spark.stop()
        folder.cleanup()

    atexit.register(end)
    return spark, settings


NOW = datetime(2026, 1, 1, tzinfo=UTC)
