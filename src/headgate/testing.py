"""The test kit for users: flows in memory, without a broker and without waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from headgate.errors import HeadgateError
from headgate.flow.flow import Flow

__all__ = ["run_flow"]


def run_flow(
    flow: Flow,
    inputs: Mapping[str, Iterable[Any]],
    *,
    batches: int = 1,
    now: datetime | None = None,
) -> dict[str, list[Any]]:
    """Return the rows that a flow writes, by output, and its dead letters.

    The operators and functions are those of a job, with their state in memory. Tables are read
    first; then each stream is read in the order given; then event time ends, which closes every
    window. The first call in a process starts Spark, which takes seconds.

    Args:
        flow: Its topics are neither read nor written.
        inputs: The records of its sources, by name: dicts, dataclasses, or JSON as text or bytes.
            A source that is missing has no records.
        batches: The number of batches in which streams are read. The results of windows and
            enrichments are the same for any number; what counts as late may differ.
        now: The clock of all batches, for columns such as `processed_at`; by default the beginning
            of 2026.
    """
    # Spark is imported when it is needed: a flow can be declared without it.
    from headgate.engine.memory import NOW, run_in_memory

    if batches < 1:
        raise HeadgateError(
            "BAD_SETTING", f"batches must be 1 or more, got {batches}", hint="use batches=1"
        )
    return run_in_memory(flow.graph(), inputs, batches=batches, now=now or NOW)
