"""One call of a keyed process function: events and timers of many keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headgate.functions.calling.calls import FunctionFailed, error_text, shown_row
from headgate.functions.calling.results import BadResult
from headgate.functions.calling.rows import row_reader
from headgate.functions.declared import StateKind
from headgate.functions.keyed import Context, KeyedProcess, Timer
from headgate.functions.processes.broadcasts import (
    BroadcastScope,
    BroadcastShape,
    rules_of,
    scope_of,
)
from headgate.functions.processes.outputs import Outputs
from headgate.functions.processes.settled import settle
from headgate.functions.processes.wire import Fetch, Reply, Request, parse_request, read_batch
from headgate.functions.states.columns import reader
from headgate.functions.states.lists import ListState
from headgate.functions.states.maps import MapState
from headgate.functions.states.pages import FetchPages
from headgate.functions.states.values import ValueState
from headgate.functions.stored import ProcessCallback

State = ValueState | ListState | MapState


@dataclass(frozen=True, slots=True)
class ProcessShape:
    """The columns that a process meets.

    Attributes:
        given: The columns of events; of the left stream, if two are connected.
        record: The columns of a key's record: one for each state, and `cleanup`.
        pages: The columns of a page of each list and map.
        outputs: The columns of each output, by port.
        right: The columns of events of the right stream; None without connected streams.
    """

    given: pa.Schema
    keys: pa.Schema
    record: pa.Schema
    pages: Sequence[pa.Schema]
    outputs: Sequence[tuple[str, pa.Schema]]
    has_timers: bool
    right: pa.Schema | None = None
    broadcast: BroadcastShape | None = None


class ProcessCalls:
    """Calls a process; state is passed in and out.

    Args:
        name: The process in messages: "process 'fraud'".
        dead_letters: True if events that fail are returned as errors; otherwise a call raises
            FunctionFailed.
        check: True if each call is made twice and the results must be the same.
        read: Turns a batch of events into rows; by default as the callback says.
    """

    def __init__(
        self,
        callback: ProcessCallback,
        shape: ProcessShape,
        *,
        name: str,
        uid: str,
        dead_letters: bool,
        check: bool = False,
        read: Callable[[pa.RecordBatch], list[Any]] | None = None,
    ) -> None:
        self._process = callback.function
        self._shape = shape
        self._name = name
        self._uid = uid
        self._dead_letters = dead_letters
        self._check = check
        self._scope = scope_of(callback, has_timers=shape.has_timers, name=name)
        self._rules = rules_of(callback, shape.broadcast, self._scope)
        self._outputs = Outputs(self._scope, shape.outputs, name)
        self._read = read or row_reader(shape.given, callback.argument)
        self._states = self._bind(callback)
        self._is_open = False
        self._events: list[Any] = []
        self._errors: list[tuple[int, str]] = []
        self._timers: list[Timer] = []

    def __call__(self, body: bytes, fetch: FetchPages) -> Reply:
        """Return what a call answers; raise FunctionFailed.

        Args:
            fetch: Asks the kernel for pages.
        """
        if not self._is_open:
            self._open()
        request = parse_request(body)
        reply = self._checked(request, fetch) if self._check else self._once(request, fetch)
        # Nothing of this call is kept until the next one.
        self._events = []
        self._outputs.begin()
        return reply

    def _checked(self, request: Request, fetch: FetchPages) -> Reply:
        """Make a call twice, and raise FunctionFailed if the answers differ."""
        fetch = _cached(fetch)
        first = self._once(request, fetch)
        rows = self._shown()
        second = self._once(request, fetch)
        if first.errors != second.errors or first.sections != second.sections:
            raise self._differs(rows, self._shown())
        return second

    def read_states(self, body: bytes, fetch: FetchPages) -> list[State]:
        """Return the states as they are for the only key of a call, without calling the process."""
        request = parse_request(body)
        self._scope.begin(request.now, request.watermark, [], request.keys)
        self._load(request, fetch)
        return self._states

    def show_broadcast(self, rows: Mapping[Any, Any]) -> None:
        """Have the process see these rows; for a process that is called without a kernel."""
        assert isinstance(self._scope, BroadcastScope), "it sees no broadcast"
        self._scope.rows = MappingProxyType(dict(rows))

    @property
    def pages(self) -> Sequence[pa.Schema]:
        """The columns of a page of each list and map, then those of the broadcast."""
        broadcast = self._shape.broadcast
        return self._shape.pages if broadcast is None else [*self._shape.pages, broadcast.schema]

    def _bind(self, callback: ProcessCallback) -> list[State]:
        """Return the states, and have the process reach them by their names."""
        states: list[State] = []
        pages = 0
        for i, stored in enumerate(callback.states):
            kind = self._shape.record.field(i).type
            if stored.kind is StateKind.VALUE:
                states.append(ValueState(self._scope, stored, kind))
                continue
            made = ListState if stored.kind is StateKind.LIST else MapState
            states.append(made(self._scope, stored, pages, kind, self._shape.pages[pages]))
            pages += 1
        return states

    def _open(self) -> None:
        try:
            self._process.open()
        except Exception as error:
            raise FunctionFailed(
                "FUNCTION_FAILED", f"{self._name} failed in open: {error_text(error)}"
            ) from error
        for state in self._states:
            # A frozen dataclass may be a process too.
            object.__setattr__(self._process, state.name, state)
        self._is_open = True

    def _once(self, request: Request, fetch: FetchPages) -> Reply:
        scope = self._scope
        self._errors = []
        self._outputs.begin()
        scope.begin(request.now, request.watermark, request.times, request.keys)
        scope.journal = [] if self._dead_letters else None
        scope.get_key = _keys(request, self._shape.keys)
        if self._rules is not None:
            self._rules.load(request.broadcast, fetch, len(self._shape.pages))
        scope.seed = lambda at: (
            f"{self._uid}\0{request.batch}\0{request.phase}\0".encode() + request.key_text(at)
        )
        records = self._load(request, fetch)
        self._events = self._rows(request)
        self._timers = [
            Timer(ms, is_event_time=kind == 0)
            for kind, ms in zip(request.timer_kinds, request.timer_times, strict=True)
        ]
        if scope.journal is None and not request.timer_kinds and not any(request.cleanups):
            self._run_events(request)
        else:
            self._run(request)
        cleanups = records.column(len(self._states)).to_pylist()
        return settle(
            scope, self._states, self._outputs, self._shape, request, cleanups, self._errors
        )

    def _rows(self, request: Request) -> list[Any]:
        """Return the events of a call, in order."""
        if not request.events:
            return []
        return self._read(read_batch(request.events, self._shape.given))

    def _handler(self, request: Request) -> Callable[[Any, Context[Any]], None]:  # noqa: ARG002
        """Return what is called with each event."""
        assert isinstance(self._process, KeyedProcess)
        return self._process.on_event

    def _load(self, request: Request, fetch: FetchPages) -> pa.RecordBatch:
        """Have the states of a call's keys, and return their records."""
        records = read_batch(request.records, self._shape.record)
        for place, state in enumerate(self._states):
            if isinstance(state, ValueState):
                state.load(records.column(place))
            else:
                state.load(records.column(place), fetch)
        return records

    def _run_events(self, request: Request) -> None:
        """Call the process for the events of each key; the first that fails ends the call."""
        scope, on_event = self._scope, self._handler(request)
        events = enumerate(self._events)
        try:
            for at, count in enumerate(request.events_per_key):
                scope.at = at
                for origin, event in islice(events, count):
                    scope.origin = origin
                    on_event(event, scope)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            self._failed(error, self._events[scope.origin])

    def _run(self, request: Request) -> None:
        """Call the process for the events, then the timers of each key."""
        scope = self._scope
        on_event, on_timer = self._handler(request), self._process.on_timer
        events, timers = self._events, self._timers
        event = timer = 0
        for at, count in enumerate(request.events_per_key):
            scope.at = at
            due_now = timers[timer : timer + request.timers_per_key[at]]
            scope.timers.pending = set(due_now)
            last = event + count
            while event < last:
                try:
                    while event < last:
                        scope.origin = event
                        if scope.journal is not None:
                            self._mark()
                        on_event(events[event], scope)
                        event += 1
                except Exception as error:  # noqa: BLE001 - whatever the user's code raises
                    self._failed(error, events[event])
                    event += 1
            for due in due_now:
                scope.origin = -1 - timer
                timer += 1
                scope.timers.pending.discard(due)
                if due in scope.timers.cancelled:
                    continue
                scope.event_time = due.ms if due.is_event_time else None
                if scope.journal is not None:
                    self._mark()
                try:
                    on_timer(due, scope)
                except Exception as error:  # noqa: BLE001 - whatever the user's code raises
                    self._failed(error, due)
            scope.timers.cancelled.clear()
            if request.cleanups[at]:
                scope.changed[at] = 1
                for state in self._states:
                    state.purge(at)

    def _mark(self) -> None:
        """Remember where things are before an event or timer."""
        scope = self._scope
        self._before = (
            scope.changed[scope.at],
            self._outputs.lengths(),
            len(scope.timers.keys),
        )
        assert scope.journal is not None
        scope.journal.clear()

    def _failed(self, error: Exception, row: Any) -> None:
        """Undo what an event or timer did, or raise FunctionFailed."""
        text = error_text(error)
        code = "FUNCTION_BAD_RESULT" if isinstance(error, BadResult) else "FUNCTION_FAILED"
        scope = self._scope
        if scope.journal is None:
            raise FunctionFailed(
                code, f"{self._name} failed on {shown_row(row)}: {text}"
            ) from error
        for undo, *arguments in reversed(scope.journal):
            undo(*arguments)
        changed, lengths, timers = self._before
        scope.changed[scope.at] = changed
        self._outputs.undo(lengths)
        scope.timers.undo(timers)
        if isinstance(error, BadResult):
            text = f"{code}: {text}"
        self._errors.append((scope.origin, text))

    def _shown(self) -> list[str]:
        return [
            f"{row!r} of row {origin}"
            for output in self._outputs.all
            for row, origin in output.rows()
        ]

    def _differs(self, ours: Sequence[str], theirs: Sequence[str]) -> FunctionFailed:
        pairs = zip([*ours, "no row"], [*theirs, "no row"], strict=False)
        text = next(
            (f"{first:.300}, then {second:.300}" for first, second in pairs if first != second),
            "the same rows, and other state, timers or errors",
        )
        return FunctionFailed(
            "FUNCTION_NOT_DETERMINISTIC",
            f"{self._name} gave other results when it was called again: {text}",
        )


def _keys(request: Request, schema: pa.Schema) -> Callable[[int], Any]:
    """Return how the key at a place is read; most processes never ask for it."""
    known: list[Any] = []

    def get(at: int) -> Any:
        if not schema.names:
            return None
        if not known:
            batch = read_batch(request.key_batch, schema)
            columns = [reader(field.type)(batch.column(i)) for i, field in enumerate(schema)]
            known.extend(columns[0] if len(columns) == 1 else zip(*columns, strict=True))
        return known[at]

    return get


def _cached(fetch: FetchPages) -> FetchPages:
    """Return a fetch that gives the same answers when a call is made again."""
    known: dict[tuple[int, tuple[int, ...], tuple[int, ...]], pa.RecordBatch] = {}

    def get(wanted: Fetch) -> pa.RecordBatch:
        place = wanted.var, tuple(wanted.keys), tuple(wanted.pages)
        if place not in known:
            known[place] = fetch(wanted)
        return known[place]

    return get
