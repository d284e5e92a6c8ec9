"""How fast the store's job is on Pulsar, beside the same job on Kafka.

Starts a broker on this machine in a temporary folder, fills its topics, loads users and items into
state, and enriches the same orders exactly-once: first with Kafka, then with Pulsar, never both at
a time. The outputs are compared with the orders: wrong ones end the benchmark. The last line is one
JSON object with the figures.
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
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from kafka_outputs import KafkaReader
from pulsar_outputs import PulsarReader
from store_job import FLAGS, Job
from store_throughput import (
    HEADER,
    PARTITIONS,
    Place,
    Size,
    Throughput,
    measure_throughput,
    tell,
)

from headgate.brokers import kafka, lifecycle, pulsar
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.pulsar_distribution import VERSION as PULSAR_VERSION

EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    size = Size(wanted.orders, wanted.users, wanted.items)
    places = {"Kafka": _kafka, "Pulsar": _pulsar}
    if wanted.pulsar_only:
        del places["Kafka"]
    found = {name: _measure(opened, size, wanted) for name, opened in places.items()}
    _print_table(wanted, found)
    print(json.dumps(_figures(found)))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--max-batch", metavar="SIZE", help="what headgate run takes")
    parser.add_argument("--at-least-once", action="store_true", help="measure that, too")
    parser.add_argument("--pulsar-only", action="store_true", help="leave Kafka out")
    return parser.parse_args()


def _measure(
    opened: Callable[[argparse.Namespace], AbstractContextManager[Place]],
    size: Size,
    wanted: argparse.Namespace,
) -> dict[str, Throughput]:
    with opened(wanted) as place:
        return measure_throughput(place, size)


@contextlib.contextmanager
def _kafka(wanted: argparse.Namespace) -> Iterator[Place]:
    tell(f"starting Kafka {kafka.VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        data = Path(name) / "broker"
        try:
            broker, _ = lifecycle.start(
                kafka.KAFKA, BrokerOptions(data=data, port=0), progress=tell
            )
            reader = KafkaReader(str(broker.address))
            jobs = _jobs(Path(name), str(broker.url), wanted)
            yield Place(str(broker.url), broker.pid or 0, reader, jobs)
        finally:
            lifecycle.stop(kafka.KAFKA, data)


@contextlib.contextmanager
def _pulsar(wanted: argparse.Namespace) -> Iterator[Place]:
    tell(f"starting Pulsar {PULSAR_VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        data = Path(name) / "broker"
        try:
            broker, _ = lifecycle.start(
                pulsar.PULSAR, BrokerOptions(data=data, port=0), progress=tell
            )
            admin = str(broker.url).partition("admin=")[2]
            reader = PulsarReader(f"pulsar://{broker.address}", admin)
            jobs = _jobs(Path(name), str(broker.url), wanted)
            yield Place(str(broker.url), broker.pid or 0, reader, jobs)
        finally:
            lifecycle.stop(pulsar.PULSAR, data)


def _jobs(folder: Path, on: str, wanted: argparse.Namespace) -> dict[str, Job]:
    deliveries = [EXACTLY_ONCE, *([AT_LEAST_ONCE] if wanted.at_least_once else [])]
    return {each: Job(folder / each, on, each, max_batch=wanted.max_batch) for each in deliveries}


def _print_table(wanted: argparse.Namespace, found: dict[str, dict[str, Throughput]]) -> None:
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"with one broker (Kafka {kafka.VERSION}, Pulsar {PULSAR_VERSION}) at a time on the same, "
        f"{datetime.now(UTC):%Y-%m-%d}"
    )
    print(
        f"{wanted.orders:,} orders from {PARTITIONS} partitions, {wanted.users:,} users and "
        f"{wanted.items:,} items in state, run with {' '.join(FLAGS)}"
    )
    for name, runs in found.items():
        print(f"\n{name}\n{HEADER}")
        for delivery, each in runs.items():
            print(*each.lines(delivery), sep="\n")


def _figures(found: dict[str, dict[str, Throughput]]) -> dict[str, float]:
    ours = found["Pulsar"][EXACTLY_ONCE]
    figures = {
        "steady_orders_per_s": round(ours.steady_orders_per_s),
        "peak_rss_mb": round(ours.peak_mib),
        "orders_per_s": round(ours.orders_per_s),
    }
    if "Kafka" in found:
        theirs = found["Kafka"][EXACTLY_ONCE].steady_orders_per_s
        figures["kafka_steady_orders_per_s"] = round(theirs)
        return {**figures, "ratio": round(ours.steady_orders_per_s / theirs, 2)}
    return {**figures}


if __name__ == "__main__":
    main()
