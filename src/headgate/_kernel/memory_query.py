"""A compiled flow that runs batch by batch in memory: real operators without a query."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from headgate._kernel.bridge import CompiledFlow, kernel

_PARTS = ("key", "value")


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A record of a source; for tables, its position decides which change is the newest.

    Attributes:
        value: None for a record without a value, which deletes the row of a table.
        lane: Within a lane, the sequence decides which change is newer; across lanes, the timestamp
            in epoch milliseconds.
        topic: Empty if the record does not name it.
    """

    source: str
    value: bytes | None
    sequence: int = 0
    lane: int = 0
    timestamp: int = 0
    partition: int = 0
    offset: int = 0
    topic: str = ""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """The state of one key of an operator, in the kernel's format."""

    bucket: int
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The state of an operator.

    Attributes:
        timers: Buckets and their timers, in epoch milliseconds.
    """

    held: tuple[MemoryEntry, ...]
    timers: tuple[tuple[int, int], ...]


class MemoryQuery:
    """Feeds batches of records to a flow; keeps state between batches."""

    def __init__(self, spark: SparkSession, spec: Mapping[str, Any]) -> None:
        compiled = CompiledFlow.compile(spark, spec)
        self._tester = kernel(spark).testing.FlowTester(compiled.plan)

    def batch(
        self,
        records: Iterable[MemoryRecord],
        *,
        seed: int = 0,
        watermark: int = 0,
        clock: int = 0,
        one_by_one: bool = False,
    ) -> list[tuple[int, bytes | None]]:
        """Run one batch and return its rows: the output's address and the record.

        The record is None for rows that are counted and not written.

        Args:
            seed: Determines the random order of rows, as after a shuffle.
            watermark: For this batch, in epoch milliseconds; it must not go back.
            clock: For this batch, in epoch milliseconds.
            one_by_one: True if each row reaches operators alone, as in real-time mode.
        """
        given = [
            {
                "source": record.source,
                "value": _text(record.value),
                "sequence": record.sequence,
                "lane": record.lane,
                "timestamp": record.timestamp,
                "partition": record.partition,
                "offset": record.offset,
                "topic": record.topic,
                "key": _text(record.key),
                "headers": [[_text(name.encode()), _text(value)] for name, value in record.headers],
            }
            for record in records
        ]
        made = json.loads(self._tester.batch(json.dumps(given), seed, watermark, clock, one_by_one))
        return [(row["output"], _bytes(row["value"])) for row in made]

    def restart(self) -> None:
        """Start again with the current state, as a restored job does."""
        self._tester.restart()

    def next_alarm(self) -> int | None:
        """Return when the earliest timer by the clock is due, in epoch ms; None without one."""
        moment: int = self._tester.nextAlarm()
        return None if moment == 2**63 - 1 else moment

    def save(self) -> None:
        """Remember state and timers, for `crash`."""
        self._tester.save()

    def crash(self) -> None:
        """Lose all that happened since `save`, and the processes that called functions."""
        self._tester.crash()

    def times(self, source: str) -> dict[str, int]:
        """Return the greatest event time of each partition of a stream since the last call."""
        return dict(json.loads(self._tester.times(source)))

    def state(self, place: int = 0) -> MemoryState:
        """Return the state of an operator.

        Args:
            place: Its index among the operators with state, in the order rows pass through them.
        """
        values = json.loads(self._tester.state(place))
        return MemoryState(
            tuple(
                MemoryEntry(entry["bucket"], *(base64.b64decode(entry[part]) for part in _PARTS))
                for entry in values["held"]
            ),
            tuple((entry["bucket"], entry["moment"]) for entry in values["timers"]),
        )


def _text(given: bytes | None) -> str | None:
    return None if given is None else base64.b64encode(given).decode()


def _bytes(given: str | None) -> bytes | None:
    return None if given is None else base64.b64decode(given)
