"""A job with one task that writes to a broker, fails where a test wants it, and is changed then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, refused
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.bridge import kernel
from headgate.flow.topics import Topic
from headgate.jobs.values import Consent, JobSnapshot, OpenBatch

JOB = "left"
# How a batch is left open: its task fails, or its JVM dies in the middle.
ENDS = [pytest.param(False, id="fails"), pytest.param(True, marks=pytest.mark.long, id="dies")]
SKIP = Consent(open_batch=OpenBatch.SKIP)


class LeftJob:
    """A job in a folder of its own: its input is embedded, its output on a broker.

    Args:
        dies: At a crash point the JVM ends, and not only the task.
    """

    def __init__(self, folder: Path, output: Topic, *, dies: bool) -> None:
        self.dies = dies
        self.bench = Bench(folder)
        self.output = output
        self.crashes = folder / "crashes"
        self.crashes.mkdir()

    def put(self, *numbers: int) -> None:
        """Publish records of the input."""
        self.bench.put("in", [{"n": n} for n in numbers])

    def flow(self, tag: str) -> Flow:
        """Return the flow of a tag, which its rows have."""
        flow = Flow(JOB)
        flow.stream("in", "n BIGINT NOT NULL").select("n", f"'{tag}' AS tag").to(self.output)
        return flow

    def run(self, tag: str, **options: Any) -> JobSnapshot:
        """Run the flow of a tag until it has caught up."""
        return self.bench.run(self.flow(tag), parallelism=1, **options)

    def break_off(self, tag: str, point: str) -> None:
        """Run the flow of a tag up to a crash point: its batch stays open."""
        if self.dies:
            (self.crashes / point).touch()
            self._die(tag)
        else:
            (self.crashes / f"{point}.fail").touch()
            self._fail(tag)
        assert not any(self.crashes.iterdir()), "the point was not reached"

    def _fail(self, tag: str) -> None:
        spark = SparkSession._instantiatedSession
        assert spark is not None
        arm = kernel(spark).testing.CrashPoint.arm
        arm(str(self.crashes))
        try:
            with refused("QUERY_FAILED"):
                self.run(tag)
        finally:
            arm(None)

    def _die(self, tag: str) -> None:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HEADGATE_CRASH_DIR", str(self.crashes))
            child = self.bench.spawn(self.bench.flow_file(self.flow(tag)), parallelism=1)
        printed, _ = child.communicate(timeout=300)
        assert child.returncode != 0, printed


def rows(tag: str, *numbers: int) -> list[tuple[int, str]]:
    """Return what the flow of a tag makes of some records."""
    return [(n, tag) for n in numbers]


def check_leaving(job: LeftJob, read: Callable[[], Iterable[Any]]) -> None:
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
    job.break_off("a", "state-committed")
    assert found() == rows("a", 1, 2)
    left = job.run("b")
    assert "2 records of 'in'" in left.notice
    assert "wrote nothing" in left.notice
    wanted = rows("a", 1, 2) + rows("b", 3, 4)
    assert found() == wanted

    job.put(5, 6)
    job.break_off("b", "task-committed")
    wanted += rows("b", 5, 6)
    assert found() == wanted
    with refused("BATCH_OPEN") as caught:
        job.run("c")
    assert "1 task committed rows of it to the log of output" in caught.value.message
    job.put(7)
    skipped = job.run("c", consent=SKIP)
    assert "is skipped" in skipped.notice
    wanted += rows("c", 7)
    assert found() == wanted
