"""How long questions on state take: one key, its history, a count; cold and warm.

Loads users into state, changes 1 % of them before each of several checkpoints, one chosen user in
each, and asks while the job runs. Every answer is checked against what was put in. The last line
is one JSON object with the seconds of each question.
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

from headgate import Flow
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.state.client import StateDesk

JOB = "state-bench"
CHOSEN = 42
ROUNDS = 5


class Place:
    """A job in a folder of its own, and what its state must hold."""

    def __init__(self, folder: Path, keys: int) -> None:
        self.topics = folder / "topics"
        self.home = folder / "home"
        self.flow = folder / "flow.json"
        self.keys = keys
        self.files = 0
        self.process: subprocess.Popen[bytes] | None = None
        flow = Flow(JOB)
        schema = "id BIGINT NOT NULL, name STRING, mail STRING, level INT"
        users = flow.table("users", schema, key="id")
        events = flow.stream("events", "user BIGINT NOT NULL")
        events.enrich("with-user", users, on="user", into="found").matched.to("out")
        self.topics.joinpath("events").mkdir(parents=True)
        self.topics.joinpath("users").mkdir()
        self.flow.write_text(flow.graph().to_json())

    def user(self, number: int, level: int) -> dict[str, Any]:
        name = f"User {number}"
        return {"id": number, "name": name, "mail": f"u{number}@example.com", "level": level}

    def put(self, numbers: range, level: int) -> None:
        self.files += 1
        making = self.topics / "users" / f".{self.files:06d}.tmp"
        with making.open("w") as file:
            for number in numbers:
                file.write(json.dumps(self.user(number, level)) + "\n")
        making.rename(making.with_name(f"{self.files:06d}.jsonl"))

    def run(self) -> None:
        command = [sys.executable, "-m", "headgate", "run", str(self.flow), "--retain", "100"]
        command += ["--on", f"files:{self.topics}", "--home", str(self.home), "--parallelism", "2"]
        command += ["--batch-every", "0s", "--checkpoint-every", "0s"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(
                (self.home / "jobs" / JOB / "status.json").read_text()
            )
        except FileNotFoundError:
            return {}
        return found

    def kept(self) -> int:
        return len(FolderHome(self.home).checkpoints(JOB))

    def wait(self, what: Callable[[], bool], seconds: float = 900) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the job is {self.status().get('state')}")
            if self.process is not None and self.process.poll() is not None:
                raise RuntimeError(f"the job ended: {self.status().get('reason')}")
            time.sleep(0.02)


def timed(ask: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a question took, and its answer."""
    began = time.monotonic()
    answer = ask()
    return time.monotonic() - began, answer


def check(found: Any, wanted: Any) -> None:
    """Stop where an answer is wrong."""
    if found != wanted:
        raise AssertionError(f"found {found!r}, and it must be {wanted!r}")


def measure(place: Place, checkpoints: int) -> dict[str, Any]:
    """Return the figures."""
    began = time.monotonic()
    place.put(range(place.keys), 0)
    place.run()
    place.wait(lambda: place.status().get("state_rows", {}).get("with-user", 0) >= place.keys)
    print(f"{place.keys:,} keys loaded in {time.monotonic() - began:.0f} s", flush=True)
    change = place.keys // 100
    for number in range(1, checkpoints + 1):
        before = place.kept()
        place.put(range(CHOSEN, CHOSEN + change), number)
        place.wait(lambda seen=before: place.kept() > seen)  # type: ignore[misc]
    snapshots = len(list((place.home / "jobs" / JOB / "runs").rglob("checkpoint/state/**/*.zip")))
    print(f"{checkpoints} checkpoints, {change:,} keys changed before each; {snapshots} snapshots")
    desk = StateDesk(place.home)
    try:
        return ask_all(place, desk, checkpoints)
    finally:
        desk.close()


def ask_all(place: Place, desk: StateDesk, checkpoints: int) -> dict[str, Any]:
    """Ask every question, the first one of a reader that has to be started."""
    level = checkpoints
    far = place.keys - 1
    found: dict[str, Any] = {}

    def key() -> Any:
        return desk.look_up(JOB, "with-user", str(CHOSEN)).value

    def other() -> Any:
        return desk.look_up(JOB, "with-user", str(far)).value

    def history() -> Any:
        return desk.history(JOB, "with-user", str(CHOSEN))

    def count() -> Any:
        return desk.query(JOB, "select count(*) from state", uid="with-user").rows

    found["key_cold_s"], value = timed(key)
    check(value, place.user(CHOSEN, level))
    found["key_warm_s"] = median(key, place.user(CHOSEN, level))
    found["unchanged_key_warm_s"] = median(other, place.user(far, 0))
    found["history_first_s"], told = timed(history)
    check(
        [each.value["level"] for each in told.entries[-level - 1 :]], [*range(1, level + 1), level]
    )
    found["history_entries"] = len(told.entries)
    found["history_warm_s"] = statistics.median(timed(history)[0] for _ in range(ROUNDS))
    found["count_first_s"], rows = timed(count)
    check(rows, ((place.keys,),))
    found["count_warm_s"] = median(count, ((place.keys,),), rounds=3)
    return {
        name: round(each, 2) if isinstance(each, float) else each for name, each in found.items()
    }


def median(ask: Callable[[], Any], wanted: Any, *, rounds: int = ROUNDS) -> float:
    """Return the median of several tries."""
    times = []
    for _ in range(rounds):
        took, answer = timed(ask)
        check(answer, wanted)
        times.append(took)
    return statistics.median(times)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--checkpoints", type=int, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        place = Place(Path(folder), wanted.keys)
        try:
            found = measure(place, wanted.checkpoints)
        finally:
            place.stop()
    print(
        f"on {os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), "
        f"{datetime.now(UTC):%Y-%m-%d}; the job ran meanwhile"
    )
    for name, value in found.items():
        print(f"{name:<24}{value:>10}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
