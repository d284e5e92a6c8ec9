"""What surrounds the event or timer at work: its key, times, timers and outputs."""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate._units import parse_duration
from headgate.functions.keyed import Context, Emitter, Timer, Timers
from headgate.functions.processes.wire import NO_TIME, What
from headgate.functions.states.converted import ZONE

_EPOCH = datetime(1970, 1, 1, tzinfo=ZONE)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# The years 1 to 9999, which a datetime can show.
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999


class Scope(Context[Any]):
    """The context of a process; one object serves all calls.

    Attributes:
        at: The place of the present key in the call.
        origin: The present event by its place in the call, or -1 - place for a timer.
        journal: How the changes of the present event are undone; None if they never are.
        changed: 1 for each key whose state has changed.
    """

    __slots__ = (
        "_random",
        "_random_of",
        "_side",
        "_timers",
        "at",
        "changed",
        "emit",
        "event_time",
        "get_key",
        "journal",
        "now_ms",
        "origin",
        "seed",
        "times",
        "watermark_ms",
    )

    emit: Callable[[Any], None]  # type: ignore[assignment]

    def __init__(self, *, has_timers: bool, name: str) -> None:
        self.at = 0
        self.origin = 0
        self.now_ms = 0
        self.watermark_ms = NO_TIME
        self.event_time: int | None = None
        self.times: list[int] = []
        self.journal: list[tuple[Any, ...]] | None = None
        self.changed = bytearray()
        self.get_key: Callable[[int], Any] = _nothing
        self.seed: Callable[[int], bytes] = _nothing
        self._timers = ScopeTimers(self, has_timers=has_timers, name=name)
        self._side: Callable[[str], Emitter] = _nothing
        self._random: random.Random | None = None
        self._random_of = -1

    def begin(self, now: int, watermark: int, times: list[int], keys: int) -> None:
        """Prepare for a call."""
        self.at = 0
        self.now_ms = now
        self.watermark_ms = watermark
        self.times = times
        self.changed = bytearray(keys)
        self._random_of = -1
        self._timers.begin()

    def attach(self, emit: Callable[[Any], None], side: Callable[[str], Emitter]) -> None:
        """Set the outputs."""
        self.emit = emit
        self._side = side

    @property
    def key(self) -> Any:
        return self.get_key(self.at)

    @property
    def time(self) -> datetime | None:
        ms = self.times[self.origin] if self.origin >= 0 else self.event_time
        return None if ms is None or ms == NO_TIME else _moment(ms)

    @property
    def watermark(self) -> datetime | None:
        return _moment(self.watermark_ms) if self.watermark_ms > 0 else None

    @property
    def now(self) -> datetime:
        return _moment(self.now_ms)

    @property
    def random(self) -> random.Random:
        if self._random is None or self._random_of != self.at:
            digest = hashlib.sha256(self.seed(self.at)).digest()
            self._random = random.Random(int.from_bytes(digest, "big"))
            self._random_of = self.at
        return self._random

    @property
    def timers(self) -> ScopeTimers:
        return self._timers

    def side(self, name: str) -> Emitter:
        return self._side(name)


class ScopeTimers(Timers):
    """The timers of the present key.

    Attributes:
        keys: The key of each change, by its place in the call.
        whats: What is changed, and how.
        moments: The time of each change.
        cancelled: What the present key has cancelled in this call.
        pending: What is due of the present key and fires later in this call.
    """

    __slots__ = (
        "_has_timers",
        "_name",
        "_scope",
        "cancelled",
        "keys",
        "moments",
        "pending",
        "whats",
    )

    def __init__(self, scope: Scope, *, has_timers: bool, name: str) -> None:
        self._scope = scope
        self._has_timers = has_timers
        self._name = name
        self.begin()

    def begin(self) -> None:
        """Forget the changes of the last call."""
        self.keys: list[int] = []
        self.whats: list[int] = []
        self.moments: list[int] = []
        self.cancelled: set[Timer] = set()
        self.pending: set[Timer] = set()

    def at(self, time: datetime | int) -> Timer:
        return self._register(Timer(_to_ms(time), is_event_time=True))

    def after(self, span: str | timedelta) -> Timer:
        length = _parsed(span) if isinstance(span, str) else span
        if not isinstance(length, timedelta) or length < timedelta(0):
            raise ValueError(f"a timer is after a span like '10s' or a timedelta, got {span!r}")
        ms = self._scope.now_ms + -(-length // _MILLISECOND)
        return self._register(Timer(_in_range(ms), is_event_time=False))

    def cancel(self, timer: Timer) -> None:
        if not isinstance(timer, Timer):
            raise TypeError(f"cancel takes a Timer, got {type(timer).__name__}: {timer!r:.200}")
        if timer not in self.cancelled:
            self._journal(timer)
            self.cancelled.add(timer)
        self.add(What.EVENT if timer.is_event_time else What.PROCESSING, timer.ms, remove=True)

    def add(self, what: int, ms: int, *, remove: bool = False) -> None:
        """Note a change for the present key."""
        self.keys.append(self._scope.at)
        self.whats.append(what | What.REMOVE if remove else what)
        self.moments.append(ms)

    def undo(self, length: int) -> None:
        """Drop the changes behind so many."""
        del self.keys[length:], self.whats[length:], self.moments[length:]

    def _register(self, timer: Timer) -> Timer:
        if not self._has_timers:
            raise RuntimeError(f"{self._name} has no on_timer, so it can have no timers")
        if timer in self.cancelled:
            self._journal(timer)
            self.cancelled.discard(timer)
        # A timer that is about to fire is still registered: it fires once.
        if timer not in self.pending:
            self.add(What.EVENT if timer.is_event_time else What.PROCESSING, timer.ms)
        return timer

    def _journal(self, timer: Timer) -> None:
        journal = self._scope.journal
        if journal is not None:
            undo = self.cancelled.discard if timer not in self.cancelled else self.cancelled.add
            journal.append((undo, timer))


def _nothing(_: Any) -> Any:
    raise RuntimeError("a process is called within a batch only")


def _moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


@functools.lru_cache(256)
def _parsed(span: str) -> timedelta:
    return parse_duration(span)


def _to_ms(time: datetime | int) -> int:
    if isinstance(time, datetime):
        aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time
        # A part of a millisecond counts as a whole one: a timer never fires early. That must not
        # bring datetime.max to the year 10000.
        return _in_range(min(-((_EPOCH_UTC - aware) // _MILLISECOND), _LAST_MS))
    if isinstance(time, bool) or not hasattr(time, "__index__"):
        raise TypeError(f"a timer is at a datetime or milliseconds since 1970, got {time!r:.200}")
    return _in_range(int(time))


def _in_range(ms: int) -> int:
    if not _FIRST_MS <= ms <= _LAST_MS:
        raise ValueError(f"a timer must be in the years 1 to 9999, got {ms} ms since 1970")
    return ms
