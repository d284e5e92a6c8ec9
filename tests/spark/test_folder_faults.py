"""Folders as outputs under faults: each row is visible once, whatever was interrupted when."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from eventually import eventually
from folder_outputs import Row, read_json, read_parquet, staged, visible
from pyspark.sql import SparkSession

from headgate import Flow, Folder, HeadgateError
from headgate._kernel.bridge import kernel
from headgate.checkpoints.catalog import list_kept
from headgate.connectors.contract.written import Answer, Batches, Writers
from headgate.connectors.folder.written import find_written
from headgate.jobs.job_folder import JobFolder

# In the order in which a batch and a roll pass them.
TASK_POINTS = ("folder-staged", "epoch-committed")
ROLL_POINTS = ("folder-decided", "folder-file-published", "folder-published", "folder-done")
ROWS = [{"id": n, "day": f"2026-11-{n % 6 + 1:02}"} for n in range(3000)]
EVERY_BATCH = timedelta(0)


@pytest.fixture
def points(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Give a folder whose files make the kernel fail where it is told to."""
    folder = tmp_path / "points"
    folder.mkdir()
    crash = kernel(spark).testing.CrashPoint
    crash.arm(str(folder))
    yield folder
    crash.arm(None)


def daily(folder: Folder) -> Flow:
    flow = Flow("daily")
    flow.stream("rows", "id BIGINT, day STRING").to(folder)
    return flow


def fill(bench: Bench, rows: list[Row]) -> None:
    for start in range(0, len(rows), 500):
        bench.put("rows", rows[start : start + 500])


def read_days(out: Path) -> list[Row]:
    """Return the rows of files in folders by day."""
    rows = []
    for file in visible(out):
        day = file.parent.name.removeprefix("day=")
        rows += [{**json.loads(line), "day": day} for line in file.read_text().splitlines()]
    return rows


@pytest.mark.parametrize("point", [*TASK_POINTS, *ROLL_POINTS])
def test_a_failure_at_any_point_is_made_good_by_the_next_attempt(
    bench: Bench, points: Path, point: str
) -> None:
    fill(bench, ROWS)
    out = bench.root / "out"
    flow = daily(Folder(out, partition_by="day", roll_size="8KB"))
    (points / f"{point}.fail").touch()
    bench.run(flow, max_batch=12_000, parallelism=2, restart="fixed-delay:5,0s")
    assert not (points / f"{point}.fail").exists()
    assert bag(read_days(out)) == bag(ROWS)
    assert not staged(out)


def left(bench: Bench, points: Path, folder: Folder, *, point: str) -> None:
    """Have a job end in the middle, with rows staged."""
    (points / f"{point}.fail").touch()
    with pytest.raises(HeadgateError):
        bench.run(daily(folder), max_batch=12_000, parallelism=2, checkpoint_every=EVERY_BATCH)


def lineage_of(bench: Bench) -> str:
    lineage = JobFolder(bench.home, "daily").find_present_run()
    assert lineage is not None
    return lineage


def test_a_replay_discards_rows_that_are_staged_already(bench: Bench, points: Path) -> None:
    fill(bench, ROWS)
    out = bench.root / "out"
    left(bench, points, Folder(out), point="epoch-committed")
    before = {file: file.read_bytes() for file in staged(out)}
    assert before
    assert not visible(out)
    writers = Writers(lineage_of(bench), "headgate.daily", ())
    batches = Batches(0, 0, since=JobFolder(bench.home, "daily").path.stat() and _now())
    found = find_written({"out": Folder(out)}, writers, batches)["out"]
    assert found.answer is Answer.YES
    assert (found.rows, found.tasks) == (_rows_of(before), len(before))
    nothing = find_written({"out": Folder(out)}, writers, Batches(7, None, since=_now()))["out"]
    assert nothing.answer is Answer.NO
    bench.run(daily(Folder(out)), max_batch=12_000)
    assert bag(read_json(out)) == bag(ROWS)


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def _rows_of(files: dict[Path, bytes]) -> int:
    return sum(int.from_bytes(content[-8:], "big") for content in files.values())


def kept_of(bench: Bench, lineage: str) -> list[str]:
    kept = list_kept(JobFolder(bench.home, "daily").checkpoints_folder(lineage))
    return [checkpoint.id for checkpoint in kept]


def test_a_restore_publishes_what_was_staged_up_to_its_checkpoint(
    bench: Bench, points: Path
) -> None:
    out = bench.root / "out"
    flow = daily(Folder(out))
    for n in range(4):
        bench.put("rows", ROWS[n * 100 : n * 100 + 100])
        (points / "folder-decided.fail").touch()
        # The end of the job fails before anything is visible, and the batch has committed.
        with pytest.raises(HeadgateError):
            bench.run(flow, checkpoint_every=EVERY_BATCH, parallelism=2)
        for decision in out.glob("_headgate/*/rolls/*"):
            decision.unlink()
    assert not visible(out)
    old = lineage_of(bench)
    second = kept_of(bench, old)[1]
    # Records that are read again are other ones: what is visible tells who has written it.
    shutil.rmtree(bench.topics / "rows")
    bench.run(flow, restore_from=second, checkpoint_every=EVERY_BATCH)
    assert bag(read_json(out)) == bag(ROWS[:200])
    assert {file.name[:22] for file in visible(out)} == {old}
    assert not staged(out)
    assert (out / "_headgate" / old / "fence.json").exists()


