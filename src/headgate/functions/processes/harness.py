"""Calls a keyed process function in a test, event by event, without Spark."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast, overload

import pyarrow as pa

from headgate._units import parse_duration
from headgate.errors import HeadgateError
from headgate.functions.broadcast import BroadcastProcess
from headgate.functions.calling.calls import FunctionFailed
from headgate.functions.calling.rows import as_row
from headgate.functions.declared import describe_process
from headgate.functions.keyed import AnyProcess, KeyedCoProcess, KeyedProcess, Timer
from headgate.functions.processes.calls import ProcessCalls
from headgate.functions.processes.connected import process_calls
from headgate.functions.processes.memory import Made, MemoryKernel, Work, shape_of
from headgate.functions.processes.wire import NO_TIME, What
from headgate.functions.python_types import Kind, PythonType, UnsupportedType, python_type
from headgate.functions.states.lists import ListState
from headgate.functions.states.plain import from_plain, to_plain
from headgate.functions.states.values import ValueState
from headgate.functions.stored import (
    BroadcastCallback,
    CoProcessCallback,
    ProcessCallback,
    StoredState,
    stored_states,
)

In = TypeVar("In")
Out = TypeVar("Out")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LEFT, _RIGHT = 0, 1
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event or timer on which a process failed.

    Attributes:
        event: The event; None for a timer.
        timer: The timer; None for an event.
        side: "left" or "right" for an event of two connected streams; empty otherwise.
        text: The exception, and where it was raised.
    """

    key: Any
    event: Any
    timer: Timer | None
    text: str
    side: str = ""


