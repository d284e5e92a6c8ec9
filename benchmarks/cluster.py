"""How fast the store's job is on a cluster of this machine, beside as many threads of one driver.

Starts one Kafka broker and a cluster of two single-core workers in a temporary folder, fills the
topics, and runs the job with `local[1]`, one executor, `local[2]` and two executors, in turns. Each
run loads users and items, then enriches the same orders exactly once; its outputs are
compared with the orders. A rate counts from a minute after the first batch of orders: three JVMs
compile on the cores that they work on. The last line is one JSON object with the medians.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from batches import Mark, median_phases, to_marks
from kafka_outputs import KafkaReader
from processes import cpu_seconds
from store_job import FLOW, OUTPUTS, Job, headgate
from store_outputs import Orders, check_outputs, read_reference
from store_throughput import tell
from yardstick import machine_speed

from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION
from headgate.jobs.sandbox.cluster import ClusterOptions, start_cluster, stop_cluster

PARTITIONS = 2
_GIB = 1024**3
_TARGET = 0.7


@dataclass(frozen=True, slots=True)
class Setup:
    """One way to run the job: its name, and the words for it."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        rate: Orders per second from the moment on from which it counts.
        cpu_us: The processor time per order of the driver and its executors, in microseconds.
        commit_ms: The median time in which a batch logs its start and its end.
        machine: What `machine_speed` gave, before and after on average.
    """

    rate: float
    cpu_us: float
    commit_ms: float
    machine: float


@dataclass(frozen=True, slots=True)
class Place:
    """The broker and the cluster.

    Attributes:
        workers: The processes of the workers, which have the executors as children.
    """

    folder: Path
    on: str
    reader: KafkaReader
    master: str
    workers: tuple[int, ...]


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with _place() as place:
        reference = _fill(place, wanted)
        results: dict[str, list[Result]] = {}
        for number in range(wanted.runs):
            for setup in _setups(place.master):
                tell(f"run {number + 1} of {wanted.runs}: {setup.name}")
                result = _run(place, setup, number, reference, wanted.after)
                results.setdefault(setup.name, []).append(result)
                tell(f"  {result.rate:,.0f} orders/s, {result.cpu_us:,.1f} µs of CPU an order")
    _print(wanted, results)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=6_000_000)
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--runs", type=int, default=3, help="of each setup, in turns")
    parser.add_argument("--after", type=float, default=60, help="seconds that do not count")
    return parser.parse_args()


@contextlib.contextmanager
def _place() -> Iterator[Place]:
    tell(f"starting Kafka {VERSION} and a cluster")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        options = ClusterOptions(folder=folder / "cluster", memory=2 * _GIB, port=0)
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=tell
            )
            cluster, _ = start_cluster(options)
            workers = [each.pid for each in cluster.processes if each.name != "master"]
            yield Place(
                folder,
                str(broker.url),
                KafkaReader(str(broker.address)),
                str(cluster.master),
                tuple(pid for pid in workers if pid is not None),
            )
        finally:
            stop_cluster(options.folder)
            lifecycle.stop(KAFKA, folder / "broker")


def _setups(master: str) -> Sequence[Setup]:
    on_cluster = ("--master", master, "--executor-cores", "1", "--executor-memory", "1GiB")
    return (
        Setup("local_1", ("--master", "local[1]")),
        Setup("cluster_1", (*on_cluster, "--executors", "1")),
        Setup("local_2", ("--master", "local[2]")),
        Setup("cluster_2", (*on_cluster, "--executors", "2")),
    )


def _fill(place: Place, wanted: argparse.Namespace) -> Mapping[str, Orders]:
    headgate("setup", str(FLOW), "--on", place.on, "--partitions", str(PARTITIONS))
    tell(f"producing {wanted.orders:,} orders into {PARTITIONS} partitions")
    sizes = [f"--{name}={getattr(wanted, name)}" for name in ("users", "items", "orders")]
    headgate("produce", "store", "--on", place.on, "--quiet", "--bad", "0", *sizes)
    return read_reference(place.reader, users=wanted.users, items=wanted.items)


def _run(
    place: Place, setup: Setup, number: int, reference: Mapping[str, Orders], after: float
) -> Result:
    job = Job(
        place.folder / f"{setup.name}-{number}",
        place.on,
        "exactly-once",
        more=(*setup.words, "--parallelism", str(PARTITIONS)),
    )
    os.sync()
    machine = machine_speed()
    since = place.reader.find_ends(OUTPUTS)
    before = sum(map(cpu_seconds, place.workers))
    run = job.run()
    busy = run.cpu_seconds + sum(map(cpu_seconds, place.workers)) - before
    check_outputs(place.reader, since, reference, exactly_once=True)
    batches = [batch for batch in run.batches if batch.records]
    phases = median_phases(batches)
    return Result(
        rate=rate_after(to_marks(batches), after),
        cpu_us=1e6 * busy / run.records,
        commit_ms=phases.get("walCommit", 0) + phases.get("commitOffsets", 0),
        machine=(machine + machine_speed()) / 2,
    )


def rate_after(marks: Sequence[Mark], seconds: float) -> float:
    """Return records per second from the first mark so long after the beginning to the last one.

    Raises:
        RuntimeError: There are fewer than two marks after that.
    """
    counted = [mark for mark in marks if mark.at >= marks[0].at + seconds]
    if len(counted) < 2:
        took = marks[-1].at - marks[0].at
        raise RuntimeError(f"all was read after {took:.0f} s: take more --orders, or less --after")
    first, last = counted[0], counted[-1]
    return (last.records - first.records) / (last.at - first.at)


def _print(wanted: argparse.Namespace, results: Mapping[str, Sequence[Result]]) -> None:
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"with one broker (Kafka {VERSION}), master and workers on the same, "
        f"{datetime.now(UTC):%Y-%m-%d}"
    )
    print(
        f"{wanted.orders:,} orders from {PARTITIONS} partitions, exactly once, medians of "
        f"{wanted.runs} runs in turns; rates after the first {wanted.after:.0f} s"
    )
    print(f"{'':<12}{'orders/s':>10}{'lowest':>10}{'highest':>10}{'CPU/order':>13}{'commit':>11}")
    for name, runs in results.items():
        rates = [run.rate for run in runs]
        print(
            f"{name:<12}{statistics.median(rates):>10,.0f}{min(rates):>10,.0f}{max(rates):>10,.0f}"
            f"{_median(runs, 'cpu_us'):>10.1f} µs{_median(runs, 'commit_ms'):>8.0f} ms"
        )
    machines = [run.machine for runs in results.values() for run in runs]
    print(f"the machine: {min(machines):.2f} to {max(machines):.2f} million writes/s")
    medians = {name: _median(runs, "rate") for name, runs in results.items()}
    ratio = medians["cluster_2"] / medians["local_2"]
    print(f"two executors at {ratio:.2f} of two threads; the target is {_TARGET}")
    figures = {name: round(rate) for name, rate in medians.items()}
    figures["checkpoint_ms"] = round(_median(results["cluster_2"], "commit_ms"))
    print(json.dumps(figures))


def _median(runs: Sequence[Result], field: str) -> float:
    return float(statistics.median(getattr(run, field) for run in runs))


if __name__ == "__main__":
    main()
