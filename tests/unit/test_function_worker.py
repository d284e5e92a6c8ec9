"""Calls that a worker serves: what they leave in memory, and what they answer."""

from __future__ import annotations

import gc
import io
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pytest

from headgate import Context, KeyedProcess
from headgate.functions import worker
from headgate.functions.calls import get_call
from headgate.functions.stored import Callback
from headgate.testing import Harness

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    gc.collect()
    yield
    gc.collect()


class Node:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.itself = self


def serve(function: Any, rows: int, calls: int) -> Iterator[None]:
    """Serve calls as a worker does, and yield after each."""
    body = pa.RecordBatch.from_pydict({"id": range(rows)}, schema=ROWS).serialize().to_pybytes()
    message = struct.pack(">iii", 7, rows, len(body)) + body
    callback = Callback(function)
    call = get_call(
        "FILTER", callback, name="filter 'f'", given=ROWS, returned=None, dead_letters=False
    )
    stream = io.BufferedRWPair(io.BytesIO(message * calls), io.BytesIO())
    for _ in range(calls):
        assert worker._serve(cast("BinaryIO", stream), {7: (call, ROWS)})
        # Python collects when something is allocated.
        _ = [[] for _ in range(10)]
        yield
    assert not worker._serve(cast("BinaryIO", stream), {})


class Counting:
    """A filter that leaves a cycle for each row, and counts those that are alive."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[Node] = weakref.WeakSet()
        self.most = 0

    def __call__(self, row: Any) -> bool:
        self.alive.add(Node())
        self.most = max(self.most, len(self.alive))
        return row is not None


def test_cycles_of_short_calls_are_collected_between_them() -> None:
    count = Counting()
    for _ in serve(count, rows=150, calls=20):
        pass
    assert 0 < count.most < 1_000


def test_cycles_of_a_long_call_are_collected_within_it() -> None:
    threshold = gc.get_threshold()
    count = Counting()
    for _ in serve(count, rows=50_000, calls=1):
        assert gc.get_threshold() == threshold
    assert 1_000 < count.most < 12_000


def test_a_collector_that_is_off_stays_off() -> None:
    threshold = gc.get_threshold()
    gc.set_threshold(0)
    try:
        seen: list[int] = []

        def see(_: Any) -> bool:
            seen.append(gc.get_threshold()[0])
            return True

        for _ in serve(see, rows=1, calls=2):
            assert gc.get_threshold()[0] == 0
        assert seen == [0, 0]
    finally:
        gc.set_threshold(*threshold)


@dataclass
class Row:
    id: int
    name: str


class Other(Row):
    """Not a dataclass of its own, but a row as well."""


class Mixed(KeyedProcess[Any, Row]):
    def on_event(self, event: Any, ctx: Context[Row]) -> None:
        rows: dict[str, Any] = {
            "row": Row(1, "a"),
            "dict": {"id": 2, "name": "b"},
            "other": Other(3, "c"),
            "slow": Row(4, "ü"),
            "wrong": Row("5", "d"),  # type: ignore[arg-type]
            "missing": {"id": 6},
        }
        ctx.emit(rows[event.kind])


def test_a_process_emits_rows_of_any_class_in_any_order() -> None:
    harness = Harness(Mixed(), on_error="dead-letter")
    kinds = ["dict", "row", "row", "other", "slow", "wrong", "missing", "row", "dict", "dict"]
    for kind in kinds:
        harness.send({"kind": kind}, key="k")
    assert [row.id for row in harness.out] == [2, 1, 1, 3, 4, 1, 2, 2]
    assert [letter.event.kind for letter in harness.dead_letters] == ["wrong", "missing"]
