"""How fast the store's orders are enriched in each format.

Starts one Kafka broker and a schema registry in this process, and loads users and items into the
state of one job for each format. Then, several times, the same new orders are written in each
format, and each job enriches them, one after the other, exactly-once. The outputs of every run are
compared with the orders: wrong ones end the benchmark. The figures are the medians; the last line
is one JSON object with them.

A format is a `Case`: how its topics are filled from those in JSON, and how they are read.
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from batches import steady_rate, to_marks
from formats_avro import AvroReader, copy_topic
from formats_flow import FORMAT, REGISTRY
from kafka_outputs import KafkaReader
from store_job import OUTPUTS, Job, headgate
from store_outputs import Orders, Reader, check_outputs, read_reference
from store_throughput import PARTITIONS, tell
from yardstick import machine_speed

from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION

ROOT = Path(__file__).parents[1]
FLOW = Path(__file__).with_name("formats_flow.py")
TABLES = ("users", "items")

# The registry of the tests.
sys.path.append(str(ROOT / "tests" / "spark"))
from schema_registry import SchemaRegistry  # noqa: E402 - found by the path above


@dataclass(frozen=True, slots=True)
class Case:
    """A format, and the job whose topics are in it.

    Attributes:
        copy: Writes what is new in a topic in JSON, from some places on, in this format.
    """

    name: str
    job: Job
    reader: Reader
    copy: Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run."""

    orders_per_s: float
    steady_orders_per_s: float
    machine: float


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    runs: dict[str, list[Figures]] = {}
    with _cases(wanted) as (on, source, cases):
        _fill_tables(on, source, cases, wanted)
        for number in range(1, wanted.rounds + 1):
            for name, figures in _round(on, source, cases, wanted, number).items():
                runs.setdefault(name, []).append(figures)
    _print_table(wanted, runs)
    print(json.dumps({name: _medians(figures) for name, figures in runs.items()}))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000, help="in each round")
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", nargs="+", default=["json", "avro"])
    return parser.parse_args()


@contextlib.contextmanager
def _cases(wanted: argparse.Namespace) -> Iterator[tuple[str, KafkaReader, list[Case]]]:
    tell(f"starting Kafka {VERSION}")
    with (
        tempfile.TemporaryDirectory(prefix="headgate-bench-") as name,
        SchemaRegistry().serving() as registry,
    ):
        folder = Path(name)
        os.environ[REGISTRY] = registry.url
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=tell
            )
            servers, on = str(broker.address), str(broker.url)
            json_reader = KafkaReader(servers)

            def to_avro(topic: str, since: Any) -> None:
                copy_topic(servers, registry, topic, since)

            known: dict[str, tuple[Reader, Callable[[str, Any], None]]] = {
                "json": (json_reader, lambda *_: None),
                "avro": (AvroReader(json_reader, registry), to_avro),
            }
            cases = [Case(form, _job(folder, on, form), *known[form]) for form in wanted.formats]
            yield on, json_reader, cases
        finally:
            lifecycle.stop(KAFKA, folder / "broker")


def _job(folder: Path, on: str, form: str) -> Job:
    prefix = "" if form == "json" else f"{form}-"
    return Job(
        folder / form,
        on,
        "exactly-once",
        flow=str(FLOW),
        name=f"bench-{form}",
        streams=(f"{prefix}orders",),
    )


def _fill_tables(
    on: str, source: KafkaReader, cases: list[Case], wanted: argparse.Namespace
) -> None:
    for case in cases:
        os.environ[FORMAT] = case.name
        headgate("setup", str(FLOW), "--on", on, "--partitions", str(PARTITIONS))
    if all(case.name != "json" for case in cases):
        os.environ[FORMAT] = "json"
        headgate("setup", str(FLOW), "--on", on, "--partitions", str(PARTITIONS))
    _produce(on, wanted, orders=0, number=0)
    for case in cases:
        tell(f"loading {wanted.users:,} users and {wanted.items:,} items into state: {case.name}")
        for table in TABLES:
            case.copy(table, source.beginning(table))
        os.environ[FORMAT] = case.name
        case.job.run()


def _produce(on: str, wanted: argparse.Namespace, *, orders: int, number: int) -> None:
    words = ["--users", wanted.users, "--items", wanted.items, "--orders", orders]
    words += ["--round", number, "--bad", 0]
    headgate("produce", "store", "--on", on, "--quiet", *map(str, words))


@dataclass(frozen=True, slots=True)
class _Since:
    """Reads the orders of one round as if they were all."""

    reader: KafkaReader
    ends: Any

    def find_ends(self, topics: Any) -> Any:
        return self.reader.find_ends(topics)

    def beginning(self, _: str) -> Any:
        return self.ends

    def read(self, since: Any) -> Iterator[tuple[str, bytes]]:
        return self.reader.read(since)


def _round(
    on: str, source: KafkaReader, cases: list[Case], wanted: argparse.Namespace, number: int
) -> dict[str, Figures]:
    tell(f"round {number}: producing {wanted.orders:,} orders into {PARTITIONS} partitions")
    before = source.find_ends(["orders"])
    _produce(on, wanted, orders=wanted.orders, number=number)
    reference = read_reference(_Since(source, before), users=wanted.users, items=wanted.items)
    if sum(map(len, reference.values())) != wanted.orders:
        raise RuntimeError(f"{wanted.orders:,} orders should have been produced")
    for case in cases:
        case.copy("orders", before)
    # None of them is always the one that finds the machine warm.
    turn = cases if number % 2 else cases[::-1]
    return {case.name: _run(case, reference, wanted.orders) for case in turn}


def _run(case: Case, reference: Mapping[str, Orders], orders: int) -> Figures:
    # Pages that were just written would slow down the next run while they go to the disk.
    os.sync()
    before = machine_speed()
    tell(f"enriching: {case.name}")
    os.environ[FORMAT] = case.name
    since = case.reader.find_ends(OUTPUTS)
    run = case.job.run()
    speed = (before + machine_speed()) / 2
    found = check_outputs(case.reader, since, reference, exactly_once=True)
    tell("  " + ", ".join(f"{output} {count:,}" for output, count in found.items()))
    if run.records % orders:
        raise RuntimeError(f"the job says it read {run.records:,} orders")
    return Figures(orders / run.seconds, steady_rate(to_marks(run.batches)), speed)


def _medians(figures: list[Figures]) -> dict[str, int]:
    return {
        name: round(statistics.median(getattr(each, name) for each in figures))
        for name in ("orders_per_s", "steady_orders_per_s")
    }


def _print_table(wanted: argparse.Namespace, runs: Mapping[str, list[Figures]]) -> None:
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"with one broker (Kafka {VERSION}) on the same, {datetime.now(UTC):%Y-%m-%d}"
    )
    print(
        f"{wanted.rounds} rounds of {wanted.orders:,} orders from {PARTITIONS} partitions, "
        f"{wanted.users:,} users and {wanted.items:,} items in state, exactly-once"
    )
    print(f"{'':<12}{'orders/s':>12}{'steady':>12}   each round, steady; the machine's speed")
    for name, figures in runs.items():
        medians = _medians(figures)
        rounds = " ".join(f"{each.steady_orders_per_s:,.0f}" for each in figures)
        speeds = " ".join(f"{each.machine:.2f}" for each in figures)
        rates = f"{medians['orders_per_s']:>12,}{medians['steady_orders_per_s']:>12,}"
        print(f"{name:<12}{rates}   {rounds}; {speeds}")


if __name__ == "__main__":
    main()
