"""Thousands of short batches, and what does not stay as it was: memory, files, time per batch.

A job reads tiny files from an embedded topic as fast as it can. Once a second its processes and
folders are measured; the last quarter of the run is compared with the first after the start. The
exit code is 1 if something grew beyond its tolerance.

Files of topics are deleted a minute after they were written, once the job has read them, as the
owner of a long-lived topic would: the reader looks at every file. All else is left to the job.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate import Flow
from headgate.connectors.files.folder.topic import TopicFolder

MIB = 1 << 20
JOB = "soak"
_KEPT_S = 60.0
_WARM_BATCHES = 500
# Folders that hold files of each batch since Spark's last clean-up.
_PER_BATCH = ("state", "kept", "scratch")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much larger something may be in the last quarter than in the first.

    Attributes:
        share: Of what it was.
        least: What it may grow by in any case.
        bound: What it may always be: files that are rolled at a size take long to get there.
    """

    share: float
    least: float
    bound: float = 0.0

    def allows(self, first: float, last: float) -> bool:
        """Tell whether something may have become this large."""
        return last <= max(first * (1 + self.share) + self.least, self.bound)


TOLERANCES = {
    "supervisor MiB": Tolerance(0.1, 8),
    "worker MiB": Tolerance(0.1, 8),
    # A heap is touched bit by bit up to its limit.
    "JVM MiB": Tolerance(0.25, 64),
    "ms per batch": Tolerance(0.5, 20),
    "files": Tolerance(0.25, 300),
    "MiB": Tolerance(0.25, 4),
    "logs MiB": Tolerance(0.25, 4, bound=140),
    "events MiB": Tolerance(0.25, 4, bound=9),
}


@dataclass(slots=True)
class Sample:
    """What was measured at one moment: figures by name."""

    at: float
    batches: int
    figures: dict[str, float] = field(default_factory=dict)


class Soak:
    """A job, its topics, and what is measured of them."""

    def __init__(self, folder: Path, *, every: float) -> None:
        self.topics = folder / "topics"
        self.home = folder / "home"
        self.job = self.home / "jobs" / JOB
        self.flow = folder / "flow.json"
        self.log = folder / "run.out"
        self._every = every
        self._read = 0
        self._end = threading.Event()
        self.flow.write_text(_flow().graph().to_json(), encoding="utf-8")
        users = TopicFolder(self.topics / "users")
        users.create()
        rows = (json.dumps({"id": number, "name": f"user {number}"}) for number in range(1000))
        users.publish("".join(f"{row}\n" for row in rows).encode())
        TopicFolder(self.topics / "events").create()

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "headgate", "run", str(self.flow), "--restart", "none"]
        command += ["--on", f"files:{self.topics}", "--home", str(self.home), "--batch-every", "0s"]
        command += ["--checkpoint-every", "2s", "--driver-memory", "512MiB", "--parallelism", "2"]
        return command

    def run(self, seconds: float, *, told: Callable[[str], None]) -> list[Sample]:
        feeder = threading.Thread(target=self._feed, daemon=True)
        samples: list[Sample] = []
        with self.log.open("wb") as out:
            process = subprocess.Popen(self.command(), stdout=out, stderr=out)
        feeder.start()
        begin = time.monotonic()
        deadline = begin + seconds
        try:
            while time.monotonic() < deadline:
                time.sleep(1)
                if process.poll() is not None:
                    raise SystemExit(f"the job ended: {self.log.read_text()[-2000:]}")
                sample = self._measure(process.pid)
                if sample is not None:
                    samples.append(sample)
                    if len(samples) % 60 == 0:
                        told(f"{sample.batches} batches after {sample.at - begin:.0f} s")
        finally:
            process.terminate()
            process.wait(120)
            self._end.set()
            feeder.join()
        return samples

    def _feed(self) -> None:
        events = TopicFolder(self.topics / "events")
        number = 0
        while not self._end.wait(self._every):
            number += 1
            row = json.dumps({"n": number, "user": number * 7919 % 1200})
            events.publish(f"{row}\n".encode())
            if number % 100 == 0:
                self._delete_old(unread=number - self._read)

    def _delete_old(self, *, unread: int) -> None:
        oldest = time.time() - _KEPT_S
        for topic in ("events", "out", "dead-letters"):
            files = sorted((self.topics / topic).glob("part-*/*.jsonl"))
            for file in files[: max(0, len(files) - unread)] if topic == "events" else files:
                with contextlib.suppress(FileNotFoundError):
                    if file.stat().st_mtime < oldest:
                        file.unlink()

    def _measure(self, supervisor: int) -> Sample | None:
        try:
            status = json.loads((self.job / "status.json").read_text())
            worker = int(status["child"] or 0)
        except (OSError, ValueError, KeyError):
            return None
        jvm = next(_children(worker), 0)
        if status["state"] != "RUNNING" or not jvm or not status["batches"]:
            return None
        self._read = status["inputs"]["events"]
        sample = Sample(time.monotonic(), status["batches"])
        for name, pid in (("supervisor", supervisor), ("worker", worker), ("JVM", jvm)):
            sample.figures[f"{name} MiB"] = _resident(pid) / MIB
        for name, folder in self._folders():
            files, size = _count(folder)
            sample.figures[f"{name} files"], sample.figures[f"{name} MiB"] = files, size / MIB
        events = self.job.glob("events*.jsonl")
        sample.figures["events MiB"] = sum(each.stat().st_size for each in events) / MIB
        return sample

    def _folders(self) -> Iterator[tuple[str, Path]]:
        yield "ledger", self.topics / "events" / "_ledger"
        yield "staging", self.topics / "events" / "_tmp"
        yield "logs", self.job / "logs"
        yield "scratch", self.job / "scratch"
        for run in (self.job / "runs").iterdir():
            yield "kept", run / "checkpoints"
            for part in ("offsets", "commits", "state"):
                yield part, run / "checkpoint" / part


