"""What users write for a keyed process function: a class with state and timers for each key."""

# ruff: noqa: ARG002 - the methods are made where a process runs

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar, overload

from headgate._units import parse_duration
from headgate.errors import HeadgateError

In = TypeVar("In")
Left = TypeVar("Left")
Right = TypeVar("Right")
Out = TypeVar("Out")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer of a key.

    Attributes:
        ms: Its time, in milliseconds since 1970 in UTC.
        is_event_time: True if the watermark must reach it; False if the clock must.
    """

    ms: int
    is_event_time: bool

    @property
    def time(self) -> datetime:
        """Its time in UTC."""
        return _EPOCH + timedelta(milliseconds=self.ms)


class _State:
    """A declaration: `seen: MapOf[str, int] = MapOf(ttl="1h")`.

    Args:
        ttl: How long it is kept after it was last written, by the clock of the batch; forever by
            default.
    """

    def __init__(self, *, ttl: str | timedelta | None = None) -> None:
        self.ttl = parse_duration(ttl) if isinstance(ttl, str) else ttl
        if self.ttl is not None and self.ttl < timedelta(milliseconds=1):
            raise HeadgateError(
                "BAD_FUNCTION",
                f"cannot declare {type(self).__name__}: its ttl must be 1ms or more, got {ttl!r}",
                hint="use ttl='1h', or leave it out to keep the state forever",
            )


class Value(_State, Generic[T]):
    """One value for each key."""

    @overload
    def get(self) -> T | None: ...
    @overload
    def get(self, default: T) -> T: ...
    def get(self, default: T | None = None) -> T | None:
        """Return a copy of the value, or the default if it is not set."""
        raise _unbound(self)

    def set(self, value: T) -> None:
        """Store the value as it is now."""
        raise _unbound(self)

    def clear(self) -> None:
        """Remove the value."""
        raise _unbound(self)


class ListOf(_State, Generic[T]):
    """A list for each key, of any length: only the parts that are used are read."""

    def append(self, item: T) -> None:
        """Add an item at the end."""
        raise _unbound(self)

    def extend(self, items: Iterable[T]) -> None:
        """Add items at the end."""
        raise _unbound(self)

    def tail(self, count: int) -> list[T]:
        """Return the last items, oldest first."""
        raise _unbound(self)

    def set(self, items: Iterable[T]) -> None:
        """Replace all items."""
        raise _unbound(self)

    def clear(self) -> None:
        """Remove all items."""
        raise _unbound(self)

    def __iter__(self) -> Iterator[T]:
        raise _unbound(self)

    def __len__(self) -> int:
        raise _unbound(self)


class MapOf(_State, Generic[K, V]):
    """A map for each key, of any size: only the parts that are used are read.

    The order of its entries is not defined, but the same in a replay.
    """

    def __getitem__(self, key: K) -> V:
        raise _unbound(self)

    def __setitem__(self, key: K, value: V) -> None:
        raise _unbound(self)

    def __delitem__(self, key: K) -> None:
        raise _unbound(self)

    def __contains__(self, key: object) -> bool:
        raise _unbound(self)

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Return a copy of the value of a key, or the default if it has none."""
        raise _unbound(self)

    @overload
    def pop(self, key: K, /) -> V: ...
    @overload
    def pop(self, key: K, default: D, /) -> V | D: ...
    def pop(self, key: K, /, *default: Any) -> Any:
        """Remove a key and return its value; without it the default, or raise KeyError."""
        raise _unbound(self)

    def __len__(self) -> int:
        raise _unbound(self)

    def __iter__(self) -> Iterator[K]:
        raise _unbound(self)

    def keys(self) -> list[K]:
        """Return all keys."""
        raise _unbound(self)

    def values(self) -> list[V]:
        """Return all values, in the order of the keys."""
        raise _unbound(self)

    def items(self) -> list[tuple[K, V]]:
        """Return all keys with their values."""
        raise _unbound(self)

    def clear(self) -> None:
        """Remove all entries."""
        raise _unbound(self)


class Emitter:
    """A side output."""

    def emit(self, row: Any) -> None:
        """Write a row to this output."""
        raise _unbound(self)


class Timers:
    """The timers of the present key."""

    def at(self, time: datetime | int) -> Timer:
        """Register a timer of event time: it fires once the watermark reaches the time.

        Args:
            time: A datetime (UTC if it has no time zone) or milliseconds since 1970.
        """
        raise _unbound(self)

    def after(self, span: str | timedelta) -> Timer:
        """Register a timer of processing time: it fires in the first batch so long after `now`."""
        raise _unbound(self)

    def cancel(self, timer: Timer) -> None:
        """Remove a timer; one that is not registered is ignored."""
        raise _unbound(self)


class Context(Generic[Out]):
    """What surrounds an event or a timer."""

    __slots__ = ()

    @property
    def key(self) -> Any:
        """The key: a value, or a tuple for several key columns."""
        raise _unbound(self)

    @property
    def time(self) -> datetime | None:
        """The event time of the event or event timer in UTC; None if there is none."""
        raise _unbound(self)

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the batch in UTC; None before there is one."""
        raise _unbound(self)

    @property
    def now(self) -> datetime:
        """The clock of the batch in UTC, the same in a replay."""
        raise _unbound(self)

    @property
    def random(self) -> random.Random:
        """Random numbers of this key in this batch, the same in a replay."""
        raise _unbound(self)

    @property
    def timers(self) -> Timers:
        """The timers of this key."""
        raise _unbound(self)

    def emit(self, row: Out) -> None:
        """Write a row to the output."""
        raise _unbound(self)

    def side(self, name: str) -> Emitter:
        """Return a side output of the process."""
        raise _unbound(self)


class AnyProcess(Generic[Out]):
    """What processes of one stream and of two have in common."""

    def open(self) -> None:
        """Prepare this object, once in each Python process; state is not there yet."""

    def on_timer(self, timer: Timer, ctx: Context[Out], /) -> None:
        """Take a timer that is due."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        declared = getattr(type(self), name, None)
        # The __init__ of a dataclass sets each field to its default.
        is_default = declared is not None and value is declared
        if not is_default and isinstance(vars(self).get(name, declared), _State):
            raise AttributeError(
                f"{name!r} is state, which an assignment would not store: use "
                f"self.{name}.set(…) or what else changes it"
            )
        super().__setattr__(name, value)


class KeyedProcess(AnyProcess[Out], Generic[In, Out]):
    """A process with state and timers for each key: derive from it, and pass an object of it.

    State is declared by annotations: `last: Value[float]`. An object keeps nothing else between
    calls: other attributes belong to one Python process, and are lost with it.
    """

    def on_event(self, event: In, ctx: Context[Out], /) -> None:
        """Take an event of the present key."""
        raise NotImplementedError


class KeyedCoProcess(AnyProcess[Out], Generic[Left, Right, Out]):
    """A process of two connected streams, with state and timers for each key.

    Both methods see the same state, which is declared as in a `KeyedProcess`.
    """

    def on_left(self, event: Left, ctx: Context[Out], /) -> None:
        """Take an event of the left stream, on which `connect` was called."""
        raise NotImplementedError

    def on_right(self, event: Right, ctx: Context[Out], /) -> None:
        """Take an event of the right stream."""
        raise NotImplementedError


def _unbound(what: object) -> RuntimeError:
    return RuntimeError(
        f"{type(what).__name__} works within on_event and on_timer only; use "
        "headgate.testing.Harness to call a process in a test"
    )
