"""How fast orders are enriched from embedded topics, with users and items already in state.

Prints orders per second overall and steady (after the first fifth) and the peak memory of the
job's processes; the last line is one JSON object with the three figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from batches import Mark, steady_rate
from processes import peak_memory_kib

from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.sandbox.store import StoreOptions, produce_store
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

FLOW = Path(__file__).parents[1] / "examples" / "orders" / "flow.py"


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one run."""

    orders: int
    seconds: float
    orders_per_s: float
    steady_orders_per_s: float
    peak_rss_mb: float


class Meter:
    """Notes progress while a job runs."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.peak_kib = 0

    def note(self, snapshot: JobSnapshot) -> None:
        """Take note of one snapshot."""
        self.peak_kib = max(self.peak_kib, peak_memory_kib(os.getpid()))
        if not self.marks and snapshot.state is JobState.RUNNING:
            self.marks.append(Mark(datetime.now(UTC).timestamp(), 0))
        committed, read = snapshot.totals.committed, snapshot.totals.inputs.get("orders", 0)
        if committed is not None and read > self.marks[-1].records:
            self.marks.append(Mark(committed.timestamp(), read))

    def result(self) -> Result:
        """Return the figures of what was noted."""
        first, last = self.marks[0], self.marks[-1]
        return Result(
            orders=last.records,
            seconds=last.at - first.at,
            orders_per_s=last.records / (last.at - first.at),
            steady_orders_per_s=steady_rate(self.marks),
            peak_rss_mb=self.peak_kib / 1024,
        )


def load_tables(place: Path, on: str, options: StoreOptions) -> None:
    """Put users and items into state, in a process of its own so that no JVM is warm."""
    print(f"loading {options.users:,} users and {options.items:,} items into state", flush=True)
    produce_store(on, options)
    command = [sys.executable, "-m", "headgate", "run", str(FLOW), "--until-caught-up"]
    command += ["--on", on, "--home", str(place), "--batch-every", "0s", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure(place: Path, on: str, *, max_batch: int) -> Result:
    """Enrich what is in the topics and return the figures."""
    meter = Meter()
    run = RunOptions(
        on=on,
        home=place,
        until_caught_up=True,
        batch_every=timedelta(0),
        max_batch=max_batch,
        restart="none",
    )
    run_job(str(FLOW), run, Watcher(on_snapshot=meter.note))
    return meter.result()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=117_178)
    parser.add_argument("--items", type=int, default=2_198)
    parser.add_argument("--max-batch", type=int, default=RunOptions().max_batch, metavar="BYTES")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        place = Path(folder)
        on = f"files:{place / 'topics'}"
        load_tables(place, on, StoreOptions(users=wanted.users, items=wanted.items, orders=0))
        print(f"producing {wanted.orders:,} orders", flush=True)
        store = StoreOptions(
            users=wanted.users, items=wanted.items, orders=wanted.orders, round=1, bad=0.0
        )
        produce_store(on, store)
        print("enriching", flush=True)
        result = measure(place, on, max_batch=wanted.max_batch)
    print(
        f"{result.orders:,} orders in {result.seconds:.1f} s on {os.cpu_count()} cores "
        f"({platform.machine()}, Python {platform.python_version()}), {datetime.now(UTC):%Y-%m-%d}"
    )
    print(f"  overall            {result.orders_per_s:>10,.0f} orders/s")
    print(f"  after a fifth      {result.steady_orders_per_s:>10,.0f} orders/s")
    print(f"  peak memory        {result.peak_rss_mb:>10,.0f} MiB (driver and Python)")
    figures = {
        "orders_per_s": round(result.orders_per_s),
        "steady_orders_per_s": round(result.steady_orders_per_s),
        "peak_rss_mb": round(result.peak_rss_mb),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
