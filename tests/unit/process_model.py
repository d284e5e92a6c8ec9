"""A process that does what its events say, and the same in plain Python."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pyarrow as pa

from headgate import Context, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate.functions.declared import describe_process
from headgate.functions.processes.calls import ProcessCalls
from headgate.functions.processes.memory import MemoryKernel, Work, shape_of
from headgate.functions.python_types import python_type
from headgate.functions.states import lists, map_cells
from headgate.functions.states.columns import arrow_field
from headgate.functions.stored import ProcessCallback, RowType, stored_states

TTL = 50
START = 1_000


@dataclass
class Op:
    name: str
    number: int = 0


@dataclass
class Command:
    key: str
    ops: list[Op]


@dataclass
class Seen:
    key: str
    text: str


class Machine(KeyedProcess[Command, Seen]):
    last: Value[int] = Value(ttl="50ms")
    kept: Value[Op | None]
    recent: ListOf[int] = ListOf(ttl="50ms")
    every: ListOf[Op]
    counts: MapOf[str, int] = MapOf(ttl="50ms")
    table: MapOf[int, list[int]]

    def on_event(self, command: Command, ctx: Context[Seen]) -> None:
        for op in command.ops:
            seen = self.do(op, ctx)
            if seen is not None:
                ctx.emit(Seen(ctx.key, f"{op.name}: {seen}"))

    def on_timer(self, timer: Timer, ctx: Context[Seen]) -> None:
        self.recent.append(timer.ms)
        ctx.emit(Seen(ctx.key, f"{timer} {len(self.recent)}"))
        if timer.ms % 3 == 0:
            raise ValueError("a bad timer")

    def do(self, op: Op, ctx: Any) -> Any:
        n = op.number
        match op.name:
            case "set":
                self.last.set(n)
                self.kept.set(op if n % 2 else None)
            case "unset":
                self.last.clear()
                self.kept.clear()
            case "append":
                self.recent.append(n)
                self.every.append(op)
            case "extend":
                self.recent.extend(range(n))
                self.every.extend([Op("x", i) for i in range(n)])
            case "relist":
                self.recent.set(range(n))
                self.every.set([Op("y", i) for i in range(n)])
            case "put":
                self.counts[str(n)] = n
                self.table[n] = [n, n]
            case "fill":
                for i in range(n):
                    self.counts[str(i)] = n
                    self.table[i] = [n]
            case "delete":
                self.table.pop(n, None)
                self.counts.pop(str(n), None)
            case "drain":
                for i in range(n):
                    self.table.pop(i, None)
                if str(n) in self.counts:
                    del self.counts[str(n)]
            case "clear":
                for state in (self.recent, self.every, self.counts, self.table)[n % 4 :]:
                    state.clear()
            case "fail":
                raise ValueError("a bad event")
            case "after":
                ctx.timers.after(f"{n + 1}ms")
            case "at":
                ctx.timers.at(START + n)
            case "cancel":
                for ms in range(START, START + 200, 2):
                    ctx.timers.cancel(Timer(ms, is_event_time=bool(n % 2)))
            case "read":
                return self.last.get(), self.kept.get(Op("none"))
            case "sizes":
                return len(self.recent), len(self.every), len(self.counts), len(self.table)
            case "tail":
                return self.recent.tail(n), self.every.tail(n)
            case "lists":
                return list(self.recent), list(self.every), bool(self.recent)
            case "find":
                return self.counts.get(str(n)), self.table.get(n, [])
            case "maps":
                return sorted(self.counts.items()), sorted(self.table.items()), bool(self.counts)
        return None


@dataclass
class _Clock:
    now: int = 0


class _PlainValue:
    def __init__(self, clock: _Clock, ttl: int | None) -> None:
        self.clock, self.ttl = clock, ttl
        self.held: list[tuple[int, Any]] = []

    def _until(self) -> int:
        return 2**62 if self.ttl is None else self.clock.now + self.ttl

    def get(self, default: Any = None) -> Any:
        live = [value for until, value in self.held if until > self.clock.now]
        return live[0] if live else default

    def set(self, value: Any) -> None:
        self.held = [(self._until(), copy.deepcopy(value))]

    def clear(self) -> None:
        self.held = []


class _PlainList(_PlainValue):
    def append(self, item: Any) -> None:
        self.held.append((self._until(), copy.deepcopy(item)))

    def extend(self, items: Any) -> None:
        for item in items:
            self.append(item)

    def set(self, items: Any) -> None:
        self.held = []
        self.extend(items)

    def tail(self, count: int) -> list[Any]:
        return list(self)[-count:] if count else []

    def __iter__(self) -> Iterator[Any]:
        return iter([value for until, value in self.held if until > self.clock.now])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _PlainMap(_PlainValue):
    def __init__(self, clock: _Clock, ttl: int | None) -> None:
        super().__init__(clock, ttl)
        self.entries: dict[Any, tuple[int, Any]] = {}

    def _live(self) -> dict[Any, Any]:
        return {k: v for k, (until, v) in self.entries.items() if until > self.clock.now}

    def __setitem__(self, key: Any, value: Any) -> None:
        self.entries[key] = (self._until(), copy.deepcopy(value))

    def __delitem__(self, key: Any) -> None:
        del self.entries[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._live()

    def get(self, key: Any = None, default: Any = None) -> Any:  # type: ignore[override]
        return self._live().get(key, default)

    def pop(self, key: Any, default: Any) -> Any:
        found = self.get(key, default)
        self.entries.pop(key, None)
        return found

    def items(self) -> Any:
        return self._live().items()

    def __len__(self) -> int:
        return len(self._live())

    def clear(self) -> None:
        self.entries = {}


class _PlainKey(Machine):
    """The state of one key in plain Python."""

    def __init__(self, clock: _Clock) -> None:
        made: dict[str, Any] = {
            "last": _PlainValue(clock, TTL),
            "kept": _PlainValue(clock, None),
            "recent": _PlainList(clock, TTL),
            "every": _PlainList(clock, None),
            "counts": _PlainMap(clock, TTL),
            "table": _PlainMap(clock, None),
        }
        self.__dict__.update(made)


@dataclass
class _PlainContext:
    model: Model
    key: str

    @property
    def timers(self) -> _PlainContext:
        return self

    def emit(self, row: Seen) -> None:
        self.model.rows.append((row.key, row.text))

    def at(self, ms: int) -> None:
        self.model.timers.setdefault(self.key, set()).add((0, ms))

    def after(self, span: str) -> None:
        ms = self.model.clock.now + int(span.removesuffix("ms"))
        self.model.timers.setdefault(self.key, set()).add((1, ms))

    def cancel(self, timer: Timer) -> None:
        found = (0 if timer.is_event_time else 1, timer.ms)
        self.model.timers.get(self.key, set()).discard(found)
        self.model.due.get(self.key, set()).discard(found)


class Model:
    """The machine for all keys, batch by batch."""

    def __init__(self) -> None:
        self.clock = _Clock(START)
        self.keys: dict[str, _PlainKey] = {}
        self.timers: dict[str, set[tuple[int, int]]] = {}
        self.due: dict[str, set[tuple[int, int]]] = {}
        self.rows: list[tuple[str, str]] = []
        self.failures = 0

    def batch(self, commands: Sequence[Command]) -> None:
        """Take events, then the timers of processing time."""
        self._take(1, self.clock.now)
        for key in sorted({command.key for command in commands} | self.due.keys()):
            for command in commands:
                if command.key == key:
                    self._try(key, "on_event", command)
            self._fire(key)

    def watermark(self, until: int) -> None:
        """Fire the timers of event time."""
        self._take(0, until)
        for key in sorted(self.due):
            self._fire(key)

    def _take(self, kind: int, until: int) -> None:
        self.due = {}
        for key, timers in self.timers.items():
            due = {timer for timer in timers if timer[0] == kind and timer[1] <= until}
            if due:
                self.due[key] = due
                timers -= due

    def _fire(self, key: str) -> None:
        for what, ms in sorted(self.due.get(key, ())):
            if (what, ms) in self.due[key]:
                self._try(key, "on_timer", Timer(ms, is_event_time=what == 0))

    def _try(self, key: str, name: str, value: Any) -> None:
        before = copy.deepcopy((self.timers, self.due)), len(self.rows)
        state = self.keys.setdefault(key, _PlainKey(self.clock))
        clock = self.clock
        saved = copy.deepcopy(state.__dict__, {id(clock): clock})
        try:
            getattr(state, name)(value, _PlainContext(self, key))
        except ValueError:
            state.__dict__.update(saved)
            (self.timers, self.due), length = before
            del self.rows[length:]
            self.failures += 1


@dataclass
class Runtime:
    """The machine in the runtime, in calls of a chosen size.

    Attributes:
        size: The number of events of a call.
    """

    size: int
    now: int = START
    rows: list[tuple[str, str]] = field(default_factory=list)
    failures: int = 0

    def __post_init__(self) -> None:
        self.kernel, self.calls = made_kernel(Machine(), Command, Seen, dead_letters=True)
        self._watermark = 0
        self._batches = 0

    def batch(self, commands: Sequence[Command]) -> None:
        due = self.kernel.state.due(1, self.now)
        cleanups = self.kernel.state.due(2, self.now)
        keys = sorted({c.key for c in commands} | {k.decode() for k in {*due, *cleanups}})
        work = [(key, command) for key in keys for command in commands if command.key == key]
        last = {key: place for place, (key, _) in enumerate(work)}
        self._batches += 1
        idle = [key for key in keys if key not in last]
        calls = [work[i : i + self.size] for i in range(0, len(work), self.size)]
        place = 0
        done = []
        for call in calls:
            parts: dict[str, Work] = {}
            for key, command in call:
                is_last = last[key] == place
                place += 1
                old = parts.get(key)
                events = [*(old.events if old else ()), (command.key, _ops(command))]
                parts[key] = self._work(key, events, due if is_last else {}, cleanups, is_last)
                done.append(key)
            self._call(list(parts.values()))
        for key in idle:
            self._call([self._work(key, [], due, cleanups, True)])

    def watermark(self, until: int) -> None:
        self._watermark = until
        due = self.kernel.state.due(0, until)
        work = [
            Work(key, (key.decode(),), timers=[(0, ms) for ms in times])
            for key, times in due.items()
        ]
        for start in range(0, len(work), self.size):
            self._call(work[start : start + self.size], phase=1)

    def _work(self, key: str, events: Any, due: Any, cleanups: Any, is_last: bool) -> Work:
        text = key.encode()
        timers = [(1, ms) for ms in due.get(text, ())]
        cleanup = is_last and text in cleanups
        return Work(text, (key,), events, timers=timers, is_cleanup=cleanup)

    def _call(self, work: list[Work], phase: int = 0) -> None:
        made = self.kernel.call(
            work, now=self.now, watermark=self._watermark, batch=self._batches, phase=phase
        )
        self.rows += [row for _, row in made.rows[0]]
        self.failures += len(made.errors)


def _ops(command: Command) -> list[tuple[str, int]]:
    return [(op.name, op.number) for op in command.ops]


def made_kernel(
    process: KeyedProcess[Any, Any], event: type, row: type, *, dead_letters: bool = False
) -> tuple[MemoryKernel, ProcessCalls]:
    """Return a process with its state in memory; its keys are text."""
    declared = describe_process(process)
    states = stored_states(declared.states)
    shape = shape_of(
        states,
        given=pa.schema([arrow_field(*one) for one in python_type(event).fields]),
        keys=pa.schema([("key", pa.string())]),
        outputs=[("out", python_type(row))],
        has_timers=declared.has_timers,
    )
    nested = {"ops": RowType(Op)} if event is Command else {}
    calls = ProcessCalls(
        ProcessCallback(process, RowType(event, nested), states),
        shape,
        name="process 'machine'",
        uid="machine",
        dead_letters=dead_letters,
        check=True,
    )
    return MemoryKernel(calls, shape), calls


@contextmanager
def small_pages() -> Iterator[None]:
    """Have pages of three items, so that few items are many pages."""
    with (
        mock.patch.object(lists, "ITEMS", 3),
        mock.patch.object(map_cells, "_FULL", 3),
        mock.patch.object(map_cells, "_SPARSE", 1),
    ):
        yield
