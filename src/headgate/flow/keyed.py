"""Streams on their way into windows: by a key, then by time, then aggregated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from headgate._units import parse_duration
from headgate.errors import HeadgateError
from headgate.flow.aggregates import Aggregate, NamedAggregate
from headgate.flow.builder import Builder
from headgate.flow.operators import Port, Window
from headgate.flow.outputs import Windowed
from headgate.flow.triggers import EveryEvents, EveryEventTime, EveryProcessingTime, Trigger
from headgate.flow.windowing import Session, Sliding, Tumbling, Windows

if TYPE_CHECKING:
    from headgate.flow.stream import Stream


@dataclass(frozen=True, slots=True, eq=False)
class KeyedStream:
    """Rows that are looked at key by key; without columns, all together."""

    port: Port
    columns: tuple[str, ...]
    _builder: Builder
    _stream: Callable[[Port], Stream]

    def window(
        self,
        uid: str,
        windows: Windows,
        *,
        allowed_lateness: str | timedelta = "0s",
        early: Trigger | Sequence[Trigger] = (),
    ) -> WindowedStream:
        """Cut each key's events into windows of event time.

        Args:
            uid: Names the operator's state for good; keep it and the state is found again.
            windows: `tumbling("15m")`, `sliding("15m", every="5m")` or `session(gap="30m")`.
            allowed_lateness: For how long after its end a window still takes events, each time
                with a correction; later ones go to `late`.
            early: When a window gives results before its end: `every_events(4)`,
                `every_event_time("2m")`, `every_processing_time("10s")`, or several.
        """
        if not isinstance(windows, Tumbling | Sliding | Session):
            raise self._bad(uid, f"{windows!r} is no kind of windows", 'use tumbling("15m")')
        triggers = tuple(early) if isinstance(early, Sequence) else (early,)
        for each in triggers:
            if not isinstance(each, EveryEvents | EveryEventTime | EveryProcessingTime):
                raise self._bad(uid, f"{early!r} is no trigger", 'use early=every_event_time("2m")')
        given = allowed_lateness
        lateness = parse_duration(given) if isinstance(given, str) else given
        if lateness < timedelta(0):
            raise HeadgateError(
                "BAD_DURATION",
                f"{self._builder.cannot_add(f'window {uid!r}')}: allowed_lateness is negative",
                hint="use allowed_lateness='0s' or more",
            )
        return WindowedStream(self, uid, windows, lateness, triggers)

    def _bad(self, uid: str, found: str, hint: str) -> HeadgateError:
        what = self._builder.cannot_add(f"window {uid!r}")
        return HeadgateError("BAD_WINDOW", f"{what}: {found}", hint=f"{hint}, of headgate.windows")


@dataclass(frozen=True, slots=True, eq=False)
class WindowedStream:
    """A window operator that still has to be told what to find out."""

    _keyed: KeyedStream
    uid: str
    windows: Windows
    lateness: timedelta
    early: tuple[Trigger, ...]

    def aggregate(self, **aggregates: Aggregate) -> Windowed:
        """Find these figures for each key and window.

        Rows of `updates` have the key's columns, `window_start`, `window_end`, these figures,
        `partial`, `correction` and `processed_at`.

        Args:
            aggregates: By the names of their columns: visits=count(), total=sum("price").
        """
        keyed = self._keyed
        for name, each in aggregates.items():
            if not isinstance(each, Aggregate):
                raise HeadgateError(
                    "BAD_AGGREGATE",
                    f"{keyed._builder.cannot_add(f'window {self.uid!r}')}: {name} is {each!r}, "
                    "which is no figure",
                    hint="from headgate.windows import count, sum, min, max",
                )
        named = tuple(NamedAggregate(name, each) for name, each in aggregates.items())
        node = Window(
            self.uid, keyed.port, keyed.columns, self.windows, named, self.lateness, self.early
        )
        keyed._builder.add(node)
        return Windowed(
            updates=keyed._stream(Port(self.uid, "updates")),
            late=keyed._stream(Port(self.uid, "late")),
        )
