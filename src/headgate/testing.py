"""The test kit for users: flows in memory, without a broker and without waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headgate._units import parse_duration
from headgate.errors import HeadgateError
from headgate.flow.flow import Flow
from headgate.functions.processes.harness import DeadLetter, Harness

__all__ = ["CrashAt", "DeadLetter", "Harness", "run_flow"]


@dataclass(frozen=True, slots=True)
class CrashAt:
    """A job that is killed at the end of a batch, before it is committed, and runs it again.

    The batch is run, its rows and its changes of state are lost, and the processes of Python
    functions end.

    Attributes:
        batch: The batch of streams, from 1 on.
    """

    batch: int


def run_flow(
    flow: Flow,
    inputs: Mapping[str, Iterable[Any]],
    *,
    batches: int = 1,
    now: datetime | None = None,
    every: str | timedelta = timedelta(0),
    idle: str | timedelta = timedelta(0),
    faults: Iterable[CrashAt] = (),
) -> dict[str, list[Any]]:
    """Return the rows that a flow writes, by output, and its dead letters.

    The operators and functions are those of a job, with their state in memory. Tables are read
    first; then each stream is read in the order given; then event time ends, which closes every
    window and fires every timer of event time. The first call in a process starts Spark, which
    takes seconds.

    Args:
        flow: Its topics are neither read nor written.
        inputs: The records of its sources, by name: dicts, dataclasses, or records of the source's
            format as text or bytes. A source that is missing has no records.
        batches: The number of batches in which streams are read. The results of windows and
            enrichments are the same for any number; what counts as late may differ.
        now: The clock of the first batch, for timers of processing time and for columns such as
            `processed_at`; by default the beginning of 2026.
        every: How far the clock moves from one batch to the next: "10s" or a timedelta.
        idle: How far the clock moves on behind the last record, so that timers fire. Each timer
            that is due fires at its time, in a batch without records.
        faults: Crashes on the way. The rows must be the same as without them.
    """
    # Spark is imported when it is needed: a flow can be declared without it.
    from headgate.engine.memory.flows import NOW, Pace, run_in_memory

    if batches < 1:
        raise HeadgateError(
            "BAD_SETTING", f"batches must be 1 or more, got {batches}", hint="use batches=1"
        )
    crashes = frozenset(fault.batch for fault in faults)
    for batch in sorted(crashes):
        if not 1 <= batch <= batches:
            raise HeadgateError(
                "BAD_SETTING",
                f"cannot crash at batch {batch}: the flow is run in {batches}, from 1 on",
                hint=f"use CrashAt(batch={batches})",
            )
    pace = Pace(batches, now or NOW, _span(every), _span(idle), crashes)
    return run_in_memory(flow.graph(), inputs, pace)


def _span(span: str | timedelta) -> timedelta:
    length = parse_duration(span) if isinstance(span, str) else span
    if length < timedelta(0):
        raise HeadgateError(
            "BAD_SETTING", f"a clock cannot move back, got {length}", hint="use every='10s'"
        )
    return length
