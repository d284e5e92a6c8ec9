"""Calls that a worker serves: what they leave in memory, and what they answer."""

from __future__ import annotations

import gc
import io
import json
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pytest

from headgate import Context, KeyedProcess, ListOf, Value
from headgate.functions import worker
from headgate.functions.calling import messages
from headgate.functions.calling.calls import get_call
from headgate.functions.declared import describe_process
from headgate.functions.processes.calls import ProcessCalls
from headgate.functions.processes.memory import MemoryKernel, Work, shape_of
from headgate.functions.python_types import python_type
from headgate.functions.stored import Callback, ProcessCallback, RowType, stored_states
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


def answer_of(call: worker.Served, body: bytes) -> tuple[int, Any]:
    """Return the state of the answer to a call, and its words."""
    out = io.BytesIO()
    message = io.BytesIO(struct.pack(">iii", 7, 0, len(body)) + body)
    stream = io.BufferedRWPair(message, out)
    assert worker._serve(cast("BinaryIO", stream), {7: call})
    state, _, _, text, _ = struct.unpack(">iiiii", out.getvalue()[:20])
    return state, json.loads(out.getvalue()[20 : 20 + text] or "[]")


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
        assert worker._serve(
            cast("BinaryIO", stream), {7: worker.Served("filter 'f'", (call, ROWS))}
        )
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


class Large(KeyedProcess[Any, Row]):
    """Emits and keeps as much as an event asks for."""

    text: Value[str]
    texts: ListOf[str]

    def on_event(self, event: Any, ctx: Context[Row]) -> None:
        large = "x" * 5_000
        if event.kind == "rows":
            for number in range(20):
                ctx.emit(Row(number, large))
        if event.kind == "value":
            self.text.set(large * 20)
        if event.kind == "list":
            self.texts.extend([large] * 20)


KINDS = pa.schema([("kind", pa.string())])


def served_process(process: KeyedProcess[Any, Any]) -> tuple[worker.Served, MemoryKernel]:
    states = stored_states(describe_process(process).states)
    shape = shape_of(
        states,
        given=KINDS,
        keys=pa.schema([("key", pa.string())]),
        outputs=[("out", python_type(Row))],
        has_timers=False,
    )
    name = "process 'large'"
    calls = ProcessCalls(
        ProcessCallback(process, RowType(), states), shape, name=name, uid="p", dead_letters=False
    )
    return worker.Served(name, calls), MemoryKernel(calls, shape)


@pytest.mark.parametrize("kind", ["rows", "value", "list", "nothing"])
def test_an_answer_that_fits_into_no_message_has_a_code(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, kernel = served_process(Large())
    work = [Work(b"k", ("k",), [(kind,)])]
    body = kernel.body(work, now=1, watermark=0, batch=1, phase=0)
    assert answer_of(served, body) == (0, [])
    monkeypatch.setattr(messages, "LARGEST", 90_000)
    state, words = answer_of(served, body)
    if kind == "nothing":
        assert state == 0
    else:
        assert state == 1
        assert words["code"] == "FUNCTION_MESSAGE_TOO_LARGE"
        assert words["message"].startswith("process 'large': its answer needs 10")


def test_results_that_fit_into_no_message_have_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.schema([("id", pa.int64()), ("name", pa.string())])
    call = get_call(
        "MAP",
        Callback(lambda row: {"id": row.id, "name": "x" * 5_000}),
        name="map 'm'",
        given=ROWS,
        returned=rows,
        # A row alone is not at fault: it must not become a dead letter.
        dead_letters=True,
    )
    served = worker.Served("map 'm'", (call, ROWS))
    body = pa.RecordBatch.from_pydict({"id": range(20)}, schema=ROWS).serialize().to_pybytes()
    assert answer_of(served, body) == (0, [])
    monkeypatch.setattr(messages, "LARGEST", 90_000)
    state, words = answer_of(served, body)
    assert (state, words["code"]) == (1, "FUNCTION_MESSAGE_TOO_LARGE")
    assert words["message"].startswith("map 'm': its answer needs 10")


@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string())])
def test_values_that_fit_into_no_array_have_a_code(
    kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow cuts long strings into several arrays, and refuses long lists of them."""
    plain = pa.array

    def limited(values: Any, type: pa.DataType) -> Any:  # noqa: A002 - as Arrow names it
        if pa.types.is_list(type):
            raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")
        return pa.chunked_array([plain(values[:1], type), plain(values[1:], type)])

    monkeypatch.setattr(pa, "array", limited)
    with pytest.raises(messages.MessageTooLarge, match="'texts' needs more than the 2,147,48"):
        messages.array_of([["a"], ["b"]] if pa.types.is_list(kind) else ["a", "b"], kind, "'texts'")
