"""A flow that is being written: each change restarts the job, and state is kept."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

from bench import Bench, bag
from inline_attempts import InlineLauncher

from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.startup.watched_flow import run_watched
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

FLOW = """
from headgate import Flow

flow = Flow("watched")
users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
stream = flow.stream("events", "n BIGINT, user BIGINT")
{steps}
stream.select({columns}).to("out")
"""
FIRST = FLOW.format(
    steps='stream = stream.enrich("one", users, on="user", into="first").matched',
    columns='"n", "first.name AS name"',
)
BROKEN = "flow = Flow("
SECOND = FLOW.format(
    steps='stream = stream.enrich("one", users, on="user", into="first").matched\n'
    'two = stream.enrich("two", users, on="n", into="second")\n'
    'two.matched.to("twice")\n'
    "stream = two.missing",
    columns='"n", "first.name AS name", "user"',
)


class Author:
    """Changes the flow once it has been seen to work, breaks it on the way, and ends the job."""

    def __init__(self, bench: Bench, file: Path) -> None:
        self._bench = bench
        self._file = file
        self._stage = 0
        self.told: list[str] = []

    def watch(self, snapshot: JobSnapshot) -> None:
        made = snapshot.totals.outputs.get("out", 0)
        if snapshot.state is not JobState.RUNNING or not made:
            return
        if self._stage == 0:
            self._stage = 1
            # The table's topic is emptied: from here on only state can answer.
            for file in (self._bench.topics / "users").glob("*.jsonl"):
                file.unlink()
            self._file.write_text(BROKEN)
        elif self._stage == 2:
            self._stage = 3
            os.kill(os.getpid(), signal.SIGTERM)

    def hear(self, line: str) -> None:
        self.told.append(line)
        if "FLOW_BROKEN" in line:
            self._stage = 2
            self._bench.put("events", [{"n": 2, "user": 1}])
            self._file.write_text(SECOND)


def test_a_changed_flow_goes_on_with_its_state_and_a_broken_one_is_waited_for(
    bench: Bench,
) -> None:
    file = bench.root / "flow.py"
    file.write_text(FIRST)
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [{"n": 1, "user": 1}])
    author = Author(bench, file)
    options = RunOptions(
        on=f"files:{bench.topics}",
        home=bench.home,
        batch_every=timedelta(0),
        parallelism=2,
        restart="none",
    )
    ended = run_watched(
        str(file),
        options,
        Watcher(on_snapshot=author.watch),
        say=author.hear,
        launcher=InlineLauncher(),
    )
    assert ended.state is JobState.STOPPED
    assert any("has changed" in line for line in author.told)
    assert any("FLOW_BROKEN" in line for line in author.told)
    assert bench.bag("out") == bag([{"n": 1, "name": "Ann"}, {"n": 2, "name": "Ann", "user": 1}])