def test_a_run_that_was_fenced_publishes_no_more(bench: Bench, points: Path) -> None:
    out = bench.root / "out"
    fill(bench, ROWS[:500])
    left(bench, points, Folder(out), point="epoch-committed")
    fence = out / "_headgate" / lineage_of(bench) / "fence.json"
    fence.write_text('{"format": 1, "by": "another", "last": 0}')
    with refused("FENCED"):
        bench.run(daily(Folder(out)))
    assert not visible(out)


def test_a_restore_finishes_what_the_run_before_was_publishing(bench: Bench, points: Path) -> None:
    fill(bench, ROWS)
    out = bench.root / "out"
    folder = Folder(out, partition_by="day")
    bench.put("rows", [])
    (points / "folder-file-published.fail").touch()
    with pytest.raises(HeadgateError):
        bench.run(daily(folder), checkpoint_every=EVERY_BATCH, parallelism=2)
    assert 0 < len(visible(out)) < 6
    bench.run(daily(folder), restore_from="latest", checkpoint_every=EVERY_BATCH)
    assert bag(read_days(out)) == bag(ROWS)


def test_a_fresh_start_publishes_what_the_run_before_has_committed(
    bench: Bench, points: Path
) -> None:
    out = bench.root / "out"
    bench.put("rows", ROWS[:100])
    (points / "folder-decided.fail").touch()
    with pytest.raises(HeadgateError):
        bench.run(daily(Folder(out)))
    bench.run(daily(Folder(out)), fresh=True)
    assert bag(read_json(out)) == bag([*ROWS[:100], *ROWS[:100]])
    assert len({file.name[:22] for file in visible(out)}) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "removed"])
def test_damaged_staged_rows_end_the_job_by_name(bench: Bench, points: Path, damage: str) -> None:
    out = bench.root / "out"
    bench.put("rows", ROWS)
    (points / "folder-decided.fail").touch()
    with pytest.raises(HeadgateError):
        bench.run(daily(Folder(out)))
    (file, *_) = staged(out)
    content = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        file.unlink()
    with refused("STAGED_LOST" if damage == "removed" else "STAGED_CORRUPTED"):
        bench.run(daily(Folder(out)))
    assert not visible(out)


def test_a_second_file_of_a_name_is_never_made(bench: Bench, points: Path) -> None:
    """A file of the name that a roll would use stays, whatever it holds."""
    out = bench.root / "out"
    bench.put("rows", ROWS[:10])
    (points / "folder-decided.fail").touch()
    with pytest.raises(HeadgateError):
        bench.run(daily(Folder(out)))
    taken = out / f"{lineage_of(bench)}-0000000000-0000000000-00000.jsonl"
    taken.write_text("mine\n")
    bench.run(daily(Folder(out)))
    assert [file.read_text() for file in visible(out)] == ["mine\n"]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_columns_that_were_added_are_in_new_files_alone(
    bench: Bench, points: Path, form: str
) -> None:
    out = bench.root / "out"
    bench.put("rows", ROWS[:10])
    (points / "folder-decided.fail").touch()
    with pytest.raises(HeadgateError):
        bench.run(daily(Folder(out, format=form)))
    for decision in out.glob("_headgate/*/rolls/*"):
        decision.unlink()
    bench.put("rows", ROWS[10:20])
    flow = Flow("daily")
    rows = flow.stream("rows", "id BIGINT, day STRING")
    rows.with_columns(more="id + 1").to(Folder(out, format=form))
    bench.run(flow)
    read = read_json if form == "json" else read_parquet
    more = [{**row, "more": int(str(row["id"])) + 1} for row in ROWS[10:20]]
    assert bag(read(out)) == bag([*ROWS[:10], *more])


SEED = 11


@pytest.mark.long
def test_kill_9_at_any_moment_loses_and_duplicates_nothing(bench: Bench) -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    fill(bench, ROWS)
    out = bench.root / "out"
    flow = bench.flow_file(daily(Folder(out, partition_by="day", roll_size="4KB")))
    for _ in range(4):
        job = bench.spawn(flow, max_batch=3000)
        try:
            begun = len(list(out.glob("_headgate/*/rolls/*.json")))
            eventually(
                lambda: list(out.glob("_headgate/*/staged/*")), what="staged rows", alive=job
            )
            time.sleep(draw.random() * 2)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate(timeout=60)
        assert begun <= 1
    bench.run(flow, max_batch=3000)
    assert bag(read_days(out)) == bag(ROWS)


def test_a_job_that_dies_at_every_point_in_turn_writes_each_row_once(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's JVM is halted at each point, as kill -9 would end it."""
    fill(bench, ROWS)
    out = bench.root / "out"
    dies = tmp_path / "dies"
    dies.mkdir()
    for point in (*TASK_POINTS, *ROLL_POINTS):
        (dies / point).touch()
    flow = bench.flow_file(daily(Folder(out, partition_by="day", roll_size="8KB")))
    monkeypatch.setenv("HEADGATE_CRASH_DIR", str(dies))
    job = bench.spawn_supervised(flow, max_batch=12_000, parallelism=2)
    said, _ = job.communicate(timeout=600)
    assert job.returncode == 0, said
    assert not list(dies.iterdir())
    assert bag(read_days(out)) == bag(ROWS)
    assert not staged(out)
