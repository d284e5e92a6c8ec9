"""Keyed functions of whole jobs: killed, restored and rescaled, they say what plain Python says."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
from dataclasses import asdict
from pathlib import Path

import pytest
from bench import Bench, bag
from eventually import eventually
from process_reference import Event, drawn, everything, expected

from headgate.checkpoints.sparklog import list_commits
from headgate.jobs.job_folder import JobFolder

PATIENCE = 120


def put(bench: Bench, events: list[Event], draw: random.Random) -> None:
    """Publish events in files of random sizes; a key's are in their order."""
    begin = 0
    while begin < len(events):
        end = begin + draw.randint(20, 120)
        bench.put("events", [asdict(event) for event in events[begin:end]])
        begin = end


def check(bench: Bench, events: list[Event]) -> None:
    """Compare all outputs with what plain Python makes of all events."""
    wanted = expected(events)
    assert bench.bag("told") == bag(wanted.told)
    assert bench.bag("large") == bag(wanted.large)
    assert bench.bag("timers") == bag(wanted.timers)
    letters = bench.read("dead-letters")
    failed = [json.loads(base64.b64decode(letter["raw"])) for letter in letters]
    assert sorted(event["n"] for event in failed) == wanted.letters
    assert all("an unlucky number" in letter["reason"] for letter in letters)
    assert wanted.letters, "nothing failed"


def last_commit(bench: Bench, job: str) -> int:
    """Return the newest batch of a job that committed; -1 before the first."""
    home = JobFolder(bench.home, job)
    lineage = home.find_present_run()
    if lineage is None:
        return -1
    return max(list_commits(home.run_folder(lineage) / "checkpoint"), default=-1)


def kill_after(bench: Bench, flow: Path, job: str, batches: int) -> None:
    """Run the job in a process of its own, and kill it amid a batch after so many."""
    wanted = last_commit(bench, job) + batches
    process = bench.spawn(flow, max_batch=6000)
    try:
        eventually(
            lambda: last_commit(bench, job) >= wanted, every=0.01, what="a batch", alive=process
        )
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL, "the job was done before it was killed"


def test_a_function_with_every_kind_of_state_survives_kills_and_other_parallelism(
    bench: Bench, seed: int
) -> None:
    draw = random.Random(seed)
    flow = everything()
    file = bench.flow_file(flow)
    events = drawn(seed, 1500)
    put(bench, events[:900], draw)
    kill_after(bench, file, "everything", draw.randint(2, 4))
    bench.run(file, max_batch=9000)
    put(bench, events[900:1200], draw)
    # Another query takes the state over, by uid: values, lists, maps and timers.
    bench.run(file, restore_from="latest", parallelism=3, max_batch=9000)
    put(bench, events[1200:], draw)
    bench.run(file, restore_from="latest", parallelism=1, max_batch=9000, drain=True)
    check(bench, events)


@pytest.mark.parametrize("batch", [2000, 50_000])
def test_the_size_of_batches_changes_nothing(bench: Bench, seed: int, batch: int) -> None:
    events = drawn(seed, 600)
    put(bench, events, random.Random(seed))
    bench.run(everything(), max_batch=batch, drain=True)
    check(bench, events)
