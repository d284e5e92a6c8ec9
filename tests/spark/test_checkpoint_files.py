"""Forks of real checkpoints: Spark goes on from exactly the files that were brought along."""

from __future__ import annotations

import json
import queue
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench import bag
from pyspark.sql import SparkSession

from headgate.checkpoints import savepoint
from headgate.checkpoints.catalog import keep
from headgate.checkpoints.manifest import CheckpointFacts
from headgate.checkpoints.restore import fork
from headgate.checkpoints.sparklog import list_commits
from headgate.connectors.logs import bind, parse_log
from headgate.engine.attempt.attempt import Attempt, Ending
from headgate.engine.session.session import open_session
from headgate.engine.settings import AttemptSettings, SparkSettings
from headgate.flow.graph.graph import Graph
from headgate.jobs.attempts.wire import AttemptSpec, Failed, News
from headgate.jobs.attempts.worker import work
from headgate.jobs.lifecycle.vocabulary import Order

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoint-v2.tar.gz"
# The run that was stored: its job, its last batch, and how it cut its batches.
JOB, LAST, MAX_BATCH = "shop", 20, 64
# Spark counts operators from the sink up.
ITEMS, USERS = 0, 1
OUTPUTS = ("enriched", "missing-users", "missing-items")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Give a run that an earlier release made: its topics, outputs and Spark's folder."""
    with tarfile.open(FIXTURE) as archive:
        if hasattr(tarfile, "data_filter"):
            # Python knows filters from 3.11.4 on.
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)
    return tmp_path


def facts() -> CheckpointFacts:
    return CheckpointFacts(
        job=JOB, lineage="any", completed_at=datetime(2026, 11, 15, tzinfo=UTC), parallelism=2
    )


def lineage_of(stored: Path) -> str:
    """Return what the outputs of the stored run are named after."""
    return str(json.loads((stored / "run.json").read_text())["lineage"])


def attempt_spec(stored: Path, checkpoint: Path, *, lineage: str) -> AttemptSpec:
    """Return what runs the stored flow from a checkpoint on, in a lineage of its own."""
    graph = Graph.from_json((stored / "flow.json").read_text())
    settings = AttemptSettings(
        job=JOB,
        lineage=lineage,
        checkpoint=checkpoint,
        spark=spark_settings(stored),
        batch_every=timedelta(0),
        max_batch=MAX_BATCH,
        until_caught_up=True,
        history={table.id: (table.schema,) for table in graph.tables()},
    )
    bound = bind(graph, parse_log(f"files:{stored / 'topics'}"))
    return AttemptSpec(bound, settings, near=stored)


def run(stored: Path, checkpoint: Path, *, lineage: str) -> None:
    """Run the stored flow from a checkpoint on, in a lineage of its own, until it has caught up."""
    spec = attempt_spec(stored, checkpoint, lineage=lineage)
    attempt = Attempt(spec.graph, spec.settings, near=None)
    try:
        attempt.start()
        assert attempt.wait(120)
        assert attempt.ending() is Ending.CAUGHT_UP
    finally:
        attempt.close()


def spark_settings(stored: Path) -> SparkSettings:
    return SparkSettings(parallelism=2, log_file=stored / "logs" / "spark.log")


def outputs_of(stored: Path, topic: str, lineage: str, *, after: int = -1) -> Counter[str]:
    """Return what a run wrote into a topic after a batch, as any reader would see it."""
    records = []
    for file in (stored / "topics" / topic).glob(f"part-*/{lineage}-*.jsonl"):
        if int(file.stem.removeprefix(f"{lineage}-").split("-")[0]) > after:
            records += [json.loads(line) for line in file.read_text().splitlines()]
    return bag(records)


def test_a_fork_writes_again_what_the_old_run_wrote_after_the_checkpoint(stored: Path) -> None:
    batch = 11
    kept = keep(stored / "checkpoint", batch, stored / "kept", facts())
    place = stored / "restored" / "checkpoint"
    fork(kept.folder, place)
    # Nothing but the kept files may be of use, and nothing may point back.
    shutil.rmtree(stored / "checkpoint")
    shutil.rmtree(stored / "kept")

    run(stored, place, lineage="restored")

    assert min(list_commits(place)) == batch - 1
    for topic in OUTPUTS:
        expected = outputs_of(stored, topic, lineage_of(stored), after=batch)
        assert outputs_of(stored, topic, "restored") == expected
    assert outputs_of(stored, "enriched", "restored")


def test_a_savepoint_of_an_earlier_release_is_restored_after_it_was_moved(stored: Path) -> None:
    taken = savepoint.create(stored / "checkpoint", 16, stored / "taken", facts())
    shutil.rmtree(stored / "checkpoint")
    elsewhere = stored / "far" / "away"
    elsewhere.parent.mkdir()
    taken.folder.rename(elsewhere)
    place = stored / "moved" / "checkpoint"
    fork(elsewhere, place)
    shutil.rmtree(elsewhere)

    run(stored, place, lineage="moved")

    for topic in OUTPUTS:
        expected = outputs_of(stored, topic, lineage_of(stored), after=16)
        assert outputs_of(stored, topic, "moved") == expected


@pytest.mark.parametrize(
    "kind", ["state/0/1/*.changelog", "state/1/0/*.zip", "state/1/1/SSTs/*.sst"]
)
def test_damaged_state_is_told_by_its_file_and_not_retried(stored: Path, kind: str) -> None:
    kept = keep(stored / "checkpoint", 11, stored / "kept", facts())
    place = stored / "restored" / "checkpoint"
    fork(kept.folder, place)
    damaged = max(place.glob(kind))
    content = bytearray(damaged.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(255 - byte for byte in content[middle : middle + 8])
    damaged.write_bytes(bytes(content))

    orders: queue.Queue[Order] = queue.Queue()
    orders.put(Order.OPEN)
    news: list[News] = []
    work(attempt_spec(stored, place, lineage="damaged"), orders, news.append)

    assert isinstance(news[-1], Failed)
    failed = news[-1].failure
    assert (failed.code, failed.retryable) == ("CHECKPOINT_DAMAGED", False), failed
    assert str(damaged.relative_to(place)) in failed.message
    assert failed.hint == f"headgate verify {JOB}"


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
    spark = open_session(spark_settings(root))
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
