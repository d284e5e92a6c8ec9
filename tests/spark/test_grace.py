"""SIGTERM, as an orchestrator sends it: the job commits its batch, keeps it, and ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from bench import Bench, stop_now

from headgate import Flow
from headgate.checkpoints.catalog import list_kept
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.values import JobSnapshot

BATCHES = 4


def test_sigterm_keeps_the_last_batch_although_no_checkpoint_is_due(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    flow = Flow("graceful")
    flow.stream("events", "n BIGINT").to("out")
    sent = 0

    def watch(snapshot: JobSnapshot) -> None:
        nonlocal sent
        if snapshot.state is not JobState.RUNNING or snapshot.totals.inputs.get("events", 0) < sent:
            return
        if sent == BATCHES:
            sent += 1
            stop_now()
        elif sent < BATCHES:
            bench.put("events", [{"n": sent}])
            sent += 1

    ended = bench.run(
        flow, until_caught_up=False, checkpoint_every=timedelta(hours=1), watch=watch, parallelism=2
    )
    assert ended.state is JobState.STOPPED
    home = JobFolder(bench.home, "graceful")
    kept = [each.batch for each in list_kept(home.checkpoints_folder(ended.lineage))]
    # The first batch of a start, and the last one.
    assert kept == [0, ended.totals.batch]
    assert ended.totals.batch == BATCHES - 1
    assert sorted(each["n"] for each in bench.read("out")) == list(range(BATCHES))
