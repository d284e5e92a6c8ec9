"""The other end of the worker's protocol for tests: state and timers in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Any

import pyarrow as pa

from headgate.functions.declared import StateKind
from headgate.functions.processes.calls import ProcessCalls, ProcessShape
from headgate.functions.processes.wire import (
    NO_TIME,
    Fetch,
    Reply,
    What,
    ints,
    longs,
    pack_ints,
    pack_longs,
    sections,
)
from headgate.functions.python_types import PythonType
from headgate.functions.states.columns import arrow_field, arrow_type, reader
from headgate.functions.stored import StoredState

_FIXED = Struct("<qqqiiii")
_INT = Struct("<i")
_LONG = pa.int64()


@dataclass(frozen=True, slots=True)
class Work:
    """What a call is to do for a key.

    Attributes:
        text: The key as state has it.
        events: Rows for the events' batch.
        times: The event time of each, in ms.
        timers: What is due: 0 for event time or 1, and its time.
        is_cleanup: True if the key's clean-up is due.
        sides: Of two connected streams, the one of each event: 0 is the left one.
    """

    text: bytes
    key: tuple[Any, ...]
    events: Sequence[Any] = ()
    times: Sequence[int] = ()
    timers: Sequence[tuple[int, int]] = ()
    is_cleanup: bool = False
    sides: Sequence[int] = ()


@dataclass(slots=True)
class Made:
    """What a call made.

    Attributes:
        rows: The rows of each output, in plain form, each with its origin.
        errors: The events and timers that failed.
    """

    rows: list[list[tuple[int, Any]]]
    errors: list[tuple[int, str]]


@dataclass(slots=True)
class MemoryState:
    """State of a process, as a kernel keeps it.

    Attributes:
        records: The columns of each key's record.
        pages: The columns of each page, by key, var and number.
        entries: The timers (0, 1) and clean-ups (2) of each key: what, and its time.
        fetched: How many pages were fetched.
        fetches: How many messages that took.
    """

    records: dict[bytes, tuple[Any, ...]] = field(default_factory=dict)
    pages: dict[tuple[bytes, int, int], tuple[Any, ...]] = field(default_factory=dict)
    entries: dict[bytes, set[tuple[int, int]]] = field(default_factory=dict)
    fetched: int = 0
    fetches: int = 0

    def due(self, what: int, until: int, only: bytes | None = None) -> dict[bytes, list[int]]:
        """Return the entries of a kind that are due, by key, and remove them.

        Args:
            only: A key, if not all keys are meant.
        """
        due: dict[bytes, list[int]] = {}
        for text in sorted(self.entries) if only is None else (self.entries.keys() & {only}):
            times = sorted(ms for kind, ms in self.entries[text] if kind == what and ms <= until)
            if times:
                due[text] = times
                self.entries[text] -= {(what, ms) for ms in times}
        return due


def shape_of(
    states: Iterable[StoredState],
    *,
    given: pa.Schema,
    keys: pa.Schema,
    outputs: Sequence[tuple[str, PythonType]],
    has_timers: bool,
    right: pa.Schema | None = None,
) -> ProcessShape:
    """Return the columns that a process meets, as the kernel derives them."""
    record, pages = [], []
    for state in states:
        if state.kind is StateKind.VALUE:
            columns = [_nullable("value", state.value), ("expires", _LONG)]
        elif state.kind is StateKind.LIST:
            columns = [(name, _LONG) for name in ("first", "next", "size", "oldest")]
            pages.append([("items", _list(state.value)), ("expires", pa.list_(_LONG))])
        else:
            assert state.key is not None
            columns = [(name, _LONG) for name in ("size", "pages", "oldest")]
            entries = [("keys", _list(state.key)), ("values", _list(state.value))]
            pages.append([*entries, ("expires", pa.list_(_LONG))])
        record.append((state.name, pa.struct(columns)))
    return ProcessShape(
        given,
        keys,
        pa.schema([*record, ("cleanup", _LONG)]),
        [pa.schema(page) for page in pages],
        [(port, pa.schema([arrow_field(*one) for one in row.fields])) for port, row in outputs],
        has_timers,
        right,
    )


def _nullable(name: str, type_: PythonType) -> tuple[str, pa.DataType]:
    return name, arrow_type(_loose(type_))


def _list(type_: PythonType) -> pa.DataType:
    return pa.list_(arrow_type(_loose(type_)))


def _loose(type_: PythonType) -> PythonType:
    """Return a type with all parts nullable, as state has them."""
    return replace(
        type_,
        nullable=True,
        element=None if type_.element is None else _loose(type_.element),
        fields=tuple((name, _loose(inner)) for name, inner in type_.fields),
    )


class MemoryKernel:
    """Calls a process with its state, and takes over what a call changes."""

    def __init__(self, calls: ProcessCalls, shape: ProcessShape) -> None:
        self.state = MemoryState()
        self._calls = calls
        self._shape = shape
        self._read_record = [reader(column.type) for column in shape.record]
        self._read_pages = [[reader(column.type) for column in page] for page in shape.pages]

    def call(
        self, work: Sequence[Work], *, now: int, watermark: int, batch: int, phase: int = 0
    ) -> Made:
        """Make one call; its changes are applied if it does not raise."""
        body = self.body(work, now=now, watermark=watermark, batch=batch, phase=phase)
        texts = [one.text for one in work]
        reply = self._calls(body, self.fetching(texts))
        return self._apply(reply, texts)

    def body(
        self, work: Sequence[Work], *, now: int, watermark: int, batch: int, phase: int
    ) -> bytes:
        """Return a call as bytes."""
        shape = self._shape
        sides = [side for one in work for side in one.sides or [0] * len(one.events)]
        events = [row for one in work for row in one.events]
        left = [row for row, side in zip(events, sides, strict=True) if not side]
        timers = [timer for one in work for timer in one.timers]
        none = (None,) * len(shape.record)
        records = [self.state.records.get(one.text, none) for one in work]
        parts = [
            _batch([one.key for one in work], shape.keys),
            pack_ints(len(one.text) for one in work) + b"".join(one.text for one in work),
            _batch(records, shape.record),
            pack_ints(len(one.events) for one in work),
            _batch(left, shape.given) if left else b"",
            pack_longs(time for one in work for time in one.times or [NO_TIME] * len(one.events)),
            pack_ints(len(one.timers) for one in work),
            bytes(kind for kind, _ in timers) + pack_longs(ms for _, ms in timers),
            bytes(one.is_cleanup for one in work),
        ]
        if shape.right is not None:
            right = [row for row, side in zip(events, sides, strict=True) if side]
            parts += [bytes(sides), _batch(right, shape.right) if right else b""]
        fixed = _FIXED.pack(now, watermark, batch, phase, len(work), len(events), len(timers))
        return fixed + b"".join(_INT.pack(len(part)) + part for part in parts)

    def fetching(self, texts: Sequence[bytes]) -> Callable[[Fetch], pa.RecordBatch]:
        """Return how a call for some keys fetches pages."""

        def fetch(wanted: Fetch) -> pa.RecordBatch:
            self.state.fetches += 1
            self.state.fetched += len(wanted.keys)
            schema = self._shape.pages[wanted.var]
            none = (None,) * len(schema)
            rows = [
                self.state.pages.get((texts[key], wanted.var, number), none)
                for key, number in zip(wanted.keys, wanted.pages, strict=True)
            ]
            return _record_batch(rows, schema)

        return fetch

    def _apply(self, reply: Reply, texts: Sequence[bytes]) -> Made:
        left = iter(sections(memoryview(reply.body())))
        made = [
            [*zip(ints(next(left)), _rows(next(left), schema), strict=True)]
            for _, schema in self._shape.outputs
        ]
        changed, gone, rows = ints(next(left)), next(left), next(left)
        records = _rows(rows, self._shape.record)
        for at, is_gone, record in zip(changed, gone, records, strict=True):
            if is_gone:
                self.state.records.pop(texts[at], None)
            else:
                self.state.records[texts[at]] = record
        for var, schema in enumerate(self._shape.pages):
            changed, numbers, rows = ints(next(left)), next(left), next(left)
            count = len(changed)
            for at, number, is_gone, page in zip(
                changed,
                longs(numbers[: 8 * count]),
                numbers[8 * count :],
                _rows(rows, schema),
                strict=True,
            ):
                if is_gone:
                    self.state.pages.pop((texts[at], var, number), None)
                else:
                    self.state.pages[texts[at], var, number] = page
        self._apply_timers(next(left), texts)
        return Made(made, reply.errors)

    def _apply_timers(self, section: memoryview, texts: Sequence[bytes]) -> None:
        count = len(section) // 13
        keys, whats = ints(section[: 4 * count]), section[4 * count : 5 * count]
        for at, what, ms in zip(keys, whats, longs(section[5 * count :]), strict=True):
            entries = self.state.entries.setdefault(texts[at], set())
            if what & What.REMOVE:
                entries.discard((what & ~What.REMOVE, ms))
            else:
                entries.add((what, ms))


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> bytes:
    return bytes(_record_batch(rows, schema).serialize())


def _record_batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(section: memoryview, schema: pa.Schema) -> list[tuple[Any, ...]]:
    if not section:
        return []
    batch = pa.ipc.read_record_batch(pa.py_buffer(section), schema)
    columns = [reader(column.type)(batch.column(i)) for i, column in enumerate(schema)]
    return list(zip(*columns, strict=True))
