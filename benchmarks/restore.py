"""What a checkpoint costs and how long a restore takes, as the state grows.

For each number of keys: loads the users into state, changes 1 % of them several times while the
job runs, and restores the job. The last line is one JSON object with, by number of keys, the
seconds from `restore` to the first new output, and the median milliseconds and new bytes of a
checkpoint after 1 % of the keys changed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.jobs.sandbox.store import StoreOptions, produce_store

FLOW = Path(__file__).parents[1] / "examples" / "orders" / "flow.py"
JOB = "order-enrichment"
ROUNDS = 7


class Place:
    """A job in a folder of its own, driven by the command line."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.topics = folder / "topics"
        self.home = folder / "home"
        self.keys = keys
        self.process: subprocess.Popen[bytes] | None = None

    def produce(self, number: int, *, updates: int = 0, orders: int = 0) -> None:
        options = StoreOptions(
            users=self.keys, items=100, orders=orders, updates=updates, round=number, bad=0.0
        )
        produce_store(f"files:{self.topics}", options)

    def start(self, *words: str) -> None:
        command = [sys.executable, "-m", "headgate", *words, "--home", str(self.home)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def run(self) -> None:
        flags = ["--on", f"files:{self.topics}", "--batch-every", "0s", "--checkpoint-every", "0s"]
        self.start("run", str(FLOW), *flags)

    def stop(self) -> None:
        command = [sys.executable, "-m", "headgate", "stop", JOB, "--home", str(self.home)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if self.process is not None:
            self.process.wait()

    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(
                (self.home / "jobs" / JOB / "status.json").read_text()
            )
        except FileNotFoundError:
            return {}
        return found

    def checkpoints(self) -> list[dict[str, Any]]:
        events = (self.home / "jobs" / JOB / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, events) if event["event"] == "CHECKPOINT"]

    def outputs(self) -> int:
        return sum(1 for _ in (self.topics / "enriched-orders").rglob("part-*/*.jsonl"))

    def wait(self, what: Callable[[], bool], seconds: float = 900) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the job is {self.status().get('state')}")
            if self.process is not None and self.process.poll() not in (None, 0):
                raise RuntimeError(f"the job ended: {self.status().get('reason')}")
            time.sleep(0.02)


def measure(folder: Path, keys: int) -> dict[str, float]:
    """Return the figures for one number of keys."""
    place = Place(folder, keys)
    place.produce(0)
    began = time.monotonic()
    place.run()
    place.wait(lambda: place.status().get("state_rows", {}).get("with-user", 0) >= keys)
    print(f"{keys:>10,} keys loaded in {time.monotonic() - began:.0f} s", flush=True)
    change = keys // 100
    costs = []
    for number in range(1, ROUNDS + 1):
        before = len(place.checkpoints())
        place.produce(number, updates=change)
        place.wait(lambda seen=before: len(place.checkpoints()) > seen)  # type: ignore[misc]
        costs.append(place.checkpoints()[-1])
    place.stop()
    place.produce(ROUNDS + 1, orders=1_000)
    outputs = place.outputs()
    began = time.monotonic()
    place.start("restore", JOB, "--from", "latest")
    place.wait(lambda: place.outputs() > outputs)
    restored = time.monotonic() - began
    place.wait(lambda: place.status().get("state") == "RUNNING")
    place.stop()
    return {
        "restore_s": round(restored, 2),
        "checkpoint_ms": statistics.median(each["took_ms"] for each in costs),
        "checkpoint_bytes": statistics.median(each["new_bytes"] for each in costs),
        "full_bytes": costs[-1]["full_bytes"],
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000_000, 5_000_000])
    wanted = parser.parse_args()
    found = {}
    for keys in wanted.keys:
        with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
            found[keys] = measure(Path(folder), keys)
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"{datetime.now(UTC):%Y-%m-%d}; 1 % of the keys changed before each checkpoint"
    )
    for keys, each in found.items():
        print(
            f"{keys:>10,} keys: restore {each['restore_s']:.1f} s, checkpoint "
            f"{each['checkpoint_ms']:.0f} ms, {each['checkpoint_bytes']:,.0f} new bytes "
            f"of {each['full_bytes']:,.0f}"
        )
    names = ("restore_s", "checkpoint_ms", "checkpoint_bytes")
    print(
        json.dumps(
            {name: {str(keys): each[name] for keys, each in found.items()} for name in names}
        )
    )


if __name__ == "__main__":
    main()
