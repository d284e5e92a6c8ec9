"""How fast two streams are joined on Kafka, beside Spark's own stream-stream join.

Starts one broker on this machine in a temporary folder and fills two topics, with orders and with
as many payments. They are joined by key within 15 minutes: by headgate, at-least-once as Spark's
Kafka sink, and once more exactly-once; and by Spark's `join(…, "leftOuter")` with the same
watermark and interval. Both write a row for each pair and for each order without a payment. All
that comes out is compared with what plain Python makes of the topics. The last line is one JSON
object with the figures.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import joins_spark
from batches import Batch, median_phases, steady_rate, to_batch, to_marks
from joins_flow import PAID_TOPIC, UNPAID_TOPIC
from joins_topics import Expected, expect, find_rows, produce_orders
from processes import run_measured
from store_job import FLAGS, Job, headgate
from windows_spark import CONNECTOR

from headgate._artifacts import resolve
from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION
from headgate.jobs.topics.listing import create_topic

FLOW = f"{Path(__file__).with_name('joins_flow.py')}:flow"
PARTITIONS = 2
SAME, BETTER = "at-least-once", "exactly-once"


@dataclass(frozen=True, slots=True)
class Place:
    """A broker with orders and payments in it, and a folder beside it."""

    folder: Path
    on: str
    servers: str
    events: int
    expected: Expected


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run over all events; the share is of one core."""

    events_per_s: float
    steady_per_s: float
    seconds: float
    peak_mib: float
    cpu: float
    batches: list[Batch]

    @property
    def state_bytes(self) -> int:
        """The size of the state's files after the batch where it was largest."""
        return max(batch.state_bytes for batch in self.batches)


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    resolve(CONNECTOR, progress=_tell)
    with _orders(wanted.orders) as place:
        figures = {"ours": _join(place, SAME, wanted.max_batch)}
        largest = max(batch.records for batch in figures["ours"].batches) // 2
        if "spark" in wanted.only:
            figures["spark"] = _join_with_spark(place, largest, wanted.spark_format)
        if "exactly_once" in wanted.only:
            figures["ours_exactly_once"] = _join(place, BETTER, wanted.max_batch)
    _print_table(place, figures, largest, wanted.max_batch)
    print(json.dumps({name: _to_json(each) for name, each in figures.items()}))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000, help="and as many payments")
    # The default of headgate run would read all in three batches.
    parser.add_argument("--max-batch", metavar="SIZE", default="16MiB", help="of each topic")
    others = ["spark", "exactly_once"]
    parser.add_argument("--only", nargs="*", choices=others, default=others, help="beside ours")
    parser.add_argument("--spark-format", type=int, default=3, help="of the join's state")
    return parser.parse_args()


@contextlib.contextmanager
def _orders(orders: int) -> Iterator[Place]:
    """Give a new broker with so many orders, and as many payments."""
    _tell(f"starting Kafka {VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=_tell
            )
            on, servers = str(broker.url), str(broker.address)
            headgate("setup", FLOW, "--on", on, "--partitions", str(PARTITIONS))
            create_topic(on, joins_spark.TOPIC, partitions=PARTITIONS)
            _tell(f"producing {orders:,} orders and payments into {PARTITIONS} partitions each")
            produce_orders(servers, orders, partitions=PARTITIONS)
            events = 2 * (orders + PARTITIONS)
            yield Place(folder, on, servers, events, expect(servers))
        finally:
            lifecycle.stop(KAFKA, folder / "broker")


