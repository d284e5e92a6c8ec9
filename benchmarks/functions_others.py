"""Spark's own Python state and Bytewax, each in a process of its own with packages of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import windows_spark
from batches import Mark, steady_rate, to_batch, to_marks
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka_outputs import find_ends

from headgate._artifacts import resolve

HERE = Path(__file__).parent
PACKAGES = Path(__file__).parents[1] / "build" / "bench-packages"
# What each needs; ours has neither.
NEEDS = {
    "spark_tws": ("pandas<3", "protobuf>=6.33,<7"),
    "bytewax": ("bytewax==0.21.1", "confluent-kafka"),
}
# A run must have several batches: its steady rate is that of all but the first ones.
MAX_OFFSETS = 100_000


@dataclass(frozen=True, slots=True)
class Figures:
    """The rates of one run."""

    events_per_s: float
    steady_events_per_s: float


class Other(Protocol):
    """One way of running a contender; its text is its name."""

    def run(self, folder: Path, servers: str, *, visits: str, topic: str, events: int) -> Figures:
        """Read all visits and write their totals to a topic."""


@dataclass(frozen=True, slots=True)
class Spark:
    """Spark's own `transformWithState` in Python: with rows, or with data frames of pandas."""

    form: str

    def __str__(self) -> str:
        return f"spark-{self.form}"

    def run(self, folder: Path, servers: str, *, visits: str, topic: str, events: int) -> Figures:
        """Read all visits and write their totals to a topic."""
        folder.mkdir()
        reports = folder / "reports.jsonl"
        words = {
            "form": self.form,
            "servers": servers,
            "visits": visits,
            "topic": topic,
            "events": events,
            "max-offsets": MAX_OFFSETS,
            "partitions": 2,
            "checkpoint": folder / "checkpoint",
            "reports": reports,
        }
        command = [sys.executable, str(HERE / "functions_spark.py")]
        command += [word for name, value in words.items() for word in (f"--{name}", str(value))]
        named = {"PYTHONPATH": str(PACKAGES / "spark_tws"), "PYSPARK_PYTHON": sys.executable}
        seconds = _time(command, folder, named)
        told = [json.loads(line) for line in reports.read_text().splitlines()]
        batches = [to_batch(report, None) for report in told if "addBatch" in report["durationMs"]]
        return Figures(events / seconds, steady_rate(to_marks(batches)))


@dataclass(frozen=True, slots=True)
class Bytewax:
    """Bytewax with recovery, with so many workers, each a process."""

    workers: int

    def __str__(self) -> str:
        return f"bytewax-{self.workers}"

    def run(self, folder: Path, servers: str, *, visits: str, topic: str, events: int) -> Figures:
        """Read all visits and write their totals to a topic."""
        store = folder / "recovery"
        store.mkdir(parents=True)
        named = {
            "PYTHONPATH": str(PACKAGES / "bytewax"),
            "BENCH_SERVERS": servers,
            "BENCH_VISITS": visits,
            "BENCH_TOPIC": topic,
        }
        python = [sys.executable, "-m"]
        _time([*python, "bytewax.recovery", str(store), str(self.workers)], folder, named)
        flow = ["bytewax.run", str(HERE / "functions_bytewax.py"), "-r", str(store)]
        # As its documentation advises: a snapshot every 30 seconds, and no delay of their removal.
        command = [*python, *flow, "-s", "30", "-b", "0"]
        if self.workers > 1:
            # Threads would share one interpreter.
            command = [*python, "bytewax.testing", *flow[1:], "-s", "30", "-b", "0"]
            command += ["-p", str(self.workers)]
        seconds = _time(command, folder, named)
        return Figures(events / seconds, steady_rate(_marks(servers, topic)))


def install_others(names: Sequence[str], *, progress: Callable[[str], None]) -> None:
    """Install what contenders need, each into a folder of its own, unless it is there."""
    for name in names:
        folder = PACKAGES / name
        if folder.exists():
            continue
        progress(f"installing {', '.join(NEEDS[name])}")
        made = folder.with_suffix(".tmp")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made)]
        subprocess.run([*command, *NEEDS[name]], check=True)
        made.rename(folder)
    if "spark_tws" in names:
        resolve(windows_spark.CONNECTOR, progress=progress)


def _time(command: Sequence[str], folder: Path, named: Mapping[str, str]) -> float:
    """Run a command to its end, and return how many seconds it took."""
    log = folder / "output.log"
    began = time.monotonic()
    with log.open("ab") as said:
        done = subprocess.run(
            command, stdout=said, stderr=said, env={**os.environ, **named}, check=False
        )
    if done.returncode:
        told = log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"{' '.join(command[:4])} ended with {done.returncode}:\n{told}")
    return time.monotonic() - began


def _marks(servers: str, topic: str) -> list[Mark]:
    """Return how many rows were in a topic at the end of each second, by the rows' timestamps."""
    times: list[int] = []
    ends = find_ends(servers, [topic])
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "headgate-bench"})
    try:
        consumer.assign(
            [TopicPartition(end.topic, end.partition, OFFSET_BEGINNING) for end in ends]
        )
        wanted = sum(end.offset for end in ends)
        while len(times) < wanted:
            times += [message.timestamp()[1] for message in consumer.consume(5_000, timeout=1)]
    finally:
        consumer.close()
    times.sort()
    by_second: dict[int, int] = {}
    for number, at in enumerate(times, 1):
        by_second[at // 1000] = number
    return [Mark(times[0] / 1000, 0), *(Mark(at + 1.0, count) for at, count in by_second.items())]
