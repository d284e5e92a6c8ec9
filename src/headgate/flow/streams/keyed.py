"""Keyed streams: windows and processes for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, cast

from headgate.errors import HeadgateError
from headgate.flow.building.broadcasting import check_broadcast
from headgate.flow.building.builder import Builder
from headgate.flow.building.processing import add_process
from headgate.flow.operators.event_time import parse_wait
from headgate.flow.operators.nodes import (
    Port,
)
from headgate.flow.operators.windowing import (
    EveryEvents,
    EveryEventTime,
    EveryProcessingTime,
    Session,
    Sliding,
    Trigger,
    Tumbling,
    Windows,
)
from headgate.flow.schemas.schema import Schema
from headgate.flow.streams.connecting import ConnectedStreams, check_connected
from headgate.flow.streams.missing_methods import (
    KEYED,
    Explained,
)
from headgate.flow.streams.outputs import (
    Processed,
)
from headgate.flow.streams.stream import Stream
from headgate.flow.streams.tables import Broadcast
from headgate.flow.streams.windowed import WindowedStream
from headgate.functions.broadcast import BroadcastProcess
from headgate.functions.keyed import KeyedProcess


@dataclass(frozen=True, slots=True, eq=False)
class KeyedStream(Explained):
    """Rows grouped by key; without columns, all rows form one group in a window."""

    port: Port
    columns: tuple[str, ...]
    _builder: Builder

    _kind: ClassVar[str] = "a keyed stream"
    _instead: ClassVar[Mapping[str, str]] = KEYED

    def window(
        self,
        uid: str,
        windows: Windows,
        *,
        allowed_lateness: str | timedelta = "0s",
        early: Trigger | Sequence[Trigger] = (),
        name: str | None = None,
    ) -> WindowedStream:
        """Cut each key's events into windows of event time.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            windows: `tumbling("15m")`, `sliding("15m", every="5m")` or `session(gap="30m")`.
            allowed_lateness: How long after its end a window still takes events, each followed by a
                correction; later events go to `late`.
            early: When a window emits results before its end: `every_events(4)`,
                `every_event_time("2m")`, `every_processing_time("10s")`, or several.
            name: How the console, metrics and `explain` show it; it may change between runs.
        """
        if not isinstance(windows, Tumbling | Sliding | Session):
            raise self._bad(uid, f"{windows!r} is not a kind of window", 'use tumbling("15m")')
        triggers = tuple(early) if isinstance(early, Sequence) else (early,)
        for trigger in triggers:
            if not isinstance(trigger, EveryEvents | EveryEventTime | EveryProcessingTime):
                raise self._bad(
                    uid, f"{early!r} is not a trigger", 'use early=every_event_time("2m")'
                )
        what = self._builder.cannot_add(f"window {uid!r}")
        lateness = parse_wait(allowed_lateness, name="allowed_lateness", what=what)
        return WindowedStream(self, uid, windows, lateness, triggers, name)

    def process(
        self,
        uid: str,
        function: KeyedProcess[Any, Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Processed:
        """Call a process of your own with the events of each key, with state and timers.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            function: An object of a class derived from `KeyedProcess[Order, Alert]`, where `Order`
                is what it takes and `Alert` the dataclass of the rows that it emits.
            schema: The columns of the rows that it emits, if the class does not name a dataclass.
            on_error: "fail" to fail the job when it raises; "dead-letter" to undo all that it did
                with the event or timer, and to write the event to the dead letters.
            name: As in `window`.
        """
        add_process(
            self._builder,
            self.port,
            self.columns,
            uid=uid,
            function=function,
            schema=schema,
            on_error=on_error,
            name=name,
        )
        return self._processed(uid)

    def connect(self, other: KeyedStream) -> ConnectedStreams:
        """Connect this stream with another one, for one process with the state of both.

        Args:
            other: A keyed stream of the same flow, whose key has the same types. This stream is the
                left one, the other is the right one.
        """
        check_connected(self._builder, other, is_keyed=isinstance(other, KeyedStream))
        return ConnectedStreams(self, other)

    def _processed(self, uid: str) -> Processed:
        return Processed(Stream(Port(uid, "out"), self._builder))

    def with_broadcast(
        self,
        uid: str,
        table: Broadcast,
        function: BroadcastProcess[Any, Any, Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Processed:
        """Call a process with the events of each key, state, timers and all rows of a broadcast.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            table: `flow.broadcast("rules", Rule, key="id")`.
            function: An object of a class derived from `BroadcastProcess[Order, Rule, Priced]`.
            schema: As in `process`, like `on_error`.
            name: What people see of the operator; by default its uid.
        """
        what = self._builder.cannot_add(f"process {uid!r}")
        check_broadcast(table, Broadcast, self._builder, what=what)
        add_process(
            self._builder,
            self.port,
            self.columns,
            uid=uid,
            # To type checkers its context is another.
            function=cast("KeyedProcess[Any, Any]", function),
            schema=schema,
            on_error=on_error,
            name=name,
            table=table.id,
        )
        return Processed(Stream(Port(uid, "out"), self._builder))

    def _bad(self, uid: str, problem: str, hint: str) -> HeadgateError:
        what = self._builder.cannot_add(f"window {uid!r}")
        return HeadgateError(
            "BAD_WINDOW", f"{what}: {problem}", hint=f"{hint}, from headgate.windows"
        )
