"""A driver with its checkpoint on an object store, in a process of its own.

Started with one JSON object: `checkpoint`, `topics`, `logs`, and `lease` if it takes one. It runs
until it has caught up, prints the outcome as its last line, and needs no supervisor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import located_flow

import headgate
from headgate import Flow, HeadgateError
from headgate._locations import parse_location
from headgate.connectors.logs import bind, parse_log
from headgate.engine.attempt.attempt import Attempt
from headgate.engine.settings import MIB, AttemptSettings, SparkSettings
from headgate.engine.state.reading import StatePlace, StateReader, StateShape
from headgate.flow.graph.graph import Graph

JOB = "stored"


def flow() -> Flow:
    """Return a flow with state: orders of users, each with the user's name."""
    stored = Flow(JOB)
    orders = stored.stream("orders", "id BIGINT NOT NULL, buyer BIGINT NOT NULL")
    users = stored.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    found = orders.enrich("with-buyer", users, on="buyer", into="user")
    found.matched.select("id", "user.name AS name").to("out")
    return stored


def bound(topics: Path) -> Graph:
    """Return the flow on topics in a folder."""
    return bind(flow().graph(), parse_log(f"files:{topics}"))


class StoredRun:
    """The topics of a run in a folder, and its checkpoint below an address."""

    def __init__(self, folder: Path, store: str, environment: dict[str, str]) -> None:
        self.folder = folder
        self.store = store
        self.crashes = folder / "crashes"
        self.crashes.mkdir(parents=True)
        self._environment = environment
        self._files = 0

    @property
    def checkpoint(self) -> str:
        """The address of Spark's folder."""
        return f"{self.store}/checkpoint"

    def put(self, topic: str, records: Iterable[Any]) -> None:
        """Publish a file of a topic."""
        self._files += 1
        folder = self.folder / "topics" / topic
        folder.mkdir(parents=True, exist_ok=True)
        making = folder / f".{self._files}.tmp"
        making.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        making.rename(folder / f"{self._files:06d}.jsonl")

    def read(self) -> list[tuple[int, str]]:
        """Return the rows in the output, as any reader sees them."""
        return sorted((row["id"], row["name"]) for row in self.read_topic("out"))

    def read_topic(self, topic: str) -> list[Any]:
        """Return the records of an output."""
        files = sorted((self.folder / "topics" / topic).glob("part-*/*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def start(
        self, name: str = "driver", crashes: Path | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a driver; its logs are under its name.

        Args:
            crashes: Its crash points, if not those of all drivers.
        """
        given = {
            "checkpoint": self.checkpoint,
            "topics": str(self.folder / "topics"),
            "logs": str(self.folder / name),
            **options,
        }
        source = Path(headgate.__file__).parents[1]
        return subprocess.Popen(
            [sys.executable, __file__, json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                **self._environment,
                "PYTHONPATH": f"{source}:{Path(located_flow.__file__).parent}",
                "HEADGATE_CRASH_DIR": str(crashes or self.crashes),
            },
            start_new_session=True,
        )

    def run(self, **options: Any) -> str:
        """Run a driver to its end and return the outcome."""
        return outcome(self.start(**options))

    def look_up(self, batch: int, ids: list[str], key: int) -> Any:
        """Return the name of a user in the state after a batch, and the number of users there."""
        return json.loads(self.run(reads={"batch": batch, "ids": ids, "key": str(key)}))


def outcome(driver: subprocess.Popen[str]) -> str:
    """Return how a driver ended: the ending, the code of an error, or `died`."""
    printed, _ = driver.communicate(timeout=900)
    lines = printed.strip().splitlines()
    ended = [line.removeprefix("outcome: ") for line in lines if line.startswith("outcome: ")]
    return ended[-1] if ended else f"died: {lines[-20:]}"


def main() -> None:
    """Run the driver that the first argument describes."""
    given = json.loads(sys.argv[1])
    try:
        print(f"outcome: {read(given) if 'reads' in given else run(given)}", flush=True)
    except HeadgateError as error:
        print(f"outcome: {error}".replace("\n", " "), flush=True)


def read(given: Any) -> str:
    """Read the state of the flow after a batch."""
    logs, wanted = Path(given["logs"]), given["reads"]
    reader = StateReader(
        log_file=logs / "state.log",
        scratch=logs / "state",
        longest_query=timedelta(minutes=5),
        stores=["s3a"],
    )
    graph = bound(Path(given["topics"]))
    (users,) = graph.tables()
    shape = StateShape(graph, ("with-buyer",), {users.id: (users.schema,)}, {users.id: users.key})
    checkpoint = parse_location(given["checkpoint"])
    place = StatePlace(checkpoint, wanted["batch"], shape, {0: tuple(wanted["ids"])}, 0)
    _, (found,) = reader.look_up([place], "with-buyer", wanted["key"])
    return json.dumps([found, len(reader.first_rows(place, "with-buyer", 100).rows)])


def run(given: Any) -> str:
    """Run the flow until it has caught up."""
    logs = Path(given["logs"])
    lease = given.get("lease")
    settings = AttemptSettings(
        job=JOB,
        lineage="stored",
        checkpoint=parse_location(given["checkpoint"]),
        lease=None if lease is None else parse_location(lease),
        lease_expires=timedelta(seconds=given.get("expires", 30)),
        spark=SparkSettings(
            parallelism=2,
            master="local[2]",
            driver_memory=768 * MIB,
            state_memory=64 * MIB,
            log_file=logs / "spark.log",
            lock_file=logs / "driver.lock",
        ),
        batch_every=timedelta(0),
        max_batch=given.get("max_batch", 1024),
        until_caught_up=not given.get("endless", False),
    )
    graph = (
        bind(
            Graph.from_json(Path(given["flow"]).read_text()), parse_log(f"files:{given['topics']}")
        )
        if "flow" in given
        else bound(Path(given["topics"]))
    )
    attempt = Attempt(graph, settings, near=None)
    try:
        attempt.start()
        while not attempt.wait(1):
            pass
        return str(attempt.ending())
    finally:
        attempt.close()


if __name__ == "__main__":
    main()
