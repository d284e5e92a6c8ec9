"""A compiled flow run batch by batch in memory: the real operators, and no query."""

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
class TestRecord:
    """A record for a source; positions matter to tables, whose newest change counts.

    Attributes:
        value: None for a record without one, which ends the row of a table.
        lane: Within one lane the sequence decides which change is newer; across lanes the
            timestamp, in epoch milliseconds.
        topic: Empty where the record does not name it.
    """

    __test__ = False

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
class TestEntry:
    """What an operator holds of one key, in the kernel's own forms."""

    __test__ = False

    bucket: int
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class TestState:
    """What an operator holds.

    Attributes:
        timers: Buckets and the moments at which they are woken, in epoch milliseconds.
    """

    __test__ = False

    held: tuple[TestEntry, ...]
    timers: tuple[tuple[int, int], ...]


class FlowTester:
    """Feeds batches of records to a flow; state is kept from batch to batch."""

    def __init__(self, spark: SparkSession, spec: Mapping[str, Any]) -> None:
        compiled = CompiledFlow.compile(spark, spec)
        self._tester = kernel(spark).testing.FlowTester(compiled.plan)

    def batch(
        self,
        records: Iterable[TestRecord],
        *,
        seed: int = 0,
        watermark: int = 0,
        clock: int = 0,
        one_by_one: bool = False,
    ) -> list[tuple[int, Any]]:
        """Run one batch and return its rows: the output's address and the decoded value.

        Args:
            seed: Rows reach operators in an order drawn from it, as after a shuffle.
            watermark: As of this batch, in epoch milliseconds; it must not go back.
            clock: As of this batch, in epoch milliseconds.
            one_by_one: Whether each row reaches operators alone, as in real-time mode.
        """
        given = [
            {
                "source": each.source,
                "value": _text(each.value),
                "sequence": each.sequence,
                "lane": each.lane,
                "timestamp": each.timestamp,
                "partition": each.partition,
                "offset": each.offset,
                "topic": each.topic,
                "key": _text(each.key),
                "headers": [[_text(name.encode()), _text(value)] for name, value in each.headers],
            }
            for each in records
        ]
        made = json.loads(self._tester.batch(json.dumps(given), seed, watermark, clock, one_by_one))
        return [
            (row["output"], None if row["value"] is None else json.loads(row["value"]))
            for row in made
        ]

    def restart(self) -> None:
        """Begin anew with what state holds, as a restored job does."""
        self._tester.restart()

    def times(self, source: str) -> dict[str, int]:
        """Return the greatest event time of each partition of a stream since the last call."""
        return dict(json.loads(self._tester.times(source)))

    def state(self, place: int = 0) -> TestState:
        """Return what an operator holds.

        Args:
            place: The operator's among those that hold state, in the order rows pass through them.
        """
        told = json.loads(self._tester.state(place))
        return TestState(
            tuple(
                TestEntry(each["bucket"], *(base64.b64decode(each[part]) for part in _PARTS))
                for each in told["held"]
            ),
            tuple((each["bucket"], each["moment"]) for each in told["timers"]),
        )


def _text(given: bytes | None) -> str | None:
    return None if given is None else base64.b64encode(given).decode()
