"""The clocks of timed streams: sources of the query that tell Spark the event time. Pure.

A clock is an entry in Spark's offset log beside the flow's sources. Its name begins unlike that of
any source, so a lookup of sources by name never returns a clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta

from headgate._units import to_millis
from headgate.engine.plan.flow_plan import source_name
from headgate.flow.operators.nodes import Source

_PREFIX = "__clock"
# The maximum step of the clock of a quiet flow; see Reading.java.
_MOST_NUDGED = timedelta(seconds=1)
# The last millisecond with a date: the kernel's value for the clock of a drained job.
_END_MS = 253_402_300_799_999


def clock_name(source_id: str) -> str:
    """Return the name of a stream's clock in Spark's checkpoint."""
    return _PREFIX + source_name(source_id)


def delay(stream: Source, nudge: timedelta | None) -> timedelta:
    """Return how far the watermark trails a stream's greatest event time.

    Args:
        nudge: The interval at which a quiet flow checks for results due by the wall clock.
    """
    wanted = stream.out_of_orderness or timedelta(0)
    return wanted if nudge is None else wanted + _MOST_NUDGED


def clock_options(
    stream: Source,
    nudge: timedelta | None,
    *,
    watermark_ms: int,
    reached: Mapping[str, int],
    partitions: Mapping[str, int],
) -> dict[str, str]:
    """Return the options of a stream's clock.

    Args:
        watermark_ms: The flow's watermark at the resumed position; 0 for none.
        reached: The event time of each stream at that position, in epoch milliseconds, by id.
        partitions: The greatest event time of each of the stream's partitions there, by name.
    """
    behind = to_millis(delay(stream, nudge))
    known = {"clock.idle": stream.idle_after, "clock.nudge": nudge}
    options = {name: str(to_millis(span)) for name, span in known.items() if span is not None}
    starts = [reached[stream.id]] if stream.id in reached else []
    if watermark_ms > 0:
        # A stream that is new in this checkpoint, or whose last batch its clock did not include.
        starts.append(watermark_ms + behind)
    if starts:
        options["clock.start"] = str(max(starts))
    if partitions:
        options["clock.partitions"] = json.dumps(partitions)
    return {"clock.stream": stream.id, "clock.delay": str(behind), **options}


def read_times(positions: Mapping[str, str | None], streams: tuple[Source, ...]) -> dict[str, int]:
    """Return the event time of each stream, in epoch milliseconds, by id.

    Args:
        positions: The positions of a batch as JSON, by the name of the source or clock in Spark.
    """
    shown = {source.id: _time(positions.get(clock_name(source.id))) for source in streams}
    return {stream: time for stream, time in shown.items() if time is not None}


def read_partition_times(
    positions: Mapping[str, str | None], streams: tuple[Source, ...]
) -> dict[str, dict[str, int]]:
    """Return the greatest event time of each partition, by stream id and partition name.

    Streams with unknown partitions are omitted: clocks of format 1 did not store them.

    Args:
        positions: The positions of a batch as JSON, by the name of the source or clock in Spark.
    """
    shown = {source.id: positions.get(clock_name(source.id)) for source in streams}
    times = {
        stream: json.loads(text).get("partitions", {})
        for stream, text in shown.items()
        if text is not None
    }
    return {stream: by_name for stream, by_name in times.items() if by_name}


def is_drained(positions: Mapping[str, str | None]) -> bool:
    """Return True if event time has ended: all further records are late.

    Args:
        positions: The positions of a batch as JSON, by the name of the source or clock in Spark.
    """
    times = (_time(text) for name, text in positions.items() if name.startswith(_PREFIX))
    return has_ended(time for time in times if time is not None)


def has_ended(times: Iterable[int]) -> bool:
    """Return True if the event time of any stream has ended."""
    return any(time >= _END_MS for time in times)


def _time(position: str | None) -> int | None:
    shown = None if position is None else json.loads(position)["max"]
    return None if shown is None else int(shown)
