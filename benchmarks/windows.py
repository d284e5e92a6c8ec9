"""How fast visits are counted in windows on Kafka, beside Spark's own windows.

Starts one broker on this machine in a temporary folder and fills a topic with visits. The same
visits are counted by key in windows of 15 minutes: by headgate, exactly-once, with early results
and without; and by Spark's `groupBy(window).count()` in update mode. Then headgate counts other
visits of fewer and of more keys. All that comes out is compared with a count in numpy: a wrong
count ends the benchmark. The last line is one JSON object with the figures.
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

import windows_spark
from batches import Batch, median_phases, steady_rate, to_batch, to_marks
from processes import run_measured
from store_job import FLAGS, Job, headgate
from windows_flow import EARLY_TOPIC, FINALS_TOPIC
from windows_outputs import Counts, check_ours, check_sparks, count_visits

from headgate._artifacts import resolve
from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION
from headgate.jobs.topics.listing import create_topic

FLOWS = Path(__file__).with_name("windows_flow.py")
PARTITIONS = 2
DELIVERY = "exactly-once"
OTHER_KEYS = (10_000, 100_000, 1_000_000)
# By the name of the flow: where its rows go, and what they are.
OURS = {
    "early": (EARLY_TOPIC, "final rows, and an early one when the watermark passes a minute"),
    "finals": (FINALS_TOPIC, "final rows"),
}
SPARKS = "every group that changed, after each batch"


@dataclass(frozen=True, slots=True)
class Place:
    """A broker with visits in it, and a folder beside it."""

    folder: Path
    on: str
    servers: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run over all visits; the share is of one core."""

    events_per_s: float
    steady_per_s: float
    seconds: float
    peak_mib: float
    cpu: float
    rows: int
    batches: list[Batch]


def main() -> None:
    """Run the benchmark."""
    wanted = _parse()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    resolve(windows_spark.CONNECTOR, progress=_tell)
    with _visits(wanted.events, wanted.keys) as place:
        ours = {name: _count(place, name, wanted) for name in OURS}
        largest = max(batch.records for batch in ours["early"].batches)
        sparks = _count_with_spark(place, largest, wanted)
    by_keys = {}
    for keys in OTHER_KEYS if wanted.by_keys_events else ():
        with _visits(wanted.by_keys_events, keys) as place:
            by_keys[keys] = _count(place, "early", wanted)
    _print_table(wanted, ours, sparks, by_keys, largest)
    print(json.dumps(_figures(ours, sparks, by_keys)))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument(
        "--by-keys-events", type=int, default=2_000_000, help="for each number of keys; 0 for none"
    )
    parser.add_argument("--max-batch", metavar="SIZE", help="what headgate run takes")
    return parser.parse_args()


@contextlib.contextmanager
def _visits(events: int, keys: int) -> Iterator[Place]:
    """Give a new broker with so many visits of so many keys, two hours of them."""
    _tell(f"starting Kafka {VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=_tell
            )
            on, servers = str(broker.url), str(broker.address)
            for flow in OURS:
                headgate("setup", f"{FLOWS}:{flow}", "--on", on, "--partitions", str(PARTITIONS))
            create_topic(on, windows_spark.TOPIC, partitions=PARTITIONS)
            _tell(f"producing {events:,} visits of {keys:,} keys into {PARTITIONS} partitions")
            shape = ["--count", events, "--visits", keys, "--late", 0, "--out-of-order", "30s"]
            headgate("produce", "visits", "--on", on, "--quiet", *map(str, shape))
            counts = count_visits(servers)
            if counts.events.sum() != events:
                raise RuntimeError(f"{counts.events.sum():,} visits are there, not {events:,}")
            yield Place(folder, on, servers, counts)
        finally:
            lifecycle.stop(KAFKA, folder / "broker")


def _count(place: Place, flow: str, wanted: argparse.Namespace) -> Figures:
    _tell(f"counting: headgate, {flow}")
    job = Job(
        place.folder / flow,
        place.on,
        DELIVERY,
        max_batch=wanted.max_batch,
        flow=f"{FLOWS}:{flow}",
        name=f"visits-{flow}",
        streams=("visits",),
    )
    run = job.run()
    if run.records != place.counts.events.sum():
        raise RuntimeError(f"the job says it read {run.records:,} visits")
    return Figures(
        events_per_s=run.records / run.seconds,
        steady_per_s=steady_rate(to_marks(run.batches)),
        seconds=run.seconds,
        peak_mib=run.peak_kib / 1024,
        cpu=run.cpu_seconds / run.seconds,
        rows=check_ours(place.servers, OURS[flow][0], place.counts),
        batches=run.batches,
    )


