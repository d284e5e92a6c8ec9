"""How fast the store's job enriches orders that are there, on a log with a broker of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from batches import median_phases, steady_rate, to_marks
from processes import cpu_seconds, peak_memory_kib
from store_job import FLOW, OUTPUTS, Job, headgate
from store_outputs import Orders, Reader, check_outputs, read_reference
from yardstick import machine_speed

PARTITIONS = 2
HEADER = (
    f"{'':<15}{'orders/s':>10}{'steady':>10}{'took':>9}{'peak memory':>14}{'CPU':>7}"
    f"{'broker memory':>16}{'CPU':>7}"
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much data there is."""

    orders: int
    users: int
    items: int


@dataclass(frozen=True, slots=True)
class Place:
    """A broker, and the job in a home for each delivery.

    Attributes:
        on: What `--on` takes.
        pid: The broker's process.
    """

    on: str
    pid: int
    reader: Reader
    jobs: Mapping[str, Job]


@dataclass(frozen=True, slots=True)
class Throughput:
    """The figures of one run over all orders; shares are of one core.

    Attributes:
        machine: What `machine_speed` gave, before and after on average.
    """

    orders_per_s: float
    steady_orders_per_s: float
    seconds: float
    peak_mib: float
    job_cpu: float
    broker_mib: float
    broker_cpu: float
    phases: Mapping[str, float]
    batches: int
    machine: float

    def lines(self, name: str) -> list[str]:
        """Return the figures as rows of a table under `HEADER`."""
        return [
            f"{name:<15}{self.orders_per_s:>10,.0f}{self.steady_orders_per_s:>10,.0f}"
            f"{self.seconds:>7.1f} s{self.peak_mib:>10,.0f} MiB{self.job_cpu:>7.0%}"
            f"{self.broker_mib:>12,.0f} MiB{self.broker_cpu:>7.0%}",
            f"  {phases_line(self.phases, self.batches)}",
            f"  the machine before and after: {self.machine:.2f} million writes/s "
            f"({self.steady_orders_per_s / self.machine:,.0f} orders a million, steady)",
        ]


def measure_throughput(place: Place, size: Size) -> dict[str, Throughput]:
    """Fill the topics, load the tables into state, and enrich all orders with each delivery.

    Raises:
        RuntimeError: What came out is not what belongs there.
    """
    _fill_tables(place, size)
    tell(f"producing {size.orders:,} orders into {PARTITIONS} partitions")
    _produce(place, size, orders=size.orders, number=1)
    reference = read_reference(place.reader, users=size.users, items=size.items)
    counted = sum(map(len, reference.values()))
    if counted != size.orders:
        raise RuntimeError(f"{counted:,} orders were produced, not {size.orders:,}")
    return {delivery: _enrich(place, job, reference) for delivery, job in place.jobs.items()}


def phases_line(phases: Mapping[str, float], batches: int) -> str:
    """Return what batches spent their time with, in a line."""
    told = ", ".join(f"{name} {ms:,.0f}" for name, ms in phases.items() if ms >= 1)
    return f"{batches:,} batches, medians in ms: {told}"


def tell(line: str) -> None:
    """Say what comes next."""
    print(line, flush=True)


def _fill_tables(place: Place, size: Size) -> None:
    headgate("setup", str(FLOW), "--on", place.on, "--partitions", str(PARTITIONS))
    _produce(place, size, orders=0, number=0)
    for delivery, job in place.jobs.items():
        # In a process of its own, so that no JVM is warm when orders come.
        tell(f"loading {size.users:,} users and {size.items:,} items into state: {delivery}")
        job.run()


def _produce(place: Place, size: Size, *, orders: int, number: int) -> None:
    words = ["--users", size.users, "--items", size.items, "--orders", orders]
    words += ["--round", number, "--bad", 0]
    headgate("produce", "store", "--on", place.on, "--quiet", *map(str, words))


def _enrich(place: Place, job: Job, reference: Mapping[str, Orders]) -> Throughput:
    # Pages that were just written would slow down the next run while they go to the disk.
    os.sync()
    before_run = machine_speed()
    tell(f"enriching: {job.delivery}")
    since = place.reader.find_ends(OUTPUTS)
    before = cpu_seconds(place.pid)
    run = job.run()
    busy = cpu_seconds(place.pid) - before
    speed = (before_run + machine_speed()) / 2
    found = check_outputs(
        place.reader, since, reference, exactly_once=job.delivery == "exactly-once"
    )
    tell("  " + ", ".join(f"{output} {count:,}" for output, count in found.items()))
    if run.records != sum(map(len, reference.values())):
        raise RuntimeError(f"the job says it read {run.records:,} orders")
    return Throughput(
        orders_per_s=run.records / run.seconds,
        steady_orders_per_s=steady_rate(to_marks(run.batches)),
        seconds=run.seconds,
        peak_mib=run.peak_kib / 1024,
        job_cpu=run.cpu_seconds / run.seconds,
        broker_mib=peak_memory_kib(place.pid) / 1024,
        broker_cpu=busy / run.seconds,
        phases=median_phases(run.batches),
        batches=len(run.batches),
        machine=speed,
    )
