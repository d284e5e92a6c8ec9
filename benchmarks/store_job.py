"""A job on a log, run as its users run it: by the command line, in its own process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batches import Batch, read_batches
from processes import cpu_seconds, peak_memory_kib

FLOW = Path(__file__).parents[1] / "examples" / "orders" / "flow.py"
NAME = "order-enrichment"
OUTPUTS = ("enriched-orders", "missing-users", "missing-items")

# The example's headgate.toml asks for a pause after each batch; a failure must not go unnoticed.
FLAGS = ("--batch-every", "0s", "--min-pause", "0s", "--restart", "none")

_LOOK_EVERY = 0.25
_TELL_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the job, from the start of its process to its end.

    Attributes:
        records: How many of the streams it says it read.
        peak_kib: The largest memory of its processes, as it was measured.
    """

    seconds: float
    records: int
    peak_kib: int
    cpu_seconds: float
    batches: list[Batch]


def headgate(*words: str) -> None:
    """Run a verb of the command line, and show nothing but its errors."""
    command = [sys.executable, "-m", "headgate", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Job:
    """A job in a home of its own; the store's, unless it is told of another.

    Args:
        flow: The flow as `headgate run` takes it.
        name: What the flow calls itself.
        streams: The streams whose records count.
        more: Further words of the command line.
    """

    def __init__(
        self,
        home: Path,
        on: str,
        delivery: str,
        *,
        max_batch: str | None = None,
        flow: str = str(FLOW),
        name: str = NAME,
        streams: Sequence[str] = ("orders",),
        more: Sequence[str] = (),
    ) -> None:
        self._home = home
        self._name = name
        self._streams = streams
        self._words = ["run", flow, "--on", on, "--delivery", delivery, *FLAGS]
        self._words += [] if max_batch is None else ["--max-batch", max_batch]
        self._words += more
        self.delivery = delivery

    @property
    def _folder(self) -> Path:
        return self._home / "jobs" / self._name

    def run(self, *, memory_kib: Callable[[int], int] = peak_memory_kib) -> Run:
        """Read all that is there, and return what that took.

        Args:
            memory_kib: Measures the memory of a process and its children, again and again.
        """
        began, at = time.monotonic(), time.time()
        peak, cpu, told = 0, 0.0, began
        with self._process("--until-caught-up") as process:
            while _runs(process, _LOOK_EVERY):
                peak = max(peak, memory_kib(process.pid))
                cpu = max(cpu, cpu_seconds(process.pid))
                if time.monotonic() - told >= _TELL_EVERY:
                    told = time.monotonic()
                    words = f"{self._read():>10,} {' and '.join(self._streams)}"
                    print(f"  {told - began:>4.0f} s  {words}", flush=True)
            seconds = time.monotonic() - began
            self._check(process, "FINISHED")
        return Run(seconds, self._read(), peak, cpu, self.batches(since=at))

    @contextlib.contextmanager
    def running(self) -> Iterator[int]:
        """Keep the job running from its first look for records to the end of the block.

        Yields:
            The number of its process.
        """
        with self._process() as process:
            while self._status().get("state") != "RUNNING":
                if not _runs(process, _LOOK_EVERY):
                    self._check(process, "RUNNING")
            yield process.pid
            headgate("stop", self._name, "--home", str(self._home))
            process.wait()
            self._check(process, "STOPPED")

    def batches(self, *, since: float) -> list[Batch]:
        """Return the batches that started at or after a moment, in seconds since the epoch."""
        return read_batches(self._folder / "logs" / "spark.log", since=since, sources=self._streams)

    @contextlib.contextmanager
    def _process(self, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        # What an earlier start said must not be taken for this one's word.
        (self._folder / "status.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "headgate", *self._words, *more]
        command += ["--home", str(self._home), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def _status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._folder / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def _read(self) -> int:
        inputs = self._status().get("inputs") or {}
        return sum(int(inputs.get(stream, 0)) for stream in self._streams)

    def _check(self, process: subprocess.Popen[bytes], wanted: str) -> None:
        status = self._status()
        if process.poll() or status.get("state") != wanted:
            found = f"{status.get('state')} ({status.get('reason')})"
            raise RuntimeError(f"the {self.delivery} job is {found} and should be {wanted}")


def _runs(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process, and tell whether it still runs."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False