def _join(place: Place, delivery: str, max_batch: str) -> Figures:
    _tell(f"joining: headgate, {delivery}")
    job = Job(
        place.folder / delivery,
        place.on,
        delivery,
        max_batch=max_batch,
        flow=FLOW,
        name="paid-orders",
        streams=("orders", "payments"),
    )
    run = job.run()
    if run.records != place.events:
        raise RuntimeError(f"the job says it read {run.records:,} events")
    found = find_rows(place.servers, PAID_TOPIC, UNPAID_TOPIC)
    place.expected.check(f"headgate, {delivery}", found, times=[SAME, BETTER].index(delivery) + 1)
    return Figures(
        events_per_s=run.records / run.seconds,
        steady_per_s=steady_rate(to_marks(run.batches)),
        seconds=run.seconds,
        peak_mib=run.peak_kib / 1024,
        cpu=run.cpu_seconds / run.seconds,
        batches=run.batches,
    )


def _join_with_spark(place: Place, max_offsets: int, form: int) -> Figures:
    _tell("joining: Spark's own join")
    reports = place.folder / "reports.jsonl"
    words = {
        "servers": place.servers,
        "events": place.events,
        "max-offsets": max_offsets,
        "partitions": PARTITIONS,
        "format": form,
        "checkpoint": place.folder / "spark-checkpoint",
        "reports": reports,
    }
    command = [sys.executable, str(joins_spark.__file__)]
    command += [word for name, value in words.items() for word in (f"--{name}", str(value))]
    used = run_measured(command, place.folder / "spark.log")
    place.expected.check("Spark's own join", find_rows(place.servers, joins_spark.TOPIC), times=1)
    lines = [json.loads(line) for line in reports.read_text().splitlines()]
    batches = [to_batch(report, None) for report in lines if "addBatch" in report["durationMs"]]
    return Figures(
        events_per_s=place.events / used.seconds,
        steady_per_s=steady_rate(to_marks(batches)),
        seconds=used.seconds,
        peak_mib=used.peak_kib / 1024,
        cpu=used.cpu_seconds / used.seconds,
        batches=batches,
    )


def _print_table(
    place: Place, figures: Mapping[str, Figures], max_offsets: int, max_batch: str
) -> None:
    pairs = place.expected.rows.size - place.expected.unpaid
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"with one broker (Kafka {VERSION}) on the same, {datetime.now(UTC):%Y-%m-%d}"
    )
    print(
        f"{place.events:,} events from {PARTITIONS} partitions of each topic, joined within 15 "
        f"minutes, watermark 1 minute behind: {pairs:,} pairs, {place.expected.unpaid:,} orders "
        "without a payment"
    )
    print(f"headgate run with {' '.join(FLAGS)} --max-batch {max_batch}")
    print(
        f"Spark's own in append mode, {SAME}, at most {max_offsets:,} records of each topic a "
        "batch, half of headgate's largest; RocksDB with changelogs, memory, collector and tasks "
        "the same"
    )
    print(
        "  events/s steady: after the first fifth, by the ends of batches; overall: from the start "
        "of the process to its end; state: its files at their largest"
    )
    print(
        f"{'':<20}{'steady':>12}{'overall':>12}{'took':>10}{'peak memory':>15}{'CPU':>7}"
        f"{'state':>13}{'batches':>9}"
    )
    for name, each in figures.items():
        print(
            f"{name:<20}{each.steady_per_s:>12,.0f}{each.events_per_s:>12,.0f}"
            f"{each.seconds:>8.1f} s{each.peak_mib:>11,.0f} MiB{each.cpu:>7.0%}"
            f"{each.state_bytes / 2**20:>9,.1f} MiB{len(each.batches):>9,}"
        )
        print(f"  {_phases(each.batches)}")


def _phases(batches: list[Batch]) -> str:
    # Batches that only move event time on would hide what the others take.
    full = [batch for batch in batches if batch.records]
    told = (f"{name} {ms:,.0f}" for name, ms in median_phases(full).items() if ms >= 1)
    return f"{len(full):,} batches with events, medians in ms: {', '.join(told)}"


def _to_json(figures: Figures) -> dict[str, Any]:
    return {
        "events_per_s": round(figures.events_per_s),
        "steady_events_per_s": round(figures.steady_per_s),
        "state_bytes": figures.state_bytes,
    }


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
