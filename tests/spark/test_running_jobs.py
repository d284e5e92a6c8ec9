"""What is asked of a job that runs: pause, resume, stop with a savepoint, pauses and retention."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from bench import Bench, bag

from headgate import Flow
from headgate.checkpoints.catalog import list_kept
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.values import JobSnapshot


def joining() -> Flow:
    """Return a flow that looks users up."""
    flow = Flow("joining")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    events = flow.stream("events", "n BIGINT, user BIGINT")
    found = events.enrich("with-user", users, on="user", into="found")
    found.matched.select("n", "found.name AS name").to("out")
    return flow


class Operator:
    """Pauses the job after its first row, gives it more to read, resumes it, and stops it."""

    def __init__(self, bench: Bench, savepoint: Path) -> None:
        self._bench = bench
        self._home = JobFolder(bench.home, "joining")
        self._savepoint = savepoint
        self._paused_at = 0.0
        self._resumed_at = 0.0
        self._given = False
        self._done: list[Verb] = []
        self.rows_while_paused: set[int] = set()

    def watch(self, snapshot: JobSnapshot) -> None:
        rows = snapshot.totals.outputs.get("out", 0)
        if snapshot.state is JobState.RUNNING and rows == 1:
            self._ask(Verb.PAUSE)
        now = time.monotonic()
        if snapshot.state is JobState.PAUSED:
            self._paused_at = self._paused_at or now
            # The order reaches the query a moment after the state is told.
            if now - self._paused_at > 1.5 and not self._given:
                self._given = True
                self._bench.put("events", [{"n": 2, "user": 1}])
            self.rows_while_paused.add(rows)
            if now - self._paused_at > 4:
                self._resumed_at = now
                self._ask(Verb.RESUME)
        # An intent is taken once the one before it was followed.
        settled = bool(self._resumed_at) and now - self._resumed_at > 1
        if snapshot.state is JobState.RUNNING and rows == 2 and settled:
            self._ask(Verb.STOP, savepoint=str(self._savepoint))

    def _ask(self, verb: Verb, **arguments: str) -> None:
        if verb not in self._done:
            self._done.append(verb)
            write_intent(self._home, verb, arguments, by="a test")


def test_a_paused_job_reads_nothing_and_a_stop_leaves_a_savepoint_of_all_that_was_written(
    bench: Bench, tmp_path: Path
) -> None:
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [{"n": 1, "user": 1}])
    operator = Operator(bench, tmp_path / "taken")
    ended = bench.run(joining(), until_caught_up=False, watch=operator.watch)
    assert ended.state is JobState.STOPPED
    assert operator.rows_while_paused == {1}
    assert bench.bag("out") == bag([{"n": n, "name": "Ann"} for n in (1, 2)])
    # The savepoint alone goes on, from another place: nothing again, and state is there.
    moved = tmp_path / "moved"
    shutil.move(tmp_path / "taken", moved)
    shutil.rmtree(bench.home)
    shutil.rmtree(bench.topics / "users")
    bench.put("events", [{"n": 3, "user": 1}])
    bench.run(joining(), restore_from=str(moved))
    assert bench.bag("out") == bag([{"n": n, "name": "Ann"} for n in (1, 2, 3)])


def test_batches_keep_the_least_pause_and_the_newest_checkpoints_are_retained(
    bench: Bench,
) -> None:
    pause = timedelta(seconds=1.5)
    bench.put("users", [{"id": 1, "name": "Ann"}])
    bench.put("events", [{"n": n, "user": 1} for n in range(6)])
    committed: dict[int, datetime] = {}

    def watch(snapshot: JobSnapshot) -> None:
        if snapshot.totals.batch is not None and snapshot.totals.committed is not None:
            committed[snapshot.totals.batch] = snapshot.totals.committed

    done = bench.run(
        joining(),
        watch=watch,
        max_batch=40,
        min_pause=pause,
        checkpoint_every=timedelta(0),
        retain=2,
    )
    assert done.totals.batches >= 4
    moments = [committed[batch] for batch in sorted(committed)]
    gaps = [later - sooner for sooner, later in pairwise(moments)]
    assert min(gaps) > 0.8 * pause, gaps
    kept = list_kept(JobFolder(bench.home, "joining").checkpoints_folder(done.lineage))
    assert [each.batch for each in kept] == sorted(committed)[-2:]
    assert len(bench.read("out")) == 6
