"""The order of rows: what came first in a source leaves first, whatever a shuffle did."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
from memory_flow import MemoryFlow
from py4j.java_gateway import set_field
from pyspark.sql import SparkSession

from headgate import Flow, Stream
from headgate._kernel.bridge import kernel
from headgate._kernel.memory_query import MemoryRecord
from headgate.windows import count, every_events, tumbling

SEEDS = range(5)
KEYS = 40
VERSIONS = 5
PARTITIONS = 3


def records() -> list[MemoryRecord]:
    """Return versions of keys at adjacent places; a key is always in the same partition."""
    made = []
    places = [0] * PARTITIONS
    for key in range(KEYS):
        for version in range(VERSIONS):
            partition = key % PARTITIONS
            row = {"key": key, "version": version, "at": 1_000 * (VERSIONS - version)}
            value = json.dumps(row).encode()
            made.append(MemoryRecord("in", value, partition=partition, offset=places[partition]))
            places[partition] += 1
    return made


def started(*, event_time: str | None = None) -> tuple[Flow, Stream]:
    """Return a flow with an operator that no row of the stream goes to."""
    flow = Flow("ordered")
    stream = flow.stream("in", "key BIGINT, version BIGINT, at BIGINT", event_time=event_time)
    table = flow.table("table", "id BIGINT NOT NULL", key="id")
    flow.stream("other", "id BIGINT").enrich("beside", table, on="id", into="t").matched.to("none")
    return flow, stream


def by_key(rows: Iterable[dict[str, Any]]) -> dict[int, list[int]]:
    """Return the versions of each key in the order in which they came out."""
    found = defaultdict(list)
    for row in rows:
        found[row["key"]].append(row["version"])
    return found


IN_ORDER = {key: list(range(VERSIONS)) for key in range(KEYS)}


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_no_operator_takes_keep_their_order_per_key_and_per_partition(
    spark: SparkSession, seed: int
) -> None:
    flow, stream = started()
    stream.to("keyed", key="key")
    stream.to("keyless")
    made = MemoryFlow(spark, flow).batch(records(), seed=seed)
    assert by_key(made["keyed"]) == IN_ORDER
    for partition in range(PARTITIONS):
        rows = [row for row in made["keyless"] if row["key"] % PARTITIONS == partition]
        assert rows == sorted(rows, key=lambda row: (row["key"], row["version"]))
    assert by_key(made["keyless"]) == IN_ORDER


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_an_operators_key_leave_it_in_the_order_of_their_source(
    spark: SparkSession, seed: int
) -> None:
    flow, stream = started(event_time="at")
    table = flow.table("more", "id BIGINT NOT NULL", key="id")
    enriched = stream.enrich("with-more", table, on="key", into="more")
    enriched.matched.to("matched")
    enriched.missing.to("missing")
    # Later versions happened earlier: all are unique, and are not told by when they happened.
    stream.dedupe("once", by="key", within="1s").unique.to("unique")
    window = stream.key_by("key").window("w", tumbling("1s")).aggregate(n=count())
    window.updates.to("updates")
    window.late.to("late")
    memory = MemoryFlow(spark, flow)
    memory.feed("more", *({"id": key} for key in range(0, KEYS, 2)))
    made = memory.batch(records(), seed=seed, watermark=0)
    assert by_key(made["matched"]) == {key: IN_ORDER[key] for key in range(0, KEYS, 2)}
    assert by_key(made["missing"]) == {key: IN_ORDER[key] for key in range(1, KEYS, 2)}
    assert by_key(made["unique"]) == IN_ORDER
    again = memory.batch(records(), seed=seed, watermark=3_600_000)
    assert by_key(again["late"]) == IN_ORDER


@pytest.mark.parametrize("seed", SEEDS)
def test_early_results_pass_a_later_operator_in_the_order_they_were_told(
    spark: SparkSession, seed: int
) -> None:
    flow = Flow("early")
    stream = flow.stream("in", "key BIGINT, at BIGINT", event_time="at")
    window = stream.key_by("key").window("w", tumbling("1h"), early=every_events(4))
    counted = window.aggregate(n=count()).updates
    counted.to("out")
    table = flow.table("table", "id BIGINT NOT NULL", key="id")
    counted.where("n < 0").enrich("behind", table, on="n", into="t").matched.to("none")
    made = MemoryFlow(spark, flow).batch(
        [
            MemoryRecord("in", json.dumps({"key": n % 7, "at": n}).encode(), offset=n)
            for n in range(7 * 12)
        ],
        seed=seed,
    )
    told = defaultdict(list)
    for row in made["out"]:
        told[row["key"]].append(row["n"])
    assert told == {key: [4, 8, 12] for key in range(7)}


def test_rows_whose_order_means_nothing_spread_whatever_their_offsets_are(
    spark: SparkSession,
) -> None:
    rows = kernel(spark).rows
    header = rows.Header()
    buckets = set()
    for number in range(1_000):
        # As of a Pulsar topic whose messages come one by one.
        set_field(header, "offset", number << 20)
        buckets.add(rows.Bucket.spread(header))
    # As many as chance would fill of 4,096.
    assert len(buckets) > 800
