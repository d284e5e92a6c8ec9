"""Flows in memory: the real decoders, operators and encoders, batch by batch, with no query."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryQuery, MemoryRecord, MemoryState
from headgate.engine.plan.plan import plan_flow
from headgate.engine.settings import SparkSettings
from headgate.engine.user_code.functions import worker_spec

MIB = 1024 * 1024
SPARK = SparkSettings(parallelism=1, log_file=Path("unused"))


class MemoryFlow:
    """A flow whose batches are given and whose rows come back by the output's name."""

    def __init__(
        self,
        spark: SparkSession,
        flow: Flow,
        *,
        max_record: int = MIB,
        answers: Path | None = None,
    ) -> None:
        plan = plan_flow(flow.graph(), history={}, max_record=max_record, job=flow.name)
        self._names = [each.id for each in plan.destinations]
        worker = worker_spec(SPARK, None, answers=answers)
        self._tester = MemoryQuery(spark, {**plan.spec, "worker": worker})

    def batch(
        self,
        records: Iterable[MemoryRecord],
        *,
        seed: int = 0,
        watermark: int = 0,
        clock: int = 0,
        one_by_one: bool = False,
    ) -> dict[str, list[Any]]:
        """Run one batch; rows that are only counted are None."""
        made = self._tester.batch(
            records, seed=seed, watermark=watermark, clock=clock, one_by_one=one_by_one
        )
        return self._named(
            (address, None if value is None else json.loads(value)) for address, value in made
        )

    def records(self, records: Iterable[MemoryRecord]) -> dict[str, list[bytes]]:
        """Run one batch; rows come back as the bytes that are written."""
        return self._named(self._tester.batch(records))

    def _named(self, made: Iterable[tuple[int, Any]]) -> dict[str, list[Any]]:
        out: dict[str, list[Any]] = defaultdict(list)
        for address, value in made:
            out[self._names[address]].append(value)
        return out

    def restart(self) -> None:
        """Begin anew with what state holds, as a restored job does."""
        self._tester.restart()

    def times(self, source: str) -> dict[str, int]:
        """Return the greatest event time of each partition of a stream since the last call."""
        return self._tester.times(source)

    def state(self, place: int = 0) -> MemoryState:
        """Return what an operator holds, by its place among those that hold state."""
        return self._tester.state(place)

    def feed(self, source: str, *values: Any, seed: int = 0) -> dict[str, list[Any]]:
        """Run one batch of records of one source, placed one behind the other."""
        return self.batch(
            [
                MemoryRecord(source, as_bytes(value), sequence=place, offset=place)
                for place, value in enumerate(values)
            ],
            seed=seed,
        )


def keys_of_one_bucket(spark: SparkSession, many: int) -> list[int]:
    """Return numbers that are in one bucket as keys."""
    flow = Flow("found")
    table = flow.table("in", "k BIGINT NOT NULL", key="k")
    flow.stream("none", "k BIGINT").enrich("e", table, on="k", into="t").matched.to("out")
    memory = MemoryFlow(spark, flow)
    memory.feed("in", *({"k": number} for number in range(30_000)))
    buckets: dict[int, list[int]] = defaultdict(list)
    for entry in memory.state().held:
        buckets[entry.bucket].append(int(entry.key))
    return next(keys for keys in buckets.values() if len(keys) >= many)[:many]


def as_bytes(value: Any) -> bytes:
    """Return a record's bytes: those given, or the value as JSON."""
    if isinstance(value, bytes):
        return value
    return json.dumps(value, ensure_ascii=False).encode()


def decode_one(spark: SparkSession, schema: Any, record: bytes, **options: Any) -> Any:
    """Return what a record of a stream becomes: ("out", row) or ("dead-letters", letter)."""
    return decode_all(spark, schema, [record], **options)[0]


def decode_all(
    spark: SparkSession, schema: Any, records: Sequence[bytes], **options: Any
) -> list[tuple[str, Any]]:
    """Return what each record of a stream becomes, one after the other."""
    flow = MemoryFlow(spark, passing(schema), **options)
    made = []
    for record in records:
        rows = [(name, row) for name, rows in flow.feed("in", record).items() for row in rows]
        assert len(rows) == 1, f"{record!r} became {rows}"
        made += rows
    return made


def passing(schema: Any) -> Flow:
    """Return a flow that writes what it reads."""
    flow = Flow("passing")
    flow.stream("in", schema).to("out")
    return flow
