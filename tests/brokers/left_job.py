"""A job with one task that writes to a broker, dies where a test wants it, and is changed then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from headgate import Flow
from headgate.flow.topics import Topic

JOB = "left"


class LeftJob:
    """A job in a folder of its own: its input is embedded, its output on a broker."""

    def __init__(self, folder: Path, output: Topic) -> None:
        self.folder = folder
        self.output = output
        self.crashes = folder / "crashes"
        self.crashes.mkdir()

    def put(self, *numbers: int) -> None:
        """Publish records of the input."""
        topic = self.folder / "topics" / "in"
        topic.mkdir(parents=True, exist_ok=True)
        draft = self.folder / "draft"
        draft.write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
        draft.replace(topic / f"{numbers[0]:06d}.jsonl")

    def run(self, tag: str, *flags: str, crash: str = "") -> dict[str, Any]:
        """Run the flow of a tag until it has caught up; return the end, or the error.

        Args:
            crash: The point at which its JVM dies.
        """
        flow = Flow(JOB)
        rows = flow.stream("in", "n BIGINT NOT NULL")
        rows.select("n", f"'{tag}' AS tag").to(self.output)
        file = self.folder / "flow.json"
        file.write_text(flow.graph().to_json())
        if crash:
            (self.crashes / crash).touch()
        command = [sys.executable, "-m", "headgate", "run", str(file), "--json", "-p", "1"]
        command += ["--on", f"files:{self.folder / 'topics'}", "--home", str(self.folder / "home")]
        command += ["--until-caught-up", "--batch-every", "0s", "--restart", "none", *flags]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "HEADGATE_CRASH_DIR": str(self.crashes)},
        )
        assert (done.returncode != 0) == bool(crash) or done.returncode == 2, done.stderr
        assert not any(self.crashes.iterdir()), "the point was not reached"
        told = done.stdout if done.returncode == 0 else done.stderr
        last: dict[str, Any] = json.loads(told.strip().splitlines()[-1])
        return last


def rows(tag: str, *numbers: int) -> list[tuple[int, str]]:
    """Return what the flow of a tag makes of some records."""
    return [(n, tag) for n in numbers]


def check_leaving(job: LeftJob, read: Any) -> None:
    """Leave a batch that wrote nothing, and one that wrote all, and compare what a reader finds.

    Args:
        read: Returns the values in the output.
    """

    def found() -> list[tuple[int, str]]:
        return sorted((each["n"], each["tag"]) for each in map(json.loads, read()))

    job.put(1, 2)
    job.run("a")
    job.put(3, 4)
    # Just before the task commits: what it sent is not there for anybody.
    job.run("a", crash="state-committed")
    assert found() == rows("a", 1, 2)
    left = job.run("b")
    assert "2 records of 'in'" in left["notice"]
    assert "wrote nothing" in left["notice"]
    wanted = rows("a", 1, 2) + rows("b", 3, 4)
    assert found() == wanted

    job.put(5, 6)
    job.run("b", crash="task-committed")
    wanted += rows("b", 5, 6)
    assert found() == wanted
    refused = job.run("c")
    assert refused["code"] == "BATCH_OPEN"
    assert "1 task committed rows of it to the log of output" in refused["message"]
    job.put(7)
    skipped = job.run("c", "--open-batch", "skip")
    assert "is skipped" in skipped["notice"]
    wanted += rows("c", 7)
    assert found() == wanted
