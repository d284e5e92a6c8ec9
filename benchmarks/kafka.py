"""How fast the store's job is on Kafka, and how soon what it writes can be seen.

Starts one broker on this machine in a temporary folder, fills its topics, loads users and items
into state, and enriches the same orders at-least-once and exactly-once; then sends orders at a
steady rate and takes the time until consumers see them. The outputs of both runs are compared with
the orders: wrong ones end the benchmark. The last line is one JSON object with the figures.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from batches import median_phases, steady_rate, to_marks
from kafka_job import FLAGS, FLOW, OUTPUTS, Job, headgate
from kafka_latency import FETCH_WAIT_MS, LINGER_MS, Latency, Load, measure_latency
from kafka_outputs import Orders, check_outputs, find_ends, read_reference
from processes import cpu_seconds, peak_memory_kib

from headgate.brokers.broker import Broker, BrokerOptions
from headgate.brokers.kafka import VERSION, start_kafka, stop_kafka

PARTITIONS = 2
# By delivery: which of the consumers' isolation levels its users have.
ISOLATION = {"at-least-once": "read_uncommitted", "exactly-once": "read_committed"}


@dataclass(frozen=True, slots=True)
class Place:
    """A broker, and the job in a home for each delivery."""

    broker: Broker
    jobs: Mapping[str, Job]

    @property
    def on(self) -> str:
        return str(self.broker.url)

    @property
    def servers(self) -> str:
        return str(self.broker.address)

    @property
    def pid(self) -> int:
        return self.broker.pid or 0


@dataclass(frozen=True, slots=True)
class Throughput:
    """The figures of one run over all orders; shares are of one core."""

    orders_per_s: float
    steady_orders_per_s: float
    seconds: float
    peak_mib: float
    job_cpu: float
    broker_mib: float
    broker_cpu: float
    phases: Mapping[str, float]
    batches: int


@dataclass(frozen=True, slots=True)
class Delay:
    """The figures of one steady load; shares are of one core."""

    latency: Latency
    job_cpu: float
    broker_cpu: float
    phases: Mapping[str, float]
    batches: int


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with _place(wanted.max_batch) as place:
        throughputs = _measure_throughput(place, wanted)
        delays = _measure_latency(place, wanted)
    _print_table(wanted, throughputs, delays)
    print(json.dumps(_figures(throughputs, delays)))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--rate", type=int, default=2_000, help="orders per second, for latency")
    parser.add_argument("--seconds", type=int, default=30, help="how long, for latency")
    parser.add_argument("--warm-up", type=int, default=60, help="seconds of the load before that")
    parser.add_argument("--max-batch", metavar="SIZE", help="what headgate run takes")
    return parser.parse_args()


@contextlib.contextmanager
def _place(max_batch: str | None) -> Iterator[Place]:
    _tell(f"starting Kafka {VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        try:
            broker, _ = start_kafka(BrokerOptions(data=folder / "broker", port=0), progress=_tell)
            jobs = {
                delivery: Job(folder / delivery, str(broker.url), delivery, max_batch=max_batch)
                for delivery in ISOLATION
            }
            yield Place(broker, jobs)
        finally:
            stop_kafka(folder / "broker")


def _measure_throughput(place: Place, wanted: argparse.Namespace) -> dict[str, Throughput]:
    _fill_tables(place, wanted)
    _tell(f"producing {wanted.orders:,} orders into {PARTITIONS} partitions")
    _produce(place, wanted, orders=wanted.orders, number=1)
    reference = read_reference(place.servers, users=wanted.users, items=wanted.items)
    counted = sum(map(len, reference.values()))
    if counted != wanted.orders:
        raise RuntimeError(f"{counted:,} orders were produced, not {wanted.orders:,}")
    return {delivery: _enrich(place, job, reference) for delivery, job in place.jobs.items()}


def _fill_tables(place: Place, wanted: argparse.Namespace) -> None:
    headgate("setup", str(FLOW), "--on", place.on, "--partitions", str(PARTITIONS))
    _produce(place, wanted, orders=0, number=0)
    for delivery, job in place.jobs.items():
        # In a process of its own, so that no JVM is warm when orders come.
        _tell(f"loading {wanted.users:,} users and {wanted.items:,} items into state: {delivery}")
        job.run()


def _produce(place: Place, wanted: argparse.Namespace, *, orders: int, number: int) -> None:
    words = ["--users", wanted.users, "--items", wanted.items, "--orders", orders]
    words += ["--round", number, "--bad", 0]
    headgate("produce", "store", "--on", place.on, "--quiet", *map(str, words))


def _enrich(place: Place, job: Job, reference: Mapping[str, Orders]) -> Throughput:
    _tell(f"enriching: {job.delivery}")
    since = find_ends(place.servers, OUTPUTS)
    before = cpu_seconds(place.pid)
    run = job.run()
    busy = cpu_seconds(place.pid) - before
    found = check_outputs(
        place.servers, since, reference, exactly_once=job.delivery == "exactly-once"
    )
    _tell("  " + ", ".join(f"{output} {count:,}" for output, count in found.items()))
    if run.orders != sum(map(len, reference.values())):
        raise RuntimeError(f"the job says it read {run.orders:,} orders")
    return Throughput(
        orders_per_s=run.orders / run.seconds,
        steady_orders_per_s=steady_rate(to_marks(run.batches)),
        seconds=run.seconds,
        peak_mib=run.peak_kib / 1024,
        job_cpu=run.cpu_seconds / run.seconds,
        broker_mib=peak_memory_kib(place.pid) / 1024,
        broker_cpu=busy / run.seconds,
        phases=median_phases(run.batches),
        batches=len(run.batches),
    )


def _measure_latency(place: Place, wanted: argparse.Namespace) -> dict[str, Delay]:
    load = Load(wanted.users, wanted.items, wanted.rate, wanted.seconds, wanted.warm_up)
    return {delivery: _delay(place, job, load) for delivery, job in place.jobs.items()}


def _delay(place: Place, job: Job, load: Load) -> Delay:
    # Orders that were sent to take the time of the other delivery would come out first.
    _tell(f"catching up: {job.delivery}")
    job.run()
    with job.running() as pid:
        _tell(
            f"sending {load.rate:,} orders/s for {load.warm_up} s and for {load.seconds} s that "
            f"count: {job.delivery}"
        )
        before = cpu_seconds(pid), cpu_seconds(place.pid), time.monotonic()
        latency = measure_latency(place.servers, load, isolation=ISOLATION[job.delivery])
        after = cpu_seconds(pid), cpu_seconds(place.pid), time.monotonic()
        took = after[2] - before[2]
    batches = job.batches(since=latency.began)
    return Delay(
        latency=latency,
        job_cpu=(after[0] - before[0]) / took,
        broker_cpu=(after[1] - before[1]) / took,
        phases=median_phases(batches),
        batches=len(batches),
    )


def _print_table(
    wanted: argparse.Namespace, throughputs: Mapping[str, Throughput], delays: Mapping[str, Delay]
) -> None:
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"with one broker (Kafka {VERSION}) on the same, {datetime.now(UTC):%Y-%m-%d}"
    )
    print(
        f"{wanted.orders:,} orders from {PARTITIONS} partitions, {wanted.users:,} users and "
        f"{wanted.items:,} items in state, run with {' '.join(FLAGS)}"
    )
    print(
        "  orders/s from the start of the process to its end; steady: after the first fifth, by "
        "the ends of batches"
    )
    print(f"{'':<15}{'orders/s':>10}{'steady':>10}{'took':>9}{'peak memory':>14}{'CPU':>7}", end="")
    print(f"{'broker memory':>16}{'CPU':>7}")
    for delivery, each in throughputs.items():
        print(
            f"{delivery:<15}{each.orders_per_s:>10,.0f}{each.steady_orders_per_s:>10,.0f}"
            f"{each.seconds:>7.1f} s{each.peak_mib:>10,.0f} MiB{each.job_cpu:>7.0%}"
            f"{each.broker_mib:>12,.0f} MiB{each.broker_cpu:>7.0%}"
        )
        print(f"  {_phases(each.phases, each.batches)}")
    print(
        f"{wanted.rate:,} orders/s for {wanted.seconds} s, after {wanted.warm_up} s of the same; "
        f"linger {LINGER_MS} ms, consumers wait {FETCH_WAIT_MS} ms at most"
    )
    print(f"{'':<15}{'p50':>8}{'p95':>8}{'p99':>8}{'longest':>11}{'sender behind':>17}", end="")
    print(f"{'CPU':>7}{'broker CPU':>13}")
    for delivery, delay in delays.items():
        seen = delay.latency
        print(
            f"{delivery:<15}{seen.p50:>8.0f}{seen.p95:>8.0f}{seen.p99:>8.0f}{seen.longest:>8.0f} ms"
            f"{seen.behind_ms:>14.0f} ms{delay.job_cpu:>7.0%}{delay.broker_cpu:>13.0%}"
        )
        early = " ".join(f"{ms:,.0f}" for ms in seen.first)
        print(f"  the {wanted.warm_up} s before, p50 p95 p99: {early}")
        print(f"  {_phases(delay.phases, delay.batches)}")


def _phases(phases: Mapping[str, float], batches: int) -> str:
    told = ", ".join(f"{name} {ms:,.0f}" for name, ms in phases.items() if ms >= 1)
    return f"{batches:,} batches, medians in ms: {told}"


def _figures(
    throughputs: Mapping[str, Throughput], delays: Mapping[str, Delay]
) -> dict[str, dict[str, Any]]:
    rates: dict[str, dict[str, Any]] = {
        delivery.replace("-", "_"): {
            "orders_per_s": round(each.orders_per_s),
            "steady_orders_per_s": round(each.steady_orders_per_s),
            "peak_rss_mb": round(each.peak_mib),
        }
        for delivery, each in throughputs.items()
    }
    names = {"at-least-once": "micro_batch", "exactly-once": "exactly_once_visible"}
    latencies = {
        names[delivery]: {
            name: round(getattr(each.latency, name), 1) for name in ("p50", "p95", "p99")
        }
        for delivery, each in delays.items()
    }
    return {**rates, "latency_ms": latencies}


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
