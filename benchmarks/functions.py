"""How fast Python functions are on Kafka, beside the same work in SQL.

Starts one broker on this machine in a temporary folder and fills a topic with visits. The same
visits are copied with a computed column, at-least-once: by SQL, by `map` and by `map_batches`, in
turn, each as often as asked. All that comes out is compared with what plain Python computes. The
last line is one JSON object with the median of each.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from batches import steady_rate, to_marks
from kafka_outputs import KafkaReader, read_records
from store_job import Job, headgate

from headgate.brokers import lifecycle
from headgate.brokers.broker import BrokerOptions
from headgate.brokers.kafka import KAFKA, VERSION

FLOWS = Path(__file__).with_name("functions_flow.py")
PARTITIONS = 2
Ints = npt.NDArray[np.int64]
# By the name in the figures: the flow, its job, and its output.
CONTENDERS = {
    "plain": ("plain", "visits-plain", "out-plain"),
    "map": ("rows", "visits-map", "out-map"),
    "map_batches": ("tables", "visits-map-batches", "out-map-batches"),
}


@dataclass(frozen=True, slots=True)
class Figures:
    """The rates of one run."""

    events_per_s: float
    steady_events_per_s: float


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    # A benchmark that is ended must not leave a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    figures: dict[str, list[Figures]] = {name: [] for name in CONTENDERS}
    with _visits(wanted.events) as (folder, on, servers):
        expected = _digest(servers, "visits", b'"event_time":', divide=1000)
        for number in range(wanted.rounds):
            for name in CONTENDERS:
                figures[name].append(_run(name, folder / f"{name}-{number}", on))
                _tell(f"{name}: {figures[name][-1]}")
        for name, (_, _, topic) in CONTENDERS.items():
            _check(name, _digest(servers, topic, b'"second":'), expected, wanted.rounds)
    print(json.dumps({name: _median(runs) for name, runs in figures.items()}))


@contextmanager
def _visits(events: int) -> Iterator[tuple[Path, str, str]]:
    _tell(f"starting Kafka {VERSION}")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        try:
            broker, _ = lifecycle.start(
                KAFKA, BrokerOptions(data=folder / "broker", port=0), progress=_tell
            )
            on = str(broker.url)
            for flow, _, _ in CONTENDERS.values():
                headgate("setup", f"{FLOWS}:{flow}", "--on", on, "--partitions", str(PARTITIONS))
            _tell(f"producing {events:,} visits into {PARTITIONS} partitions")
            shape = ["--count", events, "--visits", 100_000, "--late", 0]
            headgate("produce", "visits", "--on", on, "--quiet", *map(str, shape))
            yield folder, on, str(broker.address)
        finally:
            lifecycle.stop(KAFKA, folder / "broker")


def _run(name: str, home: Path, on: str) -> Figures:
    flow, job_name, _ = CONTENDERS[name]
    job = Job(home, on, "at-least-once", flow=f"{FLOWS}:{flow}", name=job_name, stream="visits")
    run = job.run()
    return Figures(run.records / run.seconds, steady_rate(to_marks(run.batches)))


def _digest(servers: str, topic: str, name: bytes, *, divide: int = 1) -> Ints:
    """Return the sorted numbers behind a name in a topic's records."""
    numbers = array("q")
    for _, value in read_records(servers, KafkaReader(servers).beginning(topic)):
        after = value[value.index(name) + len(name) :]
        numbers.append(int(after[: after.index(b",")]) // divide)
    return np.sort(np.frombuffer(numbers, dtype=np.int64))


def _check(name: str, found: Ints, expected: Ints, rounds: int) -> None:
    if not np.array_equal(found, np.repeat(expected, rounds)):
        raise RuntimeError(f"{name} wrote {found.size:,} rows, not each visit {rounds} times")


def _median(runs: list[Figures]) -> dict[str, int]:
    return {
        "events_per_s": round(statistics.median(run.events_per_s for run in runs)),
        "steady_events_per_s": round(statistics.median(run.steady_events_per_s for run in runs)),
    }


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
