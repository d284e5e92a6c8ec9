"""Keyed and windowed streams, before they are aggregated."""

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
    """Rows grouped by key; without columns, all rows form one group."""

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
            uid: The permanent id of the operator's state; keep it to keep the state.
            windows: `tumbling("15m")`, `sliding("15m", every="5m")` or `session(gap="30m")`.
            allowed_lateness: How long after its end a window still takes events, each followed by a
                correction; later events go to `late`.
            early: When a window emits results before its end: `every_events(4)`,
                `every_event_time("2m")`, `every_processing_time("10s")`, or several.
        """
        if not isinstance(windows, Tumbling | Sliding | Session):
            raise self._bad(uid, f"{windows!r} is not a kind of window", 'use tumbling("15m")')
        triggers = tuple(early) if isinstance(early, Sequence) else (early,)
        for trigger in triggers:
            if not isinstance(trigger, EveryEvents | EveryEventTime | EveryProcessingTime):
                raise self._bad(
                    uid, f"{early!r} is not a trigger", 'use early=every_event_time("2m")'
                )
        given = allowed_lateness
        lateness = parse_duration(given) if isinstance(given, str) else given
        if lateness < timedelta(0):
            raise HeadgateError(
                "BAD_DURATION",
                f"{self._builder.cannot_add(f'window {uid!r}')}: allowed_lateness must not be "
                "negative",
                hint="use allowed_lateness='0s' or more",
            )
        return WindowedStream(self, uid, windows, lateness, triggers)

    def _bad(self, uid: str, problem: str, hint: str) -> HeadgateError:
        what = self._builder.cannot_add(f"window {uid!r}")
        return HeadgateError(
            "BAD_WINDOW", f"{what}: {problem}", hint=f"{hint}, from headgate.windows"
        )


@dataclass(frozen=True, slots=True, eq=False)
class WindowedStream:
    """A window operator without its aggregates."""

    _keyed: KeyedStream
    uid: str
    windows: Windows
    lateness: timedelta
    early: tuple[Trigger, ...]

    def aggregate(self, **aggregates: Aggregate) -> Windowed:
        """Compute these aggregates for each key and window.

        Rows of `updates` have the key columns, `window_start`, `window_end`, the aggregates,
        `partial`, `correction` and `processed_at`.

        Args:
            aggregates: Aggregates by result column: visits=count(), total=sum("price").
        """
        keyed = self._keyed
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise HeadgateError(
                    "BAD_AGGREGATE",
                    f"{keyed._builder.cannot_add(f'window {self.uid!r}')}: {name} must be an "
                    f"aggregate, got {aggregate!r}",
                    hint="from headgate.windows import count, sum, min, max",
                )
        named = tuple(NamedAggregate(name, aggregate) for name, aggregate in aggregates.items())
        node = Window(
            self.uid, keyed.port, keyed.columns, self.windows, named, self.lateness, self.early
        )
        keyed._builder.add(node)
        return Windowed(
            updates=keyed._stream(Port(self.uid, "updates")),
            late=keyed._stream(Port(self.uid, "late")),
        )