def compare(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return each figure in the first and the last quarter, and whether it stayed."""
    # The start is not what is asked about: the JVM compiles, and Spark keeps its first batches.
    begun = [each for each in samples if each.batches >= _WARM_BATCHES]
    steady = min(samples[len(samples) // 5 :], begun, key=len)
    quarter = max(2, len(steady) // 4)
    first, last = steady[:quarter], steady[-quarter:]
    faster = max(1.0, _pace(first) / _pace(last))
    rows = []
    for name in ("ms per batch", *sorted(steady[-1].figures)):
        if name == "ms per batch":
            was, now = _pace(first), _pace(last)
        else:
            # Files come and go in waves, which a median would not see.
            middle = max if name.endswith("files") else statistics.median
            was, now = (
                middle([each.figures.get(name, 0.0) for each in part]) for part in (first, last)
            )
        tolerance = TOLERANCES.get(name) or TOLERANCES[name.rpartition(" ")[2]]
        row = {"figure": name, "first": round(was, 2), "last": round(now, 2)}
        # Spark cleans up once a minute, so the files of a minute's batches are there. Each
        # changelog lists the batches since the last snapshot, which Spark takes once a minute too.
        scale = 1.0
        if name.startswith(_PER_BATCH):
            scale = faster**2 if name.endswith("MiB") else faster
        rows.append({**row, "flat": tolerance.allows(was * scale, now)})
    return rows


def _pace(part: Sequence[Sample]) -> float:
    batches = part[-1].batches - part[0].batches
    return (part[-1].at - part[0].at) * 1000 / max(1, batches)


def _flow() -> Flow:
    flow = Flow(JOB)
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    events = flow.stream("events", "n BIGINT NOT NULL, user BIGINT")
    events.enrich("with-user", users, on="user", into="found").matched.select(
        "n", "found.name AS name"
    ).to("out")
    return flow


def _children(parent: int) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _count(folder: Path) -> tuple[int, int]:
    """Return how many files are in a folder, and their bytes; what goes meanwhile counts or not."""
    files = size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += os.stat(os.path.join(parent, name)).st_size  # noqa: PTH116, PTH118
                files += 1
    return files, size


def main() -> int:
    """Run it, print what was found, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--every", type=float, default=0.02, help="seconds between two files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-soak-") as folder:
        soak = Soak(Path(folder), every=given.every)
        samples = soak.run(
            given.minutes * 60, told=lambda text: print(text, file=sys.stderr, flush=True)
        )
    if len(samples) < 20 or samples[-20].batches < _WARM_BATCHES:
        raise SystemExit(f"too short: it takes {_WARM_BATCHES} batches to begin with")
    rows = compare(samples)
    batches, seconds = samples[-1].batches, samples[-1].at - samples[0].at
    grown = [row["figure"] for row in rows if not row["flat"]]
    if given.json:
        summary = {"batches": batches, "seconds": round(seconds), "grown": grown, "figures": rows}
        print(json.dumps(summary))
    else:
        print(f"{batches} batches in {seconds:.0f} s")
        print(f"{'':18}{'first quarter':>15}{'last quarter':>15}")
        for row in rows:
            mark = "" if row["flat"] else "  grew"
            print(f"{row['figure']:18}{row['first']:>15,}{row['last']:>15,}{mark}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
