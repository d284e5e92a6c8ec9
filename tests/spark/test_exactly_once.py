"""Exactly-once at the reader: a job that was killed writes what one does that never was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from eventually import eventually

from headgate import Flow
from headgate.checkpoints.sparklog import find_last_commit
from headgate.jobs.job_folder import JobFolder

SEED = 7
USERS = [{"id": n, "name": f"user {n}"} for n in range(50)]
ORDERS = [{"n": n, "user": n % 60} for n in range(1500)]
PATIENCE = 120


def joining() -> Flow:
    """Return a flow with a main and a side output."""
    flow = Flow("joining")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    orders = flow.stream("orders", "n BIGINT, user BIGINT")
    enriched = orders.enrich("with-user", users, on="user", into="found")
    enriched.matched.select("n", "found.name").to("out")
    enriched.missing.to("missing")
    return flow


def reference() -> dict[str, list[Any]]:
    """Return what comes out when nothing fails, by output."""
    return {
        "out": [
            {"n": o["n"], "name": USERS[o["user"]]["name"]}
            for o in ORDERS
            if o["user"] < len(USERS)
        ],
        "missing": [order for order in ORDERS if order["user"] >= len(USERS)],
        "dead-letters": [],
    }


def fill(bench: Bench) -> None:
    """Put users and orders into their topics, in files of different sizes."""
    bench.put("users", USERS)
    for start in range(0, len(ORDERS), 130):
        bench.put("orders", ORDERS[start : start + 130])


def check(bench: Bench) -> None:
    """Compare every output with the reference, as multisets."""
    for topic, records in reference().items():
        made, wanted = bench.bag(topic), bag(records)
        assert made - wanted == {}, f"doubled in {topic}"
        assert wanted - made == {}, f"lost from {topic}"


def last_commit(bench: Bench) -> int:
    """Return the number of the newest batch that committed; -1 before the first."""
    home = JobFolder(bench.home, "joining")
    lineage = home.find_present_run()
    last = find_last_commit(home.run_folder(lineage or "none") / "checkpoint")
    return -1 if last is None else last


@pytest.mark.long
def test_kill_9_at_any_moment_loses_and_doubles_nothing(bench: Bench) -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    fill(bench)
    flow = bench.flow_file(joining())
    for kill in range(2):
        job = bench.spawn(flow, max_batch=1000)
        try:
            _wait_for_commit(bench, job, last_commit(bench) + draw.randint(1, 4))
            time.sleep(draw.random() * 0.3)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate(timeout=PATIENCE)
        assert job.returncode == -signal.SIGKILL, f"the job was done before kill {kill}"
    bench.run(flow, max_batch=4000)
    check(bench)


def _wait_for_commit(bench: Bench, job: subprocess.Popen[str], batch: int) -> None:
    eventually(lambda: last_commit(bench) >= batch, every=0.01, what=f"batch {batch}", alive=job)


def _forget_commit(bench: Bench) -> Path:
    """Make the last batch one that was written out and never committed."""
    home = JobFolder(bench.home, "joining")
    lineage = home.find_present_run()
    assert lineage is not None
    commits = home.run_folder(lineage) / "checkpoint" / "commits"
    newest = max((f for f in commits.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
    newest.unlink()
    (commits / f".{newest.name}.crc").unlink(missing_ok=True)
    return newest


@pytest.mark.parametrize("more", [False, True])
def test_a_batch_that_was_written_and_not_committed_is_not_written_twice(
    bench: Bench, more: bool
) -> None:
    fill(bench)
    bench.run(joining(), max_batch=10_000)
    check(bench)
    _forget_commit(bench)
    if more:
        # The repeated batch must not take in what came after it was begun.
        bench.put("orders", [{"n": 9999, "user": 1}])
    done = bench.run(joining())
    assert done.totals.batches == 1 + more
    if more:
        assert {"n": 9999, "name": "user 1"} in bench.read("out")
        late = [f for f in (bench.topics / "out").rglob("*.jsonl") if "9999" in f.read_text()]
        assert [len(f.read_text().splitlines()) for f in late] == [1]
        late[0].unlink()
    check(bench)


def test_output_of_a_batch_that_half_arrived_is_completed(bench: Bench) -> None:
    fill(bench)
    bench.run(joining(), parallelism=2, max_batch=10_000)
    epoch = int(_forget_commit(bench).name)
    written = sorted((bench.topics / "out").rglob(f"*-{epoch:010d}-*.jsonl"))
    assert len(written) == 2
    written[0].unlink()
    (bench.topics / "out" / "_tmp").mkdir(exist_ok=True)
    (bench.topics / "out" / "_tmp" / f"{written[0].stem}.99-99").write_text('{"half": ')
    bench.run(joining())
    check(bench)


def test_a_job_whose_tasks_fail_publishes_no_part_of_the_batch_twice(bench: Bench) -> None:
    fill(bench)
    lost = bench.topics / "orders" / "000004.jsonl"
    hidden = lost.with_name(".kept")

    def watch(now: Any) -> None:
        if now.totals.inputs.get("orders") and lost.exists():
            lost.rename(hidden)

    with pytest.raises(Exception, match="DATA_LOST"):
        bench.run(joining(), max_batch=1500, watch=watch)
    hidden.rename(lost)
    bench.run(joining(), max_batch=1500)
    check(bench)