def _count_with_spark(place: Place, max_offsets: int, wanted: argparse.Namespace) -> Figures:
    _tell("counting: Spark's own windows")
    reports = place.folder / "reports.jsonl"
    words = {
        "servers": place.servers,
        "events": wanted.events,
        "max-offsets": max_offsets,
        "partitions": PARTITIONS,
        "checkpoint": place.folder / "spark-checkpoint",
        "reports": reports,
    }
    command = [sys.executable, windows_spark.__file__]
    command += [word for name, value in words.items() for word in (f"--{name}", str(value))]
    used = run_measured(command, place.folder / "spark.log")
    lines = [json.loads(line) for line in reports.read_text().splitlines()]
    batches = [to_batch(report, None) for report in lines if "addBatch" in report["durationMs"]]
    return Figures(
        events_per_s=wanted.events / used.seconds,
        steady_per_s=steady_rate(to_marks(batches)),
        seconds=used.seconds,
        peak_mib=used.peak_kib / 1024,
        cpu=used.cpu_seconds / used.seconds,
        rows=check_sparks(place.servers, windows_spark.TOPIC, place.counts),
        batches=batches,
    )


def _print_table(
    wanted: argparse.Namespace,
    ours: Mapping[str, Figures],
    sparks: Figures,
    by_keys: Mapping[int, Figures],
    max_offsets: int,
) -> None:
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"with one broker (Kafka {VERSION}) on the same, {datetime.now(UTC):%Y-%m-%d}"
    )
    print(
        f"{wanted.events:,} visits of {wanted.keys:,} keys from {PARTITIONS} partitions, in "
        "windows of 15 minutes, watermark 5 minutes behind"
    )
    print(f"headgate {DELIVERY}, run with {' '.join(FLAGS)}")
    print(
        f"Spark's own in update mode: at-least-once, at most {max_offsets:,} visits a batch, as "
        "headgate's largest; RocksDB with changelogs, memory, collector and tasks the same"
    )
    print(
        "  visits/s steady: after the first fifth, by the ends of batches; overall: from the start "
        "of the process to its end"
    )
    _print_head("")
    for name, each in ours.items():
        _print_line(f"headgate, {name}", each)
        print(f"  writes {OURS[name][1]}")
        print(f"  {_phases(each.batches)}")
    _print_line("Spark's own", sparks)
    print(f"  writes {SPARKS}")
    print(f"  {_phases(sparks.batches)}")
    if by_keys:
        print(f"{wanted.by_keys_events:,} visits of so many keys, headgate, early")
        _print_head("keys")
    for keys, each in by_keys.items():
        _print_line(f"{keys:,}", each)


def _print_head(first: str) -> None:
    print(
        f"{first:<18}{'steady':>12}{'overall':>12}{'took':>10}{'peak memory':>15}{'CPU':>7}"
        f"{'rows out':>14}{'batches':>9}"
    )


def _print_line(name: str, each: Figures) -> None:
    print(
        f"{name:<18}{each.steady_per_s:>12,.0f}{each.events_per_s:>12,.0f}{each.seconds:>8.1f} s"
        f"{each.peak_mib:>11,.0f} MiB{each.cpu:>7.0%}{each.rows:>14,}{len(each.batches):>9,}"
    )


def _phases(batches: list[Batch]) -> str:
    # Batches that only move event time on would hide what the others take.
    full = [batch for batch in batches if batch.records]
    told = (f"{name} {ms:,.0f}" for name, ms in median_phases(full).items() if ms >= 1)
    return f"{len(full):,} batches with visits, medians in ms: {', '.join(told)}"


def _figures(
    ours: Mapping[str, Figures], sparks: Figures, by_keys: Mapping[int, Figures]
) -> dict[str, Any]:
    return {
        "events_per_s": round(ours["early"].steady_per_s),
        "spark_events_per_s": round(sparks.steady_per_s),
        "peak_rss_mb": round(ours["early"].peak_mib),
        "events_per_s_by_keys": {
            str(keys): round(each.steady_per_s) for keys, each in by_keys.items()
        },
    }


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
