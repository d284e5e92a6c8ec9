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

from batches import median_phases
from kafka_latency import FETCH_WAIT_MS, LINGER_MS, Latency, Load, measure_latency
from kafka_outputs import KafkaReader
from processes import cpu_seconds
from store_job import FLAGS, Job
from store_throughput import (
    HEADER,
    PARTITIONS,
    Place,
    Size,
    Throughput,
    measure_throughput,
    phases_line,
    tell,
)

from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION

# By delivery: which of the consumers' isolation levels its users have.
ISOLATION = {"at-least-once": "read_uncommitted", "exactly-once": "read_committed"}


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
    with _place(wanted.max_batch) as (place, servers):
        size = Size(wanted.orders, wanted.users, wanted.items)
        throughputs = measure_throughput(place, size)
        delays = _measure_latency(place, servers, wanted)
    _print_table(wanted, throughputs, delays)
    print(json.dumps(_figures(throughputs, delays)))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--rate", type=int, default=2_000, help="orders per second, for latency")
    parser.add_argument("--seconds", type=int, default=30, help="how long, for latency")
    parser.add_argument("--warm-up", type=int, default=120, help="seconds of the load before that")
    parser.add_argument("--max-batch", metavar="SIZE", help="what headgate run takes")
    return parser.parse_args()


@contextlib.contextmanager
def _place(max_batch: str | None) -> Iterator[tuple[Place, str]]:
    tell(f"starting Kafka {VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=tell
            )
            jobs = {
                delivery: Job(folder / delivery, str(broker.url), delivery, max_batch=max_batch)
                for delivery in ISOLATION
            }
            servers = str(broker.address)
            yield Place(str(broker.url), broker.pid or 0, KafkaReader(servers), jobs), servers
        finally:
            lifecycle.stop(KAFKA, folder / "broker")


def _measure_latency(place: Place, servers: str, wanted: argparse.Namespace) -> dict[str, Delay]:
    load = Load(wanted.users, wanted.items, wanted.rate, wanted.seconds, wanted.warm_up)
    return {delivery: _delay(place, servers, job, load) for delivery, job in place.jobs.items()}


def _delay(place: Place, servers: str, job: Job, load: Load) -> Delay:
    # Orders that were sent to take the time of the other delivery would come out first.
    tell(f"catching up: {job.delivery}")
    job.run()
    with job.running() as pid:
        tell(
            f"sending {load.rate:,} orders/s for {load.warm_up} s and for {load.seconds} s that "
            f"count: {job.delivery}"
        )
        before = cpu_seconds(pid), cpu_seconds(place.pid), time.monotonic()
        latency = measure_latency(servers, load, isolation=ISOLATION[job.delivery])
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
    print(HEADER)
    for delivery, each in throughputs.items():
        print(*each.lines(delivery), sep="\n")
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
        print(f"  {phases_line(delay.phases, delay.batches)}")


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


if __name__ == "__main__":
    main()
