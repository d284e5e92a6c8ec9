"""How a Kafka batch is shared out over partitions: a pure function of the sizes of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel

LIMIT = 4096
GRAIN = 4

# By partition, the records that wait: offsets after the record before, and size.
_sizes = st.one_of(st.integers(1, 40), st.integers(1000, 3000), st.just(10_000))
_records = st.lists(st.tuples(st.integers(1, 3), _sizes), max_size=12)
_partitions = st.lists(_records, min_size=1, max_size=4)


class Log:
    """Partitions whose records are known, and as much of them as was measured."""

    def __init__(
        self, spark: SparkSession, partitions: Sequence[Sequence[tuple[int, int]]]
    ) -> None:
        self._jvm: Any = spark._jvm
        self._kafka = kernel(spark).kafka
        self.records: list[dict[int, int]] = []
        for partition in partitions:
            offset, sizes = -1, {}
            for gap, size in partition:
                offset += gap
                sizes[offset] = size
            self.records.append(sizes)
        self.ends = [max(sizes, default=-1) + 2 for sizes in self.records]
        self.curves = self._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for sizes, end in zip(self.records, self.ends, strict=True):
            curve = self._kafka.SizeCurve(0, GRAIN)
            for offset, size in sizes.items():
                curve.add(offset, size)
            curve.reach(end)
            self.curves.append(curve)

    def share(self, since: Sequence[int], turn: int, *, limit: int = LIMIT) -> Any:
        """Return what the kernel makes of it: where a batch ends that begins here."""
        return self._kafka.Shares.of(
            self.curves, self._longs(since), self._longs(self.ends), limit, turn
        )

    def between(self, since: Sequence[int], until: Sequence[int]) -> list[int]:
        """Return the sizes of the records of a batch."""
        return [
            size
            for sizes, start, end in zip(self.records, since, until, strict=True)
            for offset, size in sizes.items()
            if start <= offset < end
        ]

    def _longs(self, values: Sequence[int]) -> Any:
        out = self._jvm.java.lang.reflect.Array.newInstance(
            self._jvm.java.lang.Long.TYPE, len(values)
        )
        for place, value in enumerate(values):
            out[place] = value
        return out


@given(partitions=_partitions)
def test_every_batch_is_within_its_bytes_or_one_record_and_all_records_are_read(
    spark: SparkSession, partitions: list[list[tuple[int, int]]]
) -> None:
    log = Log(spark, partitions)
    at = [0] * len(partitions)
    batches = 0
    while at != log.ends:
        turn = next((i for i, end in enumerate(log.ends) if at[i] < end), 0)
        ends = [int(each) for each in log.share(at, turn).ends()]
        assert all(a <= b for a, b in zip(at, ends, strict=True))
        assert ends != at, "a batch reads something"
        taken = log.between(at, ends)
        assert sum(taken) <= LIMIT or len(taken) == 1
        at = ends
        batches += 1
    total = sum(log.between([0] * len(at), at))
    assert total == sum(size for records in partitions for _, size in records)
    if total <= LIMIT:
        assert batches == 1, "what fits is one batch"


def test_a_partition_that_had_no_room_comes_first_in_its_turn(spark: SparkSession) -> None:
    log = Log(spark, [[(1, 3000)] * 5, [(1, 3000)] * 5])
    assert list(log.share([0, 0], 0).ends()) == [1, 0]
    assert list(log.share([1, 0], 1).ends()) == [1, 1]


def test_partitions_share_a_batch_by_the_offsets_that_wait(spark: SparkSession) -> None:
    log = Log(spark, [[(1, 10)] * 300, [(1, 10)] * 900])
    first, second = log.share([0, 0], 0).ends()
    assert first + second in range(LIMIT // 10 - 30, LIMIT // 10 + 1)
    assert second in range(3 * first - 20, 3 * first + 20)


def test_what_is_not_measured_is_not_given_and_asked_for(spark: SparkSession) -> None:
    log = Log(spark, [[(1, 10)] * 100, []])
    log.ends[1] = 1000
    shares = log.share([0, 0], 0)
    assert list(shares.ends())[1] <= 1
    assert list(shares.isShort()) == [False, True]