class Harness(Generic[In, Out]):
    """Calls a process with one event at a time; its state is in memory, and its clock is yours.

    Each event is a batch of its own, so state is stored and read back between events. An exception
    of the process is raised by the call that caused it, and state is as before the call then.

    Args:
        process: An object of the class.
        key: The column of an event that is its key, or several.
        right_key: The same of events of the right stream, if they have other names there.
        schema: The dataclass of emitted rows, unless the class names it: `KeyedProcess[In, Out]`.
        sides: The side outputs; a dict gives the dataclass of each, None for that of the output.
        on_error: "fail" raises; "dead-letter" takes failures to `dead_letters`.
        now: The clock at the beginning.
        broadcast: The rows of the broadcast by key, for a BroadcastProcess. They can be changed
            between events: `harness.broadcast[7] = Rule(...)`.

    Attributes:
        broadcast: The rows of the broadcast by key.
    """

    @overload
    def __init__(
        self,
        process: KeyedProcess[In, Out] | BroadcastProcess[In, Any, Out],
        *,
        key: str | Iterable[str] | None = None,
        schema: type | None = None,
        sides: Iterable[str] | Mapping[str, type | None] = (),
        on_error: str = "fail",
        now: datetime = START,
        broadcast: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None: ...
    @overload
    def __init__(
        self: Harness[Any, Out],
        process: KeyedCoProcess[Any, Any, Out],
        *,
        key: str | Iterable[str] | None = None,
        right_key: str | Iterable[str] | None = None,
        schema: type | None = None,
        sides: Iterable[str] | Mapping[str, type | None] = (),
        on_error: str = "fail",
        now: datetime = START,
    ) -> None: ...
    def __init__(
        self,
        process: AnyProcess[Out] | BroadcastProcess[Any, Any, Out],
        *,
        key: str | Iterable[str] | None = None,
        right_key: str | Iterable[str] | None = None,
        schema: type | None = None,
        sides: Iterable[str] | Mapping[str, type | None] = (),
        on_error: str = "fail",
        now: datetime = START,
        broadcast: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        what = "cannot test the process"
        plain = cast("AnyProcess[Out]", process)
        declared = describe_process(plain, what=what)
        if broadcast and not declared.has_broadcast:
            raise HeadgateError(
                "BAD_FUNCTION",
                f"{what}: it is not a BroadcastProcess, so it sees no broadcast",
                hint="derive the class from headgate.BroadcastProcess, or omit broadcast",
            )
        self.broadcast = dict(broadcast)
        if on_error not in ("fail", "dead-letter"):
            raise HeadgateError(
                "BAD_SETTING",
                f"{what}: on_error must be 'fail' or 'dead-letter', got {on_error!r}",
                hint="use on_error='dead-letter'",
            )
        self.dead_letters: list[DeadLetter] = []
        # A process keeps its states as attributes, and another harness may take the same object.
        self._process = copy.copy(plain)
        # A process with a broadcast may be without keys.
        self._key = () if key is None and declared.has_broadcast else _columns(key)
        self._right_key = self._key if right_key is None else _columns(right_key)
        self._on_error = on_error
        self._declared = declared
        self._event = _event_type(declared.event)
        self._is_connected = declared.right is not None
        self._right = _event_type(declared.right)
        named = sides if isinstance(sides, Mapping) else dict.fromkeys(sides)
        main = _row_type(schema or declared.result, what)
        self._outputs = [
            ("out", main),
            *((name, _row_type(cls, what) if cls else main) for name, cls in named.items()),
        ]
        self._make = [from_plain(type_) for _, type_ in self._outputs]
        self._rows: dict[str, list[Any]] = {port: [] for port, _ in self._outputs}
        self._now = _to_ms(now)
        self._watermark = NO_TIME
        self._batch = 0
        self._waiting: list[Any] = []
        self._keys: dict[bytes, tuple[Any, ...]] = {}
        self._kernel: MemoryKernel | None = None
        self._calls: ProcessCalls | None = None

    @property
    def out(self) -> list[Out]:
        """The rows that were emitted, in order."""
        return self._rows["out"]

    def side(self, name: str) -> list[Any]:
        """Return the rows that were emitted to a side output."""
        if name not in self._rows or name == "out":
            raise KeyError(f"the harness has no side output {name!r}; pass sides=[{name!r}]")
        return self._rows[name]

    @property
    def now(self) -> datetime:
        """The clock."""
        return _EPOCH + self._now * _MILLISECOND

    def send(
        self, event: In | Mapping[str, Any], key: Any = None, time: datetime | int | None = None
    ) -> list[Out]:
        """Call the process with an event, and return the rows that it emits.

        Args:
            key: The key; by default the columns of the event that the harness was told.
            time: The event time: a datetime, or milliseconds since 1970.
        """
        if self._is_connected:
            raise TypeError("the process takes two streams: use send_left or send_right")
        row = _row(event, self._event)
        return self._send(row, _key_of(event, self._key) if key is None else key, time)

    def send_left(
        self, event: Any, key: Any = None, time: datetime | int | None = None
    ) -> list[Out]:
        """Call a process of two streams with an event of the left one, as `send` does."""
        self._check_connected()
        row = _row(event, self._event)
        return self._send(row, _key_of(event, self._key) if key is None else key, time, _LEFT)

    def send_right(
        self, event: Any, key: Any = None, time: datetime | int | None = None
    ) -> list[Out]:
        """Call a process of two streams with an event of the right one, as `send` does."""
        self._check_connected()
        row = _row(event, self._right)
        key = _key_of(event, self._right_key) if key is None else key
        return self._send(row, key, time, _RIGHT)

    def _check_connected(self) -> None:
        if not self._is_connected:
            raise TypeError("the process takes one stream: use send")

    def _send(
        self, row: tuple[Any], key: Any, time: datetime | int | None, side: int = 0
    ) -> list[Out]:
        text, values = self._keyed(key)
        due = self._due(What.PROCESSING, only=text)
        moment = NO_TIME if time is None else _to_ms(time)
        timers = [(int(What.PROCESSING), ms) for ms in due.get(text, [])]
        return self._call(Work(text, values, [row], [moment], timers, sides=[side]))

    def advance_watermark(self, to: datetime | int) -> list[Out]:
        """Move the watermark, fire the timers that it reaches, and return what they emit."""
        self._watermark = max(self._watermark, _to_ms(to))
        return self._fire(What.EVENT, self._watermark)

    def advance_clock(self, span: str | timedelta) -> list[Out]:
        """Move the clock, fire the timers that are due then, and return what they emit.

        All timers see the clock as it is after the move, as in a flow that was idle.
        """
        length = parse_duration(span) if isinstance(span, str) else span
        self._now += length // _MILLISECOND
        return self.fire()

    def fire(self) -> list[Out]:
        """Fire the timers of processing time that are due, and return what they emit."""
        rows = self._fire(What.PROCESSING, self._now)
        for text in self._due(What.EXPIRY):
            self._call(Work(text, self._keys[text], is_cleanup=True))
        return rows

    def state(self, key: Any) -> dict[str, Any]:
        """Return the state of a key: None for a value that is not set, lists and dicts."""
        text, values = self._keyed(key)
        calls, kernel = self._bound(values)
        body = kernel.body(
            [Work(text, values)], now=self._now, watermark=self._watermark, batch=0, phase=0
        )
        found: dict[str, Any] = {}
        for state in calls.read_states(body, kernel.fetching([text])):
            if isinstance(state, ValueState):
                found[state.name] = state.get()
            else:
                found[state.name] = (
                    list(state) if isinstance(state, ListState) else dict(state.items())
                )
        return found

    def timers(self, key: Any) -> list[Timer]:
        """Return the timers of a key, by time."""
        text, _ = self._keyed(key)
        entries = set() if self._kernel is None else self._kernel.state.entries.get(text, set())
        return sorted(
            (Timer(ms, what == What.EVENT) for what, ms in entries if what != What.EXPIRY),
            key=lambda timer: (timer.ms, timer.is_event_time),
        )

    def _fire(self, what: What, until: int) -> list[Out]:
        rows: list[Out] = []
        for text, times in self._due(what, until).items():
            timers = [(int(what), ms) for ms in times]
            rows += self._call(Work(text, self._keys[text], timers=timers))
        return rows

    def _due(
        self, what: What, until: int | None = None, *, only: bytes | None = None
    ) -> dict[bytes, list[int]]:
        if self._kernel is None:
            return {}
        return self._kernel.state.due(what, self._now if until is None else until, only)

    def _call(self, work: Work) -> list[Out]:
        _, kernel = self._bound(work.key)
        self._batch += 1
        self._waiting = [event for (event,) in work.events]
        is_event_time = any(kind == What.EVENT for kind, _ in work.timers)
        try:
            made = kernel.call(
                [dataclasses.replace(work, events=[(place,) for place in range(len(work.events))])],
                now=self._now,
                watermark=self._watermark,
                batch=self._batch,
                phase=1 if is_event_time else 0,
            )
        except FunctionFailed as failure:
            for what, ms in work.timers:
                kernel.state.entries[work.text].add((what, ms))
            if failure.__cause__ is not None:
                raise failure.__cause__ from None
            raise
        self._note(made, work)
        return self._taken(made)

    def _taken(self, made: Made) -> list[Out]:
        first: list[Out] = []
        for place, (port, _) in enumerate(self._outputs):
            make = self._make[place]
            assert make is not None
            rows = [make(row) for _, row in made.rows[place]]
            self._rows[port] += rows
            if port == "out":
                first = rows
        return first

    def _note(self, made: Made, work: Work) -> None:
        """Keep the dead letters of a call."""
        key = work.key[0] if len(work.key) == 1 else work.key or None
        for origin, text in made.errors:
            if origin >= 0:
                side = ("left", "right")[work.sides[origin]] if self._is_connected else ""
                event = work.events[origin][0]
                self.dead_letters.append(DeadLetter(key, event, None, text, side))
                continue
            what, ms = work.timers[-1 - origin]
            timer = Timer(ms, is_event_time=what == What.EVENT)
            self.dead_letters.append(DeadLetter(key, None, timer, text))

    def _bound(self, key: tuple[Any, ...]) -> tuple[ProcessCalls, MemoryKernel]:
        calls, kernel = self._made(key)
        if self._declared.has_broadcast:
            rows = sorted(self.broadcast.items(), key=lambda entry: entry[0])
            calls.show_broadcast({key: self._rule(row) for key, row in rows})
        return calls, kernel

    def _made(self, key: tuple[Any, ...]) -> tuple[ProcessCalls, MemoryKernel]:
        if self._calls is not None and self._kernel is not None:
            return self._calls, self._kernel
        states = stored_states(self._declared.states)
        place = pa.schema([("place", pa.int64())])
        shape = shape_of(
            states,
            given=place,
            keys=pa.schema([(str(i), pa.array([value]).type) for i, value in enumerate(key)]),
            outputs=self._outputs,
            has_timers=self._declared.has_timers,
            right=place if self._is_connected else None,
        )
        self._calls = process_calls(
            self._callback(states),
            shape,
            name=f"process {type(self._process).__name__!r}",
            uid=type(self._process).__name__,
            dead_letters=self._on_error == "dead-letter",
            read=lambda batch: [self._waiting[i] for i in batch.column(0).to_pylist()],
        )
        self._kernel = MemoryKernel(self._calls, shape)
        return self._calls, self._kernel

    def _callback(self, states: tuple[StoredState, ...]) -> ProcessCallback:
        kind: type[ProcessCallback] = ProcessCallback
        if self._declared.has_broadcast:
            kind = BroadcastCallback
        elif self._is_connected:
            kind = CoProcessCallback
        return kind(self._process, states=states)

    def _rule(self, row: Any) -> Any:
        """Return a row of the broadcast as the process gets it: a copy."""
        return as_row(row) if self._declared.rule is Any else copy.deepcopy(row)

    def _keyed(self, key: Any) -> tuple[bytes, tuple[Any, ...]]:
        values = key if isinstance(key, tuple) else (key,)
        text = repr(values).encode()
        self._keys.setdefault(text, values)
        return text, values


def _columns(key: str | Iterable[str] | None) -> tuple[str, ...] | None:
    return (key,) if isinstance(key, str) else None if key is None else tuple(key)


def _row(event: Any, type_: PythonType | type | None) -> tuple[Any]:
    """Return an event as the process gets it: a copy of the type that it declares."""
    if type_ is dict:
        return (copy.deepcopy(dict(event) if isinstance(event, Mapping) else vars(event)),)
    if type_ is None:
        return (as_row(event),)
    assert isinstance(type_, PythonType)
    make = from_plain(type_)
    assert make is not None
    return (make(to_plain(dataclasses.replace(type_, make=None), "")(event)),)


def _key_of(event: Any, columns: tuple[str, ...] | None) -> Any:
    if columns is None:
        raise TypeError("the event has no key: pass key= to send, or to the harness")
    values = tuple(
        event[name] if isinstance(event, Mapping) else getattr(event, name) for name in columns
    )
    return values[0] if len(values) == 1 else values


def _event_type(event: Any) -> PythonType | type | None:
    """Return what events are: a dataclass, dict, or None for rows with attributes."""
    if isinstance(event, type) and dataclasses.is_dataclass(event):
        try:
            return python_type(event)
        except UnsupportedType as cause:
            raise HeadgateError(
                "BAD_FUNCTION", f"cannot test the process: {cause}", hint="change the dataclass"
            ) from cause
    return dict if event is dict or getattr(event, "__origin__", None) is dict else None


def _row_type(cls: Any, what: str) -> PythonType:
    try:
        type_ = python_type(cls)
        if type_.kind is Kind.STRUCT:
            return type_
        problem = f"its rows are {cls}"
    except UnsupportedType as cause:
        problem = str(cause)
    raise HeadgateError(
        "BAD_FUNCTION",
        f"{what}: it needs a dataclass for its rows: {problem}",
        hint="derive from KeyedProcess[Order, Alert], or pass schema=Alert",
    )


def _to_ms(time: datetime | int) -> int:
    if isinstance(time, int):
        return time
    aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (aware - _EPOCH) // _MILLISECOND
