"""The job that counts visits on a real Kafka broker, and what a reader finds there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from eventually import eventually
from kafka_broker import KafkaBroker
from shop import kill
from visits_reference import Count, Event, read_count, read_event, watermark

from headgate.connectors.contract.setup import SetupOptions
from headgate.jobs.sandbox.visits import VisitsOptions, produce_visits
from headgate.jobs.topics.setup import set_up

FLOW = Path(__file__).parents[2] / "examples" / "visits" / "flow.py"
JOB = "visits"
LINES, LATE, EVENTS = "visits_counter", "late-visits", "visits"


class VisitsJob:
    """The job and its topics, on a broker that nobody else has."""

    def __init__(self, folder: Path, broker: KafkaBroker) -> None:
        self.broker = broker
        self.home = folder / "home"
        self.log = folder / "supervisor.log"
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.environment = dict(os.environ)
        set_up(str(FLOW), broker.url, SetupOptions(partitions=1))

    def produce(self, number: int) -> None:
        """Send a round: 20 minutes of 9 visits, one event in 20 late."""
        options = VisitsOptions(
            count=400, visits=9, late=0.05, span=timedelta(minutes=20), round=number
        )
        produce_visits(self.broker.url, options)

    def start(self, *flags: str) -> None:
        """Start the job's supervisor; it goes on where the job was."""
        command = [sys.executable, "-m", "headgate", "run", str(FLOW), "--on", self.broker.url]
        command += ["--home", str(self.home), "--batch-every", "100ms"]
        command += ["--checkpoint-every", "0s", "--retain", "500"]
        command += ["--restart", "fixed-delay:100,0s", *flags]
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=self.environment
            )

    def headgate(self, *words: str) -> Any:
        """Run a verb and return what it printed as JSON; it has to succeed."""
        command = [sys.executable, "-m", "headgate", *words, "--json", "--home", str(self.home)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env=self.environment,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}\n{self._tail()}"
        return json.loads(done.stdout.splitlines()[-1])

    def end(self, *verb: str) -> dict[str, Any]:
        """Have the job ended by a verb, and return what was said of it."""
        assert self.supervisor is not None
        self.wait_until(self.is_running)
        told: dict[str, Any] = self.headgate(verb[0], JOB, *verb[1:])
        self.supervisor.wait(timeout=60)
        return told

    def status(self) -> dict[str, Any]:
        """Return what the supervisor says; nothing before it has."""
        try:
            text = (self.home / "jobs" / JOB / "status.json").read_text()
        except FileNotFoundError:
            return {}
        content: dict[str, Any] = json.loads(text)
        return content

    def is_running(self) -> bool:
        """Tell whether the supervisor of now says so, and not the status of one that is gone."""
        status = self.status()
        mine = self.supervisor is not None and status.get("pid") == self.supervisor.pid
        return mine and status.get("state") == "RUNNING"

    def kill_child(self) -> None:
        """Kill the process that holds the driver, and wait until another takes its place."""
        self.wait_until(self.is_running)
        status = self.status()
        os.kill(int(status["child"]), 9)
        self.wait_until(lambda: self.status().get("attempt", 0) > status["attempt"])

    def settle(self) -> None:
        """Wait until all events have been read and every window is over that can be."""
        events = self.events()
        self.wait_until(lambda: self.is_running() and self._is_settled(events))

    def _is_settled(self, events: list[Event]) -> bool:
        run = self.status().get("lineage")
        kept = [each for each in self.headgate("checkpoints", JOB) if each["run"] == run]
        # The batch after the one that moved the watermark has the final rows.
        return len(kept) > 1 and all(_is_at_the_end(each, events) for each in kept[-2:])

    def kill_supervisor(self) -> None:
        """Leave nothing behind."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            kill(self.supervisor.pid)
            self.supervisor.wait()

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition; a failure shows the end of the supervisor's log."""
        eventually(condition, what=self._tail)

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    # What a reader of committed records finds

    def events(self) -> list[Event]:
        """Return the input."""
        return [read_event(value) for value in self._values(EVENTS)]

    def late(self) -> Counter[str]:
        """Return how often each event is among the late ones, by its id."""
        return Counter(read_event(value).id for value in self._values(LATE))

    def counts(self) -> list[Count]:
        """Return the output, the lines of a window in the order they were made."""
        found = [read_count(value.decode()) for value in self._values(LINES)]
        return sorted(found, key=lambda each: (each.made, each.visits))

    def _values(self, topic: str) -> list[bytes]:
        return [value for value in self.broker.values(topic) if value is not None]


def _is_at_the_end(checkpoint: dict[str, Any], events: list[Event]) -> bool:
    following = checkpoint["sources"][EVENTS]["position"]["topics"][EVENTS]["next"]
    reached = checkpoint["watermark"]
    is_over = reached is not None and datetime.fromisoformat(reached) >= watermark(events)
    return is_over and sum(following) == len(events)
