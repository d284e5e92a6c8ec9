"""What readers of Pulsar see of the order in which a job takes and makes rows."""

from __future__ import annotations

import json
from pathlib import Path

from bench import Bench
from ordered_job import (
    EARLY,
    IN_ORDER,
    PARTITIONS,
    by_key,
    by_partition,
    ordered_flow,
    results,
    visits,
)
from pulsar_broker import PulsarBroker

from headgate.connectors import Pulsar


def test_copies_and_early_results_keep_their_order_on_pulsar(
    pulsar: PulsarBroker, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    source = pulsar.make_topic(partitions=PARTITIONS)
    copy, counts = (pulsar.make_topic(partitions=PARTITIONS, deduplicated=True) for _ in range(2))
    plain, letters = (pulsar.make_topic(deduplicated=True) for _ in range(2))
    for partition in range(PARTITIONS):
        # Without batching, the lower digits of all offsets are the same.
        pulsar.send(source, visits(partition), partition=partition, batching_enabled=False)
    names = (source, copy, plain, counts, letters)
    flow = ordered_flow(
        *(Pulsar(name, service=pulsar.service, admin=pulsar.admin) for name in names)
    )
    bench.run(flow, parallelism=2)

    assert by_key(pulsar.values(copy)) == IN_ORDER
    assert by_partition(pulsar.values(plain)) == [visits(each) for each in range(PARTITIONS)]
    assert by_key(pulsar.values(counts)) == EARLY
    told = results(json.loads(value) for value in pulsar.values(counts))
    assert results([*bench.read("even"), *bench.read("odd")]) == told
