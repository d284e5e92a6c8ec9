"""Forks of real checkpoints: Spark goes on from exactly the files that were brought along."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench import Bench, bag
from pyspark.sql import SparkSession

from headgate.checkpoints import savepoint
from headgate.checkpoints.catalog import CheckpointFacts, keep
from headgate.checkpoints.restore import fork
from headgate.engine.session import open_session
from headgate.engine.settings import SparkSettings
from headgate.flow.graph import Graph
from headgate.jobs.home import JobHome
from headgate.jobs.runs import new_run, write_run

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoint-v1.tar.gz"
# The run that was stored: its job, its lineage, its last batch, and how it cut its batches.
JOB, LINEAGE, LAST, MAX_BATCH = "shop", "20261115T152501-31b689", 20, 64
# Spark counts operators from the sink up.
ITEMS, USERS = 0, 1
OUTPUTS = ("enriched", "missing-users", "missing-items")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Give a run that an earlier release made: its topics, outputs and Spark's folder."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def facts() -> CheckpointFacts:
    return CheckpointFacts(
        job=JOB, lineage=LINEAGE, completed_at=datetime(2026, 11, 15, tzinfo=UTC), parallelism=2
    )


def prepare_run(bench: Bench, lineage: str) -> Path:
    """Make a run the present one of its job and return where its checkpoint is to be."""
    graph = Graph.from_json((bench.root / "flow.json").read_text())
    home = JobHome(bench.home, JOB)
    run = new_run(home, graph, parallelism=2, checkpoints=None, now=datetime.now(UTC))
    place = home.run_folder(lineage) / "checkpoint"
    write_run(home, replace(run, lineage=lineage, checkpoint=place))
    home.write_present_run(lineage)
    return place


def outputs_of(bench: Bench, topic: str, lineage: str, *, after: int = -1) -> Counter[str]:
    """Return what a run wrote into a topic after a batch, as any reader would see it."""
    records = []
    for file in (bench.topics / topic).glob(f"part-*/{lineage}-*.jsonl"):
        if int(file.stem.removeprefix(f"{lineage}-").split("-")[0]) > after:
            records += [json.loads(line) for line in file.read_text().splitlines()]
    return bag(records)


def test_a_fork_writes_again_what_the_old_run_wrote_after_the_checkpoint(stored: Path) -> None:
    batch = 11
    bench = Bench(stored)
    kept = keep(stored / "checkpoint", batch, stored / "kept", facts())
    place = prepare_run(bench, "restored")
    fork(kept.folder, place)
    # Nothing but the kept files may be of use, and nothing may point back.
    shutil.rmtree(stored / "checkpoint")
    shutil.rmtree(stored / "kept")

    snapshot = bench.run(stored / "flow.json", max_batch=MAX_BATCH)

    assert snapshot.resumed_from == batch
    for topic in OUTPUTS:
        expected = outputs_of(bench, topic, LINEAGE, after=batch)
        assert outputs_of(bench, topic, "restored") == expected
    assert outputs_of(bench, "enriched", "restored")


def test_a_savepoint_of_an_earlier_release_is_restored_after_it_was_moved(stored: Path) -> None:
    bench = Bench(stored)
    taken = savepoint.create(stored / "checkpoint", 16, stored / "taken", facts())
    shutil.rmtree(stored / "checkpoint")
    elsewhere = stored / "far" / "away"
    elsewhere.parent.mkdir()
    taken.folder.rename(elsewhere)
    place = prepare_run(bench, "moved")
    fork(elsewhere, place)
    shutil.rmtree(elsewhere)

    bench.run(stored / "flow.json", max_batch=MAX_BATCH)

    for topic in OUTPUTS:
        assert outputs_of(bench, topic, "moved") == outputs_of(bench, topic, LINEAGE, after=16)


def test_a_fork_of_every_kind_of_batch_holds_the_state_of_its_batch(stored: Path) -> None:
    # Right at a snapshot (12), just after one (13), far from one (11), at a start (2), the first.
    batches = [0, 2, 11, 12, 13, LAST]
    whole = move_in_place(stored)
    forks = {}
    for batch in batches:
        kept = keep(whole, batch, stored / "kept", facts())
        forks[batch] = stored / "forks" / str(batch)
        fork(kept.folder, forks[batch])
    with session(stored) as spark:
        for operator in (ITEMS, USERS):
            wanted = {batch: read_state(spark, whole, batch, operator) for batch in batches}
            found = {batch: read_state(spark, forks[batch], batch, operator) for batch in batches}
            assert found == wanted
    # Users changed from batch to batch, so that one batch's state cannot pass for another's.
    assert len({tuple(rows) for rows in wanted.values()}) >= 3


def move_in_place(stored: Path) -> Path:
    """Rewrite the paths that the stored folder names, so that Spark can read all of it as it is."""
    for file in (stored / "checkpoint" / "state").glob("*/_metadata/v2/*"):
        text = file.read_text()
        prefix = text.split('"file:')[1].split("/state/")[0]
        file.write_text(text.replace(f"file:{prefix}/", f"file:{stored / 'checkpoint'}/"))
    return stored / "checkpoint"


@contextmanager
def session(root: Path) -> Iterator[SparkSession]:
    spark = open_session(SparkSettings(parallelism=2, log_file=root / "logs" / "spark.log"))
    try:
        yield spark
    finally:
        spark.stop()


def read_state(spark: SparkSession, checkpoint: Path, batch: int, operator: int) -> list[str]:
    """Return an operator's state after a batch, as Spark's own reader sees it."""
    rows = (
        spark.read.format("statestore")
        .option("batchId", batch)
        .option("operatorId", operator)
        .option("stateVarName", "table")
        .load(str(checkpoint))
    )
    return sorted(str(row) for row in rows.collect())
